//! From a request to the words of the `generateContent` API, all but the conversation. Pure.

use amplifier_protocol::chat::ResponseFormat;
use amplifier_protocol::tool::ToolSpec;
use serde_json::{Map, Value, json};

use super::super::blocks::{named_schema, parameters};
use super::super::wire::{Ask, models};
use super::{Config, NAME, contents};

/// What little effort may think, where a model takes a number.
const LOW_BUDGET: i64 = 4_096;

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>, model: &str, config: &Config) -> Map<String, Value> {
    let mut body = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    let system = &ask.history.system;
    set("systemInstruction", (!system.is_empty()).then(|| json!({"parts": [{"text": system}]})));
    set("contents", Some(Value::Array(contents::all(ask.history, generation(model)))));
    set("tools", tools(ask.request.tools.iter().flatten().map(AsRef::as_ref)));
    if ask.request.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        set("toolConfig", ask.request.tool_choice.as_ref().and_then(tool_config));
    }
    set("safetySettings", (!config.safety_settings.is_empty()).then(|| json!(config.safety_settings)));
    let generation = generation_config(ask, model, config);
    set("generationConfig", (!generation.is_empty()).then_some(Value::Object(generation)));
    set("cachedContent", config.cached_content.as_ref().map(|name| json!(name)));
    body.extend(ask.settings.extra_request_params.clone());
    body
}

/// `gemini-2.5-flash` is of generation 2; what says nothing is the newest.
pub(super) fn generation(model: &str) -> u32 {
    let number = model.strip_prefix("gemini-").and_then(|rest| rest.split(['.', '-']).next());
    number.and_then(|number| number.parse().ok()).unwrap_or(99)
}

fn tools<'a>(specs: impl Iterator<Item = &'a ToolSpec>) -> Option<Value> {
    let (mut functions, mut tools) = (Vec::new(), Vec::new());
    for spec in specs {
        // A tool of the service's own is sent as it was given.
        if spec.extra.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "function") {
            let own = spec.extra.iter().filter(|(key, _)| *key != "type");
            tools.push(Value::Object(own.map(|(key, value)| (key.clone(), value.clone())).collect()));
            continue;
        }
        let mut function = json!({"name": spec.name, "parametersJsonSchema": parameters(&spec.parameters)});
        if let (Value::Object(function), Some(description)) = (&mut function, &spec.description) {
            function.insert("description".to_owned(), json!(description));
        }
        functions.push(function);
    }
    if !functions.is_empty() {
        tools.insert(0, json!({"functionDeclarations": functions}));
    }
    (!tools.is_empty()).then_some(Value::Array(tools))
}

/// Words and objects of other protocols in the words of this one.
fn tool_config(choice: &Value) -> Option<Value> {
    let name = choice.get("name").or_else(|| choice.pointer("/function/name"));
    let word = choice.as_str().or_else(|| choice.get("type").and_then(Value::as_str))?;
    let calling = match (word, name) {
        ("tool" | "function", Some(name)) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        ("any" | "required", _) => json!({"mode": "ANY"}),
        ("none", _) => json!({"mode": "NONE"}),
        ("auto", _) => json!({"mode": "AUTO"}),
        _ => return None,
    };
    Some(json!({"functionCallingConfig": calling}))
}

fn generation_config(ask: &Ask<'_>, model: &str, config: &Config) -> Map<String, Value> {
    let stop = ask.stop().filter(|stop| !stop.is_empty());
    let (mime, schema) = match ask.response_format() {
        None | Some(ResponseFormat::Text) => (None, None),
        Some(ResponseFormat::Json) => (Some(json!("application/json")), None),
        Some(ResponseFormat::JsonSchema { json_schema, .. }) => {
            (Some(json!("application/json")), Some(named_schema(json_schema).1.clone()))
        }
    };
    let parts = [
        ("temperature", ask.temperature().map(Value::from)),
        ("topP", ask.top_p().map(Value::from)),
        ("maxOutputTokens", ask.max_tokens().map(Value::from)),
        ("stopSequences", stop.map(|stop| json!(stop))),
        ("seed", config.seed.map(Value::from)),
        ("responseMimeType", mime),
        ("responseJsonSchema", schema),
        ("thinkingConfig", thinking(ask, model, config)),
    ];
    parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// Whether a model thinks: what the catalogue says, else that models of generation 2.5 and later do.
fn thinks(model: &str) -> bool {
    match models::known(NAME, model) {
        Some(known) => known.capabilities.iter().any(|word| word == "thinking"),
        None => model.starts_with("gemini-2.5") || (model.starts_with("gemini-") && generation(model) >= 3),
    }
}

fn thinking(ask: &Ask<'_>, model: &str, config: &Config) -> Option<Value> {
    if !thinks(model) {
        return None;
    }
    let noted = |key: &str| {
        let noted = ask.request.metadata.as_ref().and_then(|notes| notes.get(key));
        ask.request.extra.get(key).or(noted).and_then(Value::as_i64)
    };
    let effort = ask.request.reasoning_effort.as_deref().or(config.reasoning_effort.as_deref());
    let budget = noted("thinking_budget").or(config.thinking_budget);
    let mut wire =
        Map::from_iter([("includeThoughts".to_owned(), json!(config.include_thoughts && budget != Some(0)))]);
    match (budget, effort) {
        (Some(budget), _) => wire.insert("thinkingBudget".to_owned(), json!(budget)),
        (None, Some(effort)) if generation(model) >= 3 => {
            let level = match effort {
                "none" | "minimal" => "MINIMAL",
                "low" => "LOW",
                "medium" => "MEDIUM",
                _ => "HIGH",
            };
            wire.insert("thinkingLevel".to_owned(), json!(level))
        }
        (None, Some("none")) => wire.insert("thinkingBudget".to_owned(), json!(0)),
        (None, Some("low" | "minimal")) => wire.insert("thinkingBudget".to_owned(), json!(LOW_BUDGET)),
        // The model decides, which is what it does when nobody says anything.
        (None, _) => None,
    };
    Some(Value::Object(wire))
}
