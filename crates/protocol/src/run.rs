//! What `amplifier run` prints for programs: one result, and before it, with `--output jsonl`, one line for each record.
//!
//! A line of a record has its kind under `type` and what happened under that kind: `{"type": "event", "seq": 3, "ts": …,
//! "turn": 1, "event": {"name": "tool:pre", "data": {…}}}`. The last line has the type `result`. [`line_schema`] says the
//! same to machines and is published as `schemas/run-jsonl.schema.json`.

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::event::EVENTS;
use crate::ids::SessionId;
use crate::record::Record;
use crate::spend::Amounts;
use crate::usage::Usd;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It was answered.
    Completed,
    /// The turn failed.
    Failed,
    /// A hook or the person refused the turn.
    Denied,
    /// A spending limit ended the turn.
    LimitReached,
    /// The time was up.
    TimedOut,
    /// Somebody stopped it.
    Cancelled,
    /// There was no turn: what was asked for is wrong, or no session could be opened.
    Error,
}

impl RunStatus {
    /// The exit code that says so, for who knows nothing more: which signal it was that stopped a program, its own code tells.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Error => 2,
            Self::Denied | Self::LimitReached => 3,
            Self::TimedOut => 124,
            Self::Cancelled => 130,
        }
    }
}

/// What one run came to. Every key is always there; null where there is nothing to say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// How it ended.
    pub status: RunStatus,
    /// The exit code of the program.
    pub exit_code: u8,
    /// The answer.
    pub answer: Option<String>,
    /// Why there is no answer.
    pub error: Option<String>,
    /// What caused the error, from the nearest cause to the first; empty where nothing more is known.
    pub causes: Vec<String>,
    /// What can be done about the error.
    pub hint: Option<String>,
    /// Where in a file the error is, where that is known.
    pub place: Option<RunPlace>,
    /// Why the model stopped after its last words: `stop`, `length` where the answer is cut off, `content_filter`, or a word of
    /// the service.
    pub finish_reason: Option<String>,
    /// The session, for `--resume`.
    pub session_id: Option<SessionId>,
    /// Which turn of the session this was.
    pub turn: u64,
    /// Tokens of the model calls of this run and its agents.
    pub usage: RunUsage,
    /// What this run and its agents cost; null when nobody told a price, which is not the same as free.
    pub cost_usd: Option<Usd>,
    /// The same for all runs of the session, this one among them.
    pub session: Option<RunTotals>,
    /// Tool calls begun, those of agents among them.
    pub tool_calls: u64,
    /// What was not allowed, by a hook, a rule or who was asked, here or in an agent.
    pub denied: Vec<DeniedCall>,
    /// The hash of the plan the session was opened with.
    pub plan_hash: Option<String>,
    /// What became of every module of the plan, under `modules`.
    pub load_report: Option<Value>,
}

/// Why a command came to nothing, as `--output json` tells it: those keys of a [`RunResult`] that say so. Every key is always
/// there; null where there is nothing to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunFailure {
    /// How it ended.
    pub status: RunStatus,
    /// The exit code of the program.
    pub exit_code: u8,
    /// What went wrong; a line for each thing that did.
    pub error: String,
    /// What caused the error, from the nearest cause to the first; empty where nothing more is known.
    pub causes: Vec<String>,
    /// What can be done about the error.
    pub hint: Option<String>,
    /// Where in a file the error is, where that is known.
    pub place: Option<RunPlace>,
}

/// The JSON Schema of a [`RunFailure`].
pub fn failure_schema() -> Value {
    let mut schema = schema_for!(RunFailure).to_value();
    if let Value::Object(schema) = &mut schema {
        schema.insert(
            "title".to_owned(),
            Value::from("What a command that failed prints with `--output json`"),
        );
    }
    schema
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunPlace {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
}

/// What a session came to in all its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTotals {
    /// Tokens of the model calls of the session and its agents.
    pub usage: RunUsage,
    /// What they cost; null when nobody told a price.
    pub cost_usd: Option<Usd>,
}

/// Tokens of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
}

impl RunUsage {
    /// The tokens among what was spent.
    pub fn of(spent: &Amounts) -> Self {
        Self { input_tokens: spent.input_tokens, output_tokens: spent.output_tokens }
    }
}

/// Something that was not allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeniedCall {
    /// The tool, where it was about one.
    pub tool_name: Option<String>,
    /// What the tool was called with, without its secrets.
    pub arguments: Option<Value>,
    /// The hook that refused it, or that asked.
    pub hook: String,
    /// Why.
    pub reason: String,
    /// The agent that wanted it; null for the session itself.
    pub agent: Option<String>,
    /// The session of that agent.
    pub agent_session_id: Option<SessionId>,
}

