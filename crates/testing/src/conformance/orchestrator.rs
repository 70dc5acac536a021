//! The clauses of the orchestrator contract, checked through the front door of a real session.
//!
//! `stage` sets a turn up and looks at what came of it; `turn`, `tools` and `stops` hold the checks by topic.

use std::sync::Arc;

use amplifier_core::contracts::Orchestrator;

use super::report::{Report, Suite};

mod stage;
mod stops;
mod tools;
mod turn;

/// Runs a loop through its contract, with a scripted model, tools that answer, fail, break and hang, hooks that deny and
/// change, limits and cancels.
pub async fn orchestrator(make: impl AsyncFn() -> Arc<dyn Orchestrator>) -> Report {
    let mut suite = Suite::new("orchestrator");
    about_turns(&mut suite, &make).await;
    about_hooks(&mut suite, &make).await;
    about_tools(&mut suite, &make).await;
    about_stops(&mut suite, &make).await;
    suite.finish()
}

type Made = Arc<dyn Orchestrator>;

async fn about_turns(suite: &mut Suite, make: &impl AsyncFn() -> Made) {
    suite.clause("the model's text is the answer", async { turn::answers(make().await).await }).await;
    suite
        .clause("the model is asked what was asked, with the tools on offer", async {
            turn::asks(make().await).await
        })
        .await;
    suite.clause("question and answer are kept", async { turn::keeps(make().await).await }).await;
    suite
        .clause("blocks of the answer are kept as they came", async {
            turn::keeps_blocks(make().await).await
        })
        .await;
    suite.clause("a second turn goes on from the first", async { turn::goes_on(make().await).await }).await;
    suite
        .clause("every turn ends with one prompt:complete and one orchestrator:complete", async {
            turn::ends_once(make().await).await
        })
        .await;
    suite
        .clause("a failed model call ends the turn with the truth", async { turn::fails(make().await).await })
        .await;
    suite.clause("an empty prompt does not break it", async { turn::empty(make().await).await }).await;
}

async fn about_hooks(suite: &mut Suite, make: &impl AsyncFn() -> Made) {
    suite.clause("a denied prompt reaches no model", async { turn::denied_prompt(make().await).await }).await;
    suite.clause("a denied model call is not made", async { turn::denied_request(make().await).await }).await;
    suite
        .clause("a hook's lasting words are kept and reach the model", async {
            turn::lasting_words(make().await).await
        })
        .await;
    suite
        .clause("a hook's passing words reach the model and are not kept", async {
            turn::passing_words(make().await).await
        })
        .await;
    suite
        .clause("a denied tool is not run and its call is answered with the reason", async {
            tools::denied(make().await).await
        })
        .await;
    suite
        .clause("a tool gets the input that hooks made of it", async {
            tools::changed_input(make().await).await
        })
        .await;
    suite
        .clause("the model sees the result that hooks made of it", async {
            tools::changed_result(make().await).await
        })
        .await;
    suite
        .clause("nothing stands between calls and their results", async {
            tools::nothing_between(make().await).await
        })
        .await;
}

async fn about_tools(suite: &mut Suite, make: &impl AsyncFn() -> Made) {
    suite.clause("a tool's result reaches the model", async { tools::result(make().await).await }).await;
    suite
        .clause("several calls of one answer are all answered", async { tools::several(make().await).await })
        .await;
    suite
        .clause("a failing tool's call is answered and the turn goes on", async {
            tools::failing(make().await).await
        })
        .await;
    suite
        .clause("an unknown tool's call is answered and the turn goes on", async {
            tools::unknown(make().await).await
        })
        .await;
    suite
        .clause("a tool that panics is answered and the turn goes on", async {
            tools::panicking(make().await).await
        })
        .await;
}

async fn about_stops(suite: &mut Suite, make: &impl AsyncFn() -> Made) {
    suite
        .clause("a graceful cancel lets the running tool finish and starts nothing new", async {
            stops::graceful(make().await).await
        })
        .await;
    suite
        .clause("an immediate cancel ends the turn soon and answers every call", async {
            stops::immediate(make().await).await
        })
        .await;
    suite
        .clause("a limit of model calls ends the turn cleanly", async {
            stops::step_limit(make().await).await
        })
        .await;
    suite
        .clause("a limit of tool calls ends the turn cleanly and answers every call", async {
            stops::tool_limit(make().await).await
        })
        .await;
}
