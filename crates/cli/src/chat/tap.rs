//! What the chat wants to know of the records of a session, taken out as they are made.

use std::sync::Arc;

use amplifier_app::open::RecordTap;
use amplifier_protocol::event::{
    ContentBlockDelta, ContentBlockEnd, ContextCompaction, Event, OrchestratorSteeringInjected,
    ProviderRetry, ThinkingDelta, ThinkingFinal, ToolError, ToolPost, ToolPre, UserNotification,
};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::message::{Message, Role};
use amplifier_protocol::record::{CallOutcome, Record, RecordBody};
use amplifier_protocol::tool::ToolResult;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

/// The event with which a patch tells of a file.
const APPLIED: &str = "apply-patch:applied";
/// How the name of an event ends with which a tool tells of an agent it starts.
const SPAWNED: &str = ":agent_spawned";

/// Something that happened in a turn.
#[derive(Debug)]
pub enum Seen {
    Text(String),
    /// A text that came without pieces, or the end of one that did.
    TextEnd(String),
    Thinking(String),
    ThinkingEnd(String),
    CallBegan {
        id: String,
        tool: String,
        input: Value,
    },
    /// The call runs from now on: nobody is asked about it any more.
    CallStarted(String),
    CallEnded {
        id: String,
        success: Success,
        text: String,
        diff: Option<String>,
    },
    /// A call changed a file.
    Changed {
        id: String,
        path: String,
        diff: String,
    },
    /// A call started an agent, which works in this session.
    Agent {
        id: String,
        session: String,
    },
    /// An agent called a tool. `agent` is the session of the one that this session started, `depth` how far below it is.
    BelowBegan {
        agent: SessionId,
        depth: usize,
        id: String,
        tool: String,
        input: Value,
    },
    BelowEnded {
        agent: SessionId,
        id: String,
        success: Success,
    },
    Retry(ProviderRetry),
    Compacted(ContextCompaction),
    Notice {
        text: String,
        level: Option<String>,
    },
    /// A message that was sent to the turn is part of the conversation now.
    Steered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    Yes,
    No,
}

/// Hands on what the chat wants to know.
pub struct Tap(pub UnboundedSender<Seen>);

impl RecordTap for Tap {
    fn record(&self, record: &Record) {
        let seen = match &record.body {
            RecordBody::Event { name, data } => of_event(name.as_str(), data),
            RecordBody::Message(message) => of_message(message),
            RecordBody::CallStarted { call_id, .. } => Some(Seen::CallStarted(call_id.clone())),
            _ => None,
        };
        if let Some(seen) = seen {
            // Nobody looks on any more when the chat is over.
            self.0.send(seen).ok();
        }
    }

    fn child(&self, id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        Some(Arc::new(Below { agent: id.clone(), depth: 1, seen: self.0.clone() }))
    }
}

/// Looks on at an agent, and at the agents it starts.
struct Below {
    agent: SessionId,
    depth: usize,
    seen: UnboundedSender<Seen>,
}

impl RecordTap for Below {
    fn record(&self, record: &Record) {
        let agent = self.agent.clone();
        let seen = match &record.body {
            RecordBody::CallStarted { operation, .. } if operation.starts_with("provider.") => return,
            RecordBody::CallStarted { call_id, operation, input, .. } => {
                let (depth, id, tool, input) =
                    (self.depth, call_id.clone(), operation.clone(), input.clone());
                Seen::BelowBegan { agent, depth, id, tool, input }
            }
            RecordBody::CallFinished { call_id, outcome } => {
                let failed = match outcome {
                    CallOutcome::Failed { .. } => true,
                    CallOutcome::Answered { result } => result.get("success") == Some(&Value::Bool(false)),
                };
                let success = if failed { Success::No } else { Success::Yes };
                Seen::BelowEnded { agent, id: call_id.clone(), success }
            }
            _ => return,
        };
        self.seen.send(seen).ok();
    }

    fn child(&self, _id: &SessionId) -> Option<Arc<dyn RecordTap>> {
        let (agent, depth, seen) = (self.agent.clone(), self.depth + 1, self.seen.clone());
        Some(Arc::new(Self { agent, depth, seen }))
    }
}

