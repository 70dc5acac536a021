//! The clauses of the provider contract.

use std::sync::Arc;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{DeltaSink, Provider, ProviderCx};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::content::{ContentBlock, ToolCallBlock};
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::stream::StreamEvent;
use serde_json::json;
use tokio::task::JoinSet;

use super::report::{Report, Seen, Suite, ensure, round_trip, soon};

/// Runs a provider through its contract. The provider is really asked; without its service it may answer with errors.
pub async fn provider(make: impl AsyncFn() -> Arc<dyn Provider>) -> Report {
    let mut suite = Suite::new("provider");
    suite.clause("it says its name and who it is", async { introduces_itself(&*make().await) }).await;
    suite
        .clause("its models are listed or the error says why not", async { models(&*make().await).await })
        .await;
    suite
        .clause("a text without calls has no calls", async {
            let calls = make().await.parse_tool_calls(&ChatResponse::text("hello"));
            ensure(calls.is_empty(), || format!("found {calls:?}"))
        })
        .await;
    suite.clause("the calls of an answer are found in order", async { calls_in_order(&*make().await) }).await;
    suite
        .clause("a request is answered with content and usage, or the error is of the taxonomy", async {
            judged(make().await.complete(simple(), &ProviderCx::default()).await)
        })
        .await;
    suite
        .clause("a history with every kind of block is answered or refused", async {
            let request = ChatRequest::new(odd_history()?);
            judged(make().await.complete(request, &ProviderCx::default()).await)
        })
        .await;
    suite.clause("the pieces add up to the answer", async { pieces_add_up(&*make().await).await }).await;
    suite
        .clause("a listener that goes away does not break the answer", async {
            let (deltas, listener) = DeltaSink::open();
            drop(listener);
            judged(make().await.complete(simple(), &ProviderCx { deltas, ..ProviderCx::default() }).await)
        })
        .await;
    suite
        .clause("a cancelled call ends soon", async {
            let cancel = CancelToken::new();
            cancel.request_immediate();
            let (provider, cx) = (make().await, ProviderCx { cancel, ..ProviderCx::default() });
            soon("the call", provider.complete(simple(), &cx)).await.map(drop)
        })
        .await;
    suite.clause("requests side by side are all answered", async { side_by_side(make().await).await }).await;
    suite.finish()
}

fn simple() -> ChatRequest {
    ChatRequest::new(vec![Arc::new(Message::user("Say hello."))])
}

fn introduces_itself(provider: &dyn Provider) -> Seen {
    ensure(!provider.name().is_empty(), || "the name is empty".to_owned())?;
    let info = provider.info();
    ensure(!info.id.is_empty() && !info.display_name.is_empty(), || format!("{info:?}"))?;
    ensure(info == provider.info(), || "it says something else each time".to_owned())?;
    round_trip(&info)
}

async fn models(provider: &dyn Provider) -> Seen {
    match provider.list_models().await {
        Ok(models) => {
            let nameless = models.iter().find(|model| model.id.is_empty());
            ensure(nameless.is_none(), || format!("a model without an id: {nameless:?}"))
        }
        Err(error) => told(&error),
    }
}

fn calls_in_order(provider: &dyn Provider) -> Seen {
    let block = |id: &str| {
        let (id, name, input) = (id.to_owned(), "echo".to_owned(), json!({"n": id}));
        ContentBlock::ToolCall(ToolCallBlock { id, name, input, ..ToolCallBlock::default() })
    };
    let content = vec![block("a"), ContentBlock::text("and"), block("b")];
    let calls = provider.parse_tool_calls(&ChatResponse { content, ..ChatResponse::default() });
    let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
    ensure(ids == ["a", "b"], || format!("found {ids:?}"))
}

fn judged(answer: Result<ChatResponse, LlmError>) -> Seen {
    match answer {
        Ok(response) => {
            ensure(!response.content.is_empty(), || "the answer has no content".to_owned())?;
            ensure(response.usage.is_some(), || "the answer tells no usage".to_owned())?;
            round_trip(&response)
        }
        Err(error) => told(&error),
    }
}

fn told(error: &LlmError) -> Seen {
    ensure(!error.message.is_empty(), || format!("an error without a message: {error:?}"))?;
    round_trip(error)
}

fn odd_history() -> Result<Messages, String> {
    let history = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "from_the_future", "x": 1}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "abc"},
            {"type": "tool_call", "id": "c1", "name": "echo", "input": {}}
        ]},
        {"role": "tool", "tool_call_id": "c1", "name": "echo", "content": "ok"},
        {"role": "user", "content": "go on"}
    ]);
    serde_json::from_value(history).map_err(|error| error.to_string())
}

/// Whatever text was streamed is the text of the answer, and nothing comes after the answer.
async fn pieces_add_up(provider: &dyn Provider) -> Seen {
    let (deltas, mut listener) = DeltaSink::open();
    let cx = ProviderCx { deltas, ..ProviderCx::default() };
    let mut streamed = String::new();
    let mut take = |event: StreamEvent| {
        if let StreamEvent::TextDelta { text, .. } = event {
            streamed.push_str(&text);
        }
    };
    let mut call = std::pin::pin!(provider.complete(simple(), &cx));
    let answer = loop {
        tokio::select! {
            biased;
            Some(event) = listener.recv() => take(event),
            answer = &mut call => break answer,
        }
    };
    while let Ok(event) = listener.try_recv() {
        take(event);
    }
    let Ok(response) = answer else { return judged(answer) };
    let texts = response.content.iter().filter_map(|block| match block {
        ContentBlock::Text(block) => Some(block.text.as_str()),
        _ => None,
    });
    let whole: String = texts.collect();
    ensure(streamed.is_empty() || streamed == whole, || format!("streamed `{streamed}`, answered `{whole}`"))
}

async fn side_by_side(provider: Arc<dyn Provider>) -> Seen {
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        let provider = Arc::clone(&provider);
        calls.spawn(async move { provider.complete(simple(), &ProviderCx::default()).await });
    }
    while let Some(answer) = calls.join_next().await {
        judged(answer.map_err(|error| error.to_string())?)?;
    }
    Ok(())
}
