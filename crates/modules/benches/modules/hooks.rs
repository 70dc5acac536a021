//! A turn with every standard hook on, beside the same turn without them: what a person pays for the hooks.
//!
//! The model and the tool answer at once, and nothing but the hooks touches a disk. The working folder is no git
//! repository: what git takes is git's, and a request waits for it at most once a turn.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{Capability, Prompt};
use amplifier_core::loader::Loader;
use amplifier_core::session::{Session, SessionBuilder};
use amplifier_modules::{BuiltIns, MODULES};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::MountPlan;
use serde_json::{Value, json};

use super::{Report, WallClock, median, timed};

/// How many turns are timed, each in a session of its own, so that all see a conversation of the same length.
const TURNS: usize = 51;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

pub(super) async fn measure(report: &mut Report) -> Outcome {
    for rounds in [0, 10] {
        let plain = turns(rounds, &[]).await?;
        let hooks: Vec<_> = MODULES.iter().filter(|module| module.kind() == ModuleKind::Hook).collect();
        let hooks: Vec<_> = hooks
            .iter()
            .map(|module| json!({"module": module.id(), "config": config(module.id().as_str())}))
            .collect();
        let hooked = turns(rounds, &hooks).await?;
        report.time(&format!("turn_{rounds}_no_hooks"), plain)?;
        report.time(&format!("turn_{rounds}_all_hooks"), hooked)?;
        report.time(&format!("hooks_cost_turn_{rounds}"), hooked.saturating_sub(plain))?;
    }
    Ok(())
}

/// What a hook needs to do its work here.
fn config(id: &str) -> Value {
    match id {
        "hooks-scheduler-cost-aware" => json!({"budget_limit": 1_000.0}),
        "hooks-scheduler-heuristic" => json!({"models": {"simple": {"model": "mock"}}}),
        _ => json!({}),
    }
}

async fn turns(rounds: usize, hooks: &[Value]) -> Outcome<Duration> {
    let folder = tempfile::tempdir()?;
    let call = json!({"tool_calls": [{"name": "echo", "arguments": {"text": "a line of text"}}]});
    let mut responses = vec![call; rounds];
    responses.push(json!("done"));
    let plan = MountPlan::read(&json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": responses}}],
        "tools": [{"module": "tool-echo"}, {"module": "tool-todo"}],
        "hooks": hooks,
    }))?;
    let plan = Arc::new(plan);
    median(TURNS, async || {
        let session = open(Arc::clone(&plan), folder.path()).await?;
        let (answer, took) = timed(session.execute(Prompt::Text("what is this project?".to_owned()))).await;
        assert_eq!(answer?, "done");
        let failed = session.cleanup().await;
        assert!(failed.failed.is_empty(), "{:?}", failed.failed);
        Ok(took)
    })
    .await
}

async fn open(plan: Arc<MountPlan>, folder: &Path) -> Outcome<Session> {
    let loader = Arc::new(Loader::new().finder(Arc::new(BuiltIns)));
    let text = |text: &Path| Capability::Value(json!(text));
    let session = SessionBuilder::new(plan, loader, Arc::new(WallClock))
        .capability("session.working_dir", text(folder))
        .capability("user.home_dir", text(folder))
        .open()
        .await?;
    // A session without its hooks would be fast for the wrong reason.
    if !session.report().is_clean() {
        return Err(format!("the plan did not come up: {:?}", session.report()).into());
    }
    Ok(session)
}