fn read<E: Event + DeserializeOwned>(data: &Value) -> Option<E> {
    E::deserialize(data).ok()
}

/// What an event is to the chat.
pub fn of_event(name: &str, data: &Value) -> Option<Seen> {
    match name {
        ContentBlockDelta::NAME => {
            let delta: ContentBlockDelta = read(data)?;
            (delta.block_type == "text").then_some(Seen::Text(delta.text))
        }
        ContentBlockEnd::NAME => {
            let block = data.get("block")?;
            let is_text = block.get("type").and_then(Value::as_str) == Some("text");
            let text = block.get("text").and_then(Value::as_str).filter(|_| is_text)?;
            Some(Seen::TextEnd(text.to_owned()))
        }
        ThinkingDelta::NAME => Some(Seen::Thinking(read::<ThinkingDelta>(data)?.text)),
        ThinkingFinal::NAME => Some(Seen::ThinkingEnd(read::<ThinkingFinal>(data)?.text)),
        ToolPre::NAME => {
            let pre: ToolPre = read(data)?;
            Some(Seen::CallBegan { id: pre.tool_call_id?, tool: pre.tool_name, input: pre.tool_input })
        }
        ToolPost::NAME => {
            let id = data.get("tool_call_id")?.as_str()?.to_owned();
            let result = ToolResult::deserialize(data.get("result")?).ok()?;
            Some(of_result(id, &result))
        }
        ToolError::NAME => {
            let error: ToolError = read(data)?;
            let (id, text) = (error.tool_call_id?, error.error.msg);
            Some(Seen::CallEnded { id, success: Success::No, text, diff: None })
        }
        ProviderRetry::NAME => Some(Seen::Retry(read(data)?)),
        ContextCompaction::NAME => Some(Seen::Compacted(read(data)?)),
        UserNotification::NAME => {
            let notice: UserNotification = read(data)?;
            Some(Seen::Notice { text: notice.message, level: notice.level })
        }
        OrchestratorSteeringInjected::NAME => Some(Seen::Steered),
        APPLIED => {
            let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
            let (id, path, diff) = (text("tool_call_id")?, text("path")?, text("diff")?);
            Some(Seen::Changed { id, path, diff })
        }
        // Every tool that hands out work says it so, whatever it is called.
        name if name.ends_with(SPAWNED) => {
            let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
            Some(Seen::Agent { id: text("tool_call_id")?, session: text("sub_session_id")? })
        }
        _ => None,
    }
}

fn of_result(id: String, result: &ToolResult) -> Seen {
    let success = if result.success { Success::Yes } else { Success::No };
    let diff = result.output.get("diff").and_then(Value::as_str).filter(|diff| !diff.is_empty());
    let why = result.error_message().filter(|_| !result.success);
    let output = match &result.output {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => of_fields(fields),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    // Why it failed stands first, and what it gave before it failed below.
    let text = match why {
        Some(why) if output.trim().is_empty() => why.to_owned(),
        Some(why) if !output.starts_with(why) => format!("{why}\n{output}"),
        _ => output,
    };
    Seen::CallEnded { id, success, text, diff: diff.map(str::to_owned) }
}

/// Texts of a result are shown as texts, not as JSON with marks for every line end.
fn of_fields(fields: &serde_json::Map<String, Value>) -> String {
    let mut text = String::new();
    for (key, value) in fields {
        match value {
            Value::String(value) if value.contains('\n') => {
                text.push_str(&format!("{key}:\n{}\n", value.trim_end()))
            }
            Value::String(value) if value.is_empty() => {}
            Value::String(value) => text.push_str(&format!("{key}: {value}\n")),
            other => text.push_str(&format!("{key}: {other}\n")),
        }
    }
    text
}

/// A call that a hook refused, or that a cancel kept from running, has a result in the conversation and no other end.
fn of_message(message: &Arc<Message>) -> Option<Seen> {
    let id = message.tool_call_id.clone().filter(|_| message.role == Role::Tool)?;
    let text = message.content.visible_text();
    Some(Seen::CallEnded { id, success: Success::No, text: text.to_string(), diff: None })
}
