//! Calls that are recorded once and answered from then on without a network.

use std::path::Path;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{Capability, DeltaSink, Mounted, ProviderCx};
use amplifier_core::session::ExecuteError;
use amplifier_protocol::llm_error::LlmErrorKind;
use amplifier_testing::{TestCoordinator, TestSession};
use serde_json::{Value, json};

use crate::asking::{ask, hi};
use crate::fault::{Act, FaultServer, delta, event, opened, refuses, says};
use crate::kit::{built_in, object};
use crate::stage::offer;

/// The capability by which the application tells one variable.
fn variables(name: &'static str, value: &Path) -> Capability {
    let value = value.display().to_string();
    offer(move |asked: Value| {
        let told = if asked["name"] == name { json!(value) } else { Value::Null };
        async move { Ok(told) }
    })
}

async fn session(url: &str, name: &'static str, folder: &Path) -> TestSession {
    let config =
        json!({"base_url": url, "api_key": "sk-very-secret-key", "model": "m", "min_retry_delay": 0.001});
    let offered = variables(name, folder);
    TestSession::builder()
        .module(built_in("loop-streaming").await)
        .module(built_in("context-simple").await)
        .module_with(built_in("provider-chat-completions").await, object(config))
        .configure(|builder| builder.capability("environment.variable", offered))
        .open()
        .await
        .unwrap()
}

/// An address at which nobody answers.
const NOWHERE: &str = "http://127.0.0.1:9/v1";

#[tokio::test]
async fn what_was_recorded_is_answered_again_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape");
    let leaks = refuses(503, &[], json!({"error": {"message": "sk-very-secret-key is busy"}}));
    let server = FaultServer::start(vec![leaks, says("first answer"), says("second answer")]).await;
    let recording = session(&server.url(), "AMPLIFIER_RECORD", &tape).await;
    assert_eq!(recording.execute("one").await.unwrap(), "first answer");
    assert_eq!(recording.execute("two").await.unwrap(), "second answer");
    drop(server);

    let mut names: Vec<_> =
        std::fs::read_dir(&tape).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["00001-chat-completions.json", "00002-chat-completions.json", "00003-chat-completions.json"]
    );
    for name in &names {
        let text = std::fs::read_to_string(tape.join(name)).unwrap();
        assert!(!text.contains("very-secret") && !text.to_lowercase().contains("authorization"), "{text}");
    }

    let replayed = session(NOWHERE, "AMPLIFIER_REPLAY", &tape).await;
    assert_eq!(replayed.execute("one").await.unwrap(), "first answer");
    assert_eq!(replayed.execute("two").await.unwrap(), "second answer");
    assert_eq!(replayed.recorder().count("provider:retry"), 1, "the failure is part of what is replayed");
    let usage = replayed.status();
    assert_eq!((usage.total_input_tokens, usage.total_output_tokens), (14, 6));
}

#[tokio::test]
async fn a_request_that_was_not_recorded_fails_with_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let server = FaultServer::start(vec![says("answer")]).await;
    let recording = session(&server.url(), "AMPLIFIER_RECORD", folder.path()).await;
    recording.execute("What is the capital of France?").await.unwrap();
    let replayed = session(NOWHERE, "AMPLIFIER_REPLAY", folder.path()).await;
    let error = replayed.execute("What is the capital of Spain?").await.unwrap_err();
    let ExecuteError::Turn(error) = error else { panic!("{error}") };
    let told = error.to_string();
    for line in [
        "--- 00001-chat-completions.json",
        "+++ this request",
        "-        \"content\": \"What is the capital of France?\"",
        "+        \"content\": \"What is the capital of Spain?\"",
    ] {
        assert!(told.contains(line), "{told}");
    }
    assert_eq!(replayed.recorder().count("provider:retry"), 0);
}

#[tokio::test]
async fn a_stream_that_broke_off_breaks_off_again() {
    let folder = tempfile::tempdir().unwrap();
    let cut = vec![opened(), delta(json!({"content": "half"})), Act::Send(b"40\r\ndata".to_vec())];
    let server = FaultServer::start(vec![cut]).await;
    let recorded = session(&server.url(), "AMPLIFIER_RECORD", folder.path()).await.execute("hi").await;
    let replayed = session(NOWHERE, "AMPLIFIER_REPLAY", folder.path()).await.execute("hi").await;
    let (recorded, replayed) = (recorded.unwrap_err().to_string(), replayed.unwrap_err().to_string());
    assert!(recorded.contains("broke off after 4 characters"), "{recorded}");
    assert!(replayed.contains("broke off after 4 characters"), "{replayed}");
}

