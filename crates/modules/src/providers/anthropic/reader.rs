//! From the words of the Messages API to pieces of an answer. Pure; one reader for one answer.

use std::collections::BTreeMap;

use amplifier_protocol::content::{ContentBlock, RedactedThinkingBlock};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::usage::Usage;
use serde_json::{Map, Value, json};

use super::super::blocks::{ANSWER, ORIGIN, in_stream, keep_item, read_frame};
use super::super::wire::{Frame, Piece, Reader, from_body};
use super::NAME;

/// The type of the blocks in which items of the service that have no other name are kept.
pub(super) const KEPT: &str = "anthropic_block";

/// Reads the events of one answer, or the whole of it.
#[derive(Default)]
pub(super) struct Events {
    usage: Map<String, Value>,
    // Blocks of the service's own, as they form: the block, and what its input is so far.
    own: BTreeMap<u32, (Value, String)>,
    citations: BTreeMap<u32, Vec<Value>>,
    // The block of the call that is the answer, and whether others were called.
    answer: Option<u32>,
    calls: bool,
}

impl Reader for Events {
    fn frame(&mut self, frame: &Frame) -> Result<Vec<Piece>, LlmError> {
        let Some(event) = read_frame(frame)? else { return Ok(Vec::new()) };
        let kind = event.get("type").and_then(Value::as_str).unwrap_or(&frame.event);
        let block = || event.get("index").and_then(Value::as_u64).and_then(|at| u32::try_from(at).ok());
        let block = block().unwrap_or_default();
        match kind {
            "message_start" => Ok(self.start(event.get("message").unwrap_or(&Value::Null))),
            "content_block_start" => match event.get("content_block") {
                Some(content) => self.begin(block, content),
                None => Ok(Vec::new()),
            },
            "content_block_delta" => Ok(self.delta(block, event.get("delta").unwrap_or(&Value::Null))),
            "content_block_stop" => self.end(block),
            "message_delta" => Ok(self.finish(event.get("delta"), event.get("usage"))),
            "message_stop" => Ok(vec![Piece::End]),
            "error" => Err(in_stream(from_body(None, &event))),
            // Signs of life, and what is still to be invented.
            _ => Ok(Vec::new()),
        }
    }

    fn whole(&mut self, body: Value) -> Result<Vec<Piece>, LlmError> {
        if body.get("type").and_then(Value::as_str) == Some("error") {
            return Err(in_stream(from_body(None, &body)));
        }
        let Some(content) = body.get("content").and_then(Value::as_array) else {
            return Err(LlmError::new(LlmErrorKind::Stream, "the answer holds no content"));
        };
        let mut pieces = self.start(&body);
        for (at, content) in content.iter().enumerate() {
            let block = u32::try_from(at).unwrap_or(u32::MAX);
            pieces.extend(self.begin(block, content)?);
            for citation in content.get("citations").and_then(Value::as_array).into_iter().flatten() {
                self.citations.entry(block).or_default().push(citation.clone());
            }
            pieces.extend(self.end(block)?);
        }
        pieces.extend(self.finish(Some(&body), None));
        pieces.push(Piece::End);
        Ok(pieces)
    }
}

