//! What the model server of the benches answers. Pure: a request in, an answer out.
//!
//! The name of the model says what it does: `chunks-10000` streams so many pieces as fast as it can, `paced-10000` ten of
//! them in a millisecond, `shell-10` and `read-10` call a tool in so many rounds, once in each, `reads-10` fifty times in each,
//! and every other name, or a request without tools, gets one word.

use serde_json::{Value, json};

/// What is said to a request.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// There is nothing at this path.
    Missing,
    /// The newest tool result is not what the tool should have said.
    Refused(String),
    Document(Value),
    /// Server-sent events, whole.
    Stream(Vec<String>, Pace),
}

/// How fast a stream comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    AtOnce,
    PerMillisecond(usize),
}

/// Which words a request is made in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Chat,
    Responses,
}

/// One step of an answer.
enum Said {
    Pieces(usize, Pace),
    /// So many calls of one tool with the same arguments, the first with this number.
    Calls {
        first: usize,
        count: usize,
        tool: &'static str,
        arguments: String,
    },
}

/// What each client calls its tools, the wanted first, and what it wants to know to read the same file.
const SHELLS: [(&str, &str); 4] = [
    ("exec_command", r#"{"cmd":"cat notes.txt"}"#),
    ("shell_command", r#"{"command":"cat notes.txt"}"#),
    ("shell", r#"{"command":["cat","notes.txt"]}"#),
    ("bash", r#"{"command":"cat notes.txt","description":"Reads the notes"}"#),
];
/// How many calls one answer of a busy model makes.
const MANY: usize = 50;
/// What the notes say in every line.
pub(in crate::bench) const NOTE: &str = "A line of notes, as people write them.";
const READERS: [(&str, &str); 2] =
    [("read_file", r#"{"file_path":"notes.txt"}"#), ("read", r#"{"filePath":"notes.txt"}"#)];

pub(super) fn answer(path: &str, body: &Value) -> Answer {
    let path = path.split('?').next().unwrap_or(path);
    let dialect = match path.rsplit('/').next() {
        Some("completions") => Dialect::Chat,
        Some("responses") => Dialect::Responses,
        Some("models") => {
            return Answer::Document(json!({"object": "list", "data": [{"id": "mock", "object": "model"}]}));
        }
        _ => return Answer::Missing,
    };
    let said = match said(dialect, body) {
        Ok(said) => said,
        Err(result) => return Answer::Refused(format!("a tool did not read the notes; it said: {result}")),
    };
    let streamed = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
    match (dialect, streamed) {
        (Dialect::Chat, true) => chat_stream(&said),
        (Dialect::Chat, false) => Answer::Document(chat_document(&said)),
        (Dialect::Responses, true) => responses_stream(&said),
        (Dialect::Responses, false) => Answer::Document(responses_document(&said)),
    }
}

fn said(dialect: Dialect, body: &Value) -> Result<Said, String> {
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    let (kind, number) = model.rsplit_once('-').unwrap_or((model, ""));
    let number = number.parse().unwrap_or(1);
    match kind {
        "chunks" => Ok(Said::Pieces(number, Pace::AtOnce)),
        "paced" => Ok(Said::Pieces(number, Pace::PerMillisecond(10))),
        "shell" => next_calls(dialect, body, (number, 1), &SHELLS),
        "read" => next_calls(dialect, body, (number, 1), &READERS),
        "reads" => next_calls(dialect, body, (number, MANY), &READERS),
        _ => Ok(Said::Pieces(1, Pace::AtOnce)),
    }
}

/// The next calls of a tool that the client has, or the last word. There are so many rounds, with so many calls in each.
/// A result that is not the notes is the error: a bench of failing tools would measure something else.
fn next_calls(
    dialect: Dialect,
    body: &Value,
    (rounds, count): (usize, usize),
    known: &[(&'static str, &'static str)],
) -> Result<Said, String> {
    let list = |key: &str| body.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let (messages, id) = match dialect {
        Dialect::Chat => ("messages", "tool_call_id"),
        Dialect::Responses => ("input", "call_id"),
    };
    // By the number in the newest id, not by counting: a compacted conversation leaves results out.
    let number = |message: &Value| message.get(id)?.as_str()?.rsplit('_').next()?.parse::<usize>().ok();
    let results = list(messages).iter().filter(|message| !is(message, "type", "function_call"));
    let newest =
        results.filter_map(|result| Some((number(result)?, result))).max_by_key(|(number, _)| *number);
    if let Some((_, result)) = newest
        && !result.to_string().contains(NOTE)
    {
        return Err(result.to_string());
    }
    let first = newest.map_or(0, |(last, _)| last + 1);
    let offered = |tool: &str| {
        let mut tools = list("tools").iter().map(|tool| tool.get("function").unwrap_or(tool));
        tools.find(|offered| is(offered, "name", tool))
    };
    let tool = known.iter().find_map(|(tool, arguments)| Some((tool, arguments, offered(tool)?)));
    Ok(match tool {
        Some((tool, arguments, offered)) if first < rounds * count => {
            Said::Calls { first, count, tool, arguments: fitting(arguments, offered) }
        }
        _ => Said::Pieces(1, Pace::AtOnce),
    })
}

fn is(value: &Value, key: &str, word: &str) -> bool {
    value.get(key).and_then(Value::as_str) == Some(word)
}

/// The arguments that the tool has a name for: two clients may call different tools the same.
fn fitting(arguments: &str, offered: &Value) -> String {
    let known = offered.pointer("/parameters/properties").and_then(Value::as_object);
    let parsed: Option<serde_json::Map<String, Value>> = serde_json::from_str(arguments).ok();
    let (Some(known), Some(mut parsed)) = (known, parsed) else { return arguments.to_owned() };
    parsed.retain(|name, _| known.contains_key(name));
    Value::Object(parsed).to_string()
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// An event that is named beside its data, as some clients want it.
fn named(data: &Value) -> String {
    let kind = data.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {kind}\ndata: {data}\n\n")
}

fn chat_stream(said: &Said) -> Answer {
    let chunk = |delta: Value, reason: Value| {
        event(&json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}))
    };
    let (mut events, reason, pace) = match said {
        Said::Pieces(pieces, pace) => {
            let pieces =
                (0..*pieces).map(|_| chunk(json!({"role": "assistant", "content": "word "}), Value::Null));
            (pieces.collect::<Vec<_>>(), "stop", *pace)
        }
        Said::Calls { .. } => {
            let delta = json!({"role": "assistant", "content": null, "tool_calls": chat_calls(said)});
            (vec![chunk(delta, Value::Null)], "tool_calls", Pace::AtOnce)
        }
    };
    events.push(chunk(json!({}), json!(reason)));
    events.push(event(&json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock",
        "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})));
    events.push("data: [DONE]\n\n".to_owned());
    Answer::Stream(events, pace)
}

fn chat_calls(said: &Said) -> Vec<Value> {
    let Said::Calls { first, count, tool, arguments } = said else { return Vec::new() };
    let call = |index: usize| {
        json!({"index": index, "id": format!("call_{}", first + index), "type": "function",
            "function": {"name": tool, "arguments": arguments}})
    };
    (0..*count).map(call).collect()
}

fn chat_document(said: &Said) -> Value {
    let (message, reason) = match said {
        Said::Pieces(pieces, _) => (json!({"role": "assistant", "content": "word ".repeat(*pieces)}), "stop"),
        Said::Calls { .. } => {
            (json!({"role": "assistant", "content": null, "tool_calls": chat_calls(said)}), "tool_calls")
        }
    };
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "mock",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
}

fn responses_items(said: &Said) -> Vec<Value> {
    match said {
        Said::Pieces(pieces, _) => {
            vec![json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "word ".repeat(*pieces), "annotations": []}]})]
        }
        Said::Calls { first, count, tool, arguments } => {
            let call = |number: usize| {
                json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                    "name": tool, "arguments": arguments, "status": "completed"})
            };
            (*first..first + count).map(call).collect()
        }
    }
}

fn responses_document(said: &Said) -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "mock", "status": "completed",
        "output": responses_items(said), "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}})
}

