//! A small HTTP server on the loopback: answers from a function, remembers what it was asked, breaks off when told to.
//! With [`git`] it serves repositories the way a hosting service does. It is no server for anything but tests.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a server of tests that breaks shall say so at once"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::sync::lock;

/// What was asked.
pub struct Request {
    /// Such as `GET`.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// What follows the question mark, or nothing.
    pub query: String,
    /// Names in small letters.
    pub headers: BTreeMap<String, String>,
    /// All of it.
    pub body: Vec<u8>,
}

/// What is answered.
pub struct Reply {
    /// Such as 200.
    pub status: u16,
    /// In this order; the length is told by itself.
    pub headers: Vec<(String, String)>,
    /// All of it.
    pub body: Vec<u8>,
    /// How it ends.
    pub end: End,
}

/// How an answer ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As it says.
    Whole,
    /// It promises more bytes than it sends, then hangs up.
    Torn,
    /// It promises more bytes than it sends, then says nothing for ever.
    Stalled,
    /// It does not say how long it is.
    Unannounced,
}

impl Reply {
    /// An answer that ends as it says.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), end: End::Whole }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The same with another end.
    #[must_use]
    pub fn ending(self, end: End) -> Self {
        Self { end, ..self }
    }
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// A running server; dropping it ends it.
pub struct Server {
    /// The free port it found.
    pub port: u16,
    log: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts one that answers with this function, many questions at a time.
    pub async fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Mutex::new(Vec::new()));
        let handler: Arc<Handler> = Arc::new(handler);
        let seen = Arc::clone(&log);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (handler, seen) = (Arc::clone(&handler), Arc::clone(&seen));
                tokio::spawn(async move {
                    // A client that hangs up is no fault of the server.
                    serve(stream, handler, seen).await.ok();
                });
            }
        });
        Self { port, log, task }
    }

    /// The address of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Everything that was asked, one line each.
    pub fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// How many times content was fetched from a repository.
    pub fn fetches(&self) -> usize {
        self.log().iter().filter(|line| line.contains("command=fetch")).count()
    }
}

async fn serve(
    stream: TcpStream,
    handler: Arc<Handler>,
    log: Arc<Mutex<Vec<String>>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let request = read_request(&mut stream).await?;
    let line = format!(
        "{} {}?{} {}",
        request.method,
        request.path,
        request.query,
        String::from_utf8_lossy(&request.body).replace('\n', " ")
    );
    lock(&log).push(line);
    let reply = tokio::task::spawn_blocking(move || handler(&request)).await.unwrap();
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match reply.end {
        End::Whole => head.push_str(&format!("Content-Length: {}\r\n", reply.body.len())),
        End::Torn | End::Stalled => {
            head.push_str(&format!("Content-Length: {}\r\n", reply.body.len() + 1000))
        }
        End::Unannounced => {}
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&reply.body).await?;
    stream.flush().await?;
    if reply.end == End::Stalled {
        // Until the client gives up.
        stream.read_u8().await?;
    }
    stream.shutdown().await
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|value| value == "chunked") {
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk).await?;
            chunk.truncate(size);
            body.extend(chunk);
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = headers.get("content-length") {
        body.resize(length.parse().unwrap(), 0);
        stream.read_exact(&mut body).await?;
    }
    Ok(Request { method, path, query, headers, body })
}

/// Serves the repositories in a folder through git's own program for that.
///
/// The variables are all that git sees of the machine; `PATH` must be among them.
pub fn git(
    root: &Path,
    variables: BTreeMap<OsString, OsString>,
) -> impl Fn(&Request) -> Reply + Send + Sync + use<> {
    let root = root.to_owned();
    move |request| {
        let header = |name: &str| request.headers.get(name).cloned().unwrap_or_default();
        let mut child = Command::new("git")
            .arg("http-backend")
            .env_clear()
            .envs(&variables)
            .env("GIT_PROJECT_ROOT", &root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("GIT_PROTOCOL", header("git-protocol"))
            .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
            .env("REQUEST_METHOD", &request.method)
            .env("PATH_INFO", &request.path)
            .env("QUERY_STRING", &request.query)
            .env("CONTENT_TYPE", header("content-type"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("these tests need `git` with `http-backend`; install it");
        child.stdin.take().unwrap().write_all(&request.body).unwrap();
        let output = child.wait_with_output().unwrap().stdout;
        let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(output.len());
        let mut reply = Reply::new(200, output.get(end + 4..).unwrap_or_default());
        for line in String::from_utf8_lossy(output.get(..end).unwrap_or_default()).lines() {
            let (name, value) = line.split_once(": ").unwrap();
            match name {
                "Status" => reply.status = value.split(' ').next().unwrap().parse().unwrap(),
                _ => reply = reply.with(name, value),
            }
        }
        reply
    }
}
