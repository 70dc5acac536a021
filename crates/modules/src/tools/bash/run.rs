//! `bash`: runs one command, waits for it or leaves it in the background.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_protocol::tool::{EffectClass, Effects};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::bench::{Bench, Started};
use super::capture::Shown;
use super::config::Approval;
use super::gate::needs_asking;
use super::policy::Verdict;
use super::process::{Ended, Running};

/// How often a command that runs gives a sign of life.
const BEAT: Duration = Duration::from_secs(2);

/// Runs a shell command and returns its output and exit code.
///
/// The working folder is kept between calls: `cd` stays in effect, variables do not. There is no terminal and no input,
/// so nothing can be asked for. Long output is shown by its beginning and its end. A command that runs on, such as a
/// server, belongs in the background: set `run_in_background`, read it with `bash_output`, end it with `bash_kill`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command, as one would type it.
    command: String,
    /// Seconds after which the command is ended.
    #[serde(default)]
    timeout: Option<u64>,
    /// Return at once with the id of a job.
    #[serde(default)]
    run_in_background: bool,
}

pub(super) struct RunCommand {
    bench: Arc<Bench>,
}

/// Why nobody waits for a command any longer.
enum Waited {
    Over(Ended),
    TimedOut(u64),
    Cancelled,
}

impl RunCommand {
    pub(super) fn new(bench: Arc<Bench>) -> Self {
        Self { bench }
    }

    fn seconds(&self, input: &Input) -> Result<u64, ToolFailure> {
        let (seconds, most) =
            (input.timeout.unwrap_or(self.bench.config.timeout), self.bench.config.max_timeout);
        if (1..=most).contains(&seconds) {
            return Ok(seconds);
        }
        let message =
            format!("`timeout` is in seconds, from 1 to {most}; what takes longer belongs in the background");
        Err(ToolFailure::new(message).of_kind("InvalidInput"))
    }

    /// Whether the command may run: the policy, and the person where the policy wants one.
    fn may_run(&self, command: &str) -> Result<(), ToolFailure> {
        let judged = self.bench.judge(command);
        if judged.verdict == Verdict::Deny {
            return Err(ToolFailure::new(judged.refusal()).of_kind("Denied"));
        }
        let approval = self.bench.config.require_approval;
        if !needs_asking(&judged, approval) || self.bench.asked.take(command) {
            return Ok(());
        }
        let why = match approval {
            Approval::Always => "every command is asked about here".to_owned(),
            _ => format!("{}; {}", judged.reasons().join("; "), judged.way_out()),
        };
        let message =
            format!("Command needs approval, and nobody was asked about exactly this command: {why}");
        Err(ToolFailure::new(message).of_kind("ApprovalRequired"))
    }

    async fn wait(&self, running: &Running, seconds: u64, cx: &ToolCx) -> Waited {
        let deadline = tokio::time::sleep(Duration::from_secs(seconds));
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                ended = running.finished() => return Waited::Over(ended),
                // Nobody knows how long a command takes, so the first wish to stop ends it.
                () = cx.cancel.cancelled(CancelLevel::Graceful) => {
                    running.interrupt(&cx.cancel).await;
                    return Waited::Cancelled;
                }
                () = &mut deadline => {
                    running.stop(Duration::from_millis(500)).await;
                    return Waited::TimedOut(seconds);
                }
                () = tokio::time::sleep(BEAT) => cx.pulse.beat(),
            }
        }
    }
}

impl TypedTool for RunCommand {
    const NAME: &'static str = "bash";
    const EFFECTS: Effects =
        Effects { class: EffectClass::Write, reads: true, writes: true, executes: true, network: true };
    type Input = Input;
    type Output = Value;

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Value, ToolFailure> {
        let command = input.command.as_str();
        if command.trim().is_empty() {
            return Err(ToolFailure::new("Command is required").of_kind("InvalidInput"));
        }
        let seconds = self.seconds(&input)?;
        self.may_run(command)?;
        if cx.cancel.is_cancelled() {
            return Err(ToolFailure::new("cancelled before it began").of_kind("Cancelled"));
        }
        let started = self.bench.start(command).await?;
        if input.run_in_background {
            let job = self.bench.keep(&started, command)?;
            let message = format!("Command started in background as `{}`", job.id);
            let note =
                "read its output with `bash_output`, end it with `bash_kill`; it ends with the session";
            return Ok(
                json!({ "id": job.id, "pid": job.running.process_id(), "message": message, "note": note }),
            );
        }
        // Also when this call is dropped half-way, nothing is left running.
        let guard = Guard(Some(Arc::clone(&started.running)));
        let waited = self.wait(&started.running, seconds, cx).await;
        guard.disarm();
        self.bench.follow(&started).await;
        answer(&started, waited)
    }
}

/// What the model reads: output and exit code, also of what failed.
fn answer(started: &Started, waited: Waited) -> Result<Value, ToolFailure> {
    let (stdout, stderr) = {
        let mut output = started.running.output();
        (output.stdout.whole(), output.stderr.whole())
    };
    let mut told = Map::new();
    told.insert("stdout".to_owned(), stdout.text.clone().into());
    told.insert("stderr".to_owned(), stderr.text.clone().into());
    let code = match &waited {
        Waited::Over(Ended::With(code)) => Some(*code),
        _ => None,
    };
    told.insert("returncode".to_owned(), code.into());
    cut(&mut told, "stdout", &stdout);
    cut(&mut told, "stderr", &stderr);
    let mut notes: Vec<String> = started.remark.clone().into_iter().collect();
    if code.is_some() && started.running.left_something() {
        notes.push(
            "something it started still runs and ends with the session; `run_in_background` can follow it"
                .to_owned(),
        );
    }
    if !notes.is_empty() {
        told.insert("note".to_owned(), notes.join("; ").into());
    }
    let (message, kind) = match waited {
        Waited::Over(Ended::With(0)) => return Ok(Value::Object(told)),
        Waited::Over(Ended::With(code @ 1..)) => (format!("Command ended with exit code {code}"), "ExitCode"),
        Waited::Over(Ended::With(code)) => {
            (format!("Command was ended by signal {}", code.unsigned_abs()), "Signal")
        }
        Waited::Over(Ended::Lost(why)) => (format!("Command was lost sight of: {why}"), "OSError"),
        Waited::TimedOut(seconds) => {
            told.insert("timed_out".to_owned(), true.into());
            (format!("Command timed out after {seconds} seconds"), "Timeout")
        }
        Waited::Cancelled => {
            told.insert("cancelled".to_owned(), true.into());
            ("Command was cancelled".to_owned(), "Cancelled")
        }
    };
    if kind != "ExitCode" {
        told.insert("error".to_owned(), message.clone().into());
    }
    Err(ToolFailure { output: Some(Value::Object(told)), ..ToolFailure::new(message).of_kind(kind) })
}

fn cut(told: &mut Map<String, Value>, stream: &str, shown: &Shown) {
    if shown.left_out > 0 {
        told.insert("truncated".to_owned(), true.into());
        told.insert(format!("{stream}_total_bytes"), shown.total.into());
    }
}

struct Guard(Option<Arc<Running>>);

impl Guard {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.kill();
        }
    }
}
