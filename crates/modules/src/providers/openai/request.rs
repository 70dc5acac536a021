//! From a request to the words of the Responses API, all but the conversation. Pure.

use amplifier_protocol::chat::ResponseFormat;
use amplifier_protocol::tool::ToolSpec;
use serde_json::{Map, Value, json};

use super::super::blocks::{ABOUT_ANSWER, ANSWER, named_schema, parameters};
use super::super::wire::{Ask, Delivery};
use super::{Config, Reasoning, SchemaBy, items, reasons};

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>, config: &Config) -> Map<String, Value> {
    let request = ask.request;
    let mut body = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    set("model", Some(json!(ask.model)));
    set("instructions", (!ask.history.system.is_empty()).then(|| json!(ask.history.system)));
    set("input", Some(Value::Array(items::all(ask.history, config))));
    set("store", Some(json!(false)));
    set("max_output_tokens", ask.max_tokens().map(Value::from));
    let effort = effort(ask, config);
    let thought = thought(ask, effort, config);
    if thought == Thought::Unwanted {
        set("temperature", ask.temperature().map(Value::from));
        set("top_p", ask.top_p().map(Value::from));
    }
    set("reasoning", reasoning(config, effort, thought));
    set("include", (thought == Thought::Expected).then(|| json!(["reasoning.encrypted_content"])));
    let answer = answer_tool(ask.response_format(), config);
    let choice = match answer {
        Some(_) => Some(json!("required")),
        None => request.tool_choice.as_ref().map(tool_choice),
    };
    // One answer has one shape, so it is one call.
    let parallel = answer.is_none() && config.parallel_tool_calls.unwrap_or(true);
    let tools: Vec<_> = request.tools.iter().flatten().map(|spec| tool(spec)).chain(answer).collect();
    if !tools.is_empty() {
        set("tools", Some(Value::Array(tools)));
        set("tool_choice", choice);
        set("parallel_tool_calls", Some(json!(parallel)));
        set("max_tool_calls", config.max_tool_calls.map(Value::from));
    }
    set("text", text_config(ask.response_format(), config));
    set("truncation", text(&config.truncation));
    set("prompt_cache_key", text(&config.prompt_cache_key).or_else(|| text(&request.conversation_id)));
    set("prompt_cache_retention", text(&config.prompt_cache_retention));
    set("prompt_cache_options", config.prompt_cache_options.clone().map(Value::Object));
    set("safety_identifier", text(&config.safety_identifier));
    set("service_tier", text(&config.service_tier));
    if ask.delivery == Delivery::Streamed {
        set("stream", Some(json!(true)));
    }
    body.extend(ask.settings.extra_request_params.clone());
    body
}

fn effort<'a>(ask: &Ask<'a>, config: &'a Config) -> Option<&'a str> {
    let configured = config.reasoning.as_ref().and_then(Reasoning::effort);
    let wanted = ask.request.extra.get("extended_thinking") == Some(&Value::Bool(true));
    let asked = ask.request.reasoning_effort.as_deref().or(configured).or(config.reasoning_effort.as_deref());
    asked.or(wanted.then_some("high"))
}

/// Whether the model will reason.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thought {
    Expected,
    Unwanted,
}

/// A model reasons because it is known to, or because it is told to.
fn thought(ask: &Ask<'_>, effort: Option<&str>, config: &Config) -> Thought {
    match (effort, reasons(ask.model, config)) {
        (Some("none"), _) | (_, Some(false)) | (None, None) => Thought::Unwanted,
        (Some(_), _) | (None, Some(true)) => Thought::Expected,
    }
}

fn reasoning(config: &Config, effort: Option<&str>, thought: Thought) -> Option<Value> {
    let mut wire = Map::new();
    let expected = thought == Thought::Expected;
    if let Some(effort) = effort.filter(|effort| expected || *effort == "none") {
        wire.insert("effort".to_owned(), json!(effort));
    }
    let own = match &config.reasoning {
        Some(Reasoning::Both { summary, .. }) => summary.as_deref(),
        _ => None,
    };
    let summary = own.or(config.reasoning_summary.as_deref()).unwrap_or("auto");
    if expected && summary != "none" {
        wire.insert("summary".to_owned(), json!(summary));
    }
    if let (Some(context), true) = (&config.reasoning_context, expected) {
        wire.insert("context".to_owned(), json!(context));
    }
    (!wire.is_empty()).then_some(Value::Object(wire))
}

fn tool(spec: &ToolSpec) -> Value {
    // A tool of the service's own is sent as it was given.
    if spec.extra.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "function") {
        return Value::Object(spec.extra.clone());
    }
    // The API is strict unless it is told not to be, and few schemas are written for that.
    let strict = spec.extra.get("strict").cloned().unwrap_or(Value::Bool(false));
    let parameters = parameters(&spec.parameters);
    let mut wire = json!({"type": "function", "name": spec.name, "parameters": parameters, "strict": strict});
    if let (Value::Object(wire), Some(description)) = (&mut wire, &spec.description) {
        wire.insert("description".to_owned(), json!(description));
    }
    wire
}

/// The tool whose call is the answer, where a shape is wanted and asked for in that way.
fn answer_tool(format: Option<&ResponseFormat>, config: &Config) -> Option<Value> {
    let Some(ResponseFormat::JsonSchema { json_schema, strict }) = format else { return None };
    let tool = json!({"type": "function", "name": ANSWER, "description": ABOUT_ANSWER,
        "parameters": named_schema(json_schema).1, "strict": strict.unwrap_or(false)});
    (config.schema_by == SchemaBy::Tool).then_some(tool)
}

/// Words and objects of other protocols in the words of this one.
fn tool_choice(choice: &Value) -> Value {
    let name = choice.get("name").or_else(|| choice.pointer("/function/name"));
    match (choice, choice.get("type").and_then(Value::as_str), name) {
        (Value::String(word), _, _) if word == "any" => json!("required"),
        (_, Some("tool" | "function"), Some(name)) => json!({"type": "function", "name": name}),
        (_, Some("any"), _) => json!("required"),
        (_, Some(word @ ("auto" | "none" | "required")), _) => json!(word),
        _ => choice.clone(),
    }
}

fn text_config(format: Option<&ResponseFormat>, config: &Config) -> Option<Value> {
    let format = match format {
        None | Some(ResponseFormat::Text) => None,
        Some(ResponseFormat::Json) => Some(json!({"type": "json_object"})),
        Some(ResponseFormat::JsonSchema { .. }) if config.schema_by == SchemaBy::Tool => None,
        Some(ResponseFormat::JsonSchema { json_schema, strict }) => {
            let (name, schema) = named_schema(json_schema);
            let mut wire = json!({"type": "json_schema", "name": name, "schema": schema});
            if let (Value::Object(wire), Some(strict)) = (&mut wire, strict) {
                wire.insert("strict".to_owned(), Value::Bool(*strict));
            }
            Some(wire)
        }
    };
    let verbosity = config.text_verbosity.as_ref().map(|verbosity| json!(verbosity));
    let parts = [("format", format), ("verbosity", verbosity)];
    let wire: Map<_, _> =
        parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    (!wire.is_empty()).then_some(Value::Object(wire))
}
