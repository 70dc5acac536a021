//! A model on the loopback: it keeps every request it gets and answers from a script.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub struct Model {
    port: u16,
    asked: Arc<Mutex<Vec<Value>>>,
    serving: JoinHandle<()>,
}

impl Drop for Model {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Calls a tool.
pub fn calls(name: &str, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": function}]})
}

/// Says something.
pub fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

impl Model {
    /// Answers with these messages, one for each request; the last again and again.
    pub async fn start(script: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                answer(stream, &script, &kept).await;
            }
        });
        Self { port, asked, serving }
    }

    /// The entry of a plan that asks this model.
    pub fn provider(&self) -> Value {
        let base_url = format!("http://127.0.0.1:{}/v1", self.port);
        let config = json!({"base_url": base_url, "model": "m", "api_key": "none", "use_streaming": false});
        json!({"module": "provider-chat-completions", "config": config})
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

/// The system prompt of a request.
pub fn system(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let system = messages.iter().filter(|message| message["role"] == "system");
    system.map(|message| message["content"].as_str().unwrap()).collect()
}

/// Everything that a request says, in order.
pub fn whole(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().map(|message| message["content"].to_string()).collect::<Vec<_>>().join("\n")
}

async fn answer(mut stream: TcpStream, script: &[Value], asked: &Mutex<Vec<Value>>) {
    let mut text = Vec::new();
    let body = loop {
        let mut part = [0; 8192];
        let count = stream.read(&mut part).await.unwrap();
        assert!(count > 0, "the request was cut off");
        text.extend_from_slice(&part[..count]);
        let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&text[..end]).to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let length: usize = length.unwrap().trim().parse().unwrap();
        if text.len() >= end + 4 + length {
            break text.split_off(end + 4);
        }
    };
    let at = {
        let mut asked = asked.lock().unwrap();
        asked.push(serde_json::from_slice(&body).unwrap());
        asked.len() - 1
    };
    let message = script.get(at).or(script.last()).unwrap();
    let reason = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    let reply = json!({
        "id": "r", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
    .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        reply.len()
    );
    stream.write_all(format!("{head}{reply}").as_bytes()).await.unwrap();
}
