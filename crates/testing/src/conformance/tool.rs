//! The clauses of the tool contract.

use std::sync::Arc;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{Tool, ToolCx, ToolFailure};
use amplifier_protocol::tool::EffectClass;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::report::{Report, Seen, Suite, ensure, round_trip, soon};

/// Runs a tool through its contract. The tool is really called: with an empty input, with unknown keys, with no object.
pub async fn tool(make: impl AsyncFn() -> Arc<dyn Tool>) -> Report {
    let mut suite = Suite::new("tool");
    suite
        .clause("the spec has a name, a description and an object schema", async {
            described(&*make().await)
        })
        .await;
    suite
        .clause("the spec stays the same and survives the wire", async {
            let (one, other) = (make().await, make().await);
            let spec = one.spec();
            ensure(spec == one.spec() && spec == other.spec(), || "it changed".to_owned())?;
            round_trip(&spec)
        })
        .await;
    suite.clause("the declared effects fit together", async { effects_fit(&*make().await) }).await;
    suite
        .clause("an empty input is answered or refused", async {
            answered(&*make().await, json!({}), CancelToken::new()).await
        })
        .await;
    suite
        .clause("unknown keys are answered or refused", async {
            let input = json!({"_tool_call_id": "call-1", "no such key": {"deep": [1, null]}});
            answered(&*make().await, input, CancelToken::new()).await
        })
        .await;
    suite
        .clause("an input that is no object is answered or refused", async {
            let tool = make().await;
            for input in [Value::Null, json!("text"), json!([1, 2]), json!(7)] {
                answered(&*tool, input, CancelToken::new()).await?;
            }
            Ok(())
        })
        .await;
    suite
        .clause("a call that is cancelled before it starts ends soon", async {
            let cancel = CancelToken::new();
            cancel.request_immediate();
            soon("the call", answered(&*make().await, json!({}), cancel)).await?
        })
        .await;
    suite.clause("calls side by side are all answered", async { side_by_side(make().await).await }).await;
    suite.finish()
}

fn described(tool: &dyn Tool) -> Seen {
    let spec = tool.spec();
    let callable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    ensure(!spec.name.is_empty() && spec.name.len() <= 128 && spec.name.chars().all(callable), || {
        format!("the name is `{}`; models call names of letters, digits, `_`, `-` and `.`", spec.name)
    })?;
    let description = spec.description.as_deref().unwrap_or_default();
    ensure(!description.trim().is_empty(), || "there is no description for the model to read".to_owned())?;
    let kind = spec.parameters.get("type");
    ensure(kind == Some(&json!("object")), || format!("the schema is {}", spec.parameters))
}

fn effects_fit(tool: &dyn Tool) -> Seen {
    let effects = tool.effects();
    let touches = effects.reads || effects.writes || effects.executes || effects.network;
    match effects.class {
        EffectClass::Pure => ensure(!touches, || format!("pure, but {effects:?}")),
        EffectClass::Read => ensure(!effects.writes, || format!("reads only, but {effects:?}")),
        EffectClass::Idempotent | EffectClass::Write => Ok(()),
    }
}

async fn answered(tool: &dyn Tool, input: Value, cancel: CancelToken) -> Seen {
    let cx = ToolCx { call_id: "call-1".to_owned(), cancel, ..ToolCx::default() };
    told(tool.execute(input, &cx).await)
}

/// A failure is read by the model, so it must say something.
fn told(answer: Result<Value, ToolFailure>) -> Seen {
    match answer {
        Ok(_) => Ok(()),
        Err(failure) => {
            ensure(!failure.message.trim().is_empty() || failure.output.is_some(), || {
                "a failure without a message".to_owned()
            })?;
            round_trip(&failure)
        }
    }
}

async fn side_by_side(tool: Arc<dyn Tool>) -> Seen {
    let mut calls = JoinSet::new();
    for number in 0..8 {
        let tool = Arc::clone(&tool);
        calls.spawn(async move {
            let cx = ToolCx { call_id: format!("call-{number}"), ..ToolCx::default() };
            tool.execute(json!({}), &cx).await
        });
    }
    while let Some(answer) = calls.join_next().await {
        told(answer.map_err(|error| error.to_string())?)?;
    }
    Ok(())
}
