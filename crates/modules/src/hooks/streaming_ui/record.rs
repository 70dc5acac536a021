//! The records a front end gets: what an event means to somebody who watches, and nothing more.
//!
//! Every record has `type`, `session_id`, `parent_id`, `turn` and `sequence`; side by side running sub-sessions are told
//! apart by them. Types: `block_start`, `text_delta`, `tool_arguments_delta`, `block_end`, `thinking_delta`, `thinking`,
//! `tool_start`, `tool_end`, `tool_error`, `usage`, `turn_end`, `dropped`.

use amplifier_core::contracts::HookEvent;
use amplifier_core::coordinator::Coordinator;
use amplifier_protocol::event::{
    ContentBlockDelta, ContentBlockEnd, ContentBlockStart, Event, LlmResponse, OrchestratorComplete,
    ThinkingDelta, ThinkingFinal, ToolError, ToolPost, ToolPre,
};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::tool::ToolResult;
use amplifier_protocol::usage::Usd;
use serde_json::{Map, Value, json};

use super::Ui;
use crate::reminder::one_line;

/// The longest line of a tool's input or result, in characters.
const LINE: usize = 200;

/// The events that become records.
#[cfg(test)]
pub(super) const NAMES: [&str; 10] = [
    ContentBlockStart::NAME,
    ContentBlockDelta::NAME,
    ContentBlockEnd::NAME,
    ThinkingDelta::NAME,
    ThinkingFinal::NAME,
    ToolPre::NAME,
    ToolPost::NAME,
    ToolError::NAME,
    LlmResponse::NAME,
    OrchestratorComplete::NAME,
];

/// The record of an event, if it has one for these settings. What cannot be read has none.
pub(super) fn of(event: &HookEvent, ui: &Ui, coordinator: &Coordinator) -> Option<Value> {
    let body = match event.name.as_str() {
        ContentBlockStart::NAME => block_start(event, ui),
        ContentBlockDelta::NAME => delta(event),
        ContentBlockEnd::NAME => block_end(event, ui),
        ThinkingDelta::NAME => thinking(event, ui, "thinking_delta"),
        ThinkingFinal::NAME => thinking(event, ui, "thinking"),
        ToolPre::NAME => tool_start(event, ui),
        ToolPost::NAME => tool_end(event, ui),
        ToolError::NAME => tool_error(event),
        LlmResponse::NAME if ui.show_token_usage => usage(event),
        OrchestratorComplete::NAME => turn_end(event, coordinator),
        _ => None,
    };
    let Value::Object(body) = body? else { return None };
    let stamp = &event.stamp;
    let mut record = Map::from_iter([
        ("session_id".to_owned(), json!(stamp.session_id)),
        ("parent_id".to_owned(), json!(stamp.parent_id)),
        ("turn".to_owned(), json!(stamp.turn)),
        ("sequence".to_owned(), json!(stamp.sequence)),
    ]);
    record.extend(body);
    Some(Value::Object(record))
}

/// Says how many records did not fit into the queue.
pub(super) fn dropped(session_id: &SessionId, count: u64) -> Value {
    json!({"type": "dropped", "session_id": session_id, "count": count})
}

fn is_thinking(kind: &str) -> bool {
    matches!(kind, "thinking" | "redacted_thinking" | "reasoning")
}

fn block_start(event: &HookEvent, ui: &Ui) -> Option<Value> {
    let start: ContentBlockStart = event.read().ok()?;
    let hidden = is_thinking(&start.block_type) && !ui.show_thinking_stream;
    (!hidden)
        .then(|| json!({"type": "block_start", "block_type": start.block_type, "index": start.block_index}))
}

fn delta(event: &HookEvent) -> Option<Value> {
    let delta: ContentBlockDelta = event.read().ok()?;
    let kind = match delta.block_type.as_str() {
        "text" => "text_delta",
        "tool_call" | "tool_use" => "tool_arguments_delta",
        // Thinking has events of its own.
        _ => return None,
    };
    Some(json!({"type": kind, "index": delta.block_index, "text": delta.text}))
}

fn block_end(event: &HookEvent, ui: &Ui) -> Option<Value> {
    let end: ContentBlockEnd = event.read().ok()?;
    let kind = end.block.get("type").and_then(Value::as_str).unwrap_or("unknown");
    if is_thinking(kind) && !ui.show_thinking_stream {
        return None;
    }
    let text = end.block.get("text").and_then(Value::as_str);
    let is_last = end.total_blocks.is_some_and(|total| end.block_index + 1 == total);
    Some(json!({
        "type": "block_end", "block_type": kind, "index": end.block_index, "text": text, "is_last": is_last
    }))
}

fn thinking(event: &HookEvent, ui: &Ui, kind: &str) -> Option<Value> {
    let text = event.data.get("text").and_then(Value::as_str).filter(|_| ui.show_thinking_stream)?;
    Some(json!({"type": kind, "text": text}))
}

