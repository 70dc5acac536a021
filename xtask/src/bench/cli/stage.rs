//! Where programs are measured: a folder with a file to read, a home, a plan with the standard modules, long and many
//! sessions, and a hello-world to compare with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::server::NOTE;
use crate::output::TaskError;
use crate::process::capture_quietly;
use crate::workspace::{Workspace, read};

/// What comes before the checksum in a line of a journal.
const CHECKSUM: &str = ",\"crc\":\"";
/// How long making one part of the stage may take.
const LIMIT: Duration = Duration::from_secs(300);
/// Fifty calls a round: about five thousand messages.
const LONG: &str = "reads-100";

pub(super) struct Stage {
    root: PathBuf,
    program: PathBuf,
    server: String,
    // What `amplifier module list` says.
    modules: Vec<Value>,
}

/// A session on the disk.
pub(super) struct Kept {
    id: String,
    results: u64,
}

impl Stage {
    /// Makes the folders afresh.
    pub(super) fn set(workspace: &Workspace, program: &Path, server: &str) -> Result<Self, TaskError> {
        let root = workspace.target.join("bench-cli");
        if root.exists() {
            fs::remove_dir_all(&root).map_err(|source| TaskError::Write { path: root.clone(), source })?;
        }
        let stage =
            Self { modules: Vec::new(), root, program: program.to_owned(), server: server.to_owned() };
        stage.write("work/notes.txt", &format!("{NOTE}\n").repeat(20))?;
        stage.repository()?;
        let mut command = Command::new(program);
        command.args(["module", "list", "--output", "json"]);
        let listed = capture_quietly(&mut command, LIMIT)?.stdout;
        let listed: Value = serde_json::from_str(&listed)
            .map_err(|source| TaskError::Printed { command: "amplifier module list".to_owned(), source })?;
        let modules = listed.get("modules").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(Self { modules, ..stage })
    }

    /// Makes the folder that is worked in a small repository of its own. Otherwise every agent would look at the whole
    /// checkout around it.
    fn repository(&self) -> Result<(), TaskError> {
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=Bench", "-c", "user.email=bench@localhost"]).args(arguments);
            capture_quietly(git.current_dir(self.work()), LIMIT)
        };
        git(&["init", "--quiet", "--initial-branch", "main"])?;
        git(&["add", "notes.txt"])?;
        git(&["commit", "--quiet", "--no-gpg-sign", "--message", "Notes"])?;
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, TaskError> {
        let path = self.root.join(name);
        let failed = |source| TaskError::Write { path: path.clone(), source };
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
        Ok(path)
    }

    /// Where what programs say is put.
    pub(super) fn output(&self) -> PathBuf {
        self.root.join("said")
    }

    /// The folder that is worked in.
    pub(super) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// A folder that another agent may call its home.
    pub(super) fn home_of(&self, name: &str) -> PathBuf {
        self.root.join("homes").join(name)
    }

    /// Every tool and every hook that needs nothing from outside, with a streaming loop.
    fn plan(&self, model: &str) -> Value {
        let text = |module: &Value, key: &str| module.get(key).and_then(Value::as_str).map(str::to_owned);
        let of = |kind: &str| -> Vec<Value> {
            let all = self.modules.iter().filter(|module| text(module, "type").as_deref() == Some(kind));
            let ids = all.filter_map(|module| text(module, "id"));
            // Without servers of somebody it does nothing, and says so.
            let ids = ids.filter(|id| *id != "tool-mcp");
            ids.map(|id| json!({"module": id, "config": config(&id)})).collect()
        };
        let config = json!({"api_key": "none", "base_url": self.server, "model": model});
        json!({
            "session": {"orchestrator": {"module": "loop-streaming", "config": {"max_iterations": 1_000}},
                "context": {"module": "context-simple"}},
            "providers": [{"module": "provider-chat-completions", "config": config}],
            "tools": of("tool"),
            "hooks": of("hook"),
        })
    }

    fn amplifier(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--home").arg(self.root.join("home")).args(arguments);
        command.current_dir(self.work());
        command
    }

    /// One prompt with the standard modules and this model.
    pub(super) fn run(&self, model: &str) -> Command {
        let plan = self.plan(model);
        let file = format!("plan-{model}.json");
        // A plan that could not be written is told by the program that reads it.
        drop(self.write(&file, &plan.to_string()));
        let file = self.root.join(file).display().to_string();
        self.amplifier(&["run", "--plan", &file, "--output", "json", "What do the notes say?"])
    }

    pub(super) fn resume(&self, kept: &Kept) -> Command {
        self.amplifier(&["run", "--resume", &kept.id, "--output", "json", "And now?"])
    }

    pub(super) fn list(&self) -> Command {
        self.amplifier(&["session", "list", "--all"])
    }

