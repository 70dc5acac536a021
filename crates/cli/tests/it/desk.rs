//! A person's desk: a folder to work in, a home, and the binary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub struct Desk {
    root: TempDir,
}

/// What came of a command.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Desk {
    pub fn new() -> Self {
        let desk = Self { root: TempDir::new().unwrap() };
        std::fs::create_dir(desk.work()).unwrap();
        desk
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Puts a file into the folder the person works in.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.work().join(name), text).unwrap();
        self
    }

    /// Puts a mount plan there.
    pub fn plan(&self, name: &str, plan: &Value) -> &Self {
        self.file(name, plan.to_string())
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier"));
        command.current_dir(self.work()).env_clear().env("AMPLIFIER_HOME", self.home()).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn amplifier(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    pub fn amplifier_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    pub fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// The folders of all sessions, oldest first.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.home().join("state/sessions")) else { return Vec::new() };
        let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        folders
    }
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Everything a person saw, for a snapshot.
    pub fn seen(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
