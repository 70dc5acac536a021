//! What `run` advises is a command that works as it is printed, and programs are told the same.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_testing::http::{Reply, Request, Server};
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, plan, read, says};
use crate::provider::with;

/// A plan that has used up its one step when the model has called its tool.
fn limited() -> Value {
    let call = json!({"tool_calls": [{"name": "list_directory", "arguments": {}}]});
    let mut plan = plan(json!({"responses": [call, "done"]}));
    plan["session"]["limits"] = json!({"steps": 1});
    plan
}

/// The first command that a hint names.
#[track_caller]
fn advised(hint: &str) -> &str {
    let command = hint.split('`').find(|part| part.starts_with("amplifier "));
    command.unwrap_or_else(|| panic!("no command in {hint}"))
}

/// Types a command as it was printed, in a shell that knows nothing of the home.
fn typed(desk: &Desk, command: &str) -> Ran {
    let program = command.replacen("amplifier", env!("CARGO_BIN_EXE_amplifier"), 1);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(program).current_dir(desk.work()).env_clear().stdin(Stdio::null());
    Ran::of(shell.output().unwrap())
}

#[test]
fn a_hint_can_be_typed_as_it_is_printed() {
    let desk = Desk::new();
    desk.plan("a.json", &limited());
    let home = desk.path("a home of mine").display().to_string();
    let mut command =
        desk.command(&["--home", &home, "run", "--plan", "a.json", "--output", "json", "--cwd", ".", "hi"]);
    let ran = Ran::of(command.env_remove("AMPLIFIER_HOME").output().unwrap());
    assert_eq!(ran.code, 3, "{}", ran.seen());
    let (_, printed) = ran.stderr.split_once("  hint: ").unwrap();
    let hint = ran.json()["hint"].as_str().unwrap().to_owned();
    assert_eq!(printed.trim_end(), hint, "programs are told the same");
    let command = advised(&hint);
    let flags = format!("amplifier --home '{home}' --cwd . run --resume ");
    assert!(command.starts_with(&flags) && command.ends_with("--set session.limits.steps=4"), "{hint}");
    let again = typed(&desk, command);
    assert_eq!((again.code, again.stdout.as_str()), (0, "done\n"), "{}", again.seen());
    // What is found without a flag needs none.
    let told = desk.amplifier(&["run", "--plan", "a.json", "hi"]);
    assert!(told.stderr.contains("`amplifier run --resume "), "{}", told.seen());
}

#[test]
fn every_word_beside_the_answer_has_the_home_that_was_given() {
    let desk = Desk::new();
    for args in [&["run", "--bundle", "fundation", "hi"][..], &["module", "info", "tool-none"], &["init"]] {
        let ran = desk.amplifier(&[&["--home", "x"], args].concat());
        assert!(ran.stderr.contains("`amplifier --home x "), "{}", ran.seen());
        assert!(!ran.stderr.contains("`amplifier bundle") && !ran.stderr.contains("--home x --home x"));
    }
    let told = desk.amplifier(&["--home", "x", "collection", "list"]);
    assert!(told.stdout.contains("`amplifier --home x collection add NAME SOURCE`"), "{}", told.seen());
}

