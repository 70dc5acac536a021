//! What long lists and long sessions cost. Options: `--json` (one object a line), `--mib N` (how long the long session is).
//!
//! It makes a home with ten thousand sessions and one with a long session, and measures what a front end does before it can
//! show a prompt. Opening is measured in a process of its own, so that its memory is its own.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use amplifier_app::journal::{FileJournal, Owner};
use amplifier_app::paths::{Home, SessionFolder};
use amplifier_app::sessions::recent::{Reach, recent};
use amplifier_app::sessions::{self, Scope};
use amplifier_app::store::{SessionStore, read_history, update_views};
use amplifier_core::journal::Journal;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::record::Record;
use amplifier_protocol::time::Timestamp;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SESSIONS: u64 = 10_000;
const MIB: u64 = 1024 * 1024;
/// What of a long session is still in its conversation, and how large a tool's result is.
const SPOKEN: u64 = 16 * MIB;
const RESULT: usize = 8 * 1024;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1);
    if let Some(folder) = after("--open") {
        return open(&SessionFolder::new(folder));
    }
    let mut report = Report { json: arguments.iter().any(|argument| argument == "--json") };
    let mib = after("--mib").map_or(Ok(1024), |text| text.parse::<u64>())?;
    let dir = tempfile::tempdir()?;
    lists(dir.path(), &mut report)?;
    long_session(dir.path(), mib, &mut report)
}

fn lists(dir: &Path, report: &mut Report) -> Outcome<()> {
    let store = SessionStore::new(Home::new(dir.join("many")));
    for number in 0..SESSIONS {
        let id = format!("019a8a1e-{:04x}-7c3a-9d52-{number:012x}", number % 65_536);
        let folder = store.create(&id.parse()?, &plan()?)?;
        let mut writer = Writer::open(&folder, &id)?;
        writer.add(1, event("prompt:submit", &json!({"prompt": format!("Question number {number}")})))?;
        writer.add(1, json!({"message": {"role": "assistant", "content": "An answer."}}))?;
    }
    let scope = Scope { limit: Some(20), ..Scope::below(Path::new("/somewhere/project")) };
    let begun = Instant::now();
    let shown = sessions::list(&store, &scope)?.sessions.len();
    report.time("session_list_10000_first", begun.elapsed())?;
    let mut times = Vec::new();
    for _ in 0..9 {
        let begun = Instant::now();
        drop(sessions::list(&store, &scope)?);
        times.push(begun.elapsed());
    }
    times.sort();
    report.time("session_list_10000", times.get(4).copied().unwrap_or_default())?;
    report.count("session_list_10000_shown", shown as u64)
}

fn long_session(dir: &Path, mib: u64, report: &mut Report) -> Outcome<()> {
    let store = SessionStore::new(Home::new(dir.join("long")));
    let folder = store.create(&"long".parse()?, &plan()?)?;
    write_long(&folder, mib)?;
    update_views(&folder)?;
    report.count("long_session_bytes", std::fs::metadata(folder.events())?.len())?;
    report.count("long_session_conversation_bytes", std::fs::metadata(folder.transcript())?.len())?;
    let output = Command::new(std::env::current_exe()?).arg("--open").arg(folder.dir()).output()?;
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let number = |key: &str| told.get(key).and_then(Value::as_u64).ok_or("the child told nothing");
    report.time("long_session_open", Duration::from_micros(number("micros")?))?;
    report.count("long_session_open_peak_bytes", number("peak")?)
}

