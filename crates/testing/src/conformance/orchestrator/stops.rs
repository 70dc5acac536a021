//! Checks of turns that end before the model is done: cancels and limits.

use std::sync::Arc;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Orchestrator, Tool, ToolCx, ToolFailure, TurnError};
use amplifier_protocol::event::TurnStatus;
use amplifier_protocol::spend::Unit;
use amplifier_protocol::tool::{Effects, ToolSpec};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::stage::{Played, Stage, calls};
use crate::conformance::report::{Seen, ensure, soon};
use crate::{MockTool, Step};

type Made = Arc<dyn Orchestrator>;

pub(super) async fn graceful(made: Made) -> Seen {
    let stage =
        Stage::new([calls(&["stop"]), Step::say("done")]).tool(Arc::new(StopTool(CancelLevel::Graceful)));
    let played = soon("the turn", stage.play(made, "hi")).await??;
    played.asked_times(1)?;
    played.paired(&["c1"])?;
    let messages = played.messages();
    let finished = messages.iter().any(|message| message.content.visible_text() == "finished");
    ensure(finished, || "the result of the running tool was thrown away".to_owned())?;
    cancelled(&played)
}

pub(super) async fn immediate(made: Made) -> Seen {
    let stage = Stage::new([calls(&["stop", "stop"]), Step::say("done")]);
    let stage = stage.tool(Arc::new(StopTool(CancelLevel::Immediate)));
    let played = soon("the turn", stage.play(made, "hi")).await??;
    played.asked_times(1)?;
    played.paired(&["c1", "c2"])?;
    cancelled(&played)
}

fn cancelled(played: &Played) -> Seen {
    played.ended(&[TurnStatus::Cancelled])?;
    let told = matches!(&played.answer, Ok(_) | Err(TurnError::Cancelled));
    ensure(told, || format!("the turn ended with {:?}", played.answer))
}

pub(super) async fn step_limit(made: Made) -> Seen {
    let stage = Stage::new([calls(&["look"])]).endless().tool(Arc::new(MockTool::new("look")));
    let played = stage.limits(json!({"steps": 2})).play(made, "hi").await?;
    played.asked_times(2)?;
    played.paired(&["c1"])?;
    limited(&played, Unit::Steps)
}

pub(super) async fn tool_limit(made: Made) -> Seen {
    let tool = Arc::new(MockTool::new("look"));
    let stage = Stage::new([calls(&["look", "look", "look"])]).endless().tool(tool.clone());
    let played = stage.limits(json!({"tool_calls": 1})).play(made, "hi").await?;
    ensure(tool.call_count() == 1, || format!("the tool ran {} times", tool.call_count()))?;
    played.paired(&["c1", "c2", "c3"])?;
    limited(&played, Unit::ToolCalls)
}

fn limited(played: &Played, unit: Unit) -> Seen {
    played.ended(&[TurnStatus::LimitReached])?;
    match &played.answer {
        Err(TurnError::Limit(limit)) => ensure(limit.unit == unit, || format!("the limit of {}", limit.unit)),
        Err(other) => Err(format!("the turn ended with {other:?}")),
        Ok(text) => {
            ensure(text.contains(&unit.to_string()), || format!("the answer `{text}` names no limit"))
        }
    }
}

/// `stop`: asks for the turn to be cancelled while it runs; answers after a graceful wish, hangs after an immediate one.
struct StopTool(CancelLevel);

#[async_trait]
impl Tool for StopTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "stop".to_owned(),
            description: Some("Cancels the turn".to_owned()),
            parameters: json!({"type": "object"}),
            extra: Map::new(),
        }
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, _input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        cx.cancel.request(self.0);
        match self.0 {
            CancelLevel::Immediate => std::future::pending().await,
            _ => Ok(json!("finished")),
        }
    }
}
