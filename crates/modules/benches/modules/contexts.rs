//! Contexts with ten thousand messages: adding one, the request that shortens the view, and the requests after it.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{ContextManager, RequestBudget};
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::BuiltIns;
use amplifier_protocol::message::{Message, Messages, Role};
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::TestCoordinator;
use serde_json::{Value, json};

use super::{Outcome, Report, median, timed};

const MESSAGES: usize = 10_000;
const ADDS: u32 = 1_000;
const SYNCED_ADDS: u32 = 100;

pub(super) async fn measure(report: &mut Report) -> Outcome {
    let messages = conversation();
    let budget = RequestBudget { token_budget: Some(200_000), provider: None };
    let all: RequestBudget = RequestBudget { token_budget: Some(u64::MAX / 2), provider: None };

    let cold = median(9, async || {
        let (_hub, context) = mounted("context-simple", json!({})).await?;
        context.set_messages(messages.clone()).await?;
        let (view, took) = timed(context.messages_for_request(budget.clone())).await;
        assert!(view?.len() < MESSAGES, "nothing was shortened");
        Ok::<_, Box<dyn std::error::Error>>(took)
    });
    report.time("compaction_cold_10k", cold.await?)?;

    let (_hub, context) = mounted("context-simple", json!({})).await?;
    context.set_messages(messages.clone()).await?;
    let warm = |budget: RequestBudget| {
        let context = Arc::clone(&context);
        async move { timed(context.messages_for_request(budget)).await }
    };
    let whole = median(99, async || {
        let (view, took) = warm(all.clone()).await;
        view.map(|_| took)
    });
    report.time("request_whole_10k", whole.await?)?;
    context.messages_for_request(budget.clone()).await?;
    let shortened = median(99, async || {
        let (view, took) = warm(budget.clone()).await;
        view.map(|_| took)
    });
    report.time("compaction_warm_10k", shortened.await?)?;

    let (_hub, context) = mounted("context-simple", json!({})).await?;
    context.set_messages(messages.clone()).await?;
    report.time("add_after_10k", adding(&*context, ADDS).await? / ADDS)?;

    let folder = tempfile::tempdir()?;
    let path = folder.path().join("t.jsonl").display().to_string();
    let (_hub, context) = mounted("context-persistent", json!({"transcript_path": path})).await?;
    context.set_messages(messages).await?;
    report.time("persistent_add_after_10k", adding(&*context, SYNCED_ADDS).await? / SYNCED_ADDS)?;
    drop(context);
    drop(_hub);
    Ok(())
}

async fn adding(context: &dyn ContextManager, adds: u32) -> Result<Duration, Box<dyn std::error::Error>> {
    let message = Arc::new(Message::user("one more"));
    let (added, took) = timed(async {
        for _ in 0..adds {
            context.add_message(Arc::clone(&message)).await?;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })
    .await;
    added.map(|()| took)
}

type Mounted = (TestCoordinator, Arc<dyn ContextManager>);

async fn mounted(id: &str, config: Value) -> Result<Mounted, Box<dyn std::error::Error>> {
    let hub = TestCoordinator::new();
    let module = BuiltIns.find(&id.parse()?).await?.ok_or("no such module")?;
    hub.mount(&*module, config).await?;
    let context = hub.context().ok_or("nothing was mounted")?;
    Ok((hub, context))
}

/// Prompts, calls, results of 2,000 bytes and answers, about 1.4 million estimated tokens.
fn conversation() -> Messages {
    let round = |n: usize| {
        let call = ToolCall::new(format!("call-{n}"), "read_file", json!({"file_path": "src/lib.rs"}));
        let mut calling = Message::text(Role::Assistant, "let me look");
        calling.tool_calls.push(call.clone());
        [
            Message::user(format!("prompt {n}")),
            calling,
            Message::tool_result(&call, "a line of a file\n".repeat(125)),
            Message::text(Role::Assistant, "done"),
        ]
    };
    (0..MESSAGES / 4).flat_map(round).map(Arc::new).collect()
}
