//! What servers answer, as the model gets it: text as text, pictures as pictures, data as data, and nothing without end.
//!
//! Works on the JSON of the protocol, so it does not know which library carried it.

use amplifier_core::contracts::ToolFailure;
use serde_json::{Map, Value, json};

use crate::reminder::cut_bytes;

/// The most pictures of one answer.
const MOST_IMAGES: usize = 8;

/// How much of an answer the model gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) text: usize,
    pub(super) image: usize,
}

/// The answer of `tools/call`. One that says it is an error becomes a failure.
pub(super) fn of_call(result: &Value, limits: Limits) -> Result<Value, ToolFailure> {
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    let mut blocks = Blocks::new(limits);
    for block in result.get("content").and_then(Value::as_array).into_iter().flatten() {
        // Servers give the same data as text for clients that know no better.
        if structured.is_none() || !says_the_same(block, structured) {
            blocks.push(block);
        }
    }
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let text = blocks.all_text();
        let text = if text.is_empty() {
            "the tool reports an error and says nothing about it".to_owned()
        } else {
            text
        };
        return Err(ToolFailure::new(text).of_kind("McpToolError"));
    }
    match structured {
        Some(data) if blocks.is_empty() && data.to_string().len() <= limits.text => Ok(data.clone()),
        Some(data) => {
            blocks.text(data.to_string());
            Ok(blocks.finish())
        }
        None => Ok(blocks.finish()),
    }
}

fn says_the_same(block: &Value, structured: Option<&Value>) -> bool {
    let text = block.get("text").and_then(Value::as_str);
    text.and_then(|text| serde_json::from_str::<Value>(text).ok()).as_ref() == structured
}

/// The answer of `resources/read`.
pub(super) fn of_resource(result: &Value, limits: Limits) -> Value {
    let mut blocks = Blocks::new(limits);
    for contents in result.get("contents").and_then(Value::as_array).into_iter().flatten() {
        blocks.resource(contents);
    }
    blocks.finish()
}

/// The answer of `prompts/get`: who says what.
pub(super) fn of_prompt(result: &Value, limits: Limits) -> Value {
    let mut blocks = Blocks::new(limits);
    for message in result.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
        match message.get("content") {
            Some(content) if content.get("type") == Some(&json!("text")) => {
                blocks.text(format!("[{role}]\n{}", text_of(content, "text")));
            }
            Some(content) => {
                blocks.text(format!("[{role}]"));
                blocks.push(content);
            }
            None => {}
        }
    }
    blocks.finish()
}

fn text_of<'a>(block: &'a Value, key: &str) -> &'a str {
    block.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// An answer that grows until its limits.
struct Blocks {
    limits: Limits,
    blocks: Vec<Value>,
    left: usize,
    cut: usize,
    images: usize,
}