impl RunResult {
    /// A run that came to no session.
    pub fn without_session(status: RunStatus, exit_code: u8, error: String) -> Self {
        Self {
            status,
            exit_code,
            answer: None,
            error: Some(error),
            causes: Vec::new(),
            hint: None,
            place: None,
            finish_reason: None,
            session_id: None,
            turn: 0,
            usage: RunUsage::default(),
            cost_usd: None,
            session: None,
            tool_calls: 0,
            denied: Vec::new(),
            plan_hash: None,
            load_report: None,
        }
    }
}

/// A record as one line: its kind as `type`, and what happened under that name.
pub fn record_line(record: &Record) -> Result<Value, serde_json::Error> {
    let mut line = Map::from_iter([
        ("type".to_owned(), Value::Null),
        ("seq".to_owned(), Value::from(record.seq)),
        ("ts".to_owned(), serde_json::to_value(record.ts)?),
        ("turn".to_owned(), Value::from(record.turn)),
    ]);
    if let Value::Object(body) = serde_json::to_value(&record.body)? {
        for (kind, value) in body {
            line.insert("type".to_owned(), Value::String(kind.clone()));
            line.insert(kind, value);
        }
    }
    Ok(Value::Object(line))
}

/// The last line.
pub fn result_line(result: &RunResult) -> Result<Value, serde_json::Error> {
    let mut line = Map::from_iter([("type".to_owned(), Value::from("result"))]);
    if let Value::Object(result) = serde_json::to_value(result)? {
        line.extend(result);
    }
    Ok(Value::Object(line))
}