    /// A chat on a terminal of its own, from its start to the first letter it takes.
    pub(super) fn chat_launch(&self, workspace: &Workspace, row: &str, home: &str) -> Command {
        let mut command = Command::new("python3");
        command.arg(workspace.root.join("xtask/bench/chat_launch.py")).args([row, "21"]);
        command.arg(&self.program).arg("--home").arg(self.root.join(home)).current_dir(self.work());
        command
    }

    /// A session with about five thousand messages.
    pub(super) fn long_session(&self) -> Result<Kept, TaskError> {
        let printed = capture_quietly(&mut self.run(LONG), LIMIT)?.stdout;
        let summary: Value = serde_json::from_str(&printed)
            .map_err(|source| TaskError::Printed { command: "amplifier run".to_owned(), source })?;
        let id = summary.get("session_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let calls = summary.get("tool_calls").and_then(Value::as_u64);
        Ok(Kept { id, results: calls.unwrap_or(0) })
    }

    /// Fills the home with copies of a short session under other ids. Only lists look at them.
    pub(super) fn fill(&self, long: &Kept, sessions: usize) -> Result<String, TaskError> {
        let folder = self.root.join("home/state/sessions");
        let template = self.short_session(&folder, long)?;
        let files = ["metadata.json", "mount_plan.json", "events.jsonl", "transcript.jsonl"];
        let texts: Vec<_> =
            files.iter().map(|file| (file, read(&folder.join(&template).join(file)))).collect();
        for number in 0..sessions {
            let id = other_id(&template, number);
            for (file, text) in &texts {
                let Ok(text) = text else { continue };
                let text = text.replace(&template, &id);
                let text = if **file == "events.jsonl" { sealed(&text) } else { text };
                self.write(&format!("home/state/sessions/{id}/{file}"), &text)?;
            }
        }
        Ok(format!("resume: {} tool results in the session; list: {sessions} sessions", long.results))
    }

    /// The newest session that is not the long one.
    fn short_session(&self, folder: &Path, long: &Kept) -> Result<String, TaskError> {
        let failed = |source| TaskError::Read { path: folder.to_owned(), source };
        let mut ids = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            ids.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
        }
        ids.retain(|id| *id != long.id);
        ids.sort();
        ids.pop().ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
    }

    /// A static hello-world, compiled here.
    pub(super) fn hello(&self) -> Result<PathBuf, TaskError> {
        self.compile("hello", &self.write("hello.rs", "fn main() { println!(\"hello\"); }\n")?)
    }

    /// The least a client can do for so many requests; compiled here.
    pub(super) fn floor(&self, workspace: &Workspace, requests: usize) -> Result<Command, TaskError> {
        let program = self.compile("floor", &workspace.root.join("xtask/bench/floor.rs"))?;
        let address = self.server.trim_start_matches("http://").trim_end_matches("/v1");
        let mut command = Command::new(program);
        command.arg(address).arg(requests.to_string());
        Ok(command)
    }

    fn compile(&self, name: &str, source: &Path) -> Result<PathBuf, TaskError> {
        let program = self.root.join(name);
        let mut rustc = Command::new("rustc");
        rustc.args([
            "--edition",
            "2024",
            "-O",
            "-C",
            "target-feature=+crt-static",
            "-C",
            "panic=abort",
            "-o",
        ]);
        rustc.arg(&program).arg(source);
        capture_quietly(&mut rustc, LIMIT)?;
        Ok(program)
    }
}

/// An id of the same form, another for each number.
/// The lines of a journal with the checksums that they have now.
fn sealed(journal: &str) -> String {
    let line = |line: &str| {
        let (before, _) = line.rsplit_once(CHECKSUM).unwrap_or((line, ""));
        format!("{before}{CHECKSUM}{:08x}\"}}\n", crc32fast::hash(before.as_bytes()))
    };
    journal.lines().map(line).collect()
}

fn other_id(id: &str, number: usize) -> String {
    let keep = id.len().saturating_sub(12);
    format!("{}{number:012x}", id.get(..keep).unwrap_or_default())
}

/// What a module needs to do its work here.
fn config(id: &str) -> Value {
    match id {
        "hooks-scheduler-cost-aware" => json!({"budget_limit": 1_000.0}),
        // There is nobody to ask.
        "hooks-approval" => json!({"tools": {"bash": {"require_approval": false}}}),
        _ => json!({}),
    }
}

/// The bytes of a file, or of everything in a folder.
pub(super) fn size(path: &Path) -> Result<u64, TaskError> {
    let failed = |source| TaskError::Read { path: path.to_owned(), source };
    let about = fs::symlink_metadata(path).map_err(failed)?;
    if !about.is_dir() {
        return Ok(about.len());
    }
    let mut sum = 0;
    for entry in fs::read_dir(path).map_err(failed)? {
        sum += size(&entry.map_err(failed)?.path())?;
    }
    Ok(sum)
}