impl Blocks {
    fn new(limits: Limits) -> Self {
        Self { limits, blocks: Vec::new(), left: limits.text, cut: 0, images: 0 }
    }

    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.cut == 0
    }

    fn push(&mut self, block: &Value) {
        match text_of(block, "type") {
            "text" => self.text(text_of(block, "text").to_owned()),
            "image" => self.image(text_of(block, "mimeType"), text_of(block, "data")),
            "audio" => self.left_out("audio", text_of(block, "mimeType"), text_of(block, "data")),
            "resource" => self.resource(block.get("resource").unwrap_or(&Value::Null)),
            "resource_link" => {
                self.text(format!("[resource {}: {}]", text_of(block, "name"), text_of(block, "uri")));
            }
            _ => self.text(block.to_string()),
        }
    }

    fn resource(&mut self, contents: &Value) {
        let (uri, kind) = (text_of(contents, "uri"), text_of(contents, "mimeType"));
        match (contents.get("text").and_then(Value::as_str), contents.get("blob").and_then(Value::as_str)) {
            (Some(text), _) => self.text(format!("[{uri}]\n{text}")),
            (None, Some(blob)) if kind.starts_with("image/") => {
                self.text(format!("[{uri}]"));
                self.image(kind, blob);
            }
            (None, Some(blob)) => self.left_out(uri, kind, blob),
            (None, None) => {}
        }
    }

    fn text(&mut self, text: String) {
        let kept = cut_bytes(&text, self.left);
        self.cut += text.len() - kept.len();
        self.left -= kept.len();
        if !kept.is_empty() || text.is_empty() {
            self.blocks.push(json!({"type": "text", "text": kept}));
        }
    }

    fn image(&mut self, kind: &str, data: &str) {
        let known = matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
        let bytes = data.len() / 4 * 3;
        if !known || bytes > self.limits.image || self.images >= MOST_IMAGES {
            return self.left_out("picture", kind, data);
        }
        self.images += 1;
        self.blocks.push(json!({
            "type": "image",
            "source": {"type": "base64", "media_type": kind, "data": data},
        }));
    }

    fn left_out(&mut self, what: &str, kind: &str, data: &str) {
        let kind = if kind.is_empty() { "of unknown type" } else { kind };
        self.text(format!("[{what}, {kind}, about {} bytes: not shown]", data.len() / 4 * 3));
    }

    fn all_text(self) -> String {
        match self.finish() {
            Value::String(text) => text,
            Value::Array(blocks) => {
                let texts = blocks.iter().map(|block| text_of(block, "text")).filter(|text| !text.is_empty());
                texts.collect::<Vec<_>>().join("\n")
            }
            other => text_of(&other, "text").to_owned(),
        }
    }

    /// One text is plain text; else the blocks, in their order.
    fn finish(mut self) -> Value {
        if self.cut > 0 {
            let note = format!("[cut here: {} more bytes are left out; ask for less at a time]", self.cut);
            self.blocks.push(json!({"type": "text", "text": note}));
        }
        if self.blocks.iter().all(|block| block.get("type") == Some(&json!("text"))) {
            let texts: Vec<_> = self.blocks.iter().map(|block| text_of(block, "text")).collect();
            return Value::String(texts.join("\n"));
        }
        match self.blocks.len() {
            1 => self.blocks.pop().unwrap_or(Value::Object(Map::new())),
            _ => Value::Array(self.blocks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { text: 20, image: 12 };

    fn call(result: Value) -> Result<Value, ToolFailure> {
        of_call(&result, LIMITS)
    }

    #[test]
    fn text_pictures_and_data_stay_what_they_are() {
        let text = json!({"type": "text", "text": "hi"});
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
        let shown =
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
        assert_eq!(call(json!({"content": [text]})), Ok(json!("hi")));
        assert_eq!(call(json!({"content": [text, text]})), Ok(json!("hi\nhi")));
        assert_eq!(call(json!({"content": [image]})), Ok(shown.clone()));
        assert_eq!(call(json!({"content": [text, image]})), Ok(json!([text, shown])));
        let data =
            json!({"content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1}});
        assert_eq!(call(data), Ok(json!({"a": 1})));
        let more = json!({"content": [text], "structuredContent": {"a": 1}});
        assert_eq!(call(more), Ok(json!("hi\n{\"a\":1}")));
        assert_eq!(call(json!({})), Ok(json!("")));
    }

    #[test]
    fn an_error_is_a_failure_with_the_servers_words() {
        let failed =
            call(json!({"isError": true, "content": [{"type": "text", "text": "no such"}]})).unwrap_err();
        assert_eq!((failed.message.as_str(), failed.kind.as_deref()), ("no such", Some("McpToolError")));
        assert!(call(json!({"isError": true})).unwrap_err().message.contains("says nothing"));
    }

    #[test]
    fn what_is_too_much_is_cut_and_says_so() {
        let long = json!({"content": [{"type": "text", "text": "ä".repeat(30)}]});
        let text = call(long).unwrap();
        assert!(
            text.as_str().unwrap().starts_with(&"ä".repeat(10)) && text.to_string().contains("40 more bytes"),
            "{text}"
        );
        let big = json!({"content": [{"type": "image", "mimeType": "image/png", "data": "aaaa".repeat(9)}]});
        assert!(call(big).unwrap().to_string().contains("[picture, image/png"));
        let wide = json!({"structuredContent": {"a": "x".repeat(50)}});
        assert!(call(wide).unwrap().as_str().unwrap().contains("[cut here"));
    }

    #[test]
    fn resources_and_prompts_are_readable() {
        let limits = Limits { text: 1000, image: 1000 };
        let blob =
            json!({"contents": [{"uri": "u", "text": "t"}, {"uri": "b", "mimeType": "x/y", "blob": "aaaa"}]});
        assert_eq!(of_resource(&blob, limits), json!("[u]\nt\n[b, x/y, about 3 bytes: not shown]"));
        let prompt = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "q"}}]});
        assert_eq!(of_prompt(&prompt, limits), json!("[user]\nq"));
    }
}
