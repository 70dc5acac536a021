//! From the words of the Chat Completions protocol to pieces of an answer. Pure; one reader for one answer.

use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::usage::{Usage, Usd};
use serde_json::{Map, Value};

use super::super::wire::{Frame, Piece, Reader, from_body};
use super::request::FIELD;

const THINKING: u32 = 0;
const TEXT: u32 = 1;
/// Calls are numbered from here.
const CALLS: u32 = 2;
/// Fields in which servers put thoughts.
const THOUGHT_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// Reads the chunks of one answer, or the whole of it.
#[derive(Default)]
pub(super) struct Chunks {
    // The calls so far: the server's number and id.
    calls: Vec<(u64, String)>,
    details: Vec<Value>,
    field: Option<&'static str>,
    noted: bool,
}

impl Reader for Chunks {
    fn frame(&mut self, frame: &Frame) -> Result<Vec<Piece>, LlmError> {
        let data = frame.data.trim();
        if data == "[DONE]" {
            return Ok(vec![Piece::End]);
        }
        if data.is_empty() {
            return Ok(Vec::new());
        }
        let chunk: Value = serde_json::from_str(data).map_err(|error| {
            LlmError::new(LlmErrorKind::Stream, format!("a part of the answer is no JSON: {error}"))
        })?;
        self.read(&chunk, "delta")
    }

    fn whole(&mut self, body: Value) -> Result<Vec<Piece>, LlmError> {
        let mut pieces = self.read(&body, "message")?;
        if body.get("choices").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Err(LlmError::new(LlmErrorKind::Stream, "the answer holds no choice"));
        }
        pieces.push(Piece::End);
        Ok(pieces)
    }
}

impl Chunks {
    fn read(&mut self, chunk: &Value, part: &str) -> Result<Vec<Piece>, LlmError> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            let error = from_body(None, chunk);
            // The service had begun; what it says now can pass unless it says otherwise.
            let retryable = error.retryable || error.kind == LlmErrorKind::Unclassified;
            return Err(LlmError { retryable, ..error });
        }
        let mut pieces = Vec::new();
        // Every chunk says so again.
        if !std::mem::replace(&mut self.noted, true) {
            for key in ["id", "model", "system_fingerprint"] {
                if let Some(value) = chunk.get(key).filter(|value| value.is_string()) {
                    pieces.push(Piece::Note(format!("chat_completions:{key}"), value.clone()));
                }
            }
        }
        if let Some(choice) = chunk.pointer("/choices/0") {
            // Servers that cannot stream send whole messages where parts are wanted.
            let said = choice.get(part).or_else(|| choice.get("message")).or_else(|| choice.get("delta"));
            if let Some(said) = said {
                self.thought(said, &mut pieces);
                text(said, &mut pieces);
                self.tool_calls(said, &mut pieces);
            }
            if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
                pieces.push(Piece::Finish(
                    if reason == "function_call" { "tool_calls" } else { reason }.to_owned(),
                ));
            }
        }
        if let Some(usage) = chunk.get("usage").and_then(Value::as_object) {
            pieces.push(Piece::Usage(read_usage(usage)));
        }
        Ok(pieces)
    }

    fn thought(&mut self, said: &Value, pieces: &mut Vec<Piece>) {
        let found = THOUGHT_FIELDS.into_iter().find_map(|field| Some((field, said.get(field)?.as_str()?)));
        if let Some((field, text)) = found.filter(|(_, text)| !text.is_empty()) {
            pieces.push(Piece::Thinking { block: THINKING, text: text.to_owned() });
            self.name_field(field, pieces);
        }
        if let Some(details) =
            said.get("reasoning_details").and_then(Value::as_array).filter(|some| !some.is_empty())
        {
            details.iter().for_each(|detail| join(&mut self.details, detail));
            pieces.push(Piece::ThinkingState { block: THINKING, content: self.details.clone() });
            self.name_field("reasoning", pieces);
        }
    }

    fn name_field(&mut self, field: &'static str, pieces: &mut Vec<Piece>) {
        if self.field.is_none() {
            self.field = Some(field);
            pieces.push(Piece::Extra { block: THINKING, key: FIELD.to_owned(), value: Value::from(field) });
        }
    }

    fn tool_calls(&mut self, said: &Value, pieces: &mut Vec<Piece>) {
        let calls = said.get("tool_calls").and_then(Value::as_array);
        for (at, call) in calls.into_iter().flatten().enumerate() {
            let number = call.get("index").and_then(Value::as_u64).unwrap_or(at as u64);
            let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
            let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
            let block = match self.known(number, id) {
                Some(block) => block,
                None => {
                    self.calls.push((number, id.to_owned()));
                    let block = CALLS.saturating_add(u32::try_from(self.calls.len()).unwrap_or(u32::MAX));
                    let id = Some(id.to_owned()).filter(|id| !id.is_empty());
                    pieces.push(Piece::CallStart { block, id, name: name.to_owned() });
                    block
                }
            };
            let fragment = match call.pointer("/function/arguments") {
                Some(Value::String(text)) => text.clone(),
                // Some servers send the object itself.
                Some(Value::Object(object)) => Value::Object(object.clone()).to_string(),
                _ => String::new(),
            };
            pieces.push(Piece::CallArguments { block, fragment });
            for (key, value) in call.as_object().into_iter().flatten() {
                if !matches!(key.as_str(), "index" | "id" | "type" | "function") {
                    pieces.push(Piece::Extra { block, key: key.clone(), value: value.clone() });
                }
            }
        }
    }

    /// The block of a call that began before. A number that comes again with another id is another call.
    fn known(&self, number: u64, id: &str) -> Option<u32> {
        let same = |(known, known_id): &(u64, String)| *known == number && (id.is_empty() || id == known_id);
        let at = self.calls.iter().rposition(same)?;
        Some(CALLS.saturating_add(u32::try_from(at + 1).unwrap_or(u32::MAX)))
    }
}

