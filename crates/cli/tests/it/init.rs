//! `amplifier init`, `amplifier provider add` and `amplifier provider remove`: what is written, where keys go, and what is
//! never written.

use insta::assert_snapshot;
use serde_json::json;

use crate::desk::{Desk, Ran, read};
use crate::provider::{Manner, Server, closed, with};
use crate::terminal::Terminal;

const KEY: &str = "hunter2-hunter2-hunter2";

/// Every file below a folder that holds a text.
fn holders(folder: &std::path::Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(holders(&path, text));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

fn with_input(desk: &Desk, variables: &[(&str, &str)], args: &[&str], input: &str) -> Ran {
    use std::io::Write;
    let mut command = desk.command(args);
    command.envs(variables.iter().copied()).stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that wants no input may be gone before it was written.
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap_or(());
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    let desk = Desk::new();
    let ran = desk.amplifier(&["init"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!("nobody", ran.seen());
    let missing = with(&desk, &[], &["init", "--yes"]);
    assert_eq!(missing.code, 2, "{}", missing.seen());
    assert!(missing.stderr.contains("ANTHROPIC_API_KEY"), "{}", missing.stderr);
    assert!(!desk.home().join("settings.yaml").exists());
}

#[test]
fn what_is_found_is_tried_and_written() {
    let desk = Desk::new();
    let server = Server::start(Manner::Well);
    let place = server.url();
    let variables = [("CHAT_COMPLETIONS_BASE_URL", place.as_str()), ("CHAT_COMPLETIONS_API_KEY", KEY)];
    let ran = with(&desk, &variables, &["init", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stderr.contains("`chat-completions` answers"), "{}", ran.stderr);
    assert!(server.asked().iter().any(|asked| asked.starts_with("/v1/chat/completions")));
    let text = read(&desk.home().join("settings.yaml"));
    assert!(
        text.contains("- module: provider-chat-completions")
            && text.contains("api_key: ${CHAT_COMPLETIONS_API_KEY}"),
        "{text}"
    );
    assert!(!ran.seen().contains(KEY));
    assert_eq!(holders(&desk.home(), KEY), Vec::<String>::new());
    // A second time there is nothing to do.
    let again = with(&desk, &variables, &["init", "--yes"]);
    assert_eq!(again.code, 0);
    assert!(again.stdout.contains("is in the settings already: "), "{}", again.seen());
    // And it is used, where it was found: the variable that named the place may be gone.
    assert!(text.contains(&format!("base_url: {place}")), "{text}");
    let run = with(&desk, &[("CHAT_COMPLETIONS_API_KEY", KEY)], &["run", "hi"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Hello\n"), "{}", run.seen());
    assert_eq!(holders(&desk.home(), KEY), Vec::<String>::new(), "not in the journal either");
}

#[test]
fn a_provider_that_refuses_is_not_written() {
    let desk = Desk::new();
    let server = Server::start(Manner::Refuses);
    let place = server.url();
    let variables = [("CHAT_COMPLETIONS_BASE_URL", place.as_str()), ("CHAT_COMPLETIONS_API_KEY", KEY)];
    let ran = with(&desk, &variables, &["init", "--yes"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(ran.stderr.contains("nothing was written"), "{}", ran.stderr);
    assert!(!desk.home().join("settings.yaml").exists());
}

#[test]
fn a_key_from_standard_input_is_stored_and_used_and_nowhere_else() {
    let desk = Desk::new();
    let server = Server::start(Manner::Well);
    let place = server.url();
    let args = [
        "provider",
        "add",
        "chat-completions",
        "--id",
        "mine",
        "--base-url",
        &place,
        "--model",
        "smol",
        "--key-stdin",
        "--store",
        "file",
    ];
    let ran = with_input(&desk, &[], &args, &format!("{KEY}\n"));
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stderr.contains("in plain text; only you can read the file"), "{}", ran.stderr);
    assert!(!ran.seen().contains(KEY));
    let expected = format!(
        "config:\n  providers:\n    - module: provider-chat-completions\n      id: mine\n      config:\n        base_url: {place}\n        default_model: smol\n        api_key: ${{MINE_API_KEY}}\n"
    );
    assert_eq!(read(&desk.home().join("settings.yaml")), expected);
    assert_eq!(holders(&desk.home(), KEY), ["keys.env"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(desk.home().join("keys.env")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let run = with(&desk, &[], &["run", "hi"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Hello\n"), "{}", run.seen());
    assert_eq!(holders(&desk.home(), KEY), ["keys.env"], "not in the journal, the plan or a log");
    // The key is what the server was asked with, and the process's own variable goes before it.
    assert!(server.asked().iter().any(|asked| asked.contains("smol")), "{:?}", server.asked());
    let tested = with(&desk, &[], &["provider", "test", "mine"]);
    assert_eq!(tested.code, 0, "{}", tested.seen());
    let listed = with(&desk, &[], &["provider", "list"]);
    assert!(listed.stdout.starts_with("In the settings\n  mine"), "{}", listed.stdout);
    assert!(listed.stdout.contains("home/settings.yaml:3:"), "{}", listed.stdout);
    let rows = with(&desk, &[], &["provider", "list", "--output", "json"]).json();
    assert_eq!(rows["configured"][0]["name"], "mine");
    assert_eq!(rows["configured"][0]["layer"], "global");
    // Gone, with its key.
    let removed = desk.amplifier(&["provider", "remove", "mine", "--forget-key"]);
    assert_eq!(removed.code, 0, "{}", removed.seen());
    assert_eq!(holders(&desk.home().join("keys.env"), KEY), Vec::<String>::new());
    assert!(!read(&desk.home().join("keys.env")).contains(KEY));
    assert_eq!(read(&desk.home().join("settings.yaml")), "");
}

#[test]
fn a_provider_without_a_key_says_what_is_missing() {
    let desk = Desk::new();
    let steps: &[&[&str]] = &[
        &["provider", "add", "anthropic"],
        &["provider", "add", "nobody"],
        &["provider", "add"],
        &["provider", "add", "anthropic", "--key-stdin"],
        &["provider", "remove", "anthropic"],
    ];
    let told: Vec<_> = steps
        .iter()
        .map(|step| format!("$ amplifier {}\n{}", step.join(" "), desk.seen(&desk.amplifier(step))))
        .collect();
    assert_snapshot!("missing", told.join("\n"));
    let text = std::fs::read_to_string(desk.home().join("settings.yaml")).unwrap_or_default();
    assert_eq!(text, "");
}

#[test]
fn several_of_one_type_are_told_apart_by_their_names() {
    let desk = Desk::new();
    let add = |args: &[&str]| {
        desk.amplifier(&[&["provider", "add", "openai", "--key-from-env", "K"][..], args].concat())
    };
    assert_eq!(add(&[]).code, 0);
    let twice = add(&[]);
    assert_eq!(twice.code, 2, "{}", twice.seen());
    assert!(twice.stderr.contains("already lists a provider"), "{}", twice.stderr);
    assert_eq!(add(&["--id", "fast", "--model", "m"]).code, 0);
    assert_eq!(add(&["--id", "team", "--project"]).code, 0);
    let rows = with(&desk, &[], &["provider", "list", "--output", "json"]).json();
    let names: Vec<_> =
        rows["configured"].as_array().unwrap().iter().map(|row| (&row["name"], &row["layer"])).collect();
    assert_eq!(json!(names), json!([["team", "project"], ["openai", "global"], ["fast", "global"]]));
    assert_eq!(desk.amplifier(&["provider", "remove", "fast"]).code, 0);
    let text = read(&desk.home().join("settings.yaml"));
    assert!(text.contains("provider-openai") && !text.contains("fast"), "{text}");
}

#[test]
fn at_a_terminal_everything_is_asked_and_the_key_is_not_seen() {
    let desk = Desk::new();
    let server = Server::start(Manner::Well);
    let nobody = closed().to_string();
    let variables = [("TERM", "dumb"), ("OLLAMA_HOST", nobody.as_str()), ("LLAMA_CPP_HOST", nobody.as_str())];
    let mut terminal = Terminal::open_with(&desk, &["init"], (100, 60), &variables);
    terminal.sees("Number or name");
    terminal.types("nobody\r");
    terminal.sees("`nobody` is none of them.");
    terminal.types("chat-completions\r");
    terminal.sees("Where is the service? (URL):");
    terminal.types(&format!("{}\r", server.url()));
    terminal.sees("The key (not shown");
    terminal.types(&format!("{KEY}x\u{7f}\r"));
    terminal.sees("Where shall the key be kept?");
    terminal.sees("in plain text, readable by you alone");
    terminal.types("file\r");
    terminal.sees("Which model?");
    terminal.types("1\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    let seen = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    assert!(!seen.contains(KEY), "{seen}");
    assert!(seen.contains("`chat-completions` answers (`smol`)"), "{seen}");
    assert_eq!(holders(&desk.home(), KEY), ["keys.env"]);
    assert!(read(&desk.home().join("keys.env")).contains(&format!("CHAT_COMPLETIONS_API_KEY={KEY}\n")));
    assert!(read(&desk.home().join("settings.yaml")).contains("default_model: smol"));
}

#[test]
fn leaving_in_the_middle_writes_nothing() {
    let desk = Desk::new();
    let nobody = closed().to_string();
    let variables = [("TERM", "dumb"), ("OLLAMA_HOST", nobody.as_str()), ("LLAMA_CPP_HOST", nobody.as_str())];
    let mut terminal = Terminal::open_with(&desk, &["init"], (100, 60), &variables);
    terminal.sees("Number or name");
    terminal.types("anthropic\r");
    terminal.sees("The key (not shown");
    terminal.types("\u{3}");
    assert_eq!(terminal.end(), 130, "{}", terminal.screen());
    assert!(terminal.screen().contains("nothing was written"), "{}", terminal.screen());
    assert!(!desk.home().join("settings.yaml").exists() && !desk.home().join("keys.env").exists());
}

#[test]
fn help_says_how() {
    let desk = Desk::new();
    assert_snapshot!("init_help", desk.amplifier(&["init", "--help"]).seen());
    assert_snapshot!("add_help", desk.amplifier(&["provider", "add", "--help"]).seen());
}

#[test]
fn a_key_without_end_is_refused() {
    let desk = Desk::new();
    let huge = vec![b'x'; 64 * 1024 + 1];
    let ran = desk.amplifier_with_input(&["provider", "add", "anthropic", "--key-stdin"], &huge);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("error: standard input holds more than 64.0 KiB"), "{}", ran.seen());
}
