//! From a request to the words of the Messages API, all but the conversation. Pure.

use amplifier_protocol::chat::ResponseFormat;
use amplifier_protocol::tool::ToolSpec;
use serde_json::{Map, Value, json};

use super::super::blocks::{ABOUT_ANSWER, ANSWER, named_schema, parameters};
use super::super::wire::{Ask, Delivery, models};
use super::messages;
use super::model::Abilities;
use super::{Body, Config, NAME, said};

/// The most tokens of an answer where nobody knows a number; the API wants one.
const USUAL_MAX_TOKENS: u64 = 8_192;
/// The least budget that the API takes.
const LEAST_BUDGET: u64 = 1_024;
/// What little effort may think.
const LOW_BUDGET: u64 = 4_096;
/// The least budget of a task.
const LEAST_TASK: u64 = 20_000;
/// What the model is told when any JSON will do; the API enforces schemas only.
const ANY_JSON: &str = "Answer with one JSON document and nothing else.";

/// The body of a request, and the betas it needs.
pub(super) fn body(ask: &Ask<'_>, config: &Config) -> (Body, Vec<String>) {
    let abilities = Abilities::of(ask.model);
    let mut body = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    let ceiling = ceiling(ask);
    let by_tool = schema(ask).filter(|_| !abilities.schemas);
    // A model that must call a tool may not think first.
    let thinking = thinking(ask, config, abilities).filter(|_| by_tool.is_none());
    let budget = thinking.as_ref().and_then(|thinking| thinking.get("budget_tokens")?.as_u64());
    let wanted = ask.max_tokens().unwrap_or(ceiling.unwrap_or(USUAL_MAX_TOKENS));
    let least = budget.map_or(0, |budget| budget.saturating_add(config.thinking_budget_buffer));
    let most_tokens = wanted.max(least).min(ceiling.unwrap_or(u64::MAX));
    let thinking = thinking.and_then(|thinking| within(thinking, most_tokens));
    set("model", Some(json!(ask.model)));
    set("max_tokens", Some(json!(most_tokens)));
    set("system", system(ask, config));
    set("messages", Some(messages::all(ask.history, config)));
    let has_tools = ask.request.tools.as_ref().is_some_and(|tools| !tools.is_empty());
    set("tools", tools(ask, config, by_tool.as_ref()));
    match by_tool {
        Some(_) if has_tools => set("tool_choice", Some(json!({"type": "any"}))),
        Some(_) => set("tool_choice", Some(json!({"type": "tool", "name": ANSWER}))),
        None if has_tools => set("tool_choice", ask.request.tool_choice.as_ref().and_then(tool_choice)),
        None => {}
    }
    if abilities.sampling && thinking.is_none() {
        set("temperature", ask.temperature().map(Value::from));
        set("top_p", ask.top_p().map(Value::from));
    }
    set("stop_sequences", ask.stop().filter(|stop| !stop.is_empty()).map(|stop| json!(stop)));
    let betas = betas(ask, config, abilities, thinking.as_ref());
    set("thinking", thinking);
    set("output_config", output_config(ask, config, abilities));
    if abilities.speed {
        set("speed", config.speed.as_ref().map(|speed| json!(speed)));
    }
    if ask.delivery == Delivery::Streamed {
        set("stream", Some(json!(true)));
    }
    body.extend(ask.settings.extra_request_params.clone());
    (body, betas)
}

/// The most tokens this model can answer with, where somebody knows.
fn ceiling(ask: &Ask<'_>) -> Option<u64> {
    let known = models::known(NAME, ask.model).and_then(|known| known.max_output_tokens);
    ask.settings.max_output_tokens.or(known)
}

fn mark(config: &Config) -> Value {
    match config.cache_stable_region_ttl_1h {
        true => json!({"type": "ephemeral", "ttl": "1h"}),
        false => json!({"type": "ephemeral"}),
    }
}

fn system(ask: &Ask<'_>, config: &Config) -> Option<Value> {
    let mut blocks = Vec::new();
    if !ask.history.system.is_empty() {
        let mut block = json!({"type": "text", "text": ask.history.system});
        if let (Value::Object(block), true) = (&mut block, config.enable_prompt_caching) {
            block.insert("cache_control".to_owned(), mark(config));
        }
        blocks.push(block);
    }
    if ask.response_format() == Some(&ResponseFormat::Json) {
        blocks.push(json!({"type": "text", "text": ANY_JSON}));
    }
    (!blocks.is_empty()).then_some(Value::Array(blocks))
}

