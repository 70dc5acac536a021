//! From the words of the `generateContent` API to pieces of an answer. Pure; one reader for one answer. A streamed answer is
//! a row of answers, so the whole of it is read like one chunk.

use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::usage::Usage;
use serde_json::{Map, Value, json};

use super::super::blocks::{ORIGIN, THOUGHT_SIGNATURE, in_stream, keep_item, read_frame};
use super::super::wire::{Frame, Piece, Reader, from_body};
use super::NAME;

/// The type of the blocks in which parts of the service that have no other name are kept.
pub(super) const KEPT: &str = "gemini_part";

/// Reasons to end that say that the service did not want to answer.
const FILTERED: [&str; 9] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// Reasons to end that say that the model wrote something unreadable; another try may do better.
const UNREADABLE: [&str; 3] = ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"];

/// Reads the chunks of one answer.
#[derive(Default)]
pub(super) struct Chunks {
    // The kind of the block that forms, and how many there are.
    forms: Option<Forms>,
    blocks: u32,
    calls: bool,
    said: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Forms {
    Text,
    Thought,
}

impl Reader for Chunks {
    fn frame(&mut self, frame: &Frame) -> Result<Vec<Piece>, LlmError> {
        match read_frame(frame)? {
            Some(chunk) => self.chunk(&chunk),
            None => Ok(Vec::new()),
        }
    }

