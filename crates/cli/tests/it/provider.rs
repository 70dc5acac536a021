//! `amplifier provider …`, and what `amplifier run` does when no provider is named.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, read};

/// What the small server does with a request.
#[derive(Clone, Copy)]
pub enum Manner {
    /// Answers as a server of the Chat Completions protocol with one model.
    Well,
    /// Does not take the key.
    Refuses,
    /// Takes the connection and says nothing.
    Silent,
}

/// A server on this machine; it ends with the test's process.
pub struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// What somebody asked the server.
#[derive(Clone, Default)]
struct Asked {
    path: String,
    body: String,
    key: Option<String>,
}

impl Server {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let shared = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(stream, manner, &shared));
            }
        });
        Self { address, asked }
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| format!("{} {}", asked.path, asked.body)).collect()
    }

    /// The key of the last request.
    pub fn last_key(&self) -> Option<String> {
        self.asked.lock().unwrap().last().and_then(|asked| asked.key.clone())
    }
}

fn serve(stream: TcpStream, manner: Manner, asked: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length, mut key) = (String::new(), 0, None);
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.to_lowercase().starts_with("authorization:") {
            key = line.trim().rsplit(' ').next().map(str::to_owned);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = first.split(' ').nth(1).unwrap().to_owned();
    let body = String::from_utf8(body).unwrap();
    asked.lock().unwrap().push(Asked { path: path.clone(), body, key });
    let refused = json!({"error": {"message": "Incorrect API key provided", "type": "invalid_api_key"}});
    let models =
        json!({"object": "list", "data": [{"id": "smol", "owned_by": "llamacpp", "meta": {"n_ctx": 4096}}]});
    match (manner, path.as_str()) {
        (Manner::Well, "/v1/models") => answer(stream, "200 OK", "application/json", &models.to_string()),
        (Manner::Well, "/v1/chat/completions") => answer(stream, "200 OK", "text/event-stream", &streamed()),
        (Manner::Well, _) => answer(stream, "404 Not Found", "application/json", "{}"),
        (Manner::Refuses, _) => {
            answer(stream, "401 Unauthorized", "application/json", &refused.to_string());
        }
        (Manner::Silent, _) => {
            // Until the other side has had enough.
            reader.read_to_end(&mut Vec::new()).unwrap_or(0);
        }
    }
}

fn answer(mut stream: TcpStream, status: &str, kind: &str, body: &str) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap_or(());
}

fn streamed() -> String {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": null}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage =
        json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}});
    [piece, end, usage].iter().map(|event| format!("data: {event}\n\n")).collect::<String>()
        + "data: [DONE]\n\n"
}

/// Where nobody listens.
pub fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Runs with these variables; servers are looked for where nobody is unless a variable says otherwise.
pub fn with(desk: &Desk, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let nobody = closed().to_string();
    let mut command = desk.command(args);
    command.env("OLLAMA_HOST", &nobody).env("LLAMA_CPP_HOST", &nobody);
    let ran = Ran::of(command.envs(variables.iter().copied()).output().unwrap());
    let tidy = |text: String| text.replace(&nobody, "<nobody>");
    Ran { code: ran.code, stdout: tidy(ran.stdout), stderr: tidy(ran.stderr) }
}

/// What a person saw, with the server's address and the times taken out.
fn seen(ran: &Ran, server: &Server) -> String {
    let text = ran.seen().replace(&server.address.to_string(), "<server>");
    let times = |line: &str| match line.strip_suffix(" ms").and_then(|line| line.rsplit_once(' ')) {
        Some((name, time)) => {
            assert!(time.parse::<f64>().unwrap() >= 0.0, "{line}");
            format!("{name} <time> ms\n")
        }
        None => format!("{line}\n"),
    };
    text.lines().map(times).collect()
}

fn plan_without_provider(desk: &Desk) {
    let plan =
        json!({"session": {"orchestrator": "loop-basic", "context": "context-simple"}, "providers": []});
    desk.plan("plan.json", &plan);
}

#[test]
fn the_list_says_of_every_provider_whether_it_can_be_used_and_why() {
    let desk = Desk::new();
    let key = ("ANTHROPIC_API_KEY", "sk-ant-never-shown");
    let ran = with(&desk, &[key], &["provider", "list"]);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
    assert_snapshot!("list", ran.seen());
    let told = with(&desk, &[key], &["provider", "list", "--output", "json"]);
    assert!(!(told.stdout.clone() + &told.stderr + &ran.stdout).contains("never-shown"));
    let told = told.json();
    assert_eq!(told["detected"], "provider-anthropic");
    assert_eq!(told["providers"][0]["variables"], json!([{"name": "ANTHROPIC_API_KEY", "set": true}]));
    assert_eq!(told["providers"].as_array().unwrap().len(), 9);
    assert_eq!(desk.sessions().len(), 0);
}

