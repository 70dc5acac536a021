//! The clauses of the context contract.

use std::collections::HashSet;
use std::sync::Arc;

use amplifier_core::contracts::{ContextManager, RequestBudget};
use amplifier_core::estimate::estimate_tokens;
use amplifier_protocol::message::{Message, Messages, Role};
use serde_json::json;
use tokio::task::JoinSet;

use super::report::{Report, Seen, Suite, ensure};

/// Runs a context through its contract.
pub async fn context(make: impl AsyncFn() -> Arc<dyn ContextManager>) -> Report {
    let mut suite = Suite::new("context");
    suite
        .clause("a new conversation is empty and can be asked for", async { empty(&*make().await).await })
        .await;
    suite
        .clause("what is added comes back in order, byte for byte", async {
            round_trip(&*make().await).await
        })
        .await;
    suite.clause("clearing forgets everything", async { clear(&*make().await).await }).await;
    suite.clause("setting replaces everything", async { replace(&*make().await).await }).await;
    suite
        .clause("a view holds what was said and does not change it", async { view(&*make().await).await })
        .await;
    suite
        .clause(
            "a view within a budget parts no call from its result, keeps order and system messages",
            async { tight_view(&*make().await).await },
        )
        .await;
    suite.clause("a thousand messages are kept", async { thousand(&*make().await).await }).await;
    suite
        .clause("messages added side by side are all kept", async { side_by_side(make().await).await })
        .await;
    suite.clause("two conversations are apart", async { apart(&*make().await, &*make().await).await }).await;
    suite.finish()
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("failed: {error}")
}

async fn add_all(context: &dyn ContextManager, messages: &Messages) -> Seen {
    for message in messages {
        context.add_message(Arc::clone(message)).await.map_err(failed)?;
    }
    Ok(())
}

async fn holds(context: &dyn ContextManager, expected: &Messages) -> Seen {
    let found = context.messages().await.map_err(failed)?;
    let text = |messages: &Messages| serde_json::to_string(messages).map_err(|error| error.to_string());
    let (found, expected) = (text(&found)?, text(expected)?);
    ensure(found == expected, || format!("expected {expected}, found {found}"))
}

/// Messages with everything that a careless store loses: unknown blocks and keys, notes, signatures, calls.
fn odd_messages() -> Result<Messages, String> {
    let lines = [
        r#"{"role":"system","content":"Be brief."}"#,
        r#"{"role":"user","content":"read a","metadata":{"n":1}}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln+/="},{"type":"x_new", "n": 1.50, "big": 12345678901234567890123}],"tool_calls":[{"id":"c1","name":"read","arguments":{"path":"a"}}],"x_key":{"a":[1]}}"#,
        r#"{"role":"tool","content":"A","name":"read","tool_call_id":"c1"}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"done \u00e9\n"}]}"#,
    ];
    lines
        .iter()
        .map(|line| serde_json::from_str(line).map(Arc::new))
        .collect::<Result<_, _>>()
        .map_err(failed)
}

async fn empty(context: &dyn ContextManager) -> Seen {
    holds(context, &Vec::new()).await?;
    let view = context.messages_for_request(RequestBudget::default()).await.map_err(failed)?;
    let said = view.iter().find(|message| message.role != Role::System);
    ensure(said.is_none(), || format!("the view of nothing holds {said:?}"))
}

async fn round_trip(context: &dyn ContextManager) -> Seen {
    let messages = odd_messages()?;
    add_all(context, &messages).await?;
    holds(context, &messages).await
}

async fn clear(context: &dyn ContextManager) -> Seen {
    add_all(context, &odd_messages()?).await?;
    context.clear().await.map_err(failed)?;
    holds(context, &Vec::new()).await?;
    let after = vec![Arc::new(Message::user("again"))];
    add_all(context, &after).await?;
    holds(context, &after).await
}

async fn replace(context: &dyn ContextManager) -> Seen {
    add_all(context, &vec![Arc::new(Message::user("old"))]).await?;
    let messages = odd_messages()?;
    context.set_messages(messages.clone()).await.map_err(failed)?;
    holds(context, &messages).await
}

