//! Answers without a script: calls a tool when the prompt names one and tells what tools said. Pure.
//!
//! It understands very little on purpose: `read FILE` for `read_file`, and any offered tool by its name, followed by its
//! input as JSON or as plain text. Once tools have answered it answers too, so it never goes round in circles.

use std::sync::Arc;

use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::message::{Message, Role};
use amplifier_protocol::text::shorten;
use amplifier_protocol::tool::ToolSpec;
use serde_json::{Map, Value};

use super::script::{Reply, ScriptedCall};

/// How much of a tool's result is told, in characters.
const TOLD: usize = 4_000;

pub(super) fn reply(request: &ChatRequest) -> Reply {
    let is_prompt =
        |message: &&Arc<Message>| message.role == Role::User && !message.metadata.contains_key("source");
    let since = request.messages.iter().rposition(|message| is_prompt(&message));
    let prompt = since.and_then(|at| request.messages.get(at)).map(|message| message.content.visible_text());
    let later = request.messages.iter().skip(since.map_or(0, |at| at + 1));
    let results: Vec<String> = later.filter(|message| message.role == Role::Tool).map(|m| tell(m)).collect();
    if !results.is_empty() {
        return say(results.join("\n\n"));
    }
    let prompt = prompt.unwrap_or_default();
    let tools = request.tools.as_deref().unwrap_or_default();
    match wanted_call(&prompt, tools) {
        Some(call) => {
            let text = Some(format!("I will call `{}`.", call.name));
            Reply { text, tool_calls: vec![call], ..Reply::default() }
        }
        None if prompt.trim().is_empty() => say("I have nothing to answer.".to_owned()),
        None => say(format!("You said: {}", shorten(prompt.trim(), TOLD))),
    }
}

fn say(text: String) -> Reply {
    Reply { text: Some(text), ..Reply::default() }
}

fn tell(message: &Message) -> String {
    let name = message.name.as_deref().unwrap_or("a tool");
    format!("`{name}` said:\n{}", shorten(&message.content.visible_text(), TOLD))
}

fn wanted_call(prompt: &str, tools: &[Arc<ToolSpec>]) -> Option<ScriptedCall> {
    let by_name = tools.iter().find_map(|tool| Some((tool, after_word(prompt, &tool.name)?)));
    if let Some((tool, rest)) = by_name {
        return Some(ScriptedCall { name: tool.name.clone(), arguments: input(tool, rest), id: None });
    }
    let reader = tools.iter().find(|tool| tool.name == "read_file")?;
    let path = words(after_word(prompt, "read")?).find(|word| word.contains(['.', '/']))?;
    let arguments = Map::from_iter([("file_path".to_owned(), Value::from(path))]);
    Some(ScriptedCall { name: reader.name.clone(), arguments, id: None })
}

/// What follows a word, when it stands in the text as a word of its own.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let lower = text.to_ascii_lowercase();
    lower.match_indices(&word.to_ascii_lowercase()).find_map(|(at, found)| {
        let (before, after) = (text.get(..at)?, text.get(at + found.len()..)?);
        (!before.ends_with(part_of_word) && !after.starts_with(part_of_word)).then_some(after)
    })
}

/// The words of a text, without quotes and the marks of a sentence around them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let marks = |c: char| matches!(c, '`' | '"' | '\'' | ',' | ';' | ':' | '!' | '?' | '(' | ')');
    text.split_whitespace()
        .map(move |word| word.trim_end_matches('.').trim_matches(marks).trim_end_matches('.'))
        .filter(|word| !word.is_empty())
}

/// The input for a tool: the JSON object behind its name, or the rest of the text for its one required text.
fn input(tool: &ToolSpec, rest: &str) -> Map<String, Value> {
    if let Some(at) = rest.find('{') {
        let json = rest.get(at..).unwrap_or_default();
        if let Some(Ok(Value::Object(object))) = serde_json::Deserializer::from_str(json).into_iter().next() {
            return object;
        }
    }
    let required = tool.parameters.get("required").and_then(Value::as_array);
    let Some([Value::String(key)]) = required.map(Vec::as_slice) else { return Map::new() };
    let text = words(rest).collect::<Vec<_>>().join(" ");
    if text.is_empty() { Map::new() } else { Map::from_iter([(key.clone(), Value::from(text))]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, required: &str) -> Arc<ToolSpec> {
        serde_json::from_value(json!({"name": name, "parameters": {"required": [required]}})).unwrap()
    }

    fn asked(prompt: &str) -> Reply {
        let mut request = ChatRequest::new(vec![Arc::new(Message::user(prompt))]);
        request.tools = Some(vec![tool("read_file", "file_path"), tool("echo", "text")]);
        reply(&request)
    }

    fn called(prompt: &str) -> (String, Value) {
        let reply = asked(prompt);
        let call = &reply.tool_calls[0];
        (call.name.clone(), Value::Object(call.arguments.clone()))
    }

    #[test]
    fn tools_are_called_when_the_prompt_asks_for_them() {
        let readme = ("read_file".to_owned(), json!({"file_path": "README.md"}));
        assert_eq!(called("read README.md"), readme);
        assert_eq!(called("Please read the file `README.md`."), readme);
        assert_eq!(called("use read_file README.md"), readme);
        assert_eq!(
            called("call read_file {\"file_path\": \"a\", \"limit\": 2} now"),
            ("read_file".to_owned(), json!({"file_path": "a", "limit": 2}))
        );
        assert_eq!(called("echo good morning!"), ("echo".to_owned(), json!({"text": "good morning"})));
    }

    #[test]
    fn without_a_tool_in_it_a_prompt_is_answered() {
        assert!(asked("I am ready.").tool_calls.is_empty());
        assert_eq!(asked("hi").text.as_deref(), Some("You said: hi"));
        assert!(reply(&ChatRequest::default()).text.is_some());
    }

    #[test]
    fn what_tools_said_is_told_and_no_tool_called_again() {
        let call = amplifier_protocol::tool::ToolCall::new("c", "read_file", json!({}));
        let mut injected = Message::user("read other.md");
        injected.metadata.insert("source".to_owned(), json!("hook"));
        let mut request = ChatRequest::new(vec![
            Arc::new(Message::user("read a.md")),
            Arc::new(Message::tool_result(&call, "read me")),
            Arc::new(injected),
        ]);
        request.tools = Some(vec![tool("read_file", "file_path")]);
        let reply = reply(&request);
        assert!(reply.tool_calls.is_empty());
        assert_eq!(reply.text.as_deref(), Some("`read_file` said:\nread me"));
    }
}
