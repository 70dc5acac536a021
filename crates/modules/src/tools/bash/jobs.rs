//! `bash_output` and `bash_kill`: what became of a command in the background, and its end.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_protocol::tool::{EffectClass, Effects};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::bench::{Bench, Job};
use super::capture::More;
use super::process::Ended;

/// The longest a reader may wait, in seconds.
const LONGEST_WAIT: u64 = 60;

/// Reads what a background job has written since it was last read, and whether it still runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputInput {
    /// The id that `bash` gave.
    id: String,
    /// Seconds to wait for the job to end before answering, at most 60.
    #[serde(default)]
    wait: u64,
}

/// Ends a background job with everything it started, and returns its last output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KillInput {
    /// The id that `bash` gave.
    id: String,
}

pub(super) struct ReadOutput {
    bench: Arc<Bench>,
}

impl ReadOutput {
    pub(super) fn new(bench: Arc<Bench>) -> Self {
        Self { bench }
    }
}

impl TypedTool for ReadOutput {
    const NAME: &'static str = "bash_output";
    const EFFECTS: Effects = Effects::READS;
    type Input = OutputInput;
    type Output = Value;

    async fn run(&self, input: OutputInput, cx: &ToolCx) -> Result<Value, ToolFailure> {
        let job = self.bench.job(&input.id)?;
        let wait = Duration::from_secs(input.wait.min(LONGEST_WAIT));
        if !wait.is_zero() {
            tokio::select! {
                biased;
                _ = job.running.finished() => {}
                () = cx.cancel.cancelled(CancelLevel::Graceful) => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        Ok(news(&job))
    }
}

pub(super) struct EndJob {
    bench: Arc<Bench>,
}

impl EndJob {
    pub(super) fn new(bench: Arc<Bench>) -> Self {
        Self { bench }
    }
}

impl TypedTool for EndJob {
    const NAME: &'static str = "bash_kill";
    const EFFECTS: Effects = Effects {
        class: EffectClass::Idempotent,
        reads: true,
        writes: true,
        executes: false,
        network: false,
    };
    type Input = KillInput;
    type Output = Value;

    async fn run(&self, input: KillInput, _cx: &ToolCx) -> Result<Value, ToolFailure> {
        let job = self.bench.job(&input.id)?;
        if job.running.ended().is_none() {
            job.running.stop(Duration::from_millis(500)).await;
        }
        Ok(news(&job))
    }
}

fn news(job: &Job) -> Value {
    let ended = job.running.ended();
    let more = if ended.is_none() { More::MayCome } else { More::Never };
    let (stdout, stderr) = {
        let mut output = job.running.output();
        (output.stdout.unread(more), output.stderr.unread(more))
    };
    let mut told = Map::new();
    told.insert("id".to_owned(), job.id.clone().into());
    told.insert("command".to_owned(), job.command.clone().into());
    told.insert("running".to_owned(), ended.is_none().into());
    match ended {
        Some(Ended::With(code)) => told.insert("returncode".to_owned(), code.into()),
        Some(Ended::Lost(why)) => told.insert("error".to_owned(), why.into()),
        None => None,
    };
    for (name, shown) in [("stdout", stdout), ("stderr", stderr)] {
        told.insert(name.to_owned(), shown.text.into());
        told.insert(format!("{name}_total_bytes"), shown.total.into());
        if shown.left_out > 0 {
            told.insert(format!("{name}_lost_bytes"), shown.left_out.into());
        }
    }
    Value::Object(told)
}
