//! Which provider is asked, and who comes next when it fails.

use std::sync::Arc;

use amplifier_core::contracts::TurnError;
use amplifier_core::session::ExecuteError;
use amplifier_protocol::event::{ProviderError, ProviderRequest, TurnStatus};
use amplifier_protocol::hook::{HookAction, HookResult, Injection, InjectionRole};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_testing::{MockTool, ScriptedProvider, Step, TestSession};
use serde_json::{Value, json};

use crate::fault::{Act, FaultServer, delta, opened, refuses};
use crate::kit::built_in;

use super::stage::{LOOPS, Open, Stage, calls, object};

fn refused() -> LlmError {
    LlmError::new(LlmErrorKind::Authentication, "no such key")
}

fn spare(name: &str, script: impl IntoIterator<Item = impl Into<Step>>) -> Arc<ScriptedProvider> {
    Arc::new(ScriptedProvider::new(script).named(name))
}

fn asked(open: &Open) -> Vec<String> {
    open.recorder().of::<ProviderRequest>().into_iter().map(|asked| asked.provider).collect()
}

fn failed(open: &Open) -> Vec<String> {
    open.recorder().of::<ProviderError>().into_iter().map(|failed| failed.provider).collect()
}

/// Two spare providers: the first fails too, the second answers.
fn stage(id: &str, error: LlmError, config: Value) -> (Stage, Arc<ScriptedProvider>) {
    let good = spare("good", [calls(1), Step::say("done")]);
    let (bad, good_too) = (spare("bad", [refused()]), good.clone());
    let stage = Stage::new(id, [error]).with(|builder| builder.provider(bad).provider(good_too));
    (stage.config(config).tool(Arc::new(MockTool::new("t"))), good)
}

#[tokio::test]
async fn the_next_provider_is_asked_when_one_fails_for_good_and_the_rest_of_the_turn_stays_with_it() {
    for id in LOOPS {
        let config = json!({"fallback_providers": ["bad", "provider-good"]});
        let (stage, good) = stage(id, refused(), config);
        let (open, answer) = stage.play().await;
        assert_eq!(answer, "done", "{id}");
        open.ended(TurnStatus::Success);
        assert_eq!(failed(&open), ["scripted", "bad"]);
        assert_eq!(asked(&open), ["scripted", "bad", "good", "good"]);
        let rounds: Vec<_> =
            open.recorder().of::<ProviderRequest>().iter().map(|one| one.iteration).collect();
        assert_eq!(rounds, [0, 0, 0, 1], "a second try is the same round");
        good.assert_played();
    }
}

#[tokio::test]
async fn when_every_provider_failed_the_last_error_travels() {
    for id in LOOPS {
        let (stage, _) = stage(
            id,
            LlmError::new(LlmErrorKind::NotFound, "no model"),
            json!({"fallback_providers": ["bad"]}),
        );
        let open = stage.open().await;
        let error = open.session.execute("hi").await.unwrap_err();
        assert!(matches!(error, ExecuteError::Turn(TurnError::Model(found)) if found == refused()), "{id}");
        open.ended(TurnStatus::Error);
        assert_eq!(failed(&open), ["scripted", "bad"]);
    }
}

#[tokio::test]
async fn a_failure_that_may_pass_leads_on_unless_the_config_says_otherwise() {
    for kind in [LlmErrorKind::ProviderUnavailable, LlmErrorKind::RateLimit, LlmErrorKind::Network] {
        let passing = || LlmError::new(kind, "down");
        for id in LOOPS {
            let chain = json!({"fallback_providers": ["good"]});
            assert_eq!(stage(id, passing(), chain).0.play().await.1, "done", "{id}");
            let config = json!({"fallback_providers": ["good"], "fallback_on": "permanent"});
            let (patient, good) = stage(id, passing(), config);
            let open = patient.open().await;
            assert!(open.session.execute("hi").await.is_err(), "{id}");
            assert_eq!(good.request_count(), 0);
        }
    }
}

