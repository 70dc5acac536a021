//! The vendors' own types judge: a server made of them (`sdk/server.py`) reads every request we send into the types of their
//! clients, refuses what those do not know, and answers in them; and what their clients make of the bytes of an answer is
//! what we made of them.

use std::process::Stdio;

use amplifier_core::contracts::ProviderCx;
use amplifier_protocol::llm_error::LlmErrorKind;
use amplifier_protocol::message::{Content, Message, Role};
use amplifier_testing::TestSession;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::kit::{built_in, object, on, passing, stored};
use crate::parts;

const PACKAGES: &[&str] = &["anthropic==2.8.0", "openai==3.49.0"];
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

/// The server; it ends when its input does.
struct Server {
    _child: Child,
    port: u16,
}

impl Server {
    async fn start() -> Self {
        let python = tokio::task::spawn_blocking(|| parts::python(PACKAGES)).await.unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/sdk/server.py");
        let mut child = Command::new(python)
            .args(["-W", "ignore", script])
            .env("NO_PROXY", "*")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
        Self { port: line.trim().parse().unwrap(), _child: child }
    }

    async fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{path}: {answer}"))
    }

    /// What it was sent.
    async fn sent(&self) -> Vec<Value> {
        self.get("/sent").await.as_array().unwrap().clone()
    }

    /// A session that asks it, with one tool and with a hook that speaks in passing before every request.
    async fn session(&self, provider: &str, more: Value) -> TestSession {
        let base = match provider {
            "provider-anthropic" => format!("http://127.0.0.1:{}", self.port),
            _ => format!("http://127.0.0.1:{}/v1", self.port),
        };
        let mut config = json!({"base_url": base, "api_key": "k-very-secret", "max_retries": 0});
        config.as_object_mut().unwrap().extend(object(more));
        let (spec, hook) = on("provider:request", passing("It is noon."));
        let session = TestSession::builder()
            .module(built_in("loop-streaming").await)
            .module(built_in("context-simple").await)
            .module(built_in("tool-echo").await)
            .module_with(built_in(provider).await, object(config))
            .hook(spec, hook)
            .open()
            .await
            .unwrap();
        for message in earlier() {
            session.coordinator().context().unwrap().add_message(message.into()).await.unwrap();
        }
        session
    }
}

/// What was said before: system and developer text, a picture, a document, calls of another service with odd ids, one of
/// them unanswered and one that answered with a picture.
fn earlier() -> Vec<Message> {
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}});
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "A file."},
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture,
            {"type": "image", "source": {"type": "url", "url": "https://example.invalid/x.png"}},
            {"type": "document", "title": "a.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "of nobody"},
            {"type": "thinking", "thinking": "of another", "reasoning_field": "reasoning", "content": [{"x": 1}]},
            {"type": "text", "text": "I look."},
            {"type": "tool_call", "id": "functions.echo:0", "name": "echo", "input": {"text": "a"}},
            {"type": "tool_call", "id": "b", "name": "echo", "input": "not json"}]},
        {"role": "tool", "tool_call_id": "functions.echo:0", "content": [{"type": "text", "text": "seen"}, picture]},
        {"role": "assistant", "content": "A dot."},
    ]);
    serde_json::from_value(messages).unwrap()
}

/// The answers of the model in this turn, as their blocks.
async fn answers(session: &TestSession) -> Vec<Value> {
    let stored = stored(session).await;
    let new = stored.iter().skip(earlier().len()).filter(|message| message.role == Role::Assistant);
    let blocks = |message: &std::sync::Arc<Message>| match &message.content {
        Content::Blocks(blocks) => json!(blocks),
        Content::Text(text) => panic!("{text}"),
    };
    new.map(blocks).collect()
}

/// The same answer in our words.
fn of_anthropic(message: &Value) -> Value {
    let block = |block: &Value| match block["type"].as_str().unwrap() {
        "thinking" => {
            json!({"type": "thinking", "thinking": block["thinking"], "signature": block["signature"], "origin": "anthropic"})
        }
        "tool_use" => {
            json!({"type": "tool_call", "id": block["id"], "name": block["name"], "input": block["input"]})
        }
        _ => block.clone(),
    };
    message["content"].as_array().unwrap().iter().map(block).collect()
}

