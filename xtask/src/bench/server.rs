//! A model server on loopback that answers at once, for whoever is measured: Chat Completions and Responses, streamed or
//! whole. It measures nothing. `server/answers.rs` says what it answers; here are sockets.
//!
//! It ends with this process: a bench that stops leaves nothing behind.

mod answers;

use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(super) use self::answers::NOTE;
use self::answers::{Answer, Pace};
use crate::output::TaskError;

/// More than any request of a bench.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A server that runs.
pub(super) struct Server {
    address: SocketAddr,
}

impl Server {
    pub(super) fn start() -> Result<Self, TaskError> {
        let failed =
            |source| TaskError::Start { program: "the model server of the bench".to_owned(), source };
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away in the middle is its own business.
                thread::spawn(move || drop(serve(stream)));
            }
        });
        Ok(Self { address })
    }

    /// Where it listens, with the path that clients expect.
    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

/// Answers the requests of one connection, one after the other.
fn serve(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = BufWriter::with_capacity(64 * 1024, stream);
    while let Some((path, body)) = request(&mut reader)? {
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        write(&mut writer, &answers::answer(&path, &body))?;
        writer.flush()?;
    }
    Ok(())
}

/// The path and the body of the next request; nothing when the client has closed.
fn request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0_u64;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.take(length.min(MOST_BYTES)).read_to_end(&mut body)?;
    Ok(Some((path, body)))
}

fn whole(writer: &mut BufWriter<TcpStream>, status: &str, document: &Value) -> std::io::Result<()> {
    let text = document.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json");
    write!(writer, "{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

fn write(writer: &mut BufWriter<TcpStream>, answer: &Answer) -> std::io::Result<()> {
    let (events, pace) = match answer {
        Answer::Missing => {
            return writer.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
        }
        Answer::Document(document) => return whole(writer, "200 OK", document),
        Answer::Refused(why) => return whole(writer, "400 Bad Request", &json!({"error": {"message": why}})),
        Answer::Stream(events, pace) => (events, *pace),
    };
    writer.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
          transfer-encoding: chunked\r\n\r\n",
    )?;
    let began = Instant::now();
    for (number, event) in events.iter().enumerate() {
        if let Pace::PerMillisecond(events) = pace {
            let due = Duration::from_millis(u64::try_from(number / events.max(1)).unwrap_or(0));
            thread::sleep(due.saturating_sub(began.elapsed()));
        }
        write!(writer, "{:x}\r\n{event}\r\n", event.len())?;
        if matches!(pace, Pace::PerMillisecond(_)) {
            // Each piece by itself, as a model that thinks would send it.
            writer.flush()?;
        }
    }
    writer.write_all(b"0\r\n\r\n")
}
