//! Checks of tool calls: every call is answered, whatever the tool or a hook does.

use std::sync::Arc;

use amplifier_core::contracts::{Orchestrator, Tool, ToolCx, ToolFailure};
use amplifier_protocol::event::TurnStatus;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::tool::{Effects, ToolSpec};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::stage::{Played, Stage, calls};
use crate::conformance::report::{Seen, ensure};
use crate::{FailTool, MockTool, Step};

type Made = Arc<dyn Orchestrator>;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// A turn in which the model calls tools once and then answers.
fn one_round(tools: &[&str]) -> Stage {
    Stage::new([calls(tools), Step::say("done")])
}

/// The turn went on after the tools and ended well, with every call answered.
fn went_on(played: &Played, call_ids: &[&str]) -> Seen {
    played.answered("done")?;
    played.asked_times(2)?;
    played.paired(call_ids)?;
    played.ended(&[TurnStatus::Success])
}

pub(super) async fn result(made: Made) -> Seen {
    let tool = Arc::new(MockTool::new("look").return_value("forty-two"));
    let played = one_round(&["look"]).tool(tool.clone()).play(made, "hi").await?;
    went_on(&played, &["c1"])?;
    let text = played.result_in_request(1, "c1")?;
    ensure(text == "forty-two", || format!("the model sees `{text}`"))?;
    ensure(tool.inputs() == [json!({"n": 1})], || format!("the tool got {:?}", tool.inputs()))
}

pub(super) async fn several(made: Made) -> Seen {
    let tool = Arc::new(MockTool::new("look"));
    let played = one_round(&["look", "look", "look"]).tool(tool.clone()).play(made, "hi").await?;
    went_on(&played, &["c1", "c2", "c3"])?;
    ensure(tool.call_count() == 3, || format!("the tool ran {} times", tool.call_count()))
}

pub(super) async fn failing(made: Made) -> Seen {
    let played = one_round(&["fail"]).tool(Arc::new(FailTool)).play(made, "hi").await?;
    went_on(&played, &["c1"])?;
    let text = played.result_in_request(1, "c1")?;
    ensure(text.contains("this tool always fails"), || format!("the model sees `{text}`"))
}

pub(super) async fn unknown(made: Made) -> Seen {
    let played = one_round(&["no_such_tool"]).play(made, "hi").await?;
    went_on(&played, &["c1"])?;
    let text = played.result_in_request(1, "c1")?;
    ensure(text.contains("no_such_tool"), || format!("the model sees `{text}`"))?;
    let errors = played.session.recorder().count("tool:error");
    ensure(errors == 1, || format!("{errors} tool:error"))
}

pub(super) async fn panicking(made: Made) -> Seen {
    let played = one_round(&["panic", "panic"]).tool(Arc::new(PanicTool)).play(made, "hi").await?;
    went_on(&played, &["c1", "c2"])?;
    let errors = played.session.recorder().count("tool:error");
    ensure(errors == 2, || format!("{errors} tool:error"))
}

pub(super) async fn denied(made: Made) -> Seen {
    let tool = Arc::new(MockTool::new("look"));
    let stage = one_round(&["look"]).tool(tool.clone()).hook("tool:pre", HookResult::deny("not today"));
    let played = stage.play(made, "hi").await?;
    went_on(&played, &["c1"])?;
    ensure(tool.call_count() == 0, || "the tool ran".to_owned())?;
    let text = played.result_in_request(1, "c1")?;
    ensure(text.contains("not today"), || format!("the model sees `{text}`"))
}

pub(super) async fn changed_input(made: Made) -> Seen {
    let tool = Arc::new(MockTool::new("look"));
    let data = object(json!({"tool_name": "look", "tool_input": {"n": "changed"}, "tool_call_id": "c1"}));
    let stage = one_round(&["look"]).tool(tool.clone()).hook("tool:pre", HookResult::modify(data));
    let played = stage.play(made, "hi").await?;
    went_on(&played, &["c1"])?;
    let got = tool.last_input();
    ensure(got == Some(json!({"n": "changed"})), || format!("the tool got {got:?}"))
}

pub(super) async fn changed_result(made: Made) -> Seen {
    let result = json!({"success": true, "output": "changed", "error": null});
    let data = object(json!({
        "tool_name": "look", "tool_input": {}, "tool_call_id": "c1", "result": result, "tool_result": result
    }));
    let stage = one_round(&["look"]).tool(Arc::new(MockTool::new("look")));
    let played = stage.hook("tool:post", HookResult::modify(data)).play(made, "hi").await?;
    went_on(&played, &["c1"])?;
    let text = played.result_in_request(1, "c1")?;
    ensure(text == "changed", || format!("the model sees `{text}`"))
}

pub(super) async fn nothing_between(made: Made) -> Seen {
    let stage = one_round(&["look", "look"]).tool(Arc::new(MockTool::new("look")));
    let stage = stage.hook("tool:pre", HookResult::inject("before"));
    let played = stage.hook("tool:post", HookResult::inject("after")).play(made, "hi").await?;
    went_on(&played, &["c1", "c2"])?;
    let messages = played.messages();
    let told = |text: &str| messages.iter().filter(|m| m.content.visible_text() == text).count();
    ensure(told("before") == 2 && told("after") == 2, || format!("the context holds {}", json!(messages)))
}

/// `panic`: breaks, whatever it is asked.
struct PanicTool;

#[async_trait]
impl Tool for PanicTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "panic".to_owned(),
            description: Some("Breaks".to_owned()),
            parameters: json!({"type": "object"}),
            extra: Map::new(),
        }
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    #[expect(clippy::panic, reason = "breaking is what it is for")]
    async fn execute(&self, _input: Value, _cx: &ToolCx) -> Result<Value, ToolFailure> {
        panic!("this tool always panics")
    }
}