fn of_openai(response: &Value) -> Value {
    let item = |item: &Value| match item["type"].as_str().unwrap() {
        "message" => {
            json!({"type": "text", "text": item["content"][0]["text"], "item_id": item["id"], "phase": item["phase"]})
        }
        "function_call" => {
            let input: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
            json!({"type": "tool_call", "id": item["call_id"], "name": item["name"], "input": input})
        }
        "reasoning" => {
            let parts = item["summary"].as_array().unwrap();
            let text: Vec<_> = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
            let mut block = json!({"type": "thinking", "thinking": text.join("\n\n"),
                "content": [item["encrypted_content"], item["id"]], "origin": "openai"});
            if parts.len() != 1 {
                block["summary"] = item["summary"].clone();
            }
            block
        }
        other => panic!("{other}"),
    };
    response["output"].as_array().unwrap().iter().map(item).collect()
}

fn of_chat(completion: &Value) -> Value {
    let message = &completion["choices"][0]["message"];
    let text = message["content"].as_str().filter(|text| !text.is_empty());
    let text = text.map(|text| json!({"type": "text", "text": text}));
    let call = |call: &Value| {
        let input: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        json!({"type": "tool_call", "id": call["id"], "name": call["function"]["name"], "input": input})
    };
    text.into_iter().chain(message["tool_calls"].as_array().into_iter().flatten().map(call)).collect()
}

/// Where the marks for the prompt cache are: the block, and whether anything that stays stands behind it.
fn marked(body: &Value) -> Vec<String> {
    let lists = [&body["tools"], &body["system"]].into_iter().flat_map(|list| list.as_array().unwrap());
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = lists.chain(messages.flat_map(|message| message["content"].as_array().unwrap()));
    let text = |block: &Value| {
        let told = [&block["text"], &block["name"], &block["content"]];
        told.into_iter().find_map(Value::as_str).unwrap_or("?").to_owned()
    };
    blocks.filter(|block| block.get("cache_control").is_some()).map(text).collect()
}

#[tokio::test]
async fn a_turn_with_thinking_and_tools_is_one_that_anthropics_client_would_have_had() {
    let server = Server::start().await;
    let session = server.session("provider-anthropic", json!({"effort": "low", "temperature": 0.5})).await;
    assert_eq!(session.execute("Do it twice.").await.unwrap(), "It is 😀 done.");
    let (sent, answers) = (server.sent().await, answers(&session).await);
    assert_eq!((sent.len(), answers.len()), (2, 2));
    for (number, answer) in answers.iter().enumerate() {
        let theirs = server.get(&format!("/accumulated/{number}")).await;
        assert_eq!(*answer, of_anthropic(&theirs));
    }
    let [first, second] = [&sent[0]["body"], &sent[1]["body"]];
    assert_eq!(first["thinking"], json!({"type": "enabled", "budget_tokens": 4096}));
    assert_eq!(first.get("temperature"), None);
    assert_eq!(sent[0]["headers"]["anthropic-version"], json!("2023-06-01"));
    assert_eq!(sent[0]["headers"]["anthropic-beta"], json!("interleaved-thinking-2025-05-14"));
    // The thought goes back as it came, in front of what it led to; results follow together, in the order of the calls.
    let last = second["messages"].as_array().unwrap().iter().rev().take(2).collect::<Vec<_>>();
    let theirs = server.get("/accumulated/0").await;
    assert_eq!(last[1]["content"], theirs["content"]);
    let results: Vec<_> =
        last[0]["content"].as_array().unwrap().iter().map(|block| &block["tool_use_id"]).collect();
    assert_eq!(results, [&json!("toolu_01"), &json!("toolu_02"), &Value::Null]);
    // Marks stand at the ends of what stays, never on what was said in passing, and the last one is found again.
    let marks = marked(first);
    assert_eq!(
        (marks.len(), &marks[..2], marks[3].as_str()),
        (4, &["echo".to_owned(), "Be brief.".to_owned()][..], "Do it twice.")
    );
    assert_eq!(marked(second), ["echo", "Be brief.", "Do it twice.", "2 ü \"q\""]);
    assert_eq!(last[0]["content"][2], json!({"type": "text", "text": "It is noon."}));
}

