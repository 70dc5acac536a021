//! Pictures in what a tool gives. The convention: an `image` block, `{type: "image", source: {type: "base64", media_type,
//! data}}`, stands as the whole output, as an item of an output that is a list, or as an item of the output's `content`.
//! It is plain JSON, so it crosses every wire; whoever builds the message for the model makes a block of it.

use serde_json::{Map, Value};

use super::ToolResult;
use crate::content::{ContentBlock, ImageBlock};
use crate::message::Content;
use crate::text::sanitize;

/// The most pictures of one result that a model is shown; the rest is only named.
pub const MAX_PICTURES: usize = 20;

/// The media types every model service takes.
const SHOWN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

impl ToolResult {
    /// What a model sees: one text, or text and pictures where the output holds pictures by the convention above.
    pub fn to_model_content(&self) -> Content {
        let mut gathered = Gathered::default();
        match &self.output {
            Value::Array(items) if items.iter().any(is_picture) => gathered.items(items),
            Value::Object(map) if is_picture(&self.output) => {
                gathered.rest(map, "source");
                gathered.picture(map);
            }
            Value::Object(map) => match map.get("content").and_then(Value::as_array) {
                Some(items) if items.iter().any(is_picture) => {
                    gathered.rest(map, "content");
                    gathered.items(items);
                }
                _ => return Content::Text(self.to_model_text()),
            },
            _ => return Content::Text(self.to_model_text()),
        }
        Content::Blocks(gathered.blocks)
    }
}

/// The length of the bytes of a picture's `source`, if this is one that holds them: what logs write instead of them.
pub fn picture_bytes(source: &Map<String, Value>) -> Option<usize> {
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    let is_picture = text("type") == Some("base64") && text("media_type")?.starts_with("image/");
    let data = text("data").filter(|_| is_picture)?;
    Some(data.trim_end_matches('=').len() * 3 / 4)
}

fn is_picture(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    let source = value.get("source").and_then(Value::as_object);
    kind == Some("image") && source.is_some_and(|source| picture_bytes(source).is_some())
}

#[derive(Default)]
struct Gathered {
    blocks: Vec<ContentBlock>,
    pictures: usize,
}

impl Gathered {
    fn text(&mut self, text: &str) {
        let text = sanitize(text).into_owned();
        if !text.is_empty() {
            self.blocks.push(ContentBlock::text(text));
        }
    }

    /// What stands beside the pictures, as JSON.
    fn rest(&mut self, map: &Map<String, Value>, left_out: &str) {
        let kept = map.iter().filter(|(key, _)| *key != left_out && *key != "type");
        let kept: Map<String, Value> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !kept.is_empty() {
            self.text(&Value::Object(kept).to_string());
        }
    }

    fn items(&mut self, items: &[Value]) {
        for item in items {
            match item {
                Value::Object(map) if is_picture(item) => self.picture(map),
                Value::Object(map) if map.get("type").and_then(Value::as_str) == Some("text") => {
                    self.text(map.get("text").and_then(Value::as_str).unwrap_or_default());
                }
                Value::String(text) => self.text(text),
                other => self.text(&other.to_string()),
            }
        }
    }

    fn picture(&mut self, map: &Map<String, Value>) {
        let Some(source) = map.get("source").and_then(Value::as_object) else { return };
        let media_type = source.get("media_type").and_then(Value::as_str).unwrap_or_default();
        self.pictures += 1;
        if SHOWN.contains(&media_type) && self.pictures <= MAX_PICTURES {
            let block = ImageBlock { source: source.clone(), ..ImageBlock::default() };
            self.blocks.push(ContentBlock::Image(block));
        } else {
            let bytes = picture_bytes(source).unwrap_or_default();
            self.text(&format!("[a picture that is not shown: {media_type}, {bytes} bytes]"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn picture(media_type: &str) -> Value {
        json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": "aGk="}})
    }

    fn seen(output: Value) -> Value {
        // Over a wire and back, as a tool in another process would be heard.
        let sent = serde_json::to_string(&ToolResult::success(output)).unwrap();
        let result: ToolResult = serde_json::from_str(&sent).unwrap();
        serde_json::to_value(result.to_model_content()).unwrap()
    }

    #[test]
    fn a_picture_is_a_block_with_what_stands_beside_it() {
        let mut alone = picture("image/png");
        alone["file_path"] = json!("/a.png");
        let expected = json!([{"type": "text", "text": "{\"file_path\":\"/a.png\"}"}, picture("image/png")]);
        assert_eq!(seen(alone), expected);
        let list =
            json!([{"type": "text", "text": "two\u{0}"}, picture("image/gif"), picture("image/jpeg"), 7]);
        let expected = json!([
            {"type": "text", "text": "two"}, picture("image/gif"), picture("image/jpeg"), {"type": "text", "text": "7"}
        ]);
        assert_eq!(seen(list.clone()), expected);
        let mut with_more = vec![json!({"type": "text", "text": "{\"isError\":false}"})];
        with_more.extend(expected.as_array().unwrap().clone());
        assert_eq!(seen(json!({"content": list, "isError": false})), json!(with_more));
    }

    #[test]
    fn what_is_no_picture_stays_text() {
        for output in [
            json!({"type": "image"}),
            json!({"type": "image", "source": {"type": "url", "url": "http://x"}}),
            json!({"type": "image", "source": {"type": "base64", "media_type": "text/html", "data": "x"}}),
            json!([1, 2]),
            json!({"content": "text"}),
            json!({"content": [{"type": "text", "text": "a"}]}),
            json!("text"),
            json!(null),
        ] {
            let result = ToolResult::success(output.clone());
            assert_eq!(result.to_model_content(), Content::Text(result.to_model_text()), "{output}");
        }
    }

    #[test]
    fn what_no_service_takes_and_what_is_too_much_is_only_named() {
        let named = json!([{"type": "text", "text": "[a picture that is not shown: image/tiff, 2 bytes]"}]);
        assert_eq!(seen(picture("image/tiff")), named);
        let many = seen(Value::Array(vec![picture("image/png"); MAX_PICTURES + 1]));
        let blocks = many.as_array().unwrap();
        assert_eq!(blocks.iter().filter(|block| block["type"] == "image").count(), MAX_PICTURES);
        assert_eq!(blocks.len(), MAX_PICTURES + 1);
    }
}