impl Events {
    fn start(&mut self, message: &Value) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for key in ["id", "model"] {
            if let Some(value) = message.get(key).filter(|value| value.is_string()) {
                pieces.push(Piece::Note(format!("anthropic:{key}"), value.clone()));
            }
        }
        pieces.extend(self.count(message.get("usage")));
        pieces
    }

    fn begin(&mut self, block: u32, content: &Value) -> Result<Vec<Piece>, LlmError> {
        let text = |key: &str| content.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(match content.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => vec![Piece::Text { block, text: text("text") }],
            "thinking" => {
                let mut pieces = vec![Piece::Thinking { block, text: text("thinking") }];
                let signature = text("signature");
                if !signature.is_empty() {
                    pieces.extend(signed(block, signature));
                }
                pieces
            }
            "redacted_thinking" => {
                let sealed = RedactedThinkingBlock { data: text("data"), ..RedactedThinkingBlock::default() };
                vec![Piece::Block { block, content: ContentBlock::RedactedThinking(sealed) }]
            }
            "tool_use" => self.begin_call(block, content),
            _ => {
                self.own.insert(block, (content.clone(), String::new()));
                Vec::new()
            }
        })
    }

    fn begin_call(&mut self, block: u32, content: &Value) -> Vec<Piece> {
        let text = |key: &str| content.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut pieces = Vec::new();
        if text("name") == ANSWER {
            self.answer = Some(block);
        } else {
            self.calls = true;
            let id = Some(text("id")).filter(|id| !id.is_empty());
            pieces.push(Piece::CallStart { block, id, name: text("name") });
        }
        // In a stream the input comes afterwards and stands here empty.
        if let Some(input) = content.get("input").and_then(Value::as_object)
            && !input.is_empty()
        {
            pieces.push(self.input(block, Value::Object(input.clone()).to_string()));
        }
        pieces
    }

    /// More of a call's input; that of the call that is the answer is text.
    fn input(&self, block: u32, fragment: String) -> Piece {
        match self.answer {
            Some(answer) if answer == block => Piece::Text { block, text: fragment },
            _ => Piece::CallArguments { block, fragment },
        }
    }

    fn delta(&mut self, block: u32, delta: &Value) -> Vec<Piece> {
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match delta.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text_delta" => vec![Piece::Text { block, text: text("text") }],
            "thinking_delta" => vec![Piece::Thinking { block, text: text("thinking") }],
            "signature_delta" => signed(block, text("signature")),
            "input_json_delta" => match self.own.get_mut(&block) {
                Some((_, input)) => {
                    input.push_str(&text("partial_json"));
                    Vec::new()
                }
                None => vec![self.input(block, text("partial_json"))],
            },
            "citations_delta" => {
                if let Some(citation) = delta.get("citation") {
                    self.citations.entry(block).or_default().push(citation.clone());
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, block: u32) -> Result<Vec<Piece>, LlmError> {
        let mut pieces = Vec::new();
        if let Some((mut item, input)) = self.own.remove(&block) {
            if let (Some(slot), false) = (item.get_mut("input"), input.is_empty()) {
                *slot = serde_json::from_str(&input).unwrap_or(Value::String(input));
            }
            pieces.push(Piece::Block { block, content: keep_item(KEPT, &item)? });
        }
        if let Some(citations) = self.citations.remove(&block) {
            pieces.push(Piece::Extra { block, key: "citations".to_owned(), value: Value::Array(citations) });
        }
        pieces.push(Piece::BlockEnd { block });
        Ok(pieces)
    }

    fn finish(&mut self, delta: Option<&Value>, usage: Option<&Value>) -> Vec<Piece> {
        let mut pieces: Vec<_> = self.count(usage).into_iter().collect();
        let Some(reason) = delta.and_then(|delta| delta.get("stop_reason")?.as_str()) else { return pieces };
        pieces.push(Piece::Finish(
            match reason {
                "end_turn" | "stop_sequence" => "stop",
                "tool_use" if self.answer.is_some() && !self.calls => "stop",
                "tool_use" => "tool_calls",
                "max_tokens" | "model_context_window_exceeded" => "length",
                "refusal" => "content_filter",
                other => other,
            }
            .to_owned(),
        ));
        pieces.push(Piece::Note("anthropic:stop_reason".to_owned(), json!(reason)));
        for key in ["stop_sequence", "stop_details"] {
            if let Some(value) = delta.and_then(|delta| delta.get(key)).filter(|value| !value.is_null()) {
                pieces.push(Piece::Note(format!("anthropic:{key}"), value.clone()));
            }
        }
        pieces
    }

    /// Counts are totals so far; one that is left out or null keeps what was said before.
    fn count(&mut self, usage: Option<&Value>) -> Option<Piece> {
        let told = usage?.as_object()?;
        for (key, value) in told.iter().filter(|(_, value)| !value.is_null()) {
            self.usage.insert(key.clone(), value.clone());
        }
        Some(Piece::Usage(read_usage(&self.usage)))
    }
}

fn signed(block: u32, signature: String) -> Vec<Piece> {
    let origin = Piece::Extra { block, key: ORIGIN.to_owned(), value: json!(NAME) };
    vec![Piece::Signature { block, signature }, origin]
}

/// The API counts what was read from a cache apart; here `input_tokens` holds it.
fn read_usage(usage: &Map<String, Value>) -> Usage {
    let at = |key: &str| usage.get(key).and_then(Value::as_u64);
    let (read, written) = (at("cache_read_input_tokens"), at("cache_creation_input_tokens"));
    let input = at("input_tokens").unwrap_or_default().saturating_add(read.unwrap_or_default());
    let output = at("output_tokens").unwrap_or_default();
    let thought =
        usage.get("output_tokens_details").and_then(|details| details.get("thinking_tokens")?.as_u64());
    let more = ["service_tier", "speed", "server_tool_use", "cache_creation"];
    let more = more.into_iter().filter_map(|key| Some((key.to_owned(), usage.get(key)?.clone())));
    Usage {
        reasoning_tokens: thought,
        cache_read_tokens: read,
        cache_write_tokens: written,
        extra: more.collect(),
        ..Usage::new(input, output)
    }
}