#[tokio::test]
async fn usage_is_counted_as_anthropic_counts_it() {
    let server = Server::start().await;
    let session = server.session("provider-anthropic", json!({})).await;
    session.execute("Hi.").await.unwrap();
    let told = session.recorder().of::<amplifier_protocol::event::LlmResponse>();
    let usage = serde_json::to_value(told[0].usage.as_ref().unwrap()).unwrap();
    let theirs = server.get("/accumulated/0").await;
    let count = |key: &str| theirs["usage"][key].as_u64().unwrap();
    let read = count("cache_read_input_tokens");
    assert_eq!(usage["input_tokens"], json!(count("input_tokens") + read));
    assert_eq!(usage["cache_read_tokens"], json!(read));
    assert_eq!(usage["cache_write_tokens"], json!(count("cache_creation_input_tokens")));
    assert_eq!(usage["output_tokens"], json!(count("output_tokens")));
    assert_eq!(usage["reasoning_tokens"], theirs["usage"]["output_tokens_details"]["thinking_tokens"]);
    // 11 fresh, 100 read, 7 written, 33 answered, at the prices of the default model.
    assert_eq!(usage["cost_usd"], json!("0.00058425"));
}

#[tokio::test]
async fn newer_models_and_betas_are_asked_in_shapes_that_anthropic_knows() {
    let server = Server::start().await;
    let schema =
        json!({"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]});
    let more = json!({
        "model": "claude-opus-4-8", "use_streaming": false, "effort": "high", "task_budget_tokens": 30000, "speed": "fast",
        "beta_headers": "files-api-2025-04-14, task-budgets-2026-03-13", "cache_stable_region_ttl_1h": true, "temperature": 1,
        "enable_web_search": true, "web_search_max_uses": 2, "stop": ["END"],
        "response_format": {"type": "json_schema", "schema": schema},
    });
    let session = server.session("provider-anthropic", more).await;
    assert_eq!(session.execute("How much?").await.unwrap(), "{\"answer\": 42}");
    let sent = server.sent().await;
    let body = &sent[0]["body"];
    assert_eq!(sent[0]["vendor"], json!("anthropic-beta"));
    let betas = "files-api-2025-04-14,task-budgets-2026-03-13,fast-mode-2026-02-01";
    assert_eq!(sent[0]["headers"]["anthropic-beta"], json!(betas));
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    let mut closed = schema;
    closed["additionalProperties"] = json!(false);
    assert_eq!(
        body["output_config"],
        json!({"effort": "high", "task_budget": {"type": "tokens", "total": 30000}, "format": {"type": "json_schema", "schema": closed}})
    );
    assert_eq!((body.get("temperature"), &body["max_tokens"]), (None, &json!(128_000)));
    assert_eq!(body["tools"][0], json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 2}));
    assert_eq!(body["system"][0]["cache_control"], json!({"type": "ephemeral", "ttl": "1h"}));
}

