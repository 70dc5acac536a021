//! What the demo does next, from the conversation alone: look around, read something, tell. Pure.
//!
//! Everything it tells stands in a tool's result. It asks three times at most, so it never goes round in circles.

use std::sync::Arc;

use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::message::{Message, Role};
use amplifier_protocol::text::shorten;
use serde_json::{Map, Value, json};

use super::super::mock::script::{Reply, ScriptedCall};

const LIST: &str = "list_directory";
const READ: &str = "read_file";
const SEARCH: &str = "grep";

/// How many lines of a file are read.
const LINES: u64 = 40;
/// How many names stand in a list.
const NAMES: usize = 8;
/// How many files are read.
const READS: usize = 2;
/// How long a line of the answer is at most, in characters.
const WIDTH: usize = 100;

/// Words that say nothing about what somebody looks for.
const COMMON: [&str; 34] = [
    "about",
    "here",
    "this",
    "that",
    "what",
    "which",
    "where",
    "when",
    "does",
    "with",
    "have",
    "tell",
    "show",
    "please",
    "files",
    "file",
    "folder",
    "project",
    "code",
    "your",
    "from",
    "into",
    "explain",
    "summarize",
    "summarise",
    "describe",
    "hello",
    "find",
    "look",
    "read",
    "list",
    "repository",
    "directory",
    "there",
];

/// The next answer.
pub(super) fn reply(request: &ChatRequest) -> Reply {
    let is_prompt =
        |message: &&Arc<Message>| message.role == Role::User && !message.metadata.contains_key("source");
    let since = request.messages.iter().rposition(|message| is_prompt(&message));
    let prompt = since.and_then(|at| request.messages.get(at)).map(|message| message.content.visible_text());
    let prompt = prompt.unwrap_or_default();
    // What a program printed stands behind what the person wrote, and is not looked at.
    let prompt = prompt.split("\n\n<stdin>\n").next().unwrap_or_default();
    let later: Vec<_> = request.messages.iter().skip(since.map_or(0, |at| at + 1)).collect();
    let rounds = later.iter().filter(|message| !message.calls().is_empty()).count();
    let seen: Vec<Seen> =
        later.iter().filter(|message| message.role == Role::Tool).map(|m| Seen::of(m)).collect();
    let offers = |name: &str| request.tools.iter().flatten().any(|tool| tool.name == name);
    let calls = match rounds {
        0 => first_look(prompt, offers),
        1 if offers(READ) => files_to_read(prompt, &seen).into_iter().map(|path| read(&path)).collect(),
        _ => Vec::new(),
    };
    if calls.is_empty() {
        return Reply { text: Some(tell(prompt, &seen)), ..Reply::default() };
    }
    let text = if rounds == 0 { "I will look at this folder." } else { "I will read what says most." };
    Reply { text: Some(text.to_owned()), tool_calls: calls, ..Reply::default() }
}

/// What a tool said.
struct Seen {
    tool: String,
    /// As JSON, where it is.
    said: Option<Value>,
    text: String,
}

impl Seen {
    fn of(message: &Message) -> Self {
        let text = message.content.visible_text().into_owned();
        let said = serde_json::from_str(&text).ok().filter(Value::is_object);
        Self { tool: message.name.clone().unwrap_or_default(), said, text }
    }

    fn field(&self, tool: &str, key: &str) -> Option<&Value> {
        self.said.as_ref().filter(|_| self.tool == tool)?.get(key)
    }
}

fn call(name: &str, arguments: Value) -> ScriptedCall {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    ScriptedCall { name: name.to_owned(), arguments, id: None }
}

fn read(path: &str) -> ScriptedCall {
    call(READ, json!({"file_path": path, "limit": LINES}))
}

fn first_look(prompt: &str, offers: impl Fn(&str) -> bool) -> Vec<ScriptedCall> {
    let mut calls = Vec::new();
    if offers(LIST) {
        calls.push(call(LIST, json!({"path": "."})));
    }
    if let Some(word) = telling_word(prompt).filter(|_| offers(SEARCH)) {
        calls.push(call(SEARCH, json!({"pattern": word, "-i": true, "head_limit": NAMES})));
    }
    calls
}

/// The longest word of a prompt that says what it is about.
fn telling_word(prompt: &str) -> Option<String> {
    let words = prompt.split(|c: char| !c.is_alphanumeric() && c != '_');
    let fits = |word: &&str| {
        let count = word.chars().count();
        (4..=40).contains(&count) && !COMMON.contains(&word.to_lowercase().as_str())
    };
    // Of equals the first: people begin with what matters.
    words.filter(fits).rev().max_by_key(|word| word.chars().count()).map(str::to_owned)
}

