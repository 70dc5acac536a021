//! From the words of the Responses API to pieces of an answer. Pure; one reader for one answer.

use std::collections::HashSet;

use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::usage::Usage;
use serde_json::{Map, Value, json};

use super::super::blocks::{ANSWER, ORIGIN, in_stream, keep_item, read_frame};
use super::super::wire::{Frame, Piece, Reader, from_body};
use super::NAME;

/// The type of the blocks in which items of the service that have no other name are kept.
pub(super) const KEPT: &str = "openai_item";
/// The key of a text that holds the id of its item.
pub(super) const ITEM_ID: &str = "item_id";
/// The key of a text that says in which part of the answer it stands.
pub(super) const PHASE: &str = "phase";
/// The key of a thought that holds its summary when that is more than one text.
pub(super) const SUMMARY: &str = "summary";
/// So many blocks an item may have; a message has one for each of its parts.
const PARTS: u32 = 1_000;

/// Reads the events of one answer, or the whole of it.
#[derive(Default)]
pub(super) struct Events {
    // Blocks of which something was told already; what comes whole at their end is not told again.
    told: HashSet<u32>,
    started: HashSet<u32>,
    calls: bool,
    // The block of the call that is the answer.
    answer: Option<u32>,
    ended: bool,
    // Ids of items in the order in which they began, for servers that do not number them.
    items: Vec<String>,
}

impl Reader for Events {
    fn frame(&mut self, frame: &Frame) -> Result<Vec<Piece>, LlmError> {
        if frame.data.trim() == "[DONE]" {
            return Ok(if self.ended { vec![Piece::End] } else { Vec::new() });
        }
        let Some(event) = read_frame(frame)? else { return Ok(Vec::new()) };
        let kind = event.get("type").and_then(Value::as_str).unwrap_or(&frame.event);
        let at = |key: &str| event.get(key).and_then(Value::as_u64).and_then(|at| u32::try_from(at).ok());
        let block = block(at("output_index").unwrap_or_else(|| self.number(&event)), 0);
        let delta = || event.get("delta").and_then(Value::as_str).unwrap_or_default().to_owned();
        let part = block.saturating_add(at("content_index").unwrap_or_default());
        let response = event.get("response").unwrap_or(&Value::Null);
        Ok(match kind {
            "response.created" => notes(response),
            "response.output_item.added" => match event.get("item") {
                Some(item) if is_call(item) => self.start_call(block, item).into_iter().collect(),
                _ => Vec::new(),
            },
            "response.output_text.delta" | "response.refusal.delta" => self.say(part, delta()),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(block, delta())
            }
            "response.reasoning_summary_part.added" if at("summary_index").unwrap_or_default() > 0 => {
                self.think(block, "\n\n".to_owned())
            }
            "response.function_call_arguments.delta" => {
                vec![self.arguments(block, delta())]
            }
            "response.output_item.done" => match event.get("item") {
                Some(item) => self.item(block, item)?,
                None => Vec::new(),
            },
            "response.completed" | "response.incomplete" => self.finish(response),
            "response.failed" | "response.cancelled" => return Err(failure(response)),
            "error" => return Err(in_stream(sharpened(from_body(None, &event), &event))),
            _ => Vec::new(),
        })
    }

    fn whole(&mut self, body: Value) -> Result<Vec<Piece>, LlmError> {
        if body.get("error").is_some_and(|error| !error.is_null())
            || matches!(body.get("status").and_then(Value::as_str), Some("failed" | "cancelled"))
        {
            return Err(failure(&body));
        }
        let Some(output) = body.get("output").and_then(Value::as_array) else {
            return Err(LlmError::new(LlmErrorKind::Stream, "the answer holds no output"));
        };
        let mut pieces = notes(&body);
        for (at, item) in output.iter().enumerate() {
            pieces.extend(self.item(block(u32::try_from(at).unwrap_or(u32::MAX), 0), item)?);
        }
        pieces.extend(self.finish(&body));
        Ok(pieces)
    }
}