#[test]
fn a_server_on_this_machine_is_in_the_list() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let place = server.address.to_string();
    let told = with(&desk, &[("LLAMA_CPP_HOST", &place)], &["provider", "list", "--output", "json"]).json();
    assert_eq!(told["detected"], "provider-chat-completions");
    let row = told["providers"].as_array().unwrap().iter().find(|row| row["name"] == "chat-completions");
    let row = row.unwrap();
    assert_eq!(
        (&row["usable"], &row["model"], &row["base_url"]),
        (&json!(true), &json!("smol"), &json!(server.url()))
    );
}

#[test]
fn models_are_listed_through_the_provider() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let args = ["provider", "models", "chat-completions", "--base-url", &server.url()];
    assert_snapshot!("models", with(&desk, &[], &args).seen());
    let place = server.address.to_string();
    let told = with(&desk, &[("LLAMA_CPP_HOST", &place)], &["provider", "models", "--output", "json"]).json();
    assert_eq!(told["models"][0]["id"], "smol");
    assert_eq!(told["models"][0]["context_window"], 4096);
}

#[test]
fn a_test_asks_for_one_token_and_tells_the_times() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let url = server.url();
    let args = ["provider", "test", "--base-url", &url, "--model", "tiny"];
    assert_snapshot!("test", seen(&with(&desk, &[], &args), &server));
    let asked = server.asked().pop().unwrap();
    let body: Value = serde_json::from_str(asked.strip_prefix("/v1/chat/completions ").unwrap()).unwrap();
    assert_eq!((&body["model"], &body["stream"]), (&json!("tiny"), &json!(true)), "{body}");
    assert!(body["max_tokens"] == 1 || body["max_completion_tokens"] == 1, "{body}");
    let args = [args.as_slice(), &["--output", "json"]].concat();
    let told = with(&desk, &[], &args).json();
    assert_eq!((&told["ok"], &told["usage"]["output_tokens"]), (&json!(true), &json!(1)));
    for key in ["connect_ms", "first_token_ms", "total_ms"] {
        assert!(told[key].as_f64().unwrap() > 0.0, "{key}: {told}");
    }
    assert!(told["first_token_ms"].as_f64() <= told["total_ms"].as_f64(), "{told}");
    assert_eq!(desk.sessions().len(), 0);
}

#[test]
fn without_a_key_a_provider_is_not_asked() {
    let desk = Desk::new();
    assert_snapshot!("no_key", with(&desk, &[], &["provider", "test", "openai"]).seen());
    assert_snapshot!("unknown", with(&desk, &[], &["provider", "test", "antropic"]).seen());
    assert_eq!(with(&desk, &[], &["provider", "models", "tool-bash"]).code, 2);
    assert_eq!(with(&desk, &[], &["provider", "test", "mock", "--timeout", "0"]).code, 2);
    assert_eq!(with(&desk, &[], &["provider", "test", "mock"]).code, 0);
}

#[test]
fn a_wrong_key_is_told_with_its_variable_and_without_its_value() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Refuses));
    let variables = [("OPENAI_API_KEY", "sk-wrong-and-secret"), ("OPENAI_BASE_URL", &server.url())];
    for args in [["provider", "test", "openai"], ["provider", "models", "openai"]] {
        let ran = with(&desk, &variables, &args);
        assert!(!ran.seen().contains("wrong-and-secret"), "{}", ran.seen());
        assert_snapshot!(format!("wrong_key_{}", args[1]), seen(&ran, &server));
    }
    assert_eq!(server.asked().len(), 2, "nothing is tried again");
    let args = ["provider", "test", "openai", "--output", "json"];
    let told = with(&desk, &variables, &args).json();
    assert_eq!((&told["ok"], &told["error"]["type"]), (&json!(false), &json!("AuthenticationError")));
}

#[test]
fn a_server_that_is_gone_is_told_with_its_place() {
    let desk = Desk::new();
    let gone = closed().to_string();
    let url = format!("http://{gone}/v1");
    let ran = with(&desk, &[], &["provider", "test", "vllm", "--base-url", &url]);
    // What the system calls it differs from machine to machine.
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(ran.code, 1, "{}", ran.seen());
    let told = format!("error: `vllm` at {url}, model `openai/gpt-oss-20b`: cannot be reached: ");
    assert!(lines.first().unwrap().starts_with(&told), "{}", ran.stderr);
    assert!(lines.first().unwrap().ends_with("(NetworkError)"), "{}", ran.stderr);
    let hint = format!("  hint: is there a server at {url}? `--base-url` names another place");
    assert_eq!(lines.last(), Some(&hint.as_str()), "{}", ran.stderr);
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Silent));
    let url = server.url();
    let args = ["provider", "test", "chat-completions", "--base-url", &url, "--timeout", "0.4"];
    let ran = with(&desk, &[], &args);
    // Two time-outs run out together; which one is told does not matter.
    assert!(
        ran.stderr.starts_with(&format!("error: `chat-completions` at {url}"))
            && ran.stderr.contains("0.4 s (LLMTimeoutError)\n")
    );
    assert!(ran.stderr.ends_with("  hint: `--timeout SECONDS` waits longer\n"), "{}", ran.stderr);
    assert_eq!((ran.code, ran.stdout.as_str(), server.asked().len()), (124, "", 1));
}

