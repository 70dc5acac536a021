//! The binary against a real llama.cpp server in the words of OpenAI's Responses API and Anthropic's Messages API.

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::llama::{events, llama, llama_with_tools, run};

const PROVIDERS: [&str; 2] = ["provider-anthropic", "provider-openai"];

#[test]
fn plain_answers_of_both_tell_their_usage() {
    let (llama, desk) = (llama(), Desk::new());
    for provider in PROVIDERS {
        let plan = llama.plan_of(provider, "loop-basic", json!({"use_streaming": false}));
        let ran = run(&desk, &plan, "json", "Say hello.");
        assert_eq!(ran.code, 0, "{provider}: {}", ran.seen());
        let summary = ran.json();
        assert!(!summary["answer"].as_str().unwrap().trim().is_empty(), "{summary}");
        assert!(summary["usage"]["input_tokens"].as_u64().unwrap() > 3, "{summary}");
        assert!((1..=12).contains(&summary["usage"]["output_tokens"].as_u64().unwrap()), "{summary}");
    }
}

#[test]
fn streamed_answers_of_both_come_in_pieces_that_add_up() {
    let (llama, desk) = (llama(), Desk::new());
    for provider in PROVIDERS {
        let plan = llama.plan_of(provider, "loop-streaming", json!({}));
        let ran = run(&desk, &plan, "jsonl", "Tell me about cats.");
        assert_eq!(ran.code, 0, "{provider}: {}", ran.seen());
        let lines = ran.lines();
        let pieces = events(&lines, "content_block:delta");
        let whole: String = pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
        let result = lines.last().unwrap();
        assert!(pieces.len() > 2, "{provider}: {} pieces", pieces.len());
        assert_eq!(json!(whole), result["answer"], "{provider}");
        assert!(result["usage"]["output_tokens"].as_u64().unwrap() > 0, "{result}");
    }
}

/// With words that no model says of an apple unless it must.
fn schema() -> Value {
    json!({"type": "object", "properties": {"color": {"type": "string", "enum": ["ochre", "violet"]},
        "bright": {"type": "boolean"}}, "required": ["color", "bright"], "additionalProperties": false})
}

/// What is sent for an answer of the schema, which must be kept to.
fn asked_for_a_shape(plan: &Value) -> Value {
    let ran = run(&Desk::new(), plan, "jsonl", "Which color is an apple?");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let lines = ran.lines();
    let answer = lines.last().unwrap()["answer"].as_str().unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap_or_else(|_| panic!("{answer}"));
    assert!(["ochre", "violet"].contains(&answer["color"].as_str().unwrap()), "{answer}");
    assert!(answer["bright"].is_boolean() && answer.as_object().unwrap().len() == 2, "{answer}");
    events(&lines, "llm:request")[0]["raw"].clone()
}

// Of all ways to ask for a shape in the Messages API this server takes one: a tool that must be called.
#[test]
fn answers_of_both_keep_to_the_schema_of_a_tool_that_must_be_called() {
    let llama = llama_with_tools();
    let format = json!({"type": "json_schema", "schema": schema(), "strict": true});
    for provider in PROVIDERS {
        for use_streaming in [true, false] {
            let mut more = json!({"max_tokens": 128, "response_format": format, "use_streaming": use_streaming,
                "debug": "raw"});
            if provider == "provider-openai" {
                more["schema_by"] = json!("tool");
            }
            let sent = asked_for_a_shape(&llama.plan_of(provider, "loop-streaming", more));
            let tool = &sent["tools"][0];
            assert_eq!(tool["name"], json!("give_structured_answer"), "{sent}");
            let (choice, shape) = match provider {
                "provider-openai" => (json!("required"), &tool["parameters"]),
                _ => (json!({"type": "tool", "name": "give_structured_answer"}), &tool["input_schema"]),
            };
            assert_eq!((&sent["tool_choice"], shape), (&choice, &schema()), "{sent}");
        }
    }
}

#[test]
fn an_answer_of_the_responses_api_keeps_to_the_schema_it_is_given() {
    let llama = llama();
    let format = json!({"type": "json_schema", "schema": schema(), "strict": true});
    // The format is sent as the API has it. This server does not read it there, only under its own name.
    let more = json!({"max_tokens": 128, "response_format": format, "debug": "raw",
        "extra_body": {"json_schema": schema()}});
    let sent = asked_for_a_shape(&llama.plan_of("provider-openai", "loop-basic", more));
    let format = json!({"type": "json_schema", "name": "answer", "schema": schema(), "strict": true});
    assert_eq!(sent["text"], json!({"format": format}));
}

#[test]
fn too_long_a_conversation_is_told_as_such_by_both() {
    let (llama, desk) = (llama(), Desk::new());
    for provider in PROVIDERS {
        let plan = llama.plan_of(provider, "loop-basic", json!({}));
        let ran = run(&desk, &plan, "text", &"word ".repeat(4_000));
        assert_eq!(ran.code, 1, "{provider}: {}", ran.seen());
        assert!(ran.stderr.contains("ContextLengthError"), "{provider}: {}", ran.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_cancel_in_the_middle_of_an_answer_of_either_reaches_the_server() {
    let llama = llama();
    for provider in PROVIDERS {
        let endless = json!({"max_tokens": 1_900, "extra_body": {"ignore_eos": true}});
        crate::llama::interrupts(&llama, &llama.plan_of(provider, "loop-streaming", endless));
    }
}
