//! Looking on while a turn runs: every record for programs, every step for people.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amplifier_app::denial::Denial;
use amplifier_app::open::RecordTap;
use amplifier_app::telling;
use amplifier_protocol::event::{Event, HookDenied, ProviderRetry, UserNotification};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::record::{CallOutcome, Record, RecordBody};
use amplifier_protocol::run::record_line;
use amplifier_protocol::text::{sanitize, shorten};
use serde::Deserialize;
use serde_json::Value;

use crate::render::{self, Remark, Weight};

/// How much of an input is shown, in characters.
const SHOWN: usize = 100;

/// Prints every record as one line. That nobody reads any more is told by the printing.
pub(super) struct Lines;

impl RecordTap for Lines {
    fn record(&self, record: &Record) {
        match record_line(record) {
            Ok(line) => drop(render::json_line(&line)),
            Err(error) => Remark::warning(format!("record {} cannot be printed: {error}", record.seq)).tell(),
        }
    }
}

/// Keeps the work, and that of its agents, from going on faster than what is printed of it is read.
pub(super) struct Pace;

impl RecordTap for Pace {
    fn record(&self, _record: &Record) {
        render::wait_for_room();
    }

    fn child(&self, _id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        Some(Arc::new(Self))
    }
}

/// Tells what the loop or a module has to say to the person, and why it takes longer.
pub(super) struct Notices;

impl RecordTap for Notices {
    fn record(&self, record: &Record) {
        let RecordBody::Event { name, data } = &record.body else { return };
        // What cannot be read was not emitted by our own types.
        match name.as_str() {
            UserNotification::NAME => drop(UserNotification::deserialize(data).map(tell_notice)),
            ProviderRetry::NAME => drop(ProviderRetry::deserialize(data).map(|retry| tell_retry(&retry))),
            _ => {}
        }
    }

    fn child(&self, _id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        Some(Arc::new(Retries))
    }
}

/// Tells of an agent why it takes longer; what it has to say is for whoever started it.
struct Retries;

impl RecordTap for Retries {
    fn record(&self, record: &Record) {
        let RecordBody::Event { name, data } = &record.body else { return };
        if name.as_str() == ProviderRetry::NAME {
            drop(ProviderRetry::deserialize(data).map(|retry| tell_retry(&retry)));
        }
    }

    fn child(&self, _id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        Some(Arc::new(Self))
    }
}

/// Tells what a hook refused by itself, here or in an agent, where nobody sees the calls.
pub(super) struct Refusals;

impl RecordTap for Refusals {
    fn record(&self, record: &Record) {
        let RecordBody::Event { name, data } = &record.body else { return };
        if name.as_str() == HookDenied::NAME
            && let Some(told) = Denial::read(data).and_then(|denial| denial.told())
        {
            Remark::warning(told).tell();
        }
    }

    fn child(&self, _id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        Some(Arc::new(Self))
    }
}

fn tell_notice(notice: UserNotification) {
    let weight = match notice.level.as_deref() {
        Some("warning") => Weight::Warning,
        Some("error") => Weight::Error,
        _ => Weight::Note,
    };
    Remark::quoting(weight, notice.message).tell();
}

fn tell_retry(retry: &ProviderRetry) {
    Remark::note(telling::retry(retry)).tell();
}

/// Tells every call as it begins and ends; those of agents stand below, further in.
#[derive(Default)]
pub(super) struct Steps {
    /// What stands before each line.
    indent: String,
    running: Mutex<HashMap<String, (String, i64)>>,
}

impl RecordTap for Steps {
    fn record(&self, record: &Record) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match &record.body {
            RecordBody::CallStarted { call_id, owner, operation, input, .. } => {
                let what = if is_model(operation) { format!("`{owner}`") } else { format!("`{operation}`") };
                let about = if is_model(operation) { String::new() } else { key_argument(input) };
                let indent = &self.indent;
                render::detail(&format!("{indent}{what}{about} …"));
                running.insert(call_id.clone(), (format!("{indent}{what}{about}"), record.ts.as_micros()));
            }
            RecordBody::CallFinished { call_id, outcome } => {
                let Some((what, began)) = running.remove(call_id) else { return };
                let micros = u64::try_from(record.ts.as_micros() - began).unwrap_or_default();
                let took = telling::time(Duration::from_micros(micros));
                render::detail(&format!("{what}: {}, {took}", said(outcome)));
            }
            _ => {}
        }
    }

    fn child(&self, _id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        Some(Arc::new(Self { indent: format!("{}  ", self.indent), ..Self::default() }))
    }
}

fn is_model(operation: &str) -> bool {
    operation.starts_with("provider.")
}

/// What the call is about, in a few words: its one telling argument, else all of them.
fn key_argument(input: &Value) -> String {
    let text = telling::argument(input)
        .or_else(|| Some(input.to_string()).filter(|text| text != "null" && text != "{}"));
    let line = text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { String::new() } else { format!(" {}", sanitize(&shorten(&line, SHOWN))) }
}

fn said(outcome: &CallOutcome) -> String {
    match outcome {
        CallOutcome::Failed { error } => format!("failed: {}", sanitize(&shorten(error, SHOWN))),
        CallOutcome::Answered { result } => {
            let usage = result.get("usage").filter(|usage| usage.is_object());
            let tokens = |key: &str| {
                usage.and_then(|usage| usage.get(key)).and_then(Value::as_u64).unwrap_or_default()
            };
            match usage {
                Some(_) => render::tokens(tokens("input_tokens"), tokens("output_tokens")),
                None if result.get("success") == Some(&Value::Bool(false)) => "failed".to_owned(),
                None => {
                    let size = u64::try_from(result.to_string().len()).unwrap_or(u64::MAX);
                    format!("done, {}", render::bytes(size))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_told_by_its_telling_argument() {
        assert_eq!(key_argument(&json!({"timeout": 5, "command": "ls\n -l"})), " ls -l");
        let patch = "*** Begin Patch\n*** Add File: a b\n+x\n*** Delete File: c\n*** End Patch";
        assert_eq!(key_argument(&json!({ "patch": patch })), " a b, c");
        assert_eq!(key_argument(&json!({"x": 1})), " {\"x\":1}");
        assert_eq!(key_argument(&json!({})), "");
        assert!(!key_argument(&json!({"command": "a\u{1b}[2K"})).contains('\u{1b}'));
    }
}