fn tool_start(event: &HookEvent, ui: &Ui) -> Option<Value> {
    let pre: ToolPre = event.read().ok()?;
    Some(json!({
        "type": "tool_start", "tool": pre.tool_name, "call_id": pre.tool_call_id,
        "group_id": pre.parallel_group_id, "input": lines(&pre.tool_input, ui.show_tool_lines)
    }))
}

fn tool_end(event: &HookEvent, ui: &Ui) -> Option<Value> {
    let post: ToolPost = event.read().ok()?;
    let result: ToolResult = serde_json::from_value(post.result).ok()?;
    Some(json!({
        "type": "tool_end", "tool": post.tool_name, "call_id": post.tool_call_id,
        "group_id": post.parallel_group_id, "success": result.success,
        "output": lines(shown(&result.output), ui.show_tool_lines)
    }))
}

fn tool_error(event: &HookEvent) -> Option<Value> {
    let error: ToolError = event.read().ok()?;
    let message = one_line(&error.error.msg, LINE);
    Some(json!({
        "type": "tool_error", "tool": error.tool_name, "call_id": error.tool_call_id, "message": message
    }))
}

/// The part of a result somebody wants to see first: what a command printed.
fn shown(output: &Value) -> &Value {
    let printed =
        |key: &str| output.get(key).filter(|text| text.as_str().is_some_and(|text| !text.is_empty()));
    printed("stdout").or_else(|| printed("stderr")).or_else(|| printed("content")).unwrap_or(output)
}

/// The first lines of a value, each cut, with the number of those left out at the end.
fn lines(value: &Value, most: usize) -> Option<Vec<String>> {
    if most == 0 {
        return None;
    }
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(map) => {
            let line = |(key, value): (&String, &Value)| match value {
                Value::String(text) => format!("{key}: {text}"),
                other => format!("{key}: {other}"),
            };
            map.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    };
    let all = text.lines().count();
    let mut lines: Vec<_> = text.lines().take(most).map(cut).collect();
    if all > most {
        lines.push(format!("… ({} more lines)", all - most));
    }
    Some(lines)
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(line)),
        None => line.to_owned(),
    }
}

fn usage(event: &HookEvent) -> Option<Value> {
    let response: LlmResponse = event.read().ok()?;
    let usage = response.usage?;
    let input = usage.input_tokens.saturating_add(usage.cache_write_tokens.unwrap_or_default());
    let cached = usage.cache_read_tokens.unwrap_or_default();
    let cached_percent = cached.saturating_mul(100).checked_div(input).unwrap_or_default();
    Some(json!({
        "type": "usage", "provider": response.provider, "model": response.model, "input_tokens": input,
        "output_tokens": usage.output_tokens, "cached_percent": cached_percent,
        "cost_usd": usage.cost_usd, "cost": money(usage.cost_usd), "duration_ms": response.duration_ms
    }))
}

fn turn_end(event: &HookEvent, coordinator: &Coordinator) -> Option<Value> {
    let complete: OrchestratorComplete = event.read().ok()?;
    let cost = coordinator.status().cost_usd;
    Some(json!({
        "type": "turn_end", "status": complete.status, "session_cost_usd": cost, "session_cost": money(cost)
    }))
}

/// Money for people: unknown is a question mark and never zero.
fn money(cost: Option<Usd>) -> String {
    let Some(nanos) = cost.map(Usd::as_nanos) else { return "?".to_owned() };
    let cents = (nanos + 5_000_000) / 10_000_000;
    if nanos == 0 || nanos >= 10_000_000 {
        return format!("${}.{:02}", cents / 100, cents % 100);
    }
    // Below a cent: two digits that mean something.
    let digits = nanos.to_string().len();
    let unit = 10_u64.pow(u32::try_from(digits.saturating_sub(2)).unwrap_or_default());
    format!("${}", Usd::from_nanos((nanos + unit / 2) / unit * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_money_is_a_question_mark_and_small_money_keeps_two_digits() {
        let text = |amount: &str| money(Some(amount.parse().unwrap()));
        assert_eq!(money(None), "?");
        assert_eq!([text("0"), text("1.239"), text("0.01")], ["$0.00", "$1.24", "$0.01"]);
        assert_eq!([text("0.0012345"), text("0.000000001")], ["$0.0012", "$0.000000001"]);
    }

    #[test]
    fn a_value_is_cut_to_its_first_lines_and_says_so() {
        assert_eq!(lines(&json!("a\nb\nc"), 2).unwrap(), ["a", "b", "… (1 more lines)"]);
        assert_eq!(lines(&json!("a"), 0), None);
        assert_eq!(lines(&json!({"k": "v", "n": 1}), 5).unwrap(), ["k: v", "n: 1"]);
        assert_eq!(lines(&json!("ä".repeat(300)), 1).unwrap()[0].chars().count(), LINE + 1);
    }

    #[test]
    fn a_command_shows_what_it_printed() {
        assert_eq!(shown(&json!({"stdout": "", "stderr": "bad", "returncode": 1})), &json!("bad"));
        assert_eq!(shown(&json!({"v": 1})), &json!({"v": 1}));
    }
}