/// Rounds of one tool call each, as a loop leaves them: pieces of an answer, the call, its result here and there.
fn write_long(folder: &SessionFolder, mib: u64) -> Outcome<()> {
    let mut writer = Writer::open(folder, "long")?;
    let result = "x".repeat(RESULT);
    let rounds = mib * MIB / (10 * RESULT as u64);
    let spoken = SPOKEN.min(mib * MIB / 8) / RESULT as u64;
    for round in 1..=rounds {
        let call = format!("c{round}");
        let calls = json!([{"id": call, "tool": "read_file", "arguments": {"file_path": "a"}}]);
        let pieces =
            (0..100).map(|n| event("llm:stream_block_delta", &json!({"sequence": n, "text": "some words "})));
        for piece in pieces {
            writer.add(round, piece)?;
        }
        let told = json!({"tool_name": "read_file", "result": result, "tool_result": result, "n": round});
        let answer = json!({"status": "answered", "result": {"success": true, "output": result}});
        let started = json!({"call_id": call, "owner": "m", "operation": "read_file", "effect": "read"});
        if round > rounds - spoken {
            writer.add(
                round,
                json!({"message": {"role": "assistant", "content": "I look.", "tool_calls": calls}}),
            )?;
        }
        writer.add(round, json!({"call_started": started}))?;
        writer.add(round, json!({"call_finished": {"call_id": call, "outcome": answer}}))?;
        for _ in 0..3 {
            writer.add(round, event("tool:post", &told))?;
        }
        if round > rounds - spoken {
            writer
                .add(round, json!({"message": {"role": "tool", "content": result, "tool_call_id": call}}))?;
        }
    }
    Ok(writer.journal.sync_now()?)
}

/// What opening a session reads, as a process of its own.
fn open(folder: &SessionFolder) -> Outcome<()> {
    let begun = Instant::now();
    let (journal, _) = FileJournal::open(folder, owner())?;
    update_views(folder)?;
    let read = read_history(folder)?;
    // What a front end shows of it.
    recent(folder, &Reach { until: u64::MAX, turns: 3, calls: 0, records: 500, stretches: 8 })?;
    let took = begun.elapsed();
    drop(journal);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak =
        peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024;
    let told =
        json!({"micros": took.as_micros() as u64, "peak": peak, "messages": read.history.messages.len()});
    Ok(writeln!(std::io::stdout().lock(), "{told}")?)
}

struct Writer {
    journal: FileJournal,
    seq: u64,
}

impl Writer {
    fn open(folder: &SessionFolder, id: &str) -> Outcome<Self> {
        let (journal, opened) = FileJournal::open(folder, owner())?;
        let mut writer = Self { journal, seq: opened.last_seq };
        writer.add(0, json!({"opened": {"session_id": id, "parent_id": null, "plan_hash": "sha256:0"}}))?;
        writer.add(0, event("session:described", &json!({"working_dir": "/somewhere/project"})))?;
        Ok(writer)
    }

    fn add(&mut self, turn: u64, body: Value) -> Outcome<()> {
        self.seq += 1;
        let ts = Timestamp::from_micros(1_763_245_489_000_000 + i64::try_from(self.seq)?);
        Ok(self.journal.append(&Record { seq: self.seq, ts, turn, body: serde_json::from_value(body)? })?)
    }
}

fn event(name: &str, data: &Value) -> Value {
    json!({"event": {"name": name, "data": data}})
}

fn owner() -> Owner {
    Owner::this_process("the bench", Timestamp::from_micros(0))
}

fn plan() -> Outcome<MountPlan> {
    let plan = json!({"session": {"orchestrator": "loop-basic", "context": "context-simple"}});
    Ok(MountPlan::read(&plan)?)
}

/// Prints measurements as they come.
struct Report {
    json: bool,
}

impl Report {
    fn time(&mut self, name: &str, took: Duration) -> Outcome<()> {
        let nanos = took.as_nanos();
        let mut out = std::io::stdout().lock();
        match self.json {
            true => writeln!(out, "{{\"name\":\"{name}\",\"value\":{nanos},\"unit\":\"ns\"}}")?,
            false => writeln!(out, "{name:<36} {took:>12.3?}")?,
        }
        Ok(())
    }

    fn count(&mut self, name: &str, count: u64) -> Outcome<()> {
        let mut out = std::io::stdout().lock();
        let unit = if name.ends_with("bytes") { "bytes" } else { "count" };
        match self.json {
            true => writeln!(out, "{{\"name\":\"{name}\",\"value\":{count},\"unit\":\"{unit}\"}}")?,
            false => writeln!(out, "{name:<36} {count:>12} {unit}")?,
        }
        Ok(())
    }
}