/// A streamed turn whose first provider meets these answers, and how often the second was asked.
async fn streamed(script: Vec<Vec<Act>>) -> (Result<String, String>, usize) {
    let server = FaultServer::start(script).await;
    let good = spare("good", ["the whole answer"]);
    let chain = object(json!({"default_provider": "chat-completions", "fallback_providers": ["good"]}));
    let config = json!({"base_url": server.url(), "model": "m", "max_retries": 1, "min_retry_delay": 0.001});
    let session = TestSession::builder()
        .module_with(built_in("loop-streaming").await, chain)
        .module(built_in("context-simple").await)
        .module_with(built_in("provider-chat-completions").await, object(config))
        .provider(good.clone())
        .open()
        .await
        .unwrap();
    let answer = session.execute("hi").await.map_err(|error| error.to_string());
    (answer, good.request_count())
}

#[tokio::test]
async fn behind_half_an_answer_that_was_shown_nobody_else_is_asked() {
    let cut = |shown: &[Value]| {
        let shown = shown.iter().cloned().map(delta);
        [vec![opened()], shown.collect(), vec![Act::Send(b"40\r\ndata".to_vec())]].concat()
    };
    let nothing = cut(&[json!({"role": "assistant"})]);
    assert_eq!(streamed(vec![nothing]).await, (Ok("the whole answer".to_owned()), 1));

    let half = cut(&[json!({"content": "The whole ans"})]);
    let (answer, asked) = streamed(vec![half]).await;
    assert!(answer.unwrap_err().contains("broke off after 13 characters"));
    assert_eq!(asked, 0, "the half would stand in front of the whole");

    let call = json!({"index": 0, "id": "a", "function": {"name": "t", "arguments": "{\"x"}});
    let behind = cut(&[json!({"content": "Let me look."}), json!({"tool_calls": [call]})]);
    let (answer, asked) = streamed(vec![behind, refuses(503, &[], json!({}))]).await;
    let told = answer.unwrap_err();
    assert!(told.contains("broke off behind a complete part") && told.contains("status 503"), "{told}");
    assert_eq!(asked, 0, "also when the provider tried to go on and could not");
}

#[tokio::test]
async fn without_a_list_nobody_else_is_asked() {
    for id in LOOPS {
        let (stage, good) = stage(id, refused(), json!({}));
        let open = stage.open().await;
        assert!(open.session.execute("hi").await.is_err(), "{id}");
        assert_eq!((failed(&open).len(), good.request_count()), (1, 0));
    }
}

#[tokio::test]
async fn the_default_provider_is_asked_first_and_a_hook_may_send_a_question_elsewhere() {
    for id in LOOPS {
        let (plain, _) = stage(id, refused(), json!({"default_provider": "good"}));
        let (open, _) = plain.play().await;
        assert_eq!(asked(&open), ["good", "good"], "{id}");
        let data = object(json!({"provider": "good", "iteration": 0, "model": "big"}));
        let (hooked, good) = stage(id, refused(), json!({}));
        let (_, answer) = hooked.hook("provider:request", HookResult::modify(data)).play().await;
        assert_eq!((answer.as_str(), good.requests()[0].model.as_deref()), ("done", Some("big")), "{id}");
    }
}

#[tokio::test]
async fn a_hook_that_insists_on_a_failed_provider_does_not_keep_the_turn_there() {
    for id in LOOPS {
        let data = object(json!({"provider": "bad", "iteration": 0}));
        let (stage, _) = stage(id, refused(), json!({"fallback_providers": ["good"]}));
        let (open, answer) = stage.hook("provider:request", HookResult::modify(data)).play().await;
        assert_eq!((answer.as_str(), failed(&open)), ("done", vec!["bad".to_owned()]), "{id}");
    }
}

#[tokio::test]
async fn passing_words_reach_the_provider_that_answers_exactly_once() {
    for id in LOOPS {
        let words = |text: &str| {
            let (text, role) = (text.to_owned(), InjectionRole::User);
            let injection = Injection { text, role, ephemeral: true, append_to_last_tool_result: false };
            HookResult::from(HookAction::InjectContext(injection))
        };
        let (stage, good) = stage(id, refused(), json!({"fallback_providers": ["good"]}));
        stage
            .hook("prompt:submit", words("of the prompt"))
            .hook("provider:request", words("of the call"))
            .play()
            .await;
        let request = &good.requests()[0];
        let texts: Vec<_> = request.messages.iter().map(|m| m.content.visible_text().into_owned()).collect();
        assert_eq!(texts, ["hi", "of the prompt", "of the call"], "{id}");
    }
}