fn tools(ask: &Ask<'_>, config: &Config, answer: Option<&Value>) -> Option<Value> {
    let searches = match said(ask, "enable_web_search") {
        Some(value) => value.as_bool().unwrap_or(false),
        None => config.enable_web_search,
    };
    let mut tools = Vec::new();
    if searches {
        let mut search = json!({"type": "web_search_20250305", "name": "web_search"});
        if let Value::Object(search) = &mut search {
            let more = [
                ("max_uses", config.web_search_max_uses.map(Value::from)),
                ("user_location", config.web_search_user_location.clone()),
            ];
            search.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        }
        tools.push(search);
    }
    let given = ask.request.tools.iter().flatten();
    // Two tools of one name are refused; the service's own was asked for.
    tools.extend(given.filter(|spec| !(searches && spec.name == "web_search")).map(|spec| tool(spec)));
    tools.extend(
        answer.map(|schema| json!({"name": ANSWER, "description": ABOUT_ANSWER, "input_schema": schema})),
    );
    if let (Some(Value::Object(last)), true) = (tools.last_mut(), config.enable_prompt_caching) {
        last.insert("cache_control".to_owned(), mark(config));
    }
    (!tools.is_empty()).then_some(Value::Array(tools))
}

fn tool(spec: &ToolSpec) -> Value {
    // A tool of the service's own is sent as it was given.
    if spec
        .extra
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|kind| !matches!(kind, "function" | "custom"))
    {
        let mut native = spec.extra.clone();
        native.insert("name".to_owned(), json!(spec.name));
        return Value::Object(native);
    }
    let mut schema = parameters(&spec.parameters);
    if let Value::Object(schema) = &mut schema {
        schema.entry("type").or_insert_with(|| json!("object"));
    }
    let mut wire =
        Map::from_iter([("name".to_owned(), json!(spec.name)), ("input_schema".to_owned(), schema)]);
    if let Some(description) = &spec.description {
        wire.insert("description".to_owned(), json!(description));
    }
    for key in ["strict", "eager_input_streaming", "input_examples"] {
        if let Some(value) = spec.extra.get(key) {
            wire.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(wire)
}

/// Words and objects of other protocols in the words of this one.
fn tool_choice(choice: &Value) -> Option<Value> {
    let word = |word: &str| match word {
        "auto" => Some(json!({"type": "auto"})),
        "none" => Some(json!({"type": "none"})),
        "any" | "required" => Some(json!({"type": "any"})),
        _ => None,
    };
    match choice {
        Value::String(text) => word(text),
        Value::Object(object) => {
            let name = object.get("name").or_else(|| choice.pointer("/function/name"));
            match (object.get("type").and_then(Value::as_str), name) {
                (Some("tool" | "function"), Some(name)) => Some(json!({"type": "tool", "name": name})),
                (Some("required"), _) => word("required"),
                (Some("auto" | "any" | "none"), _) => Some(choice.clone()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// How hard to think, where somebody says.
fn effort<'a>(ask: &Ask<'a>, config: &'a Config) -> Option<&'a str> {
    let asked = ask.request.reasoning_effort.as_deref();
    let configured = config.effort.as_deref().or(config.reasoning_effort.as_deref());
    let known = |effort: &&str| matches!(*effort, "low" | "medium" | "high" | "xhigh" | "max");
    asked.filter(known).or(configured.filter(known))
}

/// What the request says about thinking; nothing where nobody wants it or the model cannot.
fn thinking(ask: &Ask<'_>, config: &Config, abilities: Abilities) -> Option<Value> {
    let number = |key: &str| said(ask, key).and_then(Value::as_u64);
    let word = |key: &str| said(ask, key).and_then(Value::as_str);
    let effort = effort(ask, config);
    let budget = number("thinking_budget_tokens").or(config.thinking_budget_tokens);
    let wanted = match said(ask, "extended_thinking").and_then(Value::as_bool).or(config.extended_thinking) {
        Some(wanted) => wanted,
        None => effort.is_some() || budget.is_some(),
    };
    if !wanted || !abilities.thinks {
        return None;
    }
    let asked = word("thinking_type").or(config.thinking_type.as_deref());
    let adaptive = match asked {
        _ if !abilities.adaptive => false,
        _ if !abilities.budget => true,
        Some(kind) => kind == "adaptive",
        // A number that somebody set is kept, and little effort is a small number.
        None => budget.is_none() && effort != Some("low"),
    };
    let display = word("thinking_display").or(config.thinking_display.as_deref());
    let display = display.or(abilities.task_budget.then_some("summarized"));
    let mut thinking = match adaptive {
        true => json!({"type": "adaptive"}),
        false => {
            let usual = if effort == Some("low") { LOW_BUDGET } else { abilities.usual_budget };
            json!({"type": "enabled", "budget_tokens": budget.unwrap_or(usual).max(LEAST_BUDGET)})
        }
    };
    if let (Value::Object(thinking), Some(display)) = (&mut thinking, display) {
        thinking.insert("display".to_owned(), json!(display));
    }
    Some(thinking)
}

/// A budget must be smaller than the answer; where even the least is not, there is no thinking.
fn within(mut thinking: Value, most_tokens: u64) -> Option<Value> {
    if let Some(budget) = thinking.get_mut("budget_tokens") {
        let fits = budget.as_u64().unwrap_or_default().min(most_tokens.saturating_sub(1));
        *budget = json!(fits);
        return (fits >= LEAST_BUDGET).then_some(thinking);
    }
    Some(thinking)
}

fn output_config(ask: &Ask<'_>, config: &Config, abilities: Abilities) -> Option<Value> {
    let mut wire = Map::new();
    if abilities.effort {
        let override_ = said(ask, "effort").and_then(Value::as_str);
        if let Some(effort) = override_.or(effort(ask, config)) {
            wire.insert("effort".to_owned(), json!(effort));
        }
    }
    if let Some(total) = task_budget(ask, config, abilities) {
        wire.insert("task_budget".to_owned(), json!({"type": "tokens", "total": total}));
    }
    if let Some(schema) = schema(ask).filter(|_| abilities.schemas) {
        wire.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    (!wire.is_empty()).then_some(Value::Object(wire))
}

/// The schema of the answer, where one is wanted.
fn schema(ask: &Ask<'_>) -> Option<Value> {
    let Some(ResponseFormat::JsonSchema { json_schema, .. }) = ask.response_format() else { return None };
    let mut schema = named_schema(json_schema).1.clone();
    close(&mut schema);
    Some(schema)
}

fn task_budget(ask: &Ask<'_>, config: &Config, abilities: Abilities) -> Option<u64> {
    let asked = said(ask, "task_budget_tokens").and_then(Value::as_u64).or(config.task_budget_tokens);
    asked.filter(|_| abilities.task_budget).map(|total| total.max(LEAST_TASK))
}

/// The API takes only objects that say that they hold nothing else.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("type").and_then(Value::as_str) == Some("object") {
                map.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn betas(ask: &Ask<'_>, config: &Config, abilities: Abilities, thinking: Option<&Value>) -> Vec<String> {
    let mut betas: Vec<&str> = config.beta_headers.as_ref().map(|betas| betas.names()).unwrap_or_default();
    let has_tools = ask.request.tools.as_ref().is_some_and(|tools| !tools.is_empty());
    let has_budget = thinking.is_some_and(|thinking| thinking.get("budget_tokens").is_some());
    let needed = [
        ("context-1m-2025-08-07", config.enable_1m_context && abilities.long_window),
        ("interleaved-thinking-2025-05-14", has_tools && has_budget && abilities.asks_to_interleave),
        ("task-budgets-2026-03-13", task_budget(ask, config, abilities).is_some()),
        ("fast-mode-2026-02-01", abilities.speed && config.speed.as_deref() == Some("fast")),
    ];
    for (beta, is_needed) in needed {
        if is_needed && !betas.contains(&beta) {
            betas.push(beta);
        }
    }
    betas.into_iter().map(str::to_owned).collect()
}