fn responses_stream(said: &Said) -> Answer {
    let started = json!({"id": "resp_1", "object": "response", "status": "in_progress", "output": []});
    let mut events = vec![named(&json!({"type": "response.created", "response": started}))];
    let pace = match said {
        Said::Pieces(pieces, pace) => {
            let empty = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []});
            events.push(named(
                &json!({"type": "response.output_item.added", "output_index": 0, "item": empty}),
            ));
            let piece =
                named(&json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
                "content_index": 0, "delta": "word "}));
            events.extend(std::iter::repeat_n(piece, *pieces));
            *pace
        }
        Said::Calls { .. } => Pace::AtOnce,
    };
    for (index, item) in responses_items(said).into_iter().enumerate() {
        events
            .push(named(&json!({"type": "response.output_item.done", "output_index": index, "item": item})));
    }
    events.push(named(&json!({"type": "response.completed", "response": responses_document(said)})));
    Answer::Stream(events, pace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(answer: &Answer) -> bool {
        let Answer::Stream(events, _) = answer else { panic!("{answer:?}") };
        events.iter().any(|event| event.contains("notes.txt"))
    }

    #[test]
    fn a_tool_is_called_until_the_rounds_are_done() {
        let asked = |results: usize| {
            let result =
                |number| json!({"role": "tool", "tool_call_id": format!("call_{number}"), "content": NOTE});
            let messages: Vec<_> = (0..results).map(result).collect();
            json!({"model": "read-2", "stream": true, "messages": messages,
                "tools": [{"type": "function", "function": {"name": "read_file"}}]})
        };
        let called: Vec<_> =
            (0..4).map(|results| tools(&answer("/v1/chat/completions", &asked(results)))).collect();
        assert_eq!(called, [true, true, false, false]);
    }

    #[test]
    fn a_tool_that_failed_is_refused_and_an_argument_it_does_not_know_is_not_sent() {
        let asked = |messages: Value, known: Value| {
            let tool = json!({"name": "bash", "parameters": {"properties": known}});
            json!({"model": "shell-2", "stream": true, "messages": messages, "tools": [{"function": tool}]})
        };
        let failed = json!([{"role": "tool", "tool_call_id": "call_0", "content": "no such file"}]);
        let refused = answer("/v1/chat/completions", &asked(failed, json!({"command": {}})));
        assert!(matches!(&refused, Answer::Refused(why) if why.contains("no such file")), "{refused:?}");
        let Answer::Stream(events, _) =
            answer("/v1/chat/completions", &asked(json!([]), json!({"command": {}})))
        else {
            panic!()
        };
        assert!(events.iter().any(|event| event.contains("cat notes.txt")), "{events:?}");
        assert!(!events.iter().any(|event| event.contains("description")), "{events:?}");
    }

    #[test]
    fn each_client_gets_the_tool_it_has_and_one_without_tools_gets_a_word() {
        let asked = |tools: Value| json!({"model": "shell-1", "stream": true, "input": [], "tools": tools});
        let with = asked(json!([{"type": "function", "name": "shell_command"}]));
        assert!(tools(&answer("/v1/responses", &with)));
        assert!(!tools(&answer("/v1/responses", &asked(json!([])))));
        assert_eq!(answer("/v1/other", &with), Answer::Missing);
    }

    #[test]
    fn a_model_says_as_many_pieces_as_its_name_has() {
        let body = json!({"model": "paced-100", "stream": true});
        let Answer::Stream(events, pace) = answer("/v1/chat/completions", &body) else { panic!() };
        let pieces = events.iter().filter(|event| event.contains("word")).count();
        assert_eq!((pieces, pace), (100, Pace::PerMillisecond(10)));
    }
}
