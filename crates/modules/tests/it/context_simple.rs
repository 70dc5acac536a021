//! `context-simple` in a session: what the model sees of a long conversation.

use std::sync::Arc;

use amplifier_core::session::Session;
use amplifier_protocol::event::{ContextCompaction, ContextPostCompact, ContextPreCompact};
use amplifier_protocol::hook::HookResult;
use amplifier_testing::{Exhausted, ScriptedProvider, TestSession, TestSessionBuilder};
use serde_json::{Value, json};

use crate::kit::{built_in, object, on, stored};

async fn remembering(config: Value) -> (TestSessionBuilder, Arc<ScriptedProvider>) {
    let model = Arc::new(ScriptedProvider::new(["ok"]).when_exhausted(Exhausted::Last));
    let builder = TestSession::builder()
        .module(built_in("loop-basic").await)
        .module_with(built_in("context-simple").await, object(config))
        .provider(model.clone());
    (builder, model)
}

async fn talk(session: &Session, turns: usize) {
    for number in 0..turns {
        session.execute(format!("{number} {}", "x".repeat(400))).await.unwrap();
    }
}

#[tokio::test]
async fn a_long_conversation_is_shown_from_a_prompt_on_and_kept_whole() {
    let (builder, model) = remembering(json!({"max_tokens": 1_000})).await;
    let session = builder.open().await.unwrap();
    talk(&session, 20).await;
    let sent = &model.requests()[19].messages;
    assert!(sent.len() < 20, "{}", sent.len());
    assert!(sent[0].content.visible_text().contains('x'));
    assert_eq!(stored(&session).await.len(), 40);
    let (before, after) =
        (session.recorder().of::<ContextPreCompact>(), session.recorder().of::<ContextPostCompact>());
    assert_eq!(
        (before.len(), after.len()),
        (after.len(), session.recorder().of::<ContextCompaction>().len())
    );
    assert!(!before.is_empty() && before.len() < 10, "{}", before.len());
    assert!(after.iter().zip(&before).all(|(after, before)| after.token_count < before.token_count));
}

#[tokio::test]
async fn nothing_is_left_out_when_the_plan_says_so_or_a_hook_refuses() {
    let (builder, model) = remembering(json!({"max_tokens": 1_000, "auto_compact": false})).await;
    let session = builder.open().await.unwrap();
    talk(&session, 20).await;
    assert_eq!(model.requests()[19].messages.len(), 39);

    let (builder, model) = remembering(json!({"max_tokens": 1_000})).await;
    let (spec, handler) = on("context:pre_compact", HookResult::deny("keep it"));
    let session = builder.hook(spec, handler).open().await.unwrap();
    talk(&session, 20).await;
    assert_eq!(model.requests()[19].messages.len(), 39);
}

#[tokio::test]
async fn a_config_that_makes_no_sense_is_refused_with_its_reason() {
    for config in [json!({"compact_threshold": 1.5}), json!({"target_usage": 0.95}), json!({"max_tokens": 0})]
    {
        let (builder, _) = remembering(config.clone()).await;
        let error = builder.open().await.err().unwrap();
        assert!(format!("{error:?}").contains("must be"), "{config}: {error:?}");
    }
}
