//! What goes over the wire in cases that few conversations hold: marks in front of what is said in passing, pictures that
//! cannot be shown, models that no table knows, and what debugging tells of it.

use amplifier_protocol::event::{LlmRequest, LlmResponse};
use serde_json::{Value, json};

use crate::asking::{answered, ask, hi, provider, request};
use crate::fault::{FaultServer, refuses, says};
use crate::fault_rows::session;
use crate::vendors;

const UNSEEN: &str = "(Something that cannot be shown here.)";

/// What a provider sends for this request.
async fn sent(id: &str, config: Value, asked: Value) -> Value {
    let answer = match id {
        "provider-chat-completions" | "provider-vllm" => says("ok"),
        "provider-ollama" => refuses(200, &[], json!({"message": {"content": "ok"}, "done": true})),
        _ => vendors::says(id, "ok"),
    };
    let server = FaultServer::start(vec![answer]).await;
    let (provider, _hub, _) = provider(id, &server, config).await;
    answered(&*provider, request(asked)).await;
    server.asked().pop().unwrap().body
}

#[tokio::test]
async fn a_mark_for_the_cache_stands_in_front_of_what_is_said_in_passing() {
    let noon =
        json!({"role": "user", "content": "It is noon.", "metadata": {"source": "hook", "ephemeral": true}});
    let asked = json!({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}, noon]});
    let body = sent("provider-chat-completions", json!({"cache_markers": true}), asked.clone()).await;
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": mark}]},
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": mark},
                {"type": "text", "text": "It is noon."}]},
        ])
    );
    let plain = sent("provider-chat-completions", json!({}), asked).await;
    assert_eq!(plain["messages"][1], json!({"role": "user", "content": "hi\n\nIt is noon."}));
}

#[tokio::test]
async fn pictures_that_cannot_be_shown_are_told_of() {
    let image = |source: Value| json!({"type": "image", "source": source});
    let here = image(json!({"type": "url", "url": "data:image/png;base64,aGk="}));
    let (away, kept, odd) = (
        image(json!({"type": "url", "url": "https://example.invalid/x.png"})),
        image(json!({"type": "file", "file_id": "f"})),
        image(json!({"type": "odd"})),
    );
    let said = |blocks: Value| json!({"messages": [{"role": "user", "content": blocks}]});
    let text = |text: &str| json!({"type": "text", "text": text});

    let body = sent("provider-ollama", json!({}), said(json!([text("See:"), here, away]))).await;
    let told = format!("See:\n\n{UNSEEN}");
    assert_eq!(body["messages"], json!([{"role": "user", "content": told, "images": ["aGk="]}]));
    let body = sent("provider-ollama", json!({}), said(json!([odd]))).await;
    assert_eq!(body["messages"], json!([{"role": "user", "content": UNSEEN}]));

    let body = sent("provider-chat-completions", json!({}), said(json!([odd]))).await;
    assert_eq!(body["messages"][0]["content"], json!([text(UNSEEN)]));
    let body =
        sent("provider-chat-completions", json!({}), said(json!([text("See:"), kept, away, here]))).await;
    let url = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            text("See:"),
            text(UNSEEN),
            url("https://example.invalid/x.png"),
            url("data:image/png;base64,aGk=")
        ])
    );
}

#[tokio::test]
async fn sealed_reasoning_comes_from_models_that_no_table_knows() {
    let asked = json!({"messages": [{"role": "user", "content": "hi"}], "temperature": 0.5});
    let rows = [
        ("provider-openai", json!({"model": "gpt-6-sol"}), true),
        ("provider-openai", json!({"model": "o7"}), true),
        ("provider-openai", json!({"model": "gpt-4.1"}), false),
        ("provider-openai", json!({"model": "gpt-6-sol", "reasoning_model": false}), false),
        ("provider-azure-openai", json!({"default_deployment": "ours"}), false),
        ("provider-azure-openai", json!({"default_deployment": "ours", "reasoning_model": true}), true),
    ];
    for (id, config, reasons) in rows {
        let body = sent(id, config.clone(), asked.clone()).await;
        let sealed = body.get("include") == Some(&json!(["reasoning.encrypted_content"]));
        assert_eq!((sealed, body.get("temperature").is_none()), (reasons, reasons), "{config}: {body}");
    }
}

#[tokio::test]
async fn keys_of_older_configs_reach_the_request() {
    let hi = json!({"messages": [{"role": "user", "content": "hi"}]});
    for id in ["provider-openai", "provider-azure-openai"] {
        let body = sent(id, json!({"max_output_tokens": 77}), hi.clone()).await;
        assert_eq!(body["max_output_tokens"], json!(77), "{id}");
        let body = sent(id, json!({"max_output_tokens": 77, "max_tokens": 50}), hi.clone()).await;
        assert_eq!(body["max_output_tokens"], json!(50), "{id}");
    }
    for reasoning in [json!("low"), json!({"effort": "low", "summary": "auto"})] {
        let body = sent("provider-vllm", json!({"reasoning": reasoning, "seed": 3}), hi.clone()).await;
        assert_eq!((&body["reasoning_effort"], &body["seed"]), (&json!("low"), &json!(3)));
    }
    let body = sent("provider-vllm", json!({"reasoning": "low", "reasoning_effort": "high"}), hi).await;
    assert_eq!(body["reasoning_effort"], json!("high"));
}

#[tokio::test]
async fn debugging_tells_long_texts_cut_and_failed_answers_too() {
    let long = "word ".repeat(4_000);
    let refusal = refuses(400, &[], json!({"error": {"message": "no: k-very-secret"}}));
    for (debug, whole) in [("short", false), ("raw", true)] {
        let server = FaultServer::start(vec![says(&long), refusal.clone()]).await;
        let session = session(&server, json!({"debug": debug, "api_key": "k-very-secret"})).await;
        session.execute(long.as_str()).await.unwrap();
        session.execute("again").await.unwrap_err();
        let (asked, told) = (session.recorder().of::<LlmRequest>(), session.recorder().of::<LlmResponse>());
        let raw = asked[0].raw.as_ref().unwrap();
        let words = raw["messages"][0]["content"].as_str().unwrap();
        assert_eq!(words.len() == long.len(), whole, "{debug}: {}", words.len());
        assert!(words.starts_with("word word "));
        assert_eq!(raw["model"], json!("m"), "what is short stays whole");
        let answer = told[0].raw.as_ref().unwrap()["content"][0]["text"].as_str().unwrap();
        assert_eq!(answer.len() == long.len(), whole, "{debug}: {}", answer.len());
        let failed = told[1].raw.as_ref().unwrap();
        assert_eq!((told[1].status.as_str(), &failed["status_code"]), ("error", &json!(400)), "{failed}");
        assert!(failed["message"].as_str().unwrap().starts_with("no: "), "{failed}");
        assert!(!serde_json::to_string(&told).unwrap().contains("very-secret"));
    }
    let server = FaultServer::start(vec![refusal]).await;
    let (provider, hub, _) = provider("provider-chat-completions", &server, json!({})).await;
    let recorder = hub.recorder();
    ask(&*provider, hi()).await.0.unwrap_err();
    assert_eq!(recorder.of::<LlmResponse>()[0].raw, None, "nothing is told unless it is wanted");
}