fn block(item: u32, part: u32) -> u32 {
    item.saturating_mul(PARTS).saturating_add(part)
}

fn is_call(item: &Value) -> bool {
    item.get("type").and_then(Value::as_str) == Some("function_call")
}

fn notes(response: &Value) -> Vec<Piece> {
    let keys = [("id", "openai:response_id"), ("model", "openai:model")];
    let note = |(key, name): (&str, &str)| {
        let value = response.get(key).filter(|value| value.is_string())?;
        Some(Piece::Note(name.to_owned(), value.clone()))
    };
    keys.into_iter().filter_map(note).collect()
}

impl Events {
    /// The number of the item that an event is about, by its id.
    fn number(&mut self, event: &Value) -> u32 {
        let id = event.get("item_id").or_else(|| event.pointer("/item/id")).and_then(Value::as_str);
        let Some(id) = id else { return 0 };
        let at = self.items.iter().position(|known| known == id).unwrap_or_else(|| {
            self.items.push(id.to_owned());
            self.items.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    fn say(&mut self, block: u32, text: String) -> Vec<Piece> {
        self.told.insert(block);
        vec![Piece::Text { block, text }]
    }

    fn think(&mut self, block: u32, text: String) -> Vec<Piece> {
        self.told.insert(block);
        vec![Piece::Thinking { block, text }]
    }

    /// The begin of a call, unless its input is the answer.
    fn start_call(&mut self, block: u32, item: &Value) -> Option<Piece> {
        self.started.insert(block);
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").unwrap_or_default();
        if name == ANSWER {
            self.answer = Some(block);
            return None;
        }
        self.calls = true;
        let id = text("call_id").or_else(|| text("id"));
        Some(Piece::CallStart { block, id, name })
    }

    /// More of a call's input; that of the call that is the answer is text.
    fn arguments(&mut self, block: u32, fragment: String) -> Piece {
        self.told.insert(block);
        match self.answer {
            Some(answer) if answer == block => Piece::Text { block, text: fragment },
            _ => Piece::CallArguments { block, fragment },
        }
    }

    /// An item that is complete: what was not told of it, and what goes back with it.
    fn item(&mut self, block: u32, item: &Value) -> Result<Vec<Piece>, LlmError> {
        Ok(match item.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message" => self.message(block, item),
            "reasoning" => self.reasoning(block, item),
            "function_call" => {
                let mut pieces = Vec::new();
                if !self.started.contains(&block) {
                    pieces.extend(self.start_call(block, item));
                }
                if let (Some(arguments), false) = (item.get("arguments"), self.told.contains(&block)) {
                    let fragment = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                    pieces.push(self.arguments(block, fragment));
                }
                pieces.push(Piece::BlockEnd { block });
                pieces
            }
            _ => vec![Piece::Block { block, content: keep_item(KEPT, item)? }],
        })
    }

    fn message(&mut self, first: u32, item: &Value) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
        for (part, block) in parts.zip(first..) {
            let text =
                part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str).unwrap_or_default();
            if !self.told.contains(&block) && !text.is_empty() {
                pieces.extend(self.say(block, text.to_owned()));
            }
            for (key, name) in [("id", ITEM_ID), ("phase", PHASE)] {
                if let Some(value) = item.get(key).filter(|value| value.is_string()) {
                    pieces.push(Piece::Extra { block, key: name.to_owned(), value: value.clone() });
                }
            }
            pieces.push(Piece::BlockEnd { block });
        }
        pieces
    }