#[test]
fn money_that_is_used_up_goes_on_with_more() {
    let desk = Desk::new();
    let call = json!({"text": "x", "tool_calls": [{"name": "list_directory", "arguments": {}}],
        "usage": {"input_tokens": 1, "output_tokens": 1, "cost_usd": "0.30"}});
    desk.plan("a.json", &plan(json!({"responses": [call, "done"]})));
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--max-cost", "0.20", "hi"]);
    assert_eq!(ran.code, 3, "{}", ran.seen());
    let command = advised(&ran.stderr[ran.stderr.find("hint: ").unwrap()..]).to_owned();
    assert!(command.ends_with(" --continue --max-cost 1.2"), "{command}");
    let again = desk.amplifier(&command.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!((again.code, again.stdout.as_str()), (0, "done\n"), "{}", again.seen());
}

#[test]
fn programs_are_told_why_where_and_what_to_do() {
    let desk = Desk::new();
    desk.file("broken.json", "{\n  \"session\": }")
        .plan("shape.json", &json!({"session": {"orchestrator": 7, "context": "context-simple"}}))
        .file("b.yaml", "bundle: {name: b}\ntools: 7\n")
        .file("y.yaml", "bundle: {name: b\ntools: [\n");
    let told = |args: &[&str]| {
        let ran = desk.amplifier(&[&["run", "--output", "json"], args, &["hi"]].concat());
        assert_eq!(ran.code, 2, "{}", ran.seen());
        ran.json()
    };
    let broken = told(&["--plan", "broken.json"]);
    assert_eq!(broken["place"], json!({"file": "broken.json", "line": 2, "column": 14}));
    assert_eq!(broken["hint"], "mend it at that place");
    let shape = told(&["--plan", "shape.json"]);
    assert_eq!(
        (&shape["place"]["file"], &shape["place"]["line"]),
        (&json!("shape.json"), &json!(1)),
        "{shape}"
    );
    let gone = told(&["--plan", "none.json"]);
    assert!(gone["causes"][0].as_str().unwrap().contains("No such file"), "{gone}");
    for (bundle, line) in [("./b.yaml", 2), ("./y.yaml", 2)] {
        let told = told(&["--bundle", bundle]);
        assert_eq!(told["place"]["line"], json!(line), "{told}");
        assert!(told["hint"].is_string() && told["place"]["file"].as_str().unwrap().ends_with(&bundle[2..]));
        assert!(!told["error"].as_str().unwrap().contains("hint:"), "{told}");
    }
    desk.file(".amplifier/settings.yaml", "limits:\n  max_cost_usd: much\n");
    let settings = told(&[]);
    assert_eq!(settings["place"]["line"], json!(2), "{settings}");
}

#[test]
fn a_config_that_does_not_fit_is_a_matter_of_configuration() {
    let desk = Desk::new();
    let mut loops = says("x");
    loops["session"]["orchestrator"] = json!({"module": "loop-basic", "config": {"max_iterations": "many"}});
    desk.plan("provider.json", &plan(json!({"responses": 7}))).plan("loop.json", &loops);
    for (file, module) in [("provider.json", "provider-mock"), ("loop.json", "loop-basic")] {
        let ran = desk.amplifier(&["run", "--plan", file, "--output", "json", "hi"]);
        let told = ran.json();
        assert_eq!((ran.code, &told["status"]), (2, &json!("error")), "{}", ran.seen());
        assert_eq!(told["hint"], format!("`amplifier module info {module}` shows its config"), "{told}");
        let once = format!("module `{module}` rejected its config at ");
        let report = ran.stderr.matches(&format!("{module}` did not load")).count();
        assert!(ran.stderr.contains(&once) && report <= 2, "{}", ran.seen());
        // However it is asked.
        let piped = desk.amplifier_with_input(&["--plan", file], b"hi\n");
        assert_eq!(piped.code, 2, "{}", piped.seen());
    }
    assert!(desk.sessions().is_empty());
}

#[test]
fn an_address_that_is_none_is_told_with_its_variable_and_does_not_become_the_demo() {
    let desk = Desk::new();
    let cases: [&[(&str, &str)]; 8] = [
        &[("CHAT_COMPLETIONS_BASE_URL", "nonsense")],
        &[("OPENAI_BASE_URL", "ftp://x"), ("OPENAI_API_KEY", "sk-12345678")],
        &[("OLLAMA_HOST", "http://[")],
        &[("OLLAMA_HOST", "ftp://x")],
        &[("VLLM_BASE_URL", "nonsense")],
        &[("VLLM_BASE_URL", "localhost:8000/v1")],
        &[("VLLM_BASE_URL", "ftp://x/v1")],
        &[("LLAMA_CPP_HOST", "http://[")],
    ];
    for variables in cases {
        let ran = with(&desk, variables, &["run", "hi"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.seen());
        let (name, _) = variables[0];
        assert!(
            ran.stderr.contains(&format!("`{name}`")) && ran.stderr.contains("hint: mend"),
            "{}",
            ran.seen()
        );
    }
    assert!(desk.sessions().is_empty());
    let ran = with(&desk, &[("VLLM_BASE_URL", "localhost:8000/v1")], &["run", "hi"]);
    assert!(ran.stderr.contains(": begin it with `http://`"), "{}", ran.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_again_is_told_with_the_wait_the_reason_and_the_number() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_: &Request| match asked.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Reply::new(503, r#"{"error":{"message":"too busy"}}"#),
        _ => {
            let piece =
                json!({"choices": [{"index": 0, "delta": {"content": "there"}, "finish_reason": "stop"}]});
            let body = format!("data: {piece}\n\ndata: [DONE]\n\n");
            Reply::new(200, body).with("content-type", "text/event-stream")
        }
    })
    .await;
    let desk = Desk::new();
    let config = json!({"base_url": server.url("/v1"), "default_model": "m", "max_retries": 4,
        "min_retry_delay": 0.01, "retry_jitter": false});
    desk.plan(
        "a.json",
        &json!({
            "session": {"orchestrator": "loop-basic", "context": "context-simple"},
            "providers": [{"module": "provider-chat-completions", "config": config}],
        }),
    );
    let ran = desk.amplifier(&["run", "--plan", "a.json", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "there\n"), "{}", ran.seen());
    let notes: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(notes.len(), 2, "{}", ran.seen());
    assert!(notes[0].starts_with("note: `chat-completions`: asking again in 10 ms: "), "{}", ran.seen());
    assert!(notes[0].contains("too busy") && notes[0].ends_with("(1 of 4)"), "{}", ran.seen());
    assert!(notes[1].ends_with("(2 of 4)"), "{}", ran.seen());
    assert!(!read(&desk.sessions()[0].join("events.jsonl")).is_empty());
}