#[tokio::test]
async fn a_model_that_takes_no_schema_answers_through_a_tool_of_its_shape() {
    let server = Server::start().await;
    let schema =
        json!({"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]});
    let more = json!({"model": "claude-sonnet-4-0", "response_format": {"type": "json_schema", "schema": schema}, "effort": "low"});
    let session = server.session("provider-anthropic", more).await;
    assert_eq!(session.execute("How much?").await.unwrap(), "{\"answer\": 42}");
    let body = &server.sent().await[0]["body"];
    assert_eq!((&body["tool_choice"], body.get("thinking")), (&json!({"type": "any"}), None));
    assert_eq!(answers(&session).await, [json!([{"type": "text", "text": "{\"answer\": 42}"}])]);
}

#[tokio::test]
async fn a_turn_with_reasoning_and_tools_is_one_that_openais_client_would_have_had() {
    let server = Server::start().await;
    let session = server
        .session("provider-openai", json!({"reasoning": {"effort": "low", "summary": "detailed"}}))
        .await;
    assert_eq!(session.execute("Do it twice.").await.unwrap(), "It is 😀 done.");
    let (sent, answers) = (server.sent().await, answers(&session).await);
    assert_eq!((sent.len(), answers.len()), (2, 2));
    let mut theirs = Vec::new();
    for (number, answer) in answers.iter().enumerate() {
        theirs.push(server.get(&format!("/accumulated/{number}")).await);
        assert_eq!(*answer, of_openai(&theirs[number]));
    }
    let body = &sent[1]["body"];
    assert_eq!((&body["store"], &body["instructions"]), (&json!(false), &json!("Be brief.")));
    assert_eq!(body["reasoning"], json!({"effort": "low", "summary": "detailed"}));
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    // The sealed reasoning goes back as it came, in front of the calls it led to.
    let items = body["input"].as_array().unwrap();
    let at = items.iter().position(|item| item["type"] == "reasoning").unwrap();
    let kinds: Vec<_> = items[at..].iter().map(|item| item["type"].as_str().unwrap()).collect();
    let expected = [
        "reasoning",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
    ];
    assert_eq!(kinds, expected);
    let reasoning = &theirs[0]["output"][0];
    for key in ["id", "summary", "encrypted_content"] {
        assert_eq!(items[at][key], reasoning[key], "{key}");
    }
    let told = session.recorder().of::<amplifier_protocol::event::ProviderResponse>();
    let usage = serde_json::to_value(told[0].usage.as_ref().unwrap()).unwrap();
    assert_eq!(
        usage,
        json!({"input_tokens": 104, "output_tokens": 22, "total_tokens": 133, "reasoning_tokens": 9, "cache_read_tokens": 64,
            "cache_write_tokens": 7, "cost_usd": usage["cost_usd"]})
    );
}

#[tokio::test]
async fn everything_openai_can_be_told_is_told_in_its_shapes() {
    let server = Server::start().await;
    let schema = json!({"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"], "additionalProperties": false});
    let more = json!({
        "use_streaming": false, "max_tokens": 500, "text_verbosity": "low", "truncation": "disabled", "service_tier": "flex",
        "prompt_cache_key": "p", "prompt_cache_retention": "24h", "safety_identifier": "s", "parallel_tool_calls": false,
        "reasoning_replay_scope": "all", "max_tool_calls": 3,
        "response_format": {"type": "json_schema", "schema": {"name": "sum", "schema": schema}, "strict": true},
    });
    let session = server.session("provider-openai", more).await;
    assert_eq!(session.execute("How much?").await.unwrap(), "{\"answer\": 42}");
    let sent = server.sent().await;
    let body = &sent.last().unwrap()["body"];
    assert_eq!(
        body["text"],
        json!({"format": {"type": "json_schema", "name": "sum", "schema": schema, "strict": true}, "verbosity": "low"})
    );
    assert_eq!(body["tools"][0]["strict"], json!(false));
    assert_eq!(session.recorder().of::<amplifier_protocol::event::LlmResponse>()[0].status, "ok");
}

#[tokio::test]
async fn a_server_that_takes_no_schema_of_the_responses_api_answers_through_a_tool_of_its_shape() {
    let server = Server::start().await;
    let schema =
        json!({"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]});
    for use_streaming in [true, false] {
        let more = json!({"use_streaming": use_streaming, "schema_by": "tool",
            "response_format": {"type": "json_schema", "schema": schema, "strict": true}});
        let session = server.session("provider-openai", more).await;
        assert_eq!(session.execute("How much?").await.unwrap(), "{\"answer\": 42}");
        let sent = server.sent().await;
        let body = &sent.last().unwrap()["body"];
        assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("required"), &json!(false)));
        assert_eq!(body.get("text"), None);
        let tool = body["tools"].as_array().unwrap().last().unwrap();
        assert_eq!((&tool["parameters"], &tool["strict"]), (&schema, &json!(true)));
        let told = session.recorder().of::<amplifier_protocol::event::LlmResponse>();
        assert_eq!(told.len(), 1, "no tool of that name is ever looked for");
        assert_eq!(answers(&session).await, [json!([{"type": "text", "text": "{\"answer\": 42}"}])]);
    }
}

#[tokio::test]
async fn a_turn_of_chat_completions_is_one_that_openais_client_would_have_had() {
    let server = Server::start().await;
    let session =
        server.session("provider-chat-completions", json!({"model": "m", "reasoning_effort": "low"})).await;
    assert_eq!(session.execute("Do it twice.").await.unwrap(), "It is 😀 done.");
    let answers = answers(&session).await;
    assert_eq!((server.sent().await.len(), answers.len()), (2, 2));
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, of_chat(&server.get(&format!("/accumulated/{number}")).await));
    }
}

