//! A small HTTP server on loopback for the tests of `tool-web`: answers by path and writes down what it was asked.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

/// What is sent for a path.
#[derive(Clone)]
pub enum Reply {
    /// Headers and body, and then the connection is closed.
    Whole(Vec<u8>),
    /// This, and then nothing until the other side is gone.
    Stuck(Vec<u8>),
}

pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    /// A message for each connection that the other side closed while it was stuck.
    pub left: UnboundedReceiver<()>,
    running: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Server {
    pub async fn new(replies: impl IntoIterator<Item = (&'static str, Reply)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let replies: HashMap<_, _> = replies.into_iter().collect();
        let (asked, (tell, left)) = (Arc::new(Mutex::new(Vec::new())), unbounded_channel());
        let notes = Arc::clone(&asked);
        let running = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, replies.clone(), Arc::clone(&notes), tell.clone()));
            }
        });
        Self { address, asked, left, running: running.abort_handle() }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads and bodies of the requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    replies: HashMap<&'static str, Reply>,
    asked: Arc<Mutex<Vec<String>>>,
    left: UnboundedSender<()>,
) {
    let request = request(&mut stream).await;
    let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap().push(request);
    let path = path.split('?').next().unwrap_or_default();
    let missing = || Reply::Whole(whole("404 Not Found", "text/plain", "nothing here"));
    match replies.get(path).cloned().unwrap_or_else(missing) {
        // A reader that has enough closes early.
        Reply::Whole(bytes) => drop(stream.write_all(&bytes).await),
        Reply::Stuck(bytes) => {
            stream.write_all(&bytes).await.unwrap();
            let mut rest = Vec::new();
            drop(stream.read_to_end(&mut rest).await);
            left.send(()).ok();
        }
    }
}

/// One request: its head and, when it announces one, its body.
async fn request(stream: &mut TcpStream) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(count) => bytes.extend(&buffer[..count]),
        }
    }
}

/// A whole answer.
pub fn whole(status: &str, content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub fn ok(content_type: &str, body: impl AsRef<[u8]>) -> Reply {
    Reply::Whole(whole("200 OK", content_type, body))
}

pub fn redirect(to: &str) -> Reply {
    let head =
        format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    Reply::Whole(head.into_bytes())
}
