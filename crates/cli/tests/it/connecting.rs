//! What `init`, `provider add`, `provider list`, `doctor` and `run` say about a provider that cannot work: the truth, once,
//! with a cure, and before anything is written where that is possible.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::json;

use crate::desk::{Desk, Ran, read};
use crate::provider::{Manner, Server, closed, with};
use crate::terminal::Terminal;

const KEY: &str = "hunter2-hunter2-hunter2";

/// A home whose only provider has its key in a variable that is no longer set.
fn connected() -> Desk {
    let desk = Desk::new();
    let ran = with(&desk, &[("OPENAI_API_KEY", KEY)], &["init", "--yes", "--no-test"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    desk
}

fn guided(desk: &Desk, args: &[&str]) -> Terminal {
    let nobody = closed().to_string();
    let variables = [("TERM", "dumb"), ("OLLAMA_HOST", nobody.as_str()), ("LLAMA_CPP_HOST", nobody.as_str())];
    let terminal = Terminal::open_with(desk, args, (100, 60), &variables);
    terminal.sees("Number or name");
    terminal
}

fn settings(desk: &Desk) -> String {
    read(&desk.home().join("settings.yaml"))
}

fn times(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn without_a_test_nothing_is_asked_of_the_service() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let mut terminal = guided(&desk, &["init", "--no-test"]);
    terminal.types("chat-completions\r");
    terminal.sees("Where is the service? (URL):");
    terminal.types(&format!("{}\r", server.url()));
    terminal.sees("The key (not shown");
    terminal.types(&format!("{KEY}\r"));
    terminal.sees("Where shall the key be kept?");
    terminal.types("file\r");
    terminal.sees("Model [the usual one]:");
    terminal.types("typed-by-hand\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    assert!(settings(&desk).contains("default_model: typed-by-hand"), "{}", settings(&desk));
    assert!(!terminal.screen().contains("answers"), "{}", terminal.screen());
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[test]
fn without_a_test_no_server_is_looked_for() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let place = server.url();
    let variables = [("TERM", "dumb"), ("VLLM_BASE_URL", place.as_str()), ("OLLAMA_HOST", place.as_str())];
    let variables = [variables.as_slice(), &[("LLAMA_CPP_HOST", place.as_str())]].concat();
    let mut terminal = Terminal::open_with(&desk, &["init", "--no-test"], (100, 60), &variables);
    terminal.sees("Number or name");
    terminal.types("ollama\r");
    terminal.sees("Where is the service? (URL) [");
    terminal.types("\r");
    terminal.sees("The key (not shown; empty when none is needed)");
    terminal.types("\r");
    terminal.sees("Model [");
    terminal.types("m\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[test]
fn doctor_finds_a_provider_whose_variable_is_gone() {
    let desk = connected();
    let ran = desk.with_git(&["doctor", "--offline"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let problem =
        "problem providers `openai` cannot be used: `OPENAI_API_KEY`, which its `api_key` names, is not set";
    assert!(told.contains(problem), "{}", ran.stdout);
    assert!(told.contains("home/settings.yaml:5:"), "{}", ran.stdout);
    assert!(
        told.contains("cure: set `OPENAI_API_KEY`, or keep a key with `amplifier init`"),
        "{}",
        ran.stdout
    );
    let mut command = desk.command_with_git(&["doctor", "--offline", "--output", "json"]);
    let well = Ran::of(command.env("OPENAI_API_KEY", KEY).output().unwrap());
    assert_eq!((well.code, &well.json()["passed"]), (0, &json!(true)), "{}", well.seen());
    // Where another one can be asked, it is a warning.
    assert_eq!(desk.amplifier(&["provider", "add", "mock"]).code, 0);
    let ran = desk.with_git(&["doctor", "--offline"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stdout.contains("\n  warning providers     `openai` cannot be used: "), "{}", ran.stdout);
}

#[test]
fn the_list_says_that_a_provider_of_the_settings_cannot_be_used() {
    let desk = connected();
    let ran = with(&desk, &[], &["provider", "list"]);
    let head = desk.seen(&ran);
    assert_snapshot!("list", head.split("\nCan be used here").next().unwrap());
    assert!(
        ran.stdout.ends_with("Asked when no provider is named: openai, which cannot be used now\n"),
        "{}",
        ran.stdout
    );
    let row = &with(&desk, &[], &["provider", "list", "--output", "json"]).json()["configured"][0];
    assert_eq!(row["usable"], false);
    assert_eq!(row["reason"], "`OPENAI_API_KEY`, which its `api_key` names, is not set");
    let variables = [("OPENAI_API_KEY", KEY)];
    let row = &with(&desk, &variables, &["provider", "list", "--output", "json"]).json()["configured"][0];
    assert_eq!((&row["usable"], &row["reason"]), (&json!(true), &json!(null)));
}

#[test]
fn a_run_without_its_key_says_one_thing_and_leaves_no_session() {
    let desk = connected();
    let ran = with(&desk, &[], &["run", "hi"]);
    assert_snapshot!("run", desk.seen(&ran));
    let empty = with(&desk, &[("OPENAI_API_KEY", "")], &["run", "hi"]);
    assert_eq!((empty.code, &empty.stderr), (2, &ran.stderr), "set to nothing is not set");
    let told = with(&desk, &[], &["run", "--output", "json", "hi"]);
    assert_eq!(told.code, 2, "{}", told.seen());
    assert_eq!((&told.json()["exit_code"], &told.json()["load_report"]), (&json!(2), &json!(null)));
    assert_eq!(desk.sessions().len(), 0);
    for args in [["run", "-p", "openai", "hi"].as_slice(), &["provider", "test", "openai"]] {
        let ran = with(&desk, &[], args);
        assert_eq!(ran.code, 2, "{}", ran.seen());
        assert_eq!(times(&ran.stderr, "is not set"), 1, "{}", ran.stderr);
        assert!(!ran.stderr.contains("default"), "{}", ran.stderr);
    }
    // Another one can still be asked.
    assert_eq!(with(&desk, &[], &["run", "-p", "mock", "hi"]).code, 0);
}

#[test]
fn a_session_that_goes_on_without_its_key_says_the_same() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let place = server.url();
    let add = ["provider", "add", "chat-completions", "--base-url", &place, "--key-from-env", "MY_KEY"];
    assert_eq!(desk.amplifier(&add).code, 0);
    let begun = with(&desk, &[("MY_KEY", KEY)], &["run", "hi"]);
    assert_eq!(begun.code, 0, "{}", begun.seen());
    let ran = with(&desk, &[], &["continue", "again"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(
        ran.stderr
            .contains("`chat-completions` cannot be used: `MY_KEY`, which its `api_key` names, is not set"),
        "{}",
        ran.stderr
    );
    assert_eq!(times(&ran.stderr, "is mounted"), 0, "{}", ran.stderr);
    assert_eq!(with(&desk, &[("MY_KEY", KEY)], &["continue", "again"]).code, 0);
}

#[test]
fn a_key_that_is_kept_nowhere_is_asked_for_in_a_line_to_copy() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let mut terminal = guided(&desk, &["init"]);
    terminal.types("chat-completions\r");
    terminal.sees("Where is the service? (URL):");
    terminal.types("nonsense\r");
    terminal.sees("`nonsense` is no address of a service");
    terminal.types(&format!("{}\r", server.url()));
    terminal.sees("The key (not shown");
    terminal.types(&format!("{KEY}\r"));
    terminal.sees("Where shall the key be kept?");
    terminal.types("nowhere\r");
    terminal.sees("Which model?");
    terminal.types("1\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    let screen = terminal.screen();
    assert!(screen.contains("`CHAT_COMPLETIONS_API_KEY` is not set now"), "{screen}");
    assert!(screen.contains("export CHAT_COMPLETIONS_API_KEY=…"), "{screen}");
    assert!(settings(&desk).contains("api_key: ${CHAT_COMPLETIONS_API_KEY}"));
}

#[test]
fn a_service_that_does_not_list_its_models_says_why() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Refuses));
    let mut terminal = guided(&desk, &["init"]);
    terminal.types("chat-completions\r");
    terminal.sees("Where is the service? (URL):");
    terminal.types(&format!("{}\r", server.url()));
    terminal.sees("The key (not shown");
    terminal.types("\r");
    terminal.sees("Its models cannot be listed: chat-completions: Incorrect API key provided");
    terminal.sees("Model [the usual one]:");
    terminal.types("m\r");
    terminal.sees("Keep it all the same? [y/N]");
    terminal.types("n\r");
    assert_eq!(terminal.end(), 1, "{}", terminal.screen());
    assert!(!desk.home().join("settings.yaml").exists());
}

#[test]
fn a_key_that_is_needed_is_asked_for_again_and_a_broken_entry_is_replaced() {
    let desk = connected();
    let mut terminal = guided(&desk, &["init", "--no-test"]);
    terminal.types("openai\r");
    terminal.sees("`openai` is in the settings and cannot be used: `OPENAI_API_KEY`");
    terminal.sees("Put this one in its place? [Y/n]");
    terminal.types("\r");
    terminal.sees("The key (not shown)");
    terminal.types("  \r");
    terminal.sees("A key is needed here.");
    terminal.types(&format!("{KEY}\r"));
    terminal.sees("Where shall the key be kept?");
    terminal.types("file\r");
    terminal.sees("Model [");
    terminal.types("m\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    assert_eq!(times(&settings(&desk), "provider-openai"), 1, "{}", settings(&desk));
    let row = &with(&desk, &[], &["provider", "list", "--output", "json"]).json()["configured"][0];
    assert_eq!((&row["name"], &row["usable"]), (&json!("openai"), &json!(true)));
}

#[test]
fn nothing_found_names_only_what_init_can_do() {
    let desk = Desk::new();
    let ran = with(&desk, &[], &["init", "--yes"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(!ran.stderr.contains("--provider"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`amplifier provider add NAME`"), "{}", ran.stderr);
    let ran = with(&desk, &[], &["provider", "test"]);
    assert!(!ran.stderr.contains("--provider"), "{}", ran.stderr);
    // What is there and does not work is no success.
    let desk = connected();
    let ran = with(&desk, &[], &["init", "--yes"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("is in the settings already and cannot be used"), "{}", ran.stderr);
}

#[test]
fn what_can_never_work_is_refused_before_anything_is_written() {
    let desk = Desk::new();
    let steps: &[&[&str]] = &[
        &["provider", "add", "vllm", "--base-url", "nonsense"],
        &["provider", "add", "openai", "--key-from-env", "not valid"],
        &["provider", "add", "openai", "--key-from-env", "K", "--id", "a b"],
        &["provider", "add", "openai", "--key-from-env", "K", "--model", ""],
    ];
    let told: Vec<_> = steps
        .iter()
        .map(|step| format!("$ amplifier {}\n{}", step.join(" "), desk.seen(&desk.amplifier(step))))
        .collect();
    assert_snapshot!("unfit", told.join("\n"));
    assert!(!desk.home().join("settings.yaml").exists());
    let ran = desk.amplifier(&["provider", "add", "azure-openai", "--key-from-env", "HOME_OF_KEY"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stderr.contains("export HOME_OF_KEY=…"), "{}", ran.stderr);
    assert!(Path::new(&desk.home().join("settings.yaml")).exists());
}

#[test]
fn a_connection_that_fails_is_told_once() {
    let desk = Desk::new();
    let ran = with(&desk, &[], &["provider", "test", "ollama", "--timeout", "2"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert_eq!(times(&ran.stderr, "error sending request"), 1, "{}", ran.stderr);
    assert_eq!(times(&ran.stderr, "caused by"), 0, "{}", ran.stderr);
    let nobody = format!("http://{}", closed());
    let plan = json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-ollama", "config": {"base_url": nobody, "max_retries": 0}}],
    });
    desk.plan("plan.json", &plan);
    let ran = with(&desk, &[], &["run", "--plan", "plan.json", "hi"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert_eq!(times(&ran.stderr, "cannot be reached"), 1, "{}", ran.stderr);
    assert_eq!(times(&ran.stderr, "error sending request"), 0, "{}", ran.stderr);
    assert_eq!(times(&ran.stderr, "caused by"), 0, "{}", ran.stderr);
}

#[test]
fn looking_asks_nobody() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let place = server.url();
    for name in ["ollama", "vllm", "chat-completions"] {
        let ran = desk.amplifier(&["provider", "add", name, "--base-url", &place]);
        assert_eq!(ran.code, 0, "{}", ran.seen());
    }
    let ran = desk.with_git(&["doctor", "--offline"]);
    assert!(ran.stdout.contains("`ollama`, `vllm`, `chat-completions` in the settings"), "{}", ran.stdout);
    assert_eq!(with(&desk, &[], &["provider", "list"]).code, 0);
    assert_eq!(server.asked(), Vec::<String>::new());
}
