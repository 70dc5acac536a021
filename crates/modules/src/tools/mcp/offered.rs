//! What a server offers, as tools of the session: its own tools, and three that read its resources and prompts.

use std::sync::Arc;

use amplifier_core::contracts::{Tool, ToolCx, ToolFailure};
use amplifier_protocol::tool::{EffectClass, Effects, ToolSpec};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::config::Way;
use super::content;
use super::server::{Phase, Server};
use super::wire::{Offer, OfferedPrompt, OfferedTool, WireError};
use crate::reminder::one_line;

/// How many resources or prompts a description names.
const NAMED: usize = 30;
/// How many resources one list gives.
const LISTED: usize = 200;

/// How something of a server looks in the session.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Face {
    Tool(OfferedTool),
    ListResources,
    ReadResource { about: String },
    Prompt { about: String },
}

impl Face {
    pub(super) fn plain_name(&self) -> &str {
        match self {
            Self::Tool(tool) => &tool.name,
            Self::ListResources => "list_resources",
            Self::ReadResource { .. } => "read_resource",
            Self::Prompt { .. } => "get_prompt",
        }
    }
}

/// Everything of an offer that the settings want.
pub(super) fn faces(server: &Server, offer: &Offer) -> Vec<Face> {
    let settings = &server.settings;
    let wanted = offer.tools.iter().filter(|tool| settings.wants(&tool.name)).cloned();
    let mut faces: Vec<_> = wanted.map(Face::Tool).collect();
    let name = server.name();
    if !offer.resources.is_empty() || !offer.templates.is_empty() {
        faces.push(Face::ListResources);
        let about = told(
            format!("Reads a resource of the MCP server `{name}` by its URI."),
            "Resources",
            offer.resources.iter().chain(&offer.templates).map(resource_line),
        );
        faces.push(Face::ReadResource { about });
    }
    if !offer.prompts.is_empty() {
        let about = told(
            format!("Fetches a prompt of the MCP server `{name}`, filled in with arguments."),
            "Prompts (arguments with * must be given)",
            offer.prompts.iter().map(prompt_line),
        );
        faces.push(Face::Prompt { about });
    }
    faces.retain(|face| matches!(face, Face::Tool(_)) || settings.wants(face.plain_name()));
    faces
}

fn told(mut text: String, head: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    text.push_str(&format!(" {head}:"));
    for line in lines.iter().take(NAMED) {
        text.push_str("\n- ");
        text.push_str(line);
    }
    if let Some(more) = lines.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text.push_str(&format!("\n({more} more)"));
    }
    text
}

fn resource_line(resource: &Value) -> String {
    let text = |key: &str| resource.get(key).and_then(Value::as_str).unwrap_or_default();
    let uri = if text("uri").is_empty() { text("uri_template") } else { text("uri") };
    one_line(&format!("{uri} ({})", text("name")), 200)
}

fn prompt_line(prompt: &OfferedPrompt) -> String {
    let about = prompt.description.as_deref().unwrap_or_default();
    one_line(&format!("{}({}): {about}", prompt.name, prompt.arguments.join(", ")), 300)
}

/// The tool that stands in the session for this.
pub(super) fn tool(name: String, face: &Face, server: &Arc<Server>) -> Arc<dyn Tool> {
    Arc::new(Offered { name, face: face.clone(), server: Arc::clone(server) })
}

struct Offered {
    name: String,
    face: Face,
    server: Arc<Server>,
}

impl Offered {
    fn is_remote(&self) -> bool {
        matches!(self.server.settings.way, Way::Http { .. })
    }

    async fn run(&self, input: &Map<String, Value>, cx: &ToolCx) -> Result<Value, ToolFailure> {
        let server = &self.server;
        if let Face::ListResources = self.face {
            server.link().await?;
            return list(server, input);
        }
        let link = server.link().await?;
        let limit = server.settings.call_timeout;
        let answer = match &self.face {
            Face::Tool(tool) => link.call_tool(&tool.name, input.clone(), limit, cx).await,
            Face::ReadResource { .. } => link.read_resource(text(input, "uri")?, limit, cx).await,
            Face::Prompt { .. } => {
                link.prompt(text(input, "name")?, strings(input.get("arguments"))?, limit, cx).await
            }
            Face::ListResources => return list(server, input),
        };
        // Nothing is asked twice here: a server that says why it failed may have done something before.
        let error = match answer {
            Ok(answer) => return self.answered(&answer),
            Err(error) => error,
        };
        if error.ends_the_connection() {
            server.give_up(&link).await;
        }
        let why = match error {
            WireError::Ended => Some(link.ended().await),
            _ => None,
        };
        Err(self.failed(&error, why))
    }

    fn answered(&self, answer: &Value) -> Result<Value, ToolFailure> {
        let limits = self.server.limits;
        match self.face {
            Face::Tool(_) => content::of_call(answer, limits),
            Face::ReadResource { .. } | Face::ListResources => Ok(content::of_resource(answer, limits)),
            Face::Prompt { .. } => Ok(content::of_prompt(answer, limits)),
        }
    }