#[test]
fn a_plan_without_a_provider_runs_with_the_one_that_is_found() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    plan_without_provider(&desk);
    let place = server.address.to_string();
    let found = [("LLAMA_CPP_HOST", place.as_str())];
    assert_snapshot!("found", seen(&with(&desk, &found, &["run", "--plan", "plan.json", "hi"]), &server));
    // The session keeps what was found: it goes on with it when nothing can be found any more.
    let session = desk.sessions().pop().unwrap();
    let plan: Value = serde_json::from_str(&read(&session.join("mount_plan.json"))).unwrap();
    assert_eq!(plan["providers"][0]["config"]["base_url"], server.url());
    let id = session.file_name().unwrap().to_str().unwrap().to_owned();
    let ran = with(&desk, &[], &["run", "--resume", &id, "again"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "Hello\n", ""));
}

#[test]
fn nothing_found_says_what_was_looked_for() {
    let desk = Desk::new();
    plan_without_provider(&desk);
    assert_snapshot!("nothing", with(&desk, &[], &["run", "--strict", "--plan", "plan.json", "hi"]).seen());
    assert_eq!(desk.sessions().len(), 0);
    assert_eq!(with(&desk, &[], &["provider", "test"]).code, 2);
}

#[test]
fn the_provider_and_the_model_can_be_named() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    plan_without_provider(&desk);
    let url = server.url();
    let place = [("CHAT_COMPLETIONS_BASE_URL", url.as_str())];
    let ran =
        with(&desk, &place, &["run", "--plan", "plan.json", "-p", "chat-completions", "-m", "tiny", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "Hello\n", ""));
    assert!(server.asked().iter().any(|asked| asked.contains("\"model\":\"tiny\"")), "{:?}", server.asked());
    let ran = with(
        &desk,
        &[],
        &["run", "--plan", "plan.json", "--provider", "mock", "-m", "m", "--output", "jsonl", "hi"],
    );
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stdout.contains("\"model\":\"m\""), "{}", ran.stdout);
    assert_eq!(with(&desk, &[], &["run", "--plan", "plan.json", "-p", "a b/c", "hi"]).code, 2);
}

/// The words in backticks in the first column of the table below a heading.
fn first_column(page: &str, heading: &str) -> Vec<String> {
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let words = |cell: &str| cell.split('`').map(str::to_owned).collect::<Vec<_>>();
    cells.flat_map(|cell| words(cell).into_iter().step_by(2)).map(|word| word.trim().to_owned()).collect()
}

#[test]
fn the_reference_page_names_keys_and_variables_that_exist() {
    let page = read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/providers.md").as_ref());
    let desk = Desk::new();
    let listed = desk.amplifier(&["module", "list", "--output", "json"]).json();
    let providers = listed["modules"].as_array().unwrap().iter().filter(|module| {
        module["type"] == "provider" && module["id"] != "provider-mock" && module["id"] != "provider-demo"
    });
    let keys = first_column(&page, "Config keys");
    assert!(keys.len() > 20, "{keys:?}");
    for module in providers {
        let told =
            desk.amplifier(&["module", "info", module["id"].as_str().unwrap(), "--output", "json"]).json();
        let known = told["config_schema"]["properties"].as_object().unwrap();
        let wrong = keys.iter().find(|key| !known.contains_key(*key));
        assert_eq!(wrong, None, "{}", module["id"]);
        let price = &told["config_schema"]["$defs"]["Price"]["properties"];
        assert!(price["cache_write"].is_object(), "{}", module["id"]);
    }
    let variables = first_column(&page, "Variables");
    let known = read(concat!(env!("CARGO_MANIFEST_DIR"), "/../app/src/env.rs").as_ref());
    assert!(variables.len() > 15, "{variables:?}");
    assert_eq!(variables.iter().find(|name| !known.contains(&format!("\"{name}\""))), None);
}

#[test]
fn the_place_of_ollama_is_read_as_ollama_reads_it() {
    let desk = Desk::new();
    for (written, read) in [
        ("::1", "http://[::1]:11434"),
        ("[::1]:1", "http://[::1]:1"),
        (":1", "http://127.0.0.1:1"),
        ("0.0.0.0:1", "http://127.0.0.1:1"),
        ("127.0.0.1:1", "http://127.0.0.1:1"),
        ("http://127.0.0.1:1/", "http://127.0.0.1:1"),
    ] {
        let ran = with(&desk, &[("OLLAMA_HOST", written)], &["provider", "list"]);
        assert_eq!(ran.code, 0, "{}", ran.seen());
        let words: Vec<_> = ran.stdout.split_whitespace().collect();
        assert!(words.iter().any(|word| word.trim_end_matches(';') == read), "{written}: {}", ran.seen());
    }
}
