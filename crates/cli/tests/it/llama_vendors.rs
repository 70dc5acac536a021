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

#[test]
fn answers_of_both_keep_to_the_schema_they_are_given() {
    let (llama, desk) = (llama(), Desk::new());
    let schema = json!({"type": "object", "properties": {"color": {"type": "string", "enum": ["red", "green"]},
        "bright": {"type": "boolean"}}, "required": ["color", "bright"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "schema": schema, "strict": true});
    for provider in PROVIDERS {
        let mut more = json!({"max_tokens": 128, "response_format": format});
        if provider == "provider-openai" {
            // This server reads the schema of the Responses API only under its own name.
            more["extra_body"] = json!({"json_schema": schema});
        }
        let plan = llama.plan_of(provider, "loop-basic", more);
        let ran = run(&desk, &plan, "json", "Which color is an apple?");
        assert_eq!(ran.code, 0, "{provider}: {}", ran.seen());
        let answer = ran.json()["answer"].as_str().unwrap().to_owned();
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{provider}: {answer}"));
        assert!(["red", "green"].contains(&answer["color"].as_str().unwrap()), "{provider}: {answer}");
        assert!(answer["bright"].is_boolean(), "{provider}: {answer}");
    }
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
