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
    terminal.sees("Asking it for its models …");
    terminal.sees("Its models cannot be listed: `chat-completions` at ");
    terminal.sees("Incorrect API key");
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
    terminal.sees("Mend it? What else it says stays. [Y/n]");
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
    assert_eq!(times(&ran.stderr, "cannot be reached"), 1, "{}", ran.stderr);
    assert_eq!(times(&ran.stderr, "error sending request"), 0, "{}", ran.stderr);
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

/// A home whose only provider is behind a gateway and has its key in a variable that is not set.
fn behind_a_gateway(place: &str) -> Desk {
    let desk = Desk::new();
    let text = format!(
        "# mine\nconfig:\n  providers:\n  - module: provider-openai # the gateway\n    config:\n      base_url: {place}\n      # none too long\n      timeout: 7\n      api_key: ${{GATEWAY_KEY}}\n"
    );
    std::fs::create_dir_all(desk.home()).unwrap();
    std::fs::write(desk.home().join("settings.yaml"), text).unwrap();
    desk
}

#[test]
fn mending_an_entry_keeps_what_else_it_says_and_stores_the_key_under_its_variable() {
    let server = Server::start(Manner::Well);
    let desk = behind_a_gateway(&server.url());
    let before = settings(&desk);
    let nobody = closed().to_string();
    let variables = [
        ("TERM", "dumb"),
        ("OLLAMA_HOST", nobody.as_str()),
        ("LLAMA_CPP_HOST", nobody.as_str()),
        // The key of the service itself is not offered to the gateway.
        ("OPENAI_API_KEY", "of-another-service"),
    ];
    let mut terminal = Terminal::open_with(&desk, &["init", "--no-test"], (100, 60), &variables);
    terminal.sees("Number or name");
    terminal.types("openai\r");
    terminal.sees("Mend it? What else it says stays. [Y/n]");
    terminal.types("y\r");
    terminal.sees("The key (not shown)");
    terminal.types(&format!("{KEY}\r"));
    terminal.sees("Where shall the key be kept?");
    terminal.types("file\r");
    terminal.sees("Model [");
    terminal.types("smol\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    assert_eq!(settings(&desk), format!("{before}      default_model: smol\n"));
    assert!(read(&desk.home().join("keys.env")).contains(&format!("GATEWAY_KEY={KEY}\n")));
}

#[test]
fn a_provider_is_changed_in_place() {
    let desk = behind_a_gateway("http://127.0.0.1:9/v1");
    let set = |args: &[&str]| desk.amplifier(&[&["provider", "set"], args].concat());
    let ran = set(&["openai", "--base-url", "http://127.0.0.1:9/v2", "--model", "m"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let expected = "# mine\nconfig:\n  providers:\n  - module: provider-openai # the gateway\n    config:\n      base_url: http://127.0.0.1:9/v2\n      # none too long\n      timeout: 7\n      api_key: ${GATEWAY_KEY}\n      default_model: m\n";
    assert_eq!(settings(&desk), expected);
    let wrong = set(&["nobody", "--model", "m"]);
    assert_eq!(wrong.code, 2, "{}", wrong.seen());
    assert_eq!(set(&["openai"]).code, 2);
    let flow = "config:\n  providers:\n  - module: provider-openai\n    config: {timeout: 7}\n";
    desk.file(".amplifier/settings.local.yaml", flow);
    assert_eq!(set(&["openai", "--model", "l", "--local"]).code, 0);
    let written = read(&desk.work().join(".amplifier/settings.local.yaml"));
    assert_eq!(written, flow.replace(" {timeout: 7}", "\n      timeout: 7\n      default_model: l"));
    std::fs::remove_dir_all(desk.work().join(".amplifier")).unwrap();
    let elsewhere = set(&["openai", "--model", "x", "--project"]);
    assert_eq!(elsewhere.code, 2, "{}", elsewhere.seen());
    assert!(elsewhere.stderr.contains("it stands in "), "{}", elsewhere.stderr);
    assert_eq!(settings(&desk), expected);
    // Who adds it again is told how.
    let twice = desk.amplifier(&["provider", "add", "openai", "--key-from-env", "K"]);
    assert!(twice.stderr.contains("`amplifier provider set openai` changes it"), "{}", twice.stderr);
}

#[test]
fn a_key_that_cannot_be_stored_changes_nothing() {
    let desk = behind_a_gateway("http://127.0.0.1:9/v1");
    let before = settings(&desk);
    let args = ["provider", "set", "openai", "--model", "m", "--key-stdin", "--store", "keyring"];
    let ran = desk.amplifier_with_input(&args, KEY.as_bytes());
    assert_ne!(ran.code, 0, "{}", ran.seen());
    assert_eq!(settings(&desk), before);
}

#[test]
fn a_key_that_is_left_alone_is_still_forgotten_by_name() {
    let desk = Desk::new();
    let add = ["provider", "add", "openai", "--key-stdin", "--store", "file"];
    assert_eq!(desk.amplifier_with_input(&add, KEY.as_bytes()).code, 0);
    let removed = desk.amplifier(&["provider", "remove", "openai"]);
    let hint = "`amplifier provider remove openai --forget-key` takes it too";
    assert!(removed.stderr.contains(hint), "{}", removed.seen());
    let forgotten = desk.amplifier(&["provider", "remove", "openai", "--forget-key"]);
    assert_eq!((forgotten.code, forgotten.stdout.as_str()), (0, "the key `OPENAI_API_KEY` is forgotten\n"));
    assert!(!read(&desk.home().join("keys.env")).contains(KEY));
    assert_eq!(desk.amplifier(&["provider", "remove", "openai", "--forget-key"]).code, 2);
}

#[test]
fn a_provider_of_another_file_is_said_to_stand_there() {
    let desk = Desk::new();
    let add = ["provider", "add", "openai", "--id", "second", "--key-from-env", "K", "--project"];
    assert_eq!(desk.amplifier(&add).code, 0);
    let ran = desk.amplifier(&["provider", "remove", "second", "--global"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    let told = "the global settings list no provider `second`; it stands in ";
    assert!(
        ran.stderr.contains(told) && ran.stderr.contains(".amplifier/settings.yaml:3:"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_refused_key_is_looked_for_where_it_comes_from() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Refuses));
    let place = server.url();
    let add =
        ["provider", "add", "openai", "--id", "second", "--key-from-env", "MYKEY", "--base-url", &place];
    assert_eq!(desk.amplifier(&add).code, 0);
    let ran = with(&desk, &[("MYKEY", KEY), ("OPENAI_API_KEY", "other")], &["provider", "test", "second"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(ran.stderr.contains("check `MYKEY`") && !ran.stderr.contains("OPENAI_API_KEY"), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("error: `second` at {place}")), "{}", ran.stderr);
    // One that is not found is asked for by the name it has.
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let place = format!("{}/nowhere", server.url());
    let add =
        ["provider", "add", "openai", "--id", "second", "--key-from-env", "MYKEY", "--base-url", &place];
    assert_eq!(desk.amplifier(&add).code, 0);
    let ran = with(&desk, &[("MYKEY", KEY)], &["provider", "test", "second"]);
    assert!(ran.stderr.contains("`amplifier provider models second`"), "{}", ran.stderr);
}

#[test]
fn a_server_that_says_nothing_is_told_by_the_exit_code() {
    let (desk, server) = (Desk::new(), Server::start(Manner::Silent));
    let place = server.url();
    let test = ["provider", "test", "chat-completions", "--base-url", &place, "--timeout", "0.5"];
    let ran = with(&desk, &[], &test);
    assert_eq!(ran.code, 124, "{}", ran.seen());
    assert!(ran.stderr.contains("`--timeout SECONDS` waits longer"), "{}", ran.stderr);
}

#[test]
fn a_stored_key_behind_a_variable_is_told() {
    use std::io::Write;
    let desk = Desk::new();
    let mut command = desk.command(&["provider", "add", "openai", "--key-stdin", "--store", "file"]);
    command.env("OPENAI_API_KEY", "another-key").stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(KEY.as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let told = "`OPENAI_API_KEY` is set here to another key, which goes before the stored one";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn a_module_that_is_not_there_is_no_provider_that_works() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home()).unwrap();
    let text = "config:\n  providers:\n  - module: provider-nope\n";
    std::fs::write(desk.home().join("settings.yaml"), text).unwrap();
    let ran = desk.with_git(&["doctor", "--offline"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(ran.stdout.contains("problem providers     `nope` cannot be used: "), "{}", ran.stdout);
    let row = &with(&desk, &[], &["provider", "list", "--output", "json"]).json()["configured"][0];
    assert_eq!(row["usable"], false);
}
