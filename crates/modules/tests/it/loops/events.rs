//! `loop-events`: hooks propose another tool, or none.

use std::sync::Arc;

use amplifier_protocol::event::{ToolPre, ToolSelected, ToolSelecting};
use amplifier_protocol::hook::HookResult;
use amplifier_testing::{MockTool, Step};
use serde_json::{Value, json};

use super::stage::{Open, Stage, calls, object};

struct Tools {
    t: Arc<MockTool>,
    other: Arc<MockTool>,
}

async fn play(event: &str, result: HookResult) -> (Open, Tools) {
    let (t, other) =
        (Arc::new(MockTool::new("t")), Arc::new(MockTool::new("other").return_value("from other")));
    let stage = Stage::new("loop-events", [calls(1), Step::say("done")]);
    let stage = stage.tool(t.clone()).tool(other.clone()).hook(event, result);
    let (open, answer) = stage.play().await;
    assert_eq!(answer, "done");
    (open, Tools { t, other })
}

fn proposal(data: Value) -> HookResult {
    HookResult::modify(object(data))
}

#[tokio::test]
async fn without_a_proposal_the_models_choice_stands_and_is_told() {
    let (open, tools) = play("tool:selecting", HookResult::proceed()).await;
    assert_eq!((tools.t.call_count(), tools.other.call_count()), (1, 0));
    let selecting = ToolSelecting {
        tool_name: "t".to_owned(),
        tool_input: json!({"n": 1}),
        available_tools: vec!["t".to_owned(), "other".to_owned()],
        tool_call_id: Some("c1".to_owned()),
    };
    assert_eq!(open.recorder().of::<ToolSelecting>(), [selecting]);
    let selected = ToolSelected {
        tool_name: "t".to_owned(),
        tool_input: json!({"n": 1}),
        source: "llm".to_owned(),
        original_tool: "t".to_owned(),
        tool_call_id: Some("c1".to_owned()),
    };
    assert_eq!(open.recorder().of::<ToolSelected>(), [selected]);
}

#[tokio::test]
async fn a_proposed_tool_runs_instead_with_canonical_keys_and_the_call_is_answered() {
    let (open, tools) = play("tool:selecting", proposal(json!({"tool_name": "other"}))).await;
    assert_eq!((tools.t.call_count(), tools.other.inputs()), (0, vec![json!({"n": 1})]));
    let selected = open.recorder().of::<ToolSelected>().remove(0);
    assert_eq!(
        (selected.tool_name, selected.source, selected.original_tool),
        ("other".into(), "scheduler".into(), "t".into())
    );
    assert_eq!(open.recorder().of::<ToolPre>()[0].tool_name, "other");
    let messages = open.context.messages();
    assert_eq!(messages[2].content.visible_text(), "from other");
    assert_eq!(messages[2].tool_call_id.as_deref(), Some("c1"));
}

#[tokio::test]
async fn a_tool_can_be_refused_by_a_proposal_or_when_it_is_told() {
    let by_proposal = ("tool:selecting", proposal(json!({"decision": "deny", "reason": "too dear"})));
    for (event, result) in [by_proposal, ("tool:selected", HookResult::deny("too dear"))] {
        let (open, tools) = play(event, result).await;
        assert_eq!((tools.t.call_count(), tools.other.call_count()), (0, 0), "{event}");
        assert_eq!(open.asked(1).pop().unwrap().1, "Denied by hook: too dear");
        assert_eq!(open.recorder().count("tool:pre"), 0);
    }
}

#[tokio::test]
async fn the_other_loops_do_not_ask_schedulers() {
    for id in ["loop-basic", "loop-streaming"] {
        let tool = Arc::new(MockTool::new("t"));
        let stage = Stage::new(id, [calls(1), Step::say("done")]).tool(tool.clone());
        let (open, _) = stage.hook("tool:selecting", proposal(json!({"decision": "deny"}))).play().await;
        assert_eq!((tool.call_count(), open.recorder().count("tool:selecting")), (1, 0), "{id}");
    }
}