    fn whole(&mut self, body: Value) -> Result<Vec<Piece>, LlmError> {
        // Without `alt=sse` a stream is a list of chunks.
        let chunks = match body {
            Value::Array(chunks) => chunks,
            chunk => vec![chunk],
        };
        let mut pieces = Vec::new();
        for chunk in &chunks {
            pieces.extend(self.chunk(chunk)?);
        }
        if !pieces.iter().any(|piece| matches!(piece, Piece::Finish(_))) {
            return Err(LlmError::new(LlmErrorKind::Stream, "the answer holds no candidate"));
        }
        pieces.push(Piece::End);
        Ok(pieces)
    }
}

impl Chunks {
    fn chunk(&mut self, chunk: &Value) -> Result<Vec<Piece>, LlmError> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(in_stream(from_body(None, chunk)));
        }
        if let Some(reason) = chunk.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            let said = chunk.pointer("/promptFeedback/blockReasonMessage").and_then(Value::as_str);
            let message = format!("the service blocked the request: {}", said.unwrap_or(reason));
            return Err(LlmError::new(LlmErrorKind::ContentFilter, message));
        }
        let mut pieces = Vec::new();
        for (key, name) in [("responseId", "gemini:response_id"), ("modelVersion", "gemini:model")] {
            if let Some(value) = chunk.get(key).filter(|value| value.is_string()) {
                pieces.push(Piece::Note(name.to_owned(), value.clone()));
            }
        }
        if let Some(usage) = chunk.get("usageMetadata").and_then(Value::as_object) {
            pieces.push(Piece::Usage(read_usage(usage)));
        }
        let Some(candidate) = chunk.pointer("/candidates/0") else { return Ok(pieces) };
        let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, &mut pieces)?;
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            self.finish(reason, candidate, &mut pieces)?;
        }
        Ok(pieces)
    }

    fn part(&mut self, part: &Value, pieces: &mut Vec<Piece>) -> Result<(), LlmError> {
        let signature = part.get("thoughtSignature").and_then(Value::as_str);
        if let Some(call) = part.get("functionCall") {
            self.call(call, signature, pieces);
            return Ok(());
        }
        let Some(text) = part.get("text").and_then(Value::as_str) else {
            let block = self.next(None, pieces);
            pieces.push(Piece::Block { block, content: keep_item(KEPT, part)? });
            return Ok(());
        };
        let form = match part.get("thought") {
            Some(Value::Bool(true)) => Forms::Thought,
            _ => Forms::Text,
        };
        self.said |= !text.is_empty();
        match (form, signature) {
            // A proof without words belongs to no block of ours.
            (Forms::Text, Some(_)) if text.is_empty() => {
                let block = self.next(None, pieces);
                pieces.push(Piece::Block { block, content: keep_item(KEPT, part)? });
            }
            (Forms::Text, None) if text.is_empty() => {}
            (Forms::Text, signature) => {
                let block = self.next(Some(Forms::Text), pieces);
                pieces.push(Piece::Text { block, text: text.to_owned() });
                pieces.extend(signature.map(|signature| proof(block, signature)));
            }
            (Forms::Thought, signature) => {
                let block = self.next(Some(Forms::Thought), pieces);
                pieces.push(Piece::Thinking { block, text: text.to_owned() });
                pieces.push(Piece::Extra { block, key: ORIGIN.to_owned(), value: json!(NAME) });
                let signature = signature.map(str::to_owned);
                pieces.extend(signature.map(|signature| Piece::Signature { block, signature }));
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &Value, signature: Option<&str>, pieces: &mut Vec<Piece>) {
        (self.calls, self.said) = (true, true);
        let block = self.next(None, pieces);
        let text = |key: &str| call.get(key).and_then(Value::as_str).map(str::to_owned);
        pieces.push(Piece::CallStart { block, id: text("id"), name: text("name").unwrap_or_default() });
        if let Some(arguments) = call.get("args") {
            pieces.push(Piece::CallArguments { block, fragment: arguments.to_string() });
        }
        pieces.extend(signature.map(|signature| proof(block, signature)));
        pieces.push(Piece::BlockEnd { block });
    }

    /// The number of the block this belongs to: the one that forms when it is of this kind, else a new one.
    fn next(&mut self, form: Option<Forms>, pieces: &mut Vec<Piece>) -> u32 {
        if form.is_some() && form == self.forms {
            return self.blocks;
        }
        if self.forms.is_some() {
            pieces.push(Piece::BlockEnd { block: self.blocks });
        }
        self.forms = form;
        self.blocks = self.blocks.saturating_add(1);
        self.blocks
    }

    fn finish(&mut self, reason: &str, candidate: &Value, pieces: &mut Vec<Piece>) -> Result<(), LlmError> {
        let told = candidate.get("finishMessage").and_then(Value::as_str);
        let word = reason.to_lowercase();
        let reason = match reason {
            _ if FILTERED.contains(&reason) && !self.said => {
                let message = format!("the service refused to answer: {}", told.unwrap_or(reason));
                return Err(LlmError::new(LlmErrorKind::ContentFilter, message));
            }
            _ if UNREADABLE.contains(&reason) && !self.said => {
                let message =
                    format!("the model wrote a call that cannot be read: {}", told.unwrap_or(reason));
                return Err(LlmError {
                    retryable: true,
                    ..LlmError::new(LlmErrorKind::InvalidToolCall, message)
                });
            }
            _ if FILTERED.contains(&reason) => "content_filter",
            "MAX_TOKENS" => "length",
            "STOP" if self.calls => "tool_calls",
            "STOP" => "stop",
            _ => word.as_str(),
        };
        pieces.push(Piece::Finish(reason.to_owned()));
        pieces.push(Piece::Note("gemini:finish_reason".to_owned(), json!(word)));
        Ok(())
    }
}

fn proof(block: u32, signature: &str) -> Piece {
    Piece::Extra { block, key: THOUGHT_SIGNATURE.to_owned(), value: json!(signature) }
}

/// What was thought is counted apart by the service; here it is part of what was received.
fn read_usage(usage: &Map<String, Value>) -> Usage {
    let at = |key: &str| usage.get(key).and_then(Value::as_u64);
    let (sent, by_tools) = (at("promptTokenCount").unwrap_or_default(), at("toolUsePromptTokenCount"));
    let sent = sent.saturating_add(by_tools.unwrap_or_default());
    let thought = at("thoughtsTokenCount");
    let received = at("candidatesTokenCount").unwrap_or_default().saturating_add(thought.unwrap_or_default());
    Usage {
        input_tokens: sent,
        output_tokens: received,
        total_tokens: at("totalTokenCount").unwrap_or(sent.saturating_add(received)),
        reasoning_tokens: thought,
        cache_read_tokens: at("cachedContentTokenCount"),
        ..Usage::default()
    }
}