/// The files of the folder.
fn files(seen: &[Seen]) -> Vec<(String, u64)> {
    let entries = seen.iter().find_map(|seen| seen.field(LIST, "entries")?.as_array());
    let file = |entry: &Value| {
        let is_file = entry.get("type").and_then(Value::as_str) == Some("file");
        // Its name cannot be handed to a tool.
        let is_text = entry.get("not_utf8").is_none();
        let name = entry.get("name").and_then(Value::as_str).filter(|_| is_file && is_text)?;
        Some((name.to_owned(), entry.get("size").and_then(Value::as_u64).unwrap_or_default()))
    };
    entries.into_iter().flatten().filter_map(file).collect()
}

/// A file the prompt names, the readme, then what looks like text.
fn files_to_read(prompt: &str, seen: &[Seen]) -> Vec<String> {
    let files = files(seen);
    let named = |name: &str| {
        prompt.split_whitespace().any(|word| word.trim_matches(['`', '"', '\'', ',', '?', '.']) == name)
    };
    let is_readme = |name: &str| name.to_lowercase().starts_with("readme");
    let is_text = |name: &str| {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_lowercase());
        let known = [
            "md", "txt", "rst", "toml", "json", "yaml", "yml", "rs", "py", "js", "ts", "go", "java", "c",
            "h", "html", "csv", "sh",
        ];
        ending.is_some_and(|ending| known.contains(&ending.as_str())) && !name.starts_with('.')
    };
    let rank = |name: &str| match name {
        name if named(name) => Some(0),
        name if is_readme(name) => Some(1),
        name if is_text(name) => Some(2),
        _ => None,
    };
    let readable = files.iter().filter(|(_, size)| *size > 0);
    let mut ranked: Vec<_> = readable.filter_map(|(name, _)| Some((rank(name)?, name.clone()))).collect();
    ranked.sort();
    ranked.into_iter().take(READS).map(|(_, name)| name).collect()
}

fn tell(prompt: &str, seen: &[Seen]) -> String {
    let asked = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = String::from(
        "This is the built-in demo. No model is connected, so nobody has thought about what you asked; \
         what follows was seen by the real tools in your own folder.\n",
    );
    if !asked.is_empty() {
        text.push_str(&format!("\nYou asked: {}\n", shorten(&asked, WIDTH)));
    }
    let told: Vec<String> = seen.iter().map(describe).collect();
    if told.is_empty() {
        text.push_str("\nThis agent has no tools that look at files, so there is nothing to tell.\n");
    } else {
        text.push_str("\nWhat was seen:\n");
        told.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    }
    text.push_str(CONNECT);
    text
}

const CONNECT: &str = "\nTo get answers from a model, run `amplifier init`, or set one of ANTHROPIC_API_KEY, OPENAI_API_KEY \
                       and GEMINI_API_KEY, or start a local server such as Ollama. Then ask again.";

fn describe(seen: &Seen) -> String {
    let told = match seen.tool.as_str() {
        LIST => folder(seen),
        SEARCH => search(seen),
        READ => opening(seen),
        _ => None,
    };
    told.unwrap_or_else(|| {
        let said = seen.text.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("`{}` said: {}", seen.tool, shorten(&said, WIDTH))
    })
}