/// What was written down of each call: what came, and why nothing more did.
fn takes(folder: &Path) -> Vec<(String, Option<String>)> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let take = |path: &std::path::PathBuf| {
        let take: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let text = |key: &str| take["response"][key].as_str().map(str::to_owned);
        (text("body").unwrap(), text("broke_off"))
    };
    paths.iter().map(take).collect()
}

#[tokio::test]
async fn calls_that_fail_in_the_middle_are_recorded_too() {
    let folder = tempfile::tempdir().unwrap();
    let busy = event(&json!({"error": {"code": 503, "message": "busy, sk-very-secret-key"}}));
    let server = FaultServer::start(vec![vec![opened(), busy, Act::Hang], says("better")]).await;
    let recording = session(&server.url(), "AMPLIFIER_RECORD", folder.path()).await;
    assert_eq!(recording.execute("hi").await.unwrap(), "better");
    let written = takes(folder.path());
    assert_eq!(written.len(), 2, "{written:?}");
    assert!(written[0].0.contains("busy") && written[0].1.as_ref().unwrap().contains("busy"), "{written:?}");
    assert!(!format!("{written:?}").contains("very-secret"));
    let replayed = session(NOWHERE, "AMPLIFIER_REPLAY", folder.path()).await;
    assert_eq!(replayed.execute("hi").await.unwrap(), "better");
    assert_eq!(replayed.recorder().count("provider:retry"), 1);
}

#[tokio::test]
async fn calls_that_are_given_up_are_recorded_as_far_as_they_came() {
    let folder = tempfile::tempdir().unwrap();
    let half = vec![opened(), delta(json!({"content": "half"})), Act::Hang];
    let server = FaultServer::start(vec![half]).await;
    let hub = TestCoordinator::new();
    hub.register_capability("environment.variable", variables("AMPLIFIER_RECORD", folder.path()));
    let config = json!({"base_url": server.url(), "max_retries": 0, "timeout": 0.3});
    hub.mount(&*built_in("provider-chat-completions").await, config).await.unwrap();
    let (late, pieces) = ask(&*hub.providers().remove(0).1, hi()).await;
    assert!(late.unwrap_err().message.contains("took longer than 0.3 s"));
    assert_eq!(pieces.len(), 2);

    let config = json!({"base_url": server.url(), "max_retries": 0});
    hub.mount(&*built_in("provider-chat-completions").await, config).await.unwrap();
    let (deltas, mut pieces) = DeltaSink::open();
    let cancel = CancelToken::new();
    let cx = ProviderCx { deltas, cancel: cancel.clone(), ..ProviderCx::default() };
    let provider = hub.providers().remove(0).1;
    let asking = tokio::spawn(async move { provider.complete(hi(), &cx).await });
    pieces.recv().await.unwrap();
    cancel.request_immediate();
    assert_eq!(asking.await.unwrap().unwrap_err().kind, LlmErrorKind::Abort);

    let written = takes(folder.path());
    let reasons: Vec<_> = written.iter().map(|(_, reason)| reason.as_deref().unwrap_or_default()).collect();
    assert_eq!(reasons, ["the answer took longer than 0.3 s", "cancelled; the connection is closed"]);
    assert!(written.iter().all(|(body, _)| body.contains("half")), "{written:?}");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_told_when_the_module_is_mounted() {
    let folder = tempfile::tempdir().unwrap();
    let hub = TestCoordinator::new();
    hub.register_capability(
        "environment.variable",
        variables("AMPLIFIER_REPLAY", &folder.path().join("none")),
    );
    let module = built_in("provider-chat-completions").await;
    let error = hub.mount(&*module, json!({"base_url": NOWHERE})).await.unwrap_err();
    assert!(error.to_string().contains("cannot be replayed"), "{error}");
    hub.register_capability("environment.variable", variables("AMPLIFIER_REPLAY", folder.path()));
    assert_eq!(hub.mount(&*module, json!({"base_url": NOWHERE})).await.unwrap().0, Mounted::Ready);
}