    fn failed(&self, error: &WireError, why: Option<String>) -> ToolFailure {
        let server = self.server.name();
        let (message, kind) = match error {
            WireError::Ended => (
                format!(
                    "MCP server `{server}` ended during the call: {}. What the call did before is not known. The server is being started again; the next call will reach it",
                    why.unwrap_or_default()
                ),
                "McpServerEnded",
            ),
            WireError::Unreachable(_) | WireError::Forgotten => (
                format!(
                    "MCP server `{server}`: {error}. The call was not carried out; the next call will reconnect"
                ),
                "McpServerUnavailable",
            ),
            WireError::Failed(_) | WireError::Unnamed(_) => (
                format!(
                    "MCP server `{server}`: {error}. The outcome of the call is unknown, so it is not repeated; the next call will reconnect"
                ),
                "McpServerUnavailable",
            ),
            WireError::Late(_) => (
                format!(
                    "MCP server `{server}`: {error}. The call was cancelled; what it did before is not known. `call_timeout` sets how long a call may take"
                ),
                "Timeout",
            ),
            WireError::Cancelled => (format!("the call to MCP server `{server}` was cancelled"), "Cancelled"),
            WireError::Refused { .. } => (format!("MCP server `{server}` refused: {error}"), "McpError"),
            WireError::Strange(_) => (format!("MCP server `{server}`: {error}"), "McpError"),
        };
        ToolFailure::new(message).of_kind(kind)
    }
}

#[async_trait]
impl Tool for Offered {
    fn spec(&self) -> ToolSpec {
        let server = self.server.name();
        let (description, parameters) = match &self.face {
            Face::Tool(tool) => {
                let about = tool.description.clone();
                (
                    about.unwrap_or_else(|| format!("A tool of the MCP server `{server}`.")),
                    tool.schema.clone(),
                )
            }
            Face::ListResources => (
                format!("Lists the resources of the MCP server `{server}`, for `read_resource`."),
                json!({"type": "object", "properties": {
                    "from": {"type": "integer", "minimum": 0, "description": "Where in the list to begin; 0 without."},
                }}),
            ),
            Face::ReadResource { about } => (
                about.clone(),
                json!({"type": "object", "required": ["uri"], "properties": {
                    "uri": {"type": "string", "description": "The URI of the resource."},
                }}),
            ),
            Face::Prompt { about } => (
                about.clone(),
                json!({"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string", "description": "The prompt."},
                    "arguments": {
                        "type": "object",
                        "description": "The prompt's arguments, each a text.",
                        "additionalProperties": {"type": "string"},
                    },
                }}),
            ),
        };
        ToolSpec { name: self.name.clone(), description: Some(description), parameters, extra: Map::new() }
    }

    /// What a server says about its tools counts only where the user believes it: it could call anything harmless.
    fn effects(&self) -> Effects {
        let believed = self.server.settings.believed;
        match &self.face {
            Face::Tool(tool) if believed => {
                let network = tool.open_world || self.is_remote();
                match (tool.read_only, tool.idempotent) {
                    (true, _) => Effects { network, ..Effects::READS },
                    (false, true) => Effects { class: EffectClass::Idempotent, network, ..Effects::UNKNOWN },
                    (false, false) => Effects { network, ..Effects::UNKNOWN },
                }
            }
            Face::Tool(_) => Effects::UNKNOWN,
            Face::ListResources => Effects::READS,
            // What a server reads to answer may well be elsewhere, and what it is asked for goes with the question.
            Face::ReadResource { .. } | Face::Prompt { .. } => {
                Effects { network: self.is_remote() || !believed, ..Effects::READS }
            }
        }
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        match input {
            Value::Object(input) => self.run(&input, cx).await,
            Value::Null => self.run(&Map::new(), cx).await,
            other => Err(invalid(format!(
                "the input of `{}` must be an object, not {}",
                self.name,
                kind_of(&other)
            ))),
        }
    }
}

fn invalid(message: String) -> ToolFailure {
    ToolFailure::new(message).of_kind("InvalidInput")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn text<'a>(input: &'a Map<String, Value>, key: &str) -> Result<&'a str, ToolFailure> {
    let text = input.get(key).and_then(Value::as_str);
    text.ok_or_else(|| invalid(format!("`{key}` is missing: it must be a text")))
}

/// Arguments of prompts are texts; a model that gives a number means its digits.
fn strings(arguments: Option<&Value>) -> Result<Map<String, Value>, ToolFailure> {
    let as_text = |value: &Value| match value {
        Value::String(text) => Value::String(text.clone()),
        other => Value::String(other.to_string()),
    };
    match arguments {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => {
            Ok(map.iter().map(|(key, value)| (key.clone(), as_text(value))).collect())
        }
        Some(other) => Err(invalid(format!("`arguments` must be an object, not {}", kind_of(other)))),
    }
}

fn list(server: &Server, input: &Map<String, Value>) -> Result<Value, ToolFailure> {
    let from =
        input.get("from").and_then(Value::as_u64).and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
    let Phase::Up { offer, .. } = server.state().phase else {
        return Err(ToolFailure::new(format!("MCP server `{}` is not available", server.name())));
    };
    let shown: Vec<_> = offer.resources.iter().skip(from).take(LISTED).cloned().collect();
    let mut answer = Map::from_iter([
        ("resources".to_owned(), Value::Array(shown)),
        ("total".to_owned(), Value::from(offer.resources.len())),
    ]);
    if from == 0 && !offer.templates.is_empty() {
        answer.insert("templates".to_owned(), Value::Array(offer.templates.clone()));
    }
    let next = from.saturating_add(LISTED);
    if next < offer.resources.len() {
        answer.insert("next_from".to_owned(), Value::from(next));
    }
    Ok(Value::Object(answer))
}