/// The JSON Schema of one line. Events that modules define themselves may carry any object; every agreed one has its own
/// shape. Later versions may add keys, so no shape forbids keys it does not know.
pub fn line_schema() -> Value {
    let mut definitions = Map::new();
    let branches: Vec<Value> = EVENTS
        .iter()
        .map(|kind| {
            let schema = hoisted((kind.schema)().to_value(), &mut definitions);
            let name = format!("event {}", kind.name);
            definitions.insert(name.clone(), schema);
            json!({
                "if": {"properties": {"name": {"const": kind.name}}, "required": ["name"]},
                "then": {"properties": {"data": {"$ref": format!("#/$defs/{}", pointed(&name))}}},
            })
        })
        .collect();
    let result = hoisted(schema_for!(RunResult).to_value(), &mut definitions);
    definitions.insert("result".to_owned(), result);
    definitions.insert("message".to_owned(), message());
    definitions.insert(
        "event".to_owned(),
        json!({
            "description": "An event. Which data belongs to which name is said for every agreed event; others carry any object.",
            "type": "object",
            "required": ["name", "data"],
            "properties": {"name": {"type": "string", "pattern": "^[^:]+:.+$"}, "data": {"type": "object"}},
            "allOf": branches,
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of `amplifier run --output jsonl`",
        "description": "One JSON object a line: every record of the session as it is made, then one result.",
        "type": "object",
        "required": ["type"],
        "oneOf": lines(),
        "$defs": definitions,
    })
}

/// Takes the shapes a schema refers to out of it, to where all schemas keep theirs.
fn hoisted(mut schema: Value, definitions: &mut Map<String, Value>) -> Value {
    if let Value::Object(schema) = &mut schema {
        schema.remove("$schema");
        if let Some(Value::Object(own)) = schema.remove("$defs") {
            for (name, shape) in own {
                definitions.entry(name).or_insert(shape);
            }
        }
    }
    schema
}

/// A name as a part of a pointer in an address.
fn pointed(name: &str) -> String {
    name.replace(' ', "%20")
}

/// A line that is a record of this kind.
fn record(kind: &str, meaning: &str, shape: &Value) -> Value {
    json!({
        "description": meaning,
        "required": ["seq", "ts", "turn", kind],
        "properties": {
            "type": {"const": kind},
            "seq": {"type": "integer", "minimum": 1, "description": "The place in the order, without gaps."},
            "ts": {"type": "string", "format": "date-time", "description": "When."},
            "turn": {"type": "integer", "minimum": 0, "description": "The turn; 0 before the first."},
            kind: shape,
        },
    })
}

fn lines() -> Vec<Value> {
    let text = json!({"type": "string"});
    vec![
        record(
            "opened",
            "A process opened the session.",
            &json!({
                "type": "object",
                "required": ["session_id", "parent_id", "plan_hash"],
                "properties": {"session_id": text, "parent_id": {"type": ["string", "null"]}, "plan_hash": text},
            }),
        ),
        record("event", "Something happened.", &json!({"$ref": "#/$defs/event"})),
        record("message", "A message was added to the conversation.", &json!({"$ref": "#/$defs/message"})),
        record(
            "messages",
            "The conversation was replaced as a whole.",
            &json!({
                "type": "array",
                "items": {"$ref": "#/$defs/message"},
            }),
        ),
        record(
            "call_started",
            "A call of a model or a tool begins.",
            &json!({
                "type": "object",
                "required": ["call_id", "owner", "operation", "effect"],
                "properties": {
                    "call_id": text, "owner": text, "operation": text,
                    "effect": {"enum": ["pure", "read", "idempotent", "write"]},
                },
            }),
        ),
        record(
            "call_finished",
            "That call ended.",
            &json!({
                "type": "object",
                "required": ["call_id", "outcome"],
                "properties": {"call_id": text, "outcome": {
                    "type": "object",
                    "required": ["status"],
                    "oneOf": [
                        {"required": ["result"], "properties": {"status": {"const": "answered"}}},
                        {"required": ["error"], "properties": {"status": {"const": "failed"}, "error": text}},
                    ],
                }},
            }),
        ),
        json!({
            "description": "The end.",
            "properties": {"type": {"const": "result"}},
            "allOf": [{"$ref": "#/$defs/result"}],
        }),
    ]
}

/// A message, as far as every message is alike. Blocks differ from service to service and are kept as they came.
fn message() -> Value {
    json!({
        "description": "A message of the conversation. Blocks have a `type`; what else they have is the service's.",
        "type": "object",
        "required": ["role", "content"],
        "properties": {
            "role": {"enum": ["system", "developer", "user", "assistant", "function", "tool"]},
            "content": {"anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}}},
            ]},
            "name": {"type": "string"},
            "tool_call_id": {"type": "string"},
            "tool_calls": {"type": "array", "items": {"type": "object", "required": ["id", "name", "arguments"]}},
            "metadata": {"type": "object"},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CallOutcome, RecordBody};
    use crate::time::Timestamp;

    /// Written out, so that a new kind of record does not compile before the schema has it.
    fn kind(body: &RecordBody) -> &'static str {
        match body {
            RecordBody::Opened { .. } => "opened",
            RecordBody::Event { .. } => "event",
            RecordBody::Message(_) => "message",
            RecordBody::Messages(_) => "messages",
            RecordBody::CallStarted { .. } => "call_started",
            RecordBody::CallFinished { .. } => "call_finished",
        }
    }

    #[test]
    fn every_kind_of_record_and_every_event_has_a_shape() {
        let schema = line_schema();
        let kinds: Vec<_> = lines().iter().map(|line| line["properties"]["type"]["const"].clone()).collect();
        let outcome = CallOutcome::Failed { error: "x".to_owned() };
        let body = RecordBody::CallFinished { call_id: "c".to_owned(), outcome };
        assert!(kinds.contains(&json!(kind(&body))), "{kinds:?}");
        assert_eq!(kinds.len(), 7);
        for event in EVENTS {
            assert!(schema["$defs"].get(format!("event {}", event.name)).is_some(), "{}", event.name);
        }
    }

    #[test]
    fn every_reference_of_the_schema_leads_somewhere() {
        fn walk(value: &Value, root: &Value) {
            if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
                let pointer = reference.trim_start_matches('#').replace("%20", " ");
                assert!(root.pointer(&pointer).is_some(), "{reference}");
            }
            match value {
                Value::Object(entries) => entries.values().for_each(|entry| walk(entry, root)),
                Value::Array(items) => items.iter().for_each(|item| walk(item, root)),
                _ => {}
            }
        }
        let schema = line_schema();
        walk(&schema, &schema);
    }

    #[test]
    fn a_line_has_its_kind_and_what_happened_under_it() {
        let body = RecordBody::CallFinished {
            call_id: "c".to_owned(),
            outcome: CallOutcome::Failed { error: "no".to_owned() },
        };
        let record = Record { seq: 7, ts: Timestamp::from_micros(0), turn: 1, body };
        let line = record_line(&record).unwrap();
        assert_eq!((&line["type"], &line["seq"]), (&json!("call_finished"), &json!(7)));
        assert_eq!(line["call_finished"]["outcome"]["error"], json!("no"));
        let result = RunResult::without_session(RunStatus::Error, 2, "wrong".to_owned());
        let line = result_line(&result).unwrap();
        assert_eq!(
            (&line["type"], &line["status"], &line["answer"]),
            (&json!("result"), &json!("error"), &Value::Null)
        );
    }
}
