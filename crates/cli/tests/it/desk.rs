//! A person's desk: a folder to work in, a home, and the binary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use amplifier_testing::http::{self, Reply, Request};
use serde_json::{Value, json};
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
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// Everything a person saw, without the paths of this machine.
    pub fn seen(&self, ran: &Ran) -> String {
        ran.seen().replace(&self.path("").display().to_string(), "<desk>/").replace("<desk>//", "<desk>/")
    }

    /// A command that finds git, and nothing of whoever runs the tests.
    pub fn command_with_git(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.envs(git_variables(&self.path("user")));
        command
    }

    /// Runs it.
    pub fn with_git(&self, args: &[&str]) -> Ran {
        Ran::of(self.command_with_git(args).output().unwrap())
    }

    /// Commits files to a repository, which is made when it is not there; gives its address and the commit.
    pub fn commit(&self, repo: &str, files: &[(&str, &str)]) -> (String, String) {
        let dir = self.path("repos").join(repo);
        if !dir.exists() {
            std::fs::create_dir_all(&dir).unwrap();
            self.git(repo, &["init", "--quiet", "--initial-branch=main"]);
        }
        for (name, text) in files {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        self.git(repo, &["add", "--all"]);
        self.git(repo, &["commit", "--quiet", "--message=x"]);
        (format!("git+file://{}@main", dir.display()), self.git(repo, &["rev-parse", "HEAD"]))
    }

    /// Runs git in a repository of the desk and gives what it said.
    pub fn git(&self, repo: &str, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(self.path("repos").join(repo)).args(args);
        git.env_clear().envs(git_variables(&self.path("user")));
        let output = git.output().expect("git is needed for this test; install it");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Serves the repositories of the desk as a hosting service would.
    pub fn serving(&self) -> impl Fn(&Request) -> Reply + Send + Sync + use<> {
        let variables = git_variables(&self.path("user")).into_iter();
        http::git(&self.path("repos"), variables.map(|(name, value)| (name.into(), value.into())).collect())
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

/// A plan with file tools whose model has this config.
pub fn plan(provider: Value) -> Value {
    json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": provider}],
        "tools": [{"module": "tool-filesystem"}],
    })
}

/// A plan whose model says this.
pub fn says(text: &str) -> Value {
    plan(json!({"responses": [text]}))
}

/// Where git is, and a person without any settings.
pub fn git_variables(user: &Path) -> Vec<(String, String)> {
    std::fs::create_dir_all(user).unwrap();
    #[expect(clippy::disallowed_methods, reason = "git must be found")]
    let path = std::env::var("PATH").unwrap();
    let variables = [
        ("PATH", path.as_str()),
        ("HOME", user.to_str().unwrap()),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@example.com"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@example.com"),
        // The same commit on every machine and in every run, for the snapshots.
        ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
        ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
    ];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Polls for something that another process does; a minute is the end of patience, not a time that is measured.
pub fn wait_until(mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