/// Parts of one detail carry the same number and type; their texts are joined and the rest is what came last.
fn join(details: &mut Vec<Value>, part: &Value) {
    let key = |detail: &Value| (detail.get("index").cloned(), detail.get("type").cloned());
    let whole = details.iter_mut().rfind(|detail| key(detail) == key(part) && part.get("index").is_some());
    let (Some(Value::Object(whole)), Value::Object(part)) = (whole, part) else {
        details.push(part.clone());
        return;
    };
    for (name, value) in part {
        match (whole.get_mut(name), value) {
            (Some(Value::String(text)), Value::String(more))
                if matches!(name.as_str(), "text" | "summary" | "data") =>
            {
                text.push_str(more);
            }
            (Some(_), Value::Null) => {}
            _ => {
                whole.insert(name.clone(), value.clone());
            }
        }
    }
}

fn text(said: &Value, pieces: &mut Vec<Piece>) {
    let mut add = |text: &str| {
        if !text.is_empty() {
            pieces.push(Piece::Text { block: TEXT, text: text.to_owned() });
        }
    };
    match said.get("content") {
        Some(Value::String(content)) => add(content),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).for_each(&mut add);
        }
        _ => {}
    }
    if let Some(refusal) = said.get("refusal").and_then(Value::as_str) {
        add(refusal);
    }
}

/// `input_tokens` is what was sent without what was written to a cache, which is counted apart.
fn read_usage(usage: &Map<String, Value>) -> Usage {
    let at = |place: &str| {
        let mut keys = place.split('/');
        let first = usage.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get(key))?.as_u64()
    };
    let first = |places: &[&str]| places.iter().find_map(|place| at(place));
    let written = first(&["prompt_tokens_details/cache_write_tokens", "cache_creation_input_tokens"]);
    let sent = first(&["prompt_tokens", "input_tokens"]).unwrap_or_default();
    let received = first(&["completion_tokens", "output_tokens"]).unwrap_or_default();
    Usage {
        input_tokens: sent.saturating_sub(written.unwrap_or_default()),
        output_tokens: received,
        total_tokens: at("total_tokens").unwrap_or(sent.saturating_add(received)),
        reasoning_tokens: at("completion_tokens_details/reasoning_tokens"),
        cache_read_tokens: first(&["prompt_tokens_details/cached_tokens", "prompt_cache_hit_tokens"]),
        cache_write_tokens: written,
        cost_usd: usage.get("cost").and_then(cost),
        extra: Map::new(),
    }
}

/// What a gateway charged, where it tells.
fn cost(value: &Value) -> Option<Usd> {
    match value {
        Value::Number(number) => number.to_string().parse().ok(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
