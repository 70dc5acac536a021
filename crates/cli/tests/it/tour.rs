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

/// Somebody who tries them, one after the other.
struct Tourist {
    desk: Desk,
    variables: Vec<(String, String)>,
}

impl Tourist {
    fn new(server: &Server) -> Self {
        let desk = Desk::new();
        let mine = "---\nbundle: {name: mine}\nincludes: [foundation]\ntools: [{module: tool-echo}]\n---\nBe brief.\n";
        desk.file("log", "test a ... FAILED\n").file("mine/bundle.md", mine);
        let (place, nobody) = (server.url(), closed().to_string());
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_amplifier"));
        let mut variables = git_variables(&desk.path("user"));
        variables.extend(
            [("CHAT_COMPLETIONS_BASE_URL", &place), ("OLLAMA_HOST", &nobody), ("LLAMA_CPP_HOST", &nobody)]
                .map(|(name, value)| (name.to_owned(), value.clone())),
        );
        for (_, value) in variables.iter_mut().filter(|(name, _)| name == "PATH") {
            *value = format!("{}:{value}", binary.parent().unwrap().display());
        }
        Self { desk, variables }
    }

    fn shell(&self, line: &str) -> Ran {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.desk.work()).env_clear();
        command.envs(self.variables.iter().cloned()).env("AMPLIFIER_HOME", self.desk.home());
        Ran::of(command.stdin(Stdio::null()).output().unwrap())
    }

    /// Types an answer whenever something shows.
    fn types(&self, args: &[&str], answers: &[(&str, &str)]) {
        let variables: Vec<_> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let variables = [&[("TERM", "dumb")], variables.as_slice()].concat();
        let mut terminal = Terminal::open_with(&self.desk, args, (100, 60), &variables);
        for (shown, typed) in answers {
            terminal.sees(shown);
            terminal.types(&format!("{typed}\r"));
        }
        assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    }
}

#[test]
fn every_command_of_the_tour_does_what_it_says() {
    let commands = commands();
    assert_eq!(commands.len(), 10, "{commands:#?}");
    let server = Server::start(Manner::Well);
    let tourist = Tourist::new(&server);
    for command in &commands {
        let expected = match command.as_str() {
            "amplifier init" => {
                let kept = ("Where shall the key be kept?", "file");
                let asked = [
                    ("Number or name", "chat-completions"),
                    ("The key (not shown", "some-key"),
                    kept,
                    ("Which model?", "1"),
                ];
                tourist.types(&["init"], &asked);
                continue;
            }
            "amplifier" => {
                tourist.types(&[], &[(">", "hi"), ("Hello", "/quit")]);
                continue;
            }
            line if line.starts_with("amplifier run ") && line.contains("jsonl") => "\"type\":\"result\"",
            line if line.starts_with("amplifier run ") || line.starts_with("amplifier continue ") => "Hello",
            "amplifier session list" => "turn",
            "amplifier bundle tree foundation" => "foundation",
            "amplifier plan explain --bundle ./mine" => "mine/bundle.md:",
            "amplifier config show --origin" => "settings.yaml:",
            "amplifier doctor" => "no problems",
            line => panic!("the tour has a new command; say what it prints: {line}"),
        };
        let ran = tourist.shell(&command.replace('…', "'say hello'"));
        assert_eq!(ran.code, 0, "{command}: {}", ran.seen());
        assert!(ran.stdout.contains(expected), "{command}: {}", ran.seen());
    }
}