    fn reasoning(&mut self, block: u32, item: &Value) -> Vec<Piece> {
        let texts = |key: &str| -> Vec<String> {
            let parts = item.get(key).and_then(Value::as_array).into_iter().flatten();
            parts.filter_map(|part| part.get("text")?.as_str().map(str::to_owned)).collect()
        };
        let summary = texts("summary");
        let mut pieces = Vec::new();
        if !self.told.contains(&block) {
            let said = if summary.is_empty() { texts("content").concat() } else { summary.join("\n\n") };
            pieces.extend(self.think(block, said));
        }
        let sealed = item.get("encrypted_content").cloned().unwrap_or_default();
        let id = item.get("id").cloned().unwrap_or_default();
        pieces.push(Piece::ThinkingState { block, content: vec![sealed, id] });
        pieces.push(Piece::Extra { block, key: ORIGIN.to_owned(), value: json!(NAME) });
        // One text is the thought itself, as it is shown.
        if let Some(parts) = item.get("summary").filter(|_| summary.len() != 1 || !is_plain(item)) {
            pieces.push(Piece::Extra { block, key: SUMMARY.to_owned(), value: parts.clone() });
        }
        pieces.push(Piece::BlockEnd { block });
        pieces
    }

    fn finish(&mut self, response: &Value) -> Vec<Piece> {
        self.ended = true;
        let mut pieces = Vec::new();
        if let Some(usage) = response.get("usage").and_then(Value::as_object) {
            pieces.push(Piece::Usage(read_usage(usage)));
        }
        if let Some(status) = response.get("status").filter(|status| status.is_string()) {
            pieces.push(Piece::Note("openai:status".to_owned(), status.clone()));
        }
        let incomplete = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        let reason = match incomplete {
            Some("max_output_tokens" | "max_messages") => "length",
            Some(other) => other,
            None if self.calls => "tool_calls",
            None => "stop",
        };
        pieces.push(Piece::Finish(reason.to_owned()));
        if let Some(word) = incomplete {
            pieces.push(Piece::Note("openai:incomplete_reason".to_owned(), json!(word)));
        }
        pieces.push(Piece::End);
        pieces
    }
}

/// Whether the summary of an item is nothing but texts, so that it can be made again from one.
fn is_plain(item: &Value) -> bool {
    let parts = item.get("summary").and_then(Value::as_array).into_iter().flatten();
    parts.into_iter().all(|part| {
        part.as_object()
            .is_some_and(|part| part.keys().eq(["type", "text"]) || part.keys().eq(["text", "type"]))
    })
}

fn failure(response: &Value) -> LlmError {
    let reason = match response.get("error").filter(|error| !error.is_null()) {
        Some(error) => json!({"error": error}),
        None => json!({"error": {"message": "the service gave up on the answer", "code": "server_error"}}),
    };
    in_stream(sharpened(from_body(None, &reason), &reason))
}

/// What this service's own words say where the general ones say nothing.
fn sharpened(error: LlmError, body: &Value) -> LlmError {
    let code =
        body.pointer("/error/code").or_else(|| body.get("code")).and_then(Value::as_str).unwrap_or_default();
    let kind = match error.kind {
        LlmErrorKind::Unclassified if code.contains("policy") => LlmErrorKind::ContentFilter,
        LlmErrorKind::Unclassified if code.contains("invalid") || code.contains("image") => {
            LlmErrorKind::InvalidRequest
        }
        LlmErrorKind::Unclassified if code.contains("timeout") => LlmErrorKind::Timeout,
        other => other,
    };
    if kind == error.kind { error } else { LlmError { kind, retryable: kind.retryable(), ..error } }
}

/// `input_tokens` is what was sent without what was written to a cache, which is counted apart.
fn read_usage(usage: &Map<String, Value>) -> Usage {
    let at = |key: &str| usage.get(key).and_then(Value::as_u64);
    let detail = |group: &str, key: &str| usage.get(group).and_then(|group| group.get(key)?.as_u64());
    let written = detail("input_tokens_details", "cache_write_tokens");
    let (sent, received) = (at("input_tokens").unwrap_or_default(), at("output_tokens").unwrap_or_default());
    Usage {
        input_tokens: sent.saturating_sub(written.unwrap_or_default()),
        output_tokens: received,
        total_tokens: at("total_tokens").unwrap_or(sent.saturating_add(received)),
        reasoning_tokens: detail("output_tokens_details", "reasoning_tokens"),
        cache_read_tokens: detail("input_tokens_details", "cached_tokens"),
        cache_write_tokens: written,
        ..Usage::default()
    }
}
