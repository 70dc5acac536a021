//! Which tool a call becomes, where hooks have a say. The decision is pure; around it stand the two events.

use std::time::Duration;

use amplifier_core::coordinator::Coordinator;
use amplifier_protocol::event::{Event, HookDenied, ToolSelected, ToolSelecting};
use amplifier_protocol::ids::EventName;
use amplifier_protocol::tool::ToolCall;
use serde_json::{Map, Value, json};

use super::tools::Ran;

/// How long one scheduler may think about one call.
const PATIENCE: Duration = Duration::from_secs(1);

/// What schedulers made of a call.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// Nobody wants anything else.
    AsCalled,
    /// Another tool.
    Instead { tool_name: String, tool_input: Option<Value> },
    /// None.
    Refused { reason: String },
}

/// Gathers what hooks propose for a call and tells what was chosen; `None` when it must not run, and `ran` says why.
pub(super) async fn select(coordinator: &Coordinator, call: &ToolCall, ran: &mut Ran) -> Option<ToolCall> {
    let verdict = match coordinator.listens(ToolSelecting::NAME) {
        true => gather(coordinator, call).await,
        false => Verdict::AsCalled,
    };
    let mut chosen = call.clone();
    let mut source = "llm";
    match verdict {
        Verdict::AsCalled => {}
        Verdict::Instead { tool_name, tool_input } => {
            source = "scheduler";
            chosen.name = tool_name;
            chosen.arguments = tool_input.unwrap_or(chosen.arguments);
        }
        Verdict::Refused { reason } => {
            // What is gathered is not a denial for the kernel, so it is told here.
            let denied = HookDenied {
                hook: "scheduler".to_owned(),
                event: ToolSelecting::NAME.to_owned(),
                reason: reason.clone(),
                asked: false,
                tool_name: Some(call.name.clone()),
                tool_input: Some(call.arguments.clone()),
                tool_call_id: Some(call.id.clone()),
            };
            drop(coordinator.emit(denied).await);
            ran.content = format!("Denied by hook: {reason}").into();
            return None;
        }
    }
    if coordinator.listens(ToolSelected::NAME) {
        let told = ToolSelected {
            tool_name: chosen.name.clone(),
            tool_input: chosen.arguments.clone(),
            source: source.to_owned(),
            original_tool: call.name.clone(),
            tool_call_id: Some(call.id.clone()),
        };
        let heard = coordinator.emit_holding(told).await;
        let denied = heard.denied().map(|reason| format!("Denied by hook: {reason}"));
        ran.hear::<ToolSelected>(heard.ephemeral, heard.held);
        if let Some(text) = denied {
            ran.content = text.into();
            return None;
        }
    }
    Some(chosen)
}

async fn gather(coordinator: &Coordinator, call: &ToolCall) -> Verdict {
    let available: Vec<_> = coordinator.tool_specs().iter().map(|spec| spec.name.clone()).collect();
    let asked = json!(ToolSelecting {
        tool_name: call.name.clone(),
        tool_input: call.arguments.clone(),
        available_tools: available.clone(),
        tool_call_id: Some(call.id.clone()),
    });
    let Value::Object(asked) = asked else { return Verdict::AsCalled };
    let proposals = coordinator.emit_and_collect(EventName::of::<ToolSelecting>(), asked, PATIENCE).await;
    decide(call, &available, &proposals)
}

/// A refusal beats everything; of several other tools the last proposed one that exists wins, as with modifications.
/// A handler that only repeats the model's choice has no opinion, also about the input.
fn decide(call: &ToolCall, available: &[String], proposals: &[Map<String, Value>]) -> Verdict {
    let text = |proposal: &Map<String, Value>, key: &str| {
        proposal.get(key).and_then(Value::as_str).map(str::to_owned)
    };
    let refusal = proposals.iter().find(|proposal| text(proposal, "decision").as_deref() == Some("deny"));
    if let Some(refusal) = refusal {
        let reason = text(refusal, "reason").unwrap_or_else(|| "no reason was given".to_owned());
        return Verdict::Refused { reason };
    }
    let another = proposals.iter().rev().find_map(|proposal| {
        let name = proposal.get("tool_name").and_then(Value::as_str)?;
        let other = name != call.name && available.iter().any(|known| known == name);
        other.then(|| (name.to_owned(), proposal.get("tool_input").cloned()))
    });
    match another {
        Some((tool_name, tool_input)) => Verdict::Instead { tool_name, tool_input },
        None => Verdict::AsCalled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(proposals: Value) -> Verdict {
        let call = ToolCall::new("c", "grep", json!({"a": 1}));
        let proposals: Vec<Map<String, Value>> = serde_json::from_value(proposals).unwrap();
        decide(&call, &["grep".to_owned(), "glob".to_owned(), "read".to_owned()], &proposals)
    }

    fn instead(tool_name: &str, tool_input: Option<Value>) -> Verdict {
        Verdict::Instead { tool_name: tool_name.to_owned(), tool_input }
    }

    #[test]
    fn the_last_other_tool_that_exists_wins() {
        assert_eq!(decided(json!([])), Verdict::AsCalled);
        assert_eq!(decided(json!([{"tool_name": "glob"}, {"tool_name": "read"}])), instead("read", None));
        assert_eq!(decided(json!([{"tool_name": "glob"}, {"tool_name": "nowhere"}])), instead("glob", None));
        let with_input = json!([{"tool_name": "glob", "tool_input": {"p": "*"}}]);
        assert_eq!(decided(with_input), instead("glob", Some(json!({"p": "*"}))));
    }

    #[test]
    fn an_echo_of_the_models_choice_changes_nothing() {
        assert_eq!(decided(json!([{"tool_name": "grep", "tool_input": {"a": "***"}}])), Verdict::AsCalled);
        assert_eq!(decided(json!([{"tool_name": 7}, {"score": 1}])), Verdict::AsCalled);
    }

    #[test]
    fn a_refusal_beats_every_proposal() {
        let verdict = decided(
            json!([{"tool_name": "glob"}, {"decision": "deny", "reason": "too dear"}, {"tool_name": "read"}]),
        );
        assert_eq!(verdict, Verdict::Refused { reason: "too dear".to_owned() });
    }
}
