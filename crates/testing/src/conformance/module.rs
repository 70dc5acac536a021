//! The clauses of the module contract.

use std::sync::Arc;

use amplifier_core::contracts::Module;
use amplifier_core::report::{LoadEntry, LoadOutcome};
use amplifier_core::session::OpenError;
use serde_json::{Map, Value, json};

use super::report::{Report, Seen, Suite, ensure};
use crate::{TestSession, TestSessionBuilder};

/// Runs a module through its contract with a config that suits it. It is really mounted, into sessions made of fakes.
pub async fn module(make: impl AsyncFn() -> Arc<dyn Module>, config: Map<String, Value>) -> Report {
    let mut suite = Suite::new("module");
    suite
        .clause("it says the same id and kind each time", async {
            let (one, other) = (make().await, make().await);
            let same = one.id() == other.id() && one.kind() == other.kind() && one.id() == one.id();
            ensure(same, || format!("`{}` and `{}`", one.id(), other.id()))
        })
        .await;
    suite
        .clause("it mounts what its kind promises, or declines with a reason", async {
            let session = opened(builder(make().await, config.clone())).await?;
            mounted_well(&session)
        })
        .await;
    suite
        .clause("it leaves without a failure", async {
            let session = opened(builder(make().await, config.clone())).await?;
            let report = session.cleanup().await;
            ensure(report.failed.is_empty(), || report.failed.join("; "))
        })
        .await;
    suite
        .clause("one module serves two sessions", async {
            let module = make().await;
            let one = opened(builder(Arc::clone(&module), config.clone())).await?;
            let other = opened(builder(module, config.clone())).await?;
            mounted_well(&one)?;
            one.cleanup().await;
            mounted_well(&other)
        })
        .await;
    suite
        .clause("an unknown config key is a warning or a refusal that names it", async {
            let mut odd = config.clone();
            odd.insert("no_such_key".to_owned(), json!({"a": 1}));
            told_of_the_key(builder(make().await, odd).open().await)
        })
        .await;
    suite
        .clause("a config of the wrong shape is answered or refused", async {
            let odd = config.keys().map(|key| (key.clone(), json!([{"wrong": true}]))).collect();
            // Whether it opens is the module's business; that it answers at all is the contract's.
            drop(builder(make().await, odd).open().await);
            Ok(())
        })
        .await;
    suite.finish()
}

/// A session with the module in its place and fakes in all others.
fn builder(module: Arc<dyn Module>, config: Map<String, Value>) -> TestSessionBuilder {
    TestSession::builder().module_with(module, config)
}

async fn opened(builder: TestSessionBuilder) -> Result<TestSession, String> {
    builder.open().await.map_err(|error| format!("{error}: {}", entries(&error)))
}

fn entries(error: &OpenError) -> String {
    error.report.modules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn mounted_well(session: &TestSession) -> Seen {
    let mut bad = session.report().modules.iter().filter(|entry| match &entry.outcome {
        LoadOutcome::Mounted { .. } => false,
        LoadOutcome::Skipped { reason } => reason.trim().is_empty(),
        LoadOutcome::Failed { .. } => true,
    });
    bad.next().map_or(Ok(()), |entry| Err(entry.to_string()))
}

fn told_of_the_key(opened: Result<TestSession, OpenError>) -> Seen {
    let report = match &opened {
        Ok(session) => session.report(),
        Err(error) => &error.report,
    };
    let declined = report.modules.iter().any(|entry| matches!(entry.outcome, LoadOutcome::Skipped { .. }));
    let told = |entry: &LoadEntry| entry.to_string().contains("no_such_key");
    ensure(declined || report.modules.iter().any(told), || {
        "`no_such_key` was taken without a word; read the config with `MountCx::read_config`".to_owned()
    })
}