#[tokio::test]
async fn chat_completions_in_one_piece_and_in_a_shape_are_asked_for_as_openais_types_know_it() {
    let server = Server::start().await;
    let schema = json!({"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"], "additionalProperties": false});
    for given in [json!({"name": "sum", "schema": schema}), schema.clone()] {
        let more = json!({"model": "m", "use_streaming": false,
            "response_format": {"type": "json_schema", "schema": given, "strict": true}});
        let session = server.session("provider-chat-completions", more).await;
        assert_eq!(session.execute("How much?").await.unwrap(), "{\"answer\": 42}");
        let sent = server.sent().await;
        let body = &sent.last().unwrap()["body"];
        let name = if given.get("name").is_some() { "sum" } else { "answer" };
        let shape = json!({"name": name, "schema": schema, "strict": true});
        assert_eq!(body["response_format"], json!({"type": "json_schema", "json_schema": shape}));
        assert_eq!((body.get("stream"), body.get("stream_options")), (None, None));
        let call = |id: &str, text: &str| json!({"type": "tool_call", "id": id, "name": "echo", "input": {"text": text}});
        assert_eq!(
            answers(&session).await,
            [
                json!([call("call_1", "1 ü \"q\""), call("call_2", "2 ü \"q\"")]),
                json!([{"type": "text", "text": "{\"answer\": 42}"}])
            ]
        );
        let told = session.recorder().of::<amplifier_protocol::event::ProviderResponse>();
        assert_eq!(told[0].usage.as_ref().map(|usage| usage.total_tokens), Some(10));
    }
}

#[tokio::test]
async fn every_way_to_choose_a_tool_is_told_in_shapes_that_the_vendors_know() {
    let server = Server::start().await;
    let named =
        [json!({"type": "tool", "name": "echo"}), json!({"type": "function", "function": {"name": "echo"}})];
    let must = [json!("any"), json!("required"), json!({"type": "any"})];
    let expected = [
        ("provider-anthropic", json!({"type": "tool", "name": "echo"}), json!({"type": "any"})),
        ("provider-openai", json!({"type": "function", "name": "echo"}), json!("required")),
        (
            "provider-chat-completions",
            json!({"type": "function", "function": {"name": "echo"}}),
            json!("required"),
        ),
    ];
    for (provider, this_one, any) in expected {
        let session = server.session(provider, json!({"use_streaming": false})).await;
        let asked = session.coordinator().providers().remove(0).1;
        let all =
            named.iter().map(|choice| (choice, &this_one)).chain(must.iter().map(|choice| (choice, &any)));
        for (choice, expected) in all {
            let request = crate::asking::request(json!({
                "messages": [{"role": "user", "content": "hi"}], "tool_choice": choice,
                "tools": [{"name": "echo", "description": "Echoes.", "parameters": {"type": "object", "properties": {}}}],
            }));
            let answer = asked.complete(request, &ProviderCx::default()).await;
            assert!(answer.is_ok(), "{provider} {choice}: {answer:?}");
            assert_eq!(
                server.sent().await.last().unwrap()["body"]["tool_choice"],
                *expected,
                "{provider} {choice}"
            );
        }
    }
}

#[tokio::test]
async fn the_judge_refuses_what_the_vendors_do_not_know() {
    let server = Server::start().await;
    for provider in ["provider-anthropic", "provider-openai", "provider-chat-completions"] {
        let session = server.session(provider, json!({"extra_request_params": {"bogus_key": 1}})).await;
        let error = session.execute("Hi.").await.unwrap_err().to_string();
        assert!(
            error.contains("bogus_key") && error.contains(LlmErrorKind::InvalidRequest.name()),
            "{error}"
        );
    }
}

#[tokio::test]
async fn models_are_listed_from_the_vendors_own_rows() {
    let server = Server::start().await;
    for (provider, expected) in [
        ("provider-anthropic", ("claude-sonnet-4-5", 200_000, 64_000)),
        ("provider-openai", ("gpt-5.5", 1_000_000, 128_000)),
    ] {
        let session = server.session(provider, json!({})).await;
        let models = session.coordinator().providers().remove(0).1.list_models().await.unwrap();
        let rows: Vec<_> =
            models.iter().map(|m| (m.id.as_str(), m.context_window, m.max_output_tokens)).collect();
        assert_eq!(rows, [expected]);
    }
}
