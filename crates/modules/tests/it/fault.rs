//! A server on this machine that answers as badly as it is told to, and remembers what it was asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What the server does with one request, step by step. Without `Hang` the connection is closed at the end.
#[derive(Clone)]
pub enum Act {
    /// Status line and headers; `content-length` is not sent, so the body ends with the connection.
    Head(u16, Vec<(&'static str, String)>),
    /// Status line and headers for a body in chunks, so that a cut is a cut.
    Chunked(u16, &'static str),
    /// Bytes as they are.
    Send(Vec<u8>),
    /// One chunk of a body in chunks.
    Chunk(String),
    /// The proper end of a body in chunks.
    Last,
    /// The same bytes again and again, until the other side has had enough.
    Forever(Vec<u8>),
    /// Nothing more, until the other side closes.
    Hang,
}

/// What the server was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub head: String,
    pub body: Value,
}

pub struct FaultServer {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    asked: Mutex<Vec<Asked>>,
    script: Mutex<Vec<Vec<Act>>>,
    closed_early: Notify,
}

impl FaultServer {
    /// Plays one entry of the script for each request; the last one again and again.
    pub async fn start(script: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State { script: Mutex::new(script), ..State::default() });
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { address, state, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Waits until a client closed a connection on which the server still wanted to say something.
    pub async fn closed_early(&self) {
        tokio::time::timeout(Duration::from_secs(30), self.state.closed_early.notified()).await.unwrap();
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    let Some(asked) = read_request(&mut stream).await else { return };
    state.asked.lock().unwrap().push(asked);
    let acts = {
        let mut script = state.script.lock().unwrap();
        if script.len() > 1 { script.remove(0) } else { script.first().cloned().unwrap_or_default() }
    };
    for act in acts {
        let sent = match act {
            Act::Head(status, headers) => {
                let lines: String =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                stream
                    .write_all(format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{lines}\r\n").as_bytes())
                    .await
            }
            Act::Chunked(status, kind) => {
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await
            }
            Act::Send(bytes) => stream.write_all(&bytes).await,
            Act::Chunk(text) => stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await,
            Act::Last => stream.write_all(b"0\r\n\r\n").await,
            Act::Forever(bytes) => loop {
                if let Err(error) = stream.write_all(&bytes).await {
                    break Err(error);
                }
            },
            Act::Hang => {
                let mut rest = [0_u8; 64];
                while matches!(stream.read(&mut rest).await, Ok(read) if read > 0) {}
                Err(std::io::ErrorKind::ConnectionAborted.into())
            }
        };
        if sent.is_err() {
            state.closed_early.notify_one();
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        let mut more = [0_u8; 4096];
        match stream.read(&mut more).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&more[..read]),
            _ => return None,
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |n| n.trim().parse().unwrap());
    let mut body = bytes[end..].to_vec();
    while body.len() < length {
        let mut more = vec![0_u8; length - body.len()];
        match stream.read(&mut more).await {
            Ok(read) if read > 0 => body.extend_from_slice(&more[..read]),
            _ => return None,
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Asked { path, head, body })
}

/// A failure with a JSON body.
pub fn refuses(status: u16, headers: &[(&'static str, &str)], body: Value) -> Vec<Act> {
    let mut all: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    all.push(("content-type", "application/json".to_owned()));
    vec![Act::Head(status, all), Act::Send(body.to_string().into_bytes())]
}

/// One event of a stream.
pub fn event(data: &Value) -> Act {
    Act::Chunk(format!("data: {data}\n\n"))
}

/// A chunk that adds this to the answer.
pub fn delta(delta: Value) -> Act {
    event(
        &json!({"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
    )
}

pub fn opened() -> Act {
    Act::Chunked(200, "text/event-stream")
}

/// The end of a whole stream.
pub fn done(reason: &str) -> Vec<Act> {
    vec![
        event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})),
        event(
            &json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}),
        ),
        Act::Chunk("data: [DONE]\n\n".to_owned()),
        Act::Last,
    ]
}

/// A whole stream that says this.
pub fn says(text: &str) -> Vec<Act> {
    let mut acts = vec![opened()];
    acts.extend(text.split_inclusive(' ').map(|word| delta(json!({"content": word}))));
    acts.extend(done("stop"));
    acts
}
