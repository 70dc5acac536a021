//! The binary against a real llama.cpp server in the words of OpenAI's Responses API and Anthropic's Messages API.

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::llama::{events, llama, run};

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

// Its Messages API takes neither a schema nor a forced call with this model, so only one of the two is asked here.
#[test]
fn an_answer_of_the_responses_api_keeps_to_the_schema_it_is_given() {
    let (llama, desk) = (llama(), Desk::new());
    let schema = json!({"type": "object", "properties": {"color": {"type": "string", "enum": ["red", "green"]},
        "bright": {"type": "boolean"}}, "required": ["color", "bright"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "schema": schema, "strict": true});
    // This server reads the schema of the Responses API only under its own name.
    let more = json!({"max_tokens": 128, "response_format": format, "extra_body": {"json_schema": schema}});
    let ran =
        run(&desk, &llama.plan_of("provider-openai", "loop-basic", more), "json", "Which color is an apple?");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let answer = ran.json()["answer"].as_str().unwrap().to_owned();
    let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
    assert!(["red", "green"].contains(&answer["color"].as_str().unwrap()), "{answer}");
    assert!(answer["bright"].is_boolean(), "{answer}");
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