fn folder(seen: &Seen) -> Option<String> {
    let entries = seen.field(LIST, "entries")?.as_array()?;
    let of = |kind: &str| -> Vec<&str> {
        let fits = |entry: &&Value| entry.get("type").and_then(Value::as_str) == Some(kind);
        entries.iter().filter(fits).filter_map(|entry| entry.get("name")?.as_str()).collect()
    };
    let (folders, files) = (of("dir"), of("file"));
    if folders.is_empty() && files.is_empty() {
        return Some("the folder is empty".to_owned());
    }
    let part = |names: &[&str], one: &str, many: &str| match names.len() {
        0 => None,
        1 => Some(format!("1 {one} ({})", list(names))),
        count => Some(format!("{count} {many} ({})", list(names))),
    };
    let parts = [part(&folders, "folder", "folders"), part(&files, "file", "files")];
    Some(format!("the folder holds {}", parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")))
}

fn search(seen: &Seen) -> Option<String> {
    let word = seen.field(SEARCH, "pattern")?.as_str()?;
    let files: Vec<_> = seen.field(SEARCH, "files")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let total = seen.field(SEARCH, "total_matches").and_then(Value::as_u64).unwrap_or_default();
    let more = total.saturating_sub(u64::try_from(files.len()).unwrap_or(u64::MAX));
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(match total {
        0 => format!("no file mentions \"{word}\""),
        1 => format!("\"{word}\" stands in 1 file: {}", list(&files)),
        _ => format!("\"{word}\" stands in {total} files: {}{more}", list(&files)),
    })
}

fn opening(seen: &Seen) -> Option<String> {
    let path = seen.field(READ, "file_path")?.as_str()?;
    let content = seen.field(READ, "content")?.as_str()?;
    let name = path.rsplit('/').next().unwrap_or(path);
    // Lines are shown with their number before a tab.
    let bare = |line: &str| line.split_once('\t').map_or(line, |(_, text)| text).trim().to_owned();
    let first = content.lines().map(bare).find(|line| line.chars().any(char::is_alphanumeric))?;
    let lines = seen.field(READ, "total_lines").and_then(Value::as_u64);
    let size = match lines {
        None => String::new(),
        Some(1) => ", 1 line".to_owned(),
        Some(lines) => format!(", {lines} lines"),
    };
    Some(format!("`{name}`{size}, begins: {}", shorten(&first, WIDTH)))
}

fn list(names: &[&str]) -> String {
    let mut shown: Vec<_> = names.iter().take(NAMES).map(|name| shorten(name, 60).into_owned()).collect();
    if names.len() > NAMES {
        shown.push(format!("and {} more", names.len() - NAMES));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::tool::{ToolCall, ToolSpec};

    fn request(messages: Vec<Message>, tools: &[&str]) -> ChatRequest {
        let mut request = ChatRequest::new(messages.into_iter().map(Arc::new).collect());
        let spec = |name: &&str| -> Arc<ToolSpec> {
            serde_json::from_value(json!({"name": name, "parameters": {}})).unwrap()
        };
        request.tools = Some(tools.iter().map(spec).collect());
        request
    }

    fn called(reply: &Reply) -> Vec<(String, Value)> {
        reply
            .tool_calls
            .iter()
            .map(|call| (call.name.clone(), Value::Object(call.arguments.clone())))
            .collect()
    }

    /// The calls of an answer and what they gave.
    fn round(tool: &str, result: &Value) -> Vec<Message> {
        let call = ToolCall::new("c", tool, json!({}));
        let mut asked = Message::text(Role::Assistant, "I will look.");
        asked.tool_calls = vec![call.clone()];
        vec![asked, Message::tool_result(&call, result.to_string().as_str())]
    }

    const TOOLS: [&str; 3] = [LIST, READ, SEARCH];

    #[test]
    fn it_looks_then_reads_then_tells_what_it_saw() {
        let mut said = vec![Message::user("Explain the parser to me")];
        let first = called(&reply(&request(said.clone(), &TOOLS)));
        assert_eq!(first[0], (LIST.to_owned(), json!({"path": "."})));
        assert_eq!(first[1].1["pattern"], json!("parser"));
        let entries = json!([{"name": "src", "type": "dir"}, {"name": "a.rs", "type": "file", "size": 3},
            {"name": "README.md", "type": "file", "size": 9}, {"name": "empty.txt", "type": "file", "size": 0}]);
        said.extend(round(LIST, &json!({ "entries": entries })));
        let second = called(&reply(&request(said.clone(), &TOOLS)));
        let files: Vec<_> = second.iter().map(|(_, input)| input["file_path"].clone()).collect();
        assert_eq!(files, [json!("README.md"), json!("a.rs")]);
        let read = json!({"file_path": "/w/README.md", "content": "     1\t# The title\n", "total_lines": 1});
        said.extend(round(READ, &read));
        let last = reply(&request(said, &TOOLS));
        let text = last.text.unwrap();
        assert!(last.tool_calls.is_empty());
        for words in [
            "demo",
            "You asked: Explain",
            "1 folder (src) and 3 files",
            "begins: # The title",
            "amplifier init",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn what_was_piped_in_is_not_what_was_asked() {
        let said = vec![Message::user("why?\n\n<stdin>\nmany telling words\n</stdin>")];
        let calls = called(&reply(&request(said, &TOOLS)));
        assert_eq!(calls, [(LIST.to_owned(), json!({"path": "."}))]);
    }

    #[test]
    fn a_file_that_the_prompt_names_is_read_first() {
        let entries = json!([{"name": "README.md", "type": "file", "size": 9}, {"name": "z.toml", "type": "file", "size": 9}]);
        let mut said = vec![Message::user("what is in `z.toml`?")];
        said.extend(round(LIST, &json!({ "entries": entries })));
        assert_eq!(called(&reply(&request(said, &TOOLS)))[0].1["file_path"], json!("z.toml"));
    }

    #[test]
    fn without_tools_and_with_refused_ones_it_still_answers_and_ends() {
        let bare = reply(&request(vec![Message::user("hi")], &[]));
        assert!(bare.tool_calls.is_empty() && bare.text.unwrap().contains("no tools"));
        let mut said = vec![Message::user("hi")];
        for _ in 0..2 {
            let call = ToolCall::new("c", LIST, json!({}));
            let mut asked = Message::text(Role::Assistant, "");
            asked.tool_calls = vec![call.clone()];
            said.extend([asked, Message::tool_result(&call, "Denied by hook: no")]);
        }
        let last = reply(&request(said, &TOOLS));
        assert!(last.tool_calls.is_empty() && last.text.unwrap().contains("Denied by hook"));
    }
}
