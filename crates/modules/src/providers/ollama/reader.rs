//! From the lines of Ollama's chat protocol to pieces of an answer. Pure; one reader for one answer.

use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::usage::Usage;
use serde_json::Value;

use super::super::wire::{Frame, Piece, Reader, from_body};

const THINKING: u32 = 0;
const TEXT: u32 = 1;
/// Calls are numbered from here.
const CALLS: u32 = 2;

/// Reads the lines of one answer, or the whole of it.
#[derive(Default)]
pub(super) struct Lines {
    calls: u32,
}

impl Reader for Lines {
    fn frame(&mut self, frame: &Frame) -> Result<Vec<Piece>, LlmError> {
        let line: Value = serde_json::from_str(&frame.data).map_err(|error| {
            LlmError::new(LlmErrorKind::Stream, format!("a line of the answer is no JSON: {error}"))
        })?;
        self.whole(line)
    }

    fn whole(&mut self, line: Value) -> Result<Vec<Piece>, LlmError> {
        if line.get("error").is_some() {
            return Err(from_body(None, &line));
        }
        let mut pieces = Vec::new();
        let said = |key: &str| line.pointer(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let thought = said("/message/thinking");
        if !thought.is_empty() {
            pieces.push(Piece::Thinking { block: THINKING, text: thought });
        }
        let text = said("/message/content");
        if !text.is_empty() {
            pieces.push(Piece::Text { block: TEXT, text });
        }
        let calls = line.pointer("/message/tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.call(call, &mut pieces);
        }
        if line.get("done") == Some(&Value::Bool(true)) {
            self.end(&line, &mut pieces);
        }
        Ok(pieces)
    }
}

impl Lines {
    /// Calls come whole.
    fn call(&mut self, call: &Value, pieces: &mut Vec<Piece>) {
        let block = CALLS.saturating_add(self.calls);
        self.calls += 1;
        let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = call.get("id").and_then(Value::as_str).map(str::to_owned);
        let fragment = match call.pointer("/function/arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(arguments) if !arguments.is_null() => arguments.to_string(),
            _ => String::new(),
        };
        pieces.push(Piece::CallStart { block, id, name });
        pieces.push(Piece::CallArguments { block, fragment });
        pieces.push(Piece::BlockEnd { block });
    }

    fn end(&self, line: &Value, pieces: &mut Vec<Piece>) {
        let count = |key: &str| line.get(key).and_then(Value::as_u64).unwrap_or_default();
        pieces.push(Piece::Usage(Usage::new(count("prompt_eval_count"), count("eval_count"))));
        let reason = match line.get("done_reason").and_then(Value::as_str) {
            _ if self.calls > 0 => "tool_calls",
            Some(reason) => reason,
            None => "stop",
        };
        pieces.push(Piece::Finish(reason.to_owned()));
        if let Some(model) = line.get("model").filter(|model| model.is_string()) {
            pieces.push(Piece::Note("ollama:model".to_owned(), model.clone()));
        }
        pieces.push(Piece::End);
    }
}
