//! One provider in a hub of its own, asked as a loop would ask it: what the tests of all providers share.

use std::sync::Arc;

use amplifier_core::contracts::{DeltaSink, Mounted, Provider, ProviderCx};
use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::stream::StreamEvent;
use amplifier_testing::TestCoordinator;
use serde_json::{Value, json};

use crate::fault::{Act, FaultServer, event, opened};
use crate::kit::{built_in, object};

/// The provider, mounted in a hub of its own, and what it warned of. Its waits are too short to notice.
pub(crate) async fn provider(
    id: &str,
    server: &FaultServer,
    more: Value,
) -> (Arc<dyn Provider>, TestCoordinator, Vec<String>) {
    let mut config = json!({"base_url": server.url(), "api_key": "k-very-secret", "min_retry_delay": 0.001,
        "max_retry_delay": 0.001, "max_retries": 1});
    config.as_object_mut().unwrap().extend(object(more));
    let hub = TestCoordinator::new();
    let (mounted, warnings) = hub.mount(&*built_in(id).await, config).await.unwrap();
    assert_eq!(mounted, Mounted::Ready);
    (hub.providers().remove(0).1, hub, warnings)
}

pub(crate) fn request(value: Value) -> ChatRequest {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn hi() -> ChatRequest {
    request(json!({"messages": [{"role": "user", "content": "hi"}]}))
}

/// Asks, and gives what came of it as JSON beside what came piece by piece.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: ChatRequest,
) -> (Result<Value, LlmError>, Vec<StreamEvent>) {
    let (deltas, mut pieces) = DeltaSink::open();
    let cx = ProviderCx { deltas, request_id: "r1".to_owned(), ..ProviderCx::default() };
    let mut heard = Vec::new();
    let mut call = std::pin::pin!(provider.complete(request, &cx));
    let answer = loop {
        tokio::select! {
            biased;
            Some(piece) = pieces.recv() => heard.push(piece),
            answer = &mut call => break answer,
        }
    };
    while let Ok(piece) = pieces.try_recv() {
        heard.push(piece);
    }
    (answer.map(|answer| serde_json::to_value(answer).unwrap()), heard)
}

/// Asks and is answered.
pub(crate) async fn answered(provider: &dyn Provider, request: ChatRequest) -> (Value, Vec<StreamEvent>) {
    let (answer, heard) = ask(provider, request).await;
    (answer.unwrap(), heard)
}

/// A whole stream of these events.
pub(crate) fn stream(events: &[Value]) -> Vec<Act> {
    let mut acts = vec![opened()];
    acts.extend(events.iter().map(event));
    acts.push(Act::Last);
    acts
}