async fn view(context: &dyn ContextManager) -> Seen {
    let messages = odd_messages()?;
    add_all(context, &messages).await?;
    let view = context.messages_for_request(RequestBudget::default()).await.map_err(failed)?;
    for message in &messages {
        ensure(view.contains(message), || format!("the view lacks {message:?}"))?;
    }
    holds(context, &messages).await
}

async fn tight_view(context: &dyn ContextManager) -> Seen {
    let messages = long_conversation()?;
    add_all(context, &messages).await?;
    for budget in [50, 500, 2_000, 5_000] {
        let asked = RequestBudget { token_budget: Some(budget), provider: None };
        // A budget that cannot be kept may be refused.
        let Ok(view) = context.messages_for_request(asked).await else { continue };
        let tokens: u64 = view.iter().map(|message| estimate_tokens(&message.content.visible_text())).sum();
        // Estimates differ; a view that is far over its budget ignored it.
        ensure(tokens <= budget * 3 / 2 + 200, || format!("{tokens} tokens in a budget of {budget}"))?;
        ensure(view.iter().any(|message| message.role == Role::System), || {
            format!("no system message in a budget of {budget}")
        })?;
        paired(&view).map_err(|seen| format!("in a budget of {budget}, {seen}"))?;
    }
    holds(context, &messages).await
}

fn long_conversation() -> Result<Messages, String> {
    let mut messages = vec![Arc::new(Message::text(Role::System, "Be brief."))];
    for n in 0..50 {
        let filler = format!("{n} ").repeat(100);
        messages.push(Arc::new(Message::user(filler.clone())));
        let calls = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": format!("a{n}"), "name": "read", "arguments": {"n": n}},
            {"id": format!("b{n}"), "name": "read", "arguments": {"n": n}}
        ]});
        messages.push(Arc::new(serde_json::from_value(calls).map_err(failed)?));
        for side in ["a", "b"] {
            let result = json!({"role": "tool", "tool_call_id": format!("{side}{n}"), "content": filler});
            messages.push(Arc::new(serde_json::from_value(result).map_err(failed)?));
        }
        messages.push(Arc::new(Message::text(Role::Assistant, format!("answer {n}"))));
    }
    Ok(messages)
}

/// Every call is followed by its result and no result stands without its call.
pub(super) fn paired(messages: &[Arc<Message>]) -> Seen {
    let mut open = HashSet::new();
    for message in messages {
        match &message.tool_call_id {
            Some(id) if message.role == Role::Tool => {
                ensure(open.remove(id), || format!("result `{id}` stands without its call"))?;
            }
            _ => {
                ensure(open.is_empty(), || format!("calls {open:?} have no result before {message:?}"))?;
                open.extend(message.calls().into_iter().map(|call| call.id));
            }
        }
    }
    ensure(open.is_empty(), || format!("calls {open:?} have no result"))
}

async fn thousand(context: &dyn ContextManager) -> Seen {
    let messages: Messages = (0..1_000).map(|n| Arc::new(Message::user(format!("message {n}")))).collect();
    add_all(context, &messages).await?;
    holds(context, &messages).await?;
    context.messages_for_request(RequestBudget::default()).await.map(drop).map_err(failed)
}

async fn side_by_side(context: Arc<dyn ContextManager>) -> Seen {
    let mut adds = JoinSet::new();
    for n in 0..100 {
        let context = Arc::clone(&context);
        adds.spawn(async move { context.add_message(Arc::new(Message::user(n.to_string()))).await });
    }
    while let Some(added) = adds.join_next().await {
        added.map_err(failed)?.map_err(failed)?;
    }
    let found = context.messages().await.map_err(failed)?;
    let texts: HashSet<_> = found.iter().map(|message| message.content.visible_text().into_owned()).collect();
    ensure(found.len() == 100 && texts.len() == 100, || format!("{} of 100 are there", texts.len()))
}

async fn apart(one: &dyn ContextManager, other: &dyn ContextManager) -> Seen {
    add_all(one, &odd_messages()?).await?;
    holds(other, &Vec::new()).await
}
