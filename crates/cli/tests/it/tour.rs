//! The tour of the README: its ten commands, as they stand there, in a folder of somebody who has what they speak of.

use std::process::{Command, Stdio};

use crate::desk::{Desk, Ran, git_variables, read};
use crate::provider::{Manner, Server, closed};
use crate::terminal::Terminal;

/// The commands, without what is said about them.
fn commands() -> Vec<String> {
    let page = read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md").as_ref());
    let (_, tour) = page.split_once("## A tour in ten commands").expect("the README has a tour");
    let block = tour.split("```").nth(1).unwrap().trim_start_matches("sh\n");
    let lines = block.lines().filter(|line| line.starts_with("amplifier"));
    lines.map(|line| line.split(" # ").next().unwrap().trim().to_owned()).collect()
}

#[test]
fn every_command_of_the_tour_does_what_it_says() {
    let commands = commands();
    assert_eq!(commands.len(), 10, "{commands:#?}");
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let mine =
        "---\nbundle: {name: mine}\nincludes: [foundation]\ntools: [{module: tool-echo}]\n---\nBe brief.\n";
    desk.file("log", "test a ... FAILED\n").file("mine/bundle.md", mine);
    let (place, nobody) = (server.url(), closed().to_string());
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_amplifier"));
    let mut variables = git_variables(&desk.path("user"));
    variables.extend(
        [("CHAT_COMPLETIONS_BASE_URL", &place), ("OLLAMA_HOST", &nobody), ("LLAMA_CPP_HOST", &nobody)]
            .map(|(name, value)| (name.to_owned(), value.clone())),
    );
    for (name, value) in &mut variables {
        if name == "PATH" {
            *value = format!("{}:{value}", binary.parent().unwrap().display());
        }
    }
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(desk.work()).env_clear().envs(variables.iter().cloned());
        Ran::of(command.env("AMPLIFIER_HOME", desk.home()).stdin(Stdio::null()).output().unwrap())
    };
    let typed: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let at_a_terminal = |args: &[&str]| {
        Terminal::open_with(&desk, args, (100, 60), &[&[("TERM", "dumb")], typed.as_slice()].concat())
    };
    for command in &commands {
        match command.as_str() {
            "amplifier init" => {
                let mut terminal = at_a_terminal(&["init"]);
                terminal.sees("Number or name");
                terminal.types("chat-completions\r");
                terminal.sees("The key (not shown");
                terminal.types("some-key\r");
                terminal.sees("Where shall the key be kept?");
                terminal.types("file\r");
                terminal.sees("Which model?");
                terminal.types("1\r");
                assert_eq!(terminal.end(), 0, "{}", terminal.screen());
            }
            "amplifier" => {
                let mut terminal = at_a_terminal(&[]);
                terminal.sees(">");
                terminal.types("hi\r");
                terminal.sees("Hello");
                terminal.types("/quit\r");
                assert_eq!(terminal.end(), 0, "{}", terminal.screen());
            }
            line => {
                let ran = shell(&line.replace('…', "'say hello'"));
                assert_eq!(ran.code, 0, "{line}: {}", ran.seen());
                assert!(!ran.stdout.trim().is_empty(), "{line} prints nothing: {}", ran.seen());
                let expected = match line.split_whitespace().nth(1).unwrap_or_default() {
                    "run" if line.contains("jsonl") => "\"type\":\"result\"",
                    "run" | "continue" => "Hello",
                    "session" => "turn",
                    "bundle" => "foundation",
                    "plan" => "mine/bundle.md:",
                    "config" => "settings.yaml:",
                    "doctor" => "no problems",
                    _ => panic!("the tour has a new command; say what it prints: {line}"),
                };
                assert!(ran.stdout.contains(expected), "{line}: {}", ran.seen());
            }
        }
    }
}
