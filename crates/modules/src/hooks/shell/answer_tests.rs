use super::*;
use amplifier_core::contracts::EventStamp;
use amplifier_protocol::time::Timestamp;

fn event(name: &str, data: Value) -> HookEvent {
    let Value::Object(data) = data else { panic!("data is an object") };
    let stamp = EventStamp {
        session_id: "s".parse().unwrap(),
        parent_id: None,
        turn: 1,
        sequence: 1,
        timestamp: Timestamp::default(),
    };
    HookEvent { name: name.parse().unwrap(), data, stamp }
}

fn call() -> HookEvent {
    event("tool:pre", json!({"tool_name": "write_file", "tool_input": {"file_path": "a", "content": "x"}}))
}

fn said(value: Value) -> HookResult {
    read(&value.to_string(), &call())
}

#[test]
fn every_known_way_to_refuse_refuses() {
    for value in [
        json!({"decision": "block", "reason": "no"}),
        json!({"continue": false, "stopReason": "no"}),
        json!({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}),
        json!({"action": "deny", "reason": "no"}),
    ] {
        assert_eq!(said(value.clone()), HookResult::deny("no"), "{value}");
    }
    assert!(
        matches!(said(json!({"decision": 7})).action, HookAction::Deny { .. }),
        "an unreadable answer is no yes"
    );
    assert!(matches!(said(json!({"decision": "ask"})).action, HookAction::AskUser(_)));
}

#[test]
fn a_change_keeps_the_rest_of_the_event() {
    let changed = |value: Value| Value::Object(said(value).data.unwrap());
    let input = json!({"file_path": "b", "content": "y"});
    let whole = json!({"tool_name": "write_file", "tool_input": input});
    assert_eq!(changed(json!({"hookSpecificOutput": {"updatedInput": input}})), whole);
    assert_eq!(
        changed(json!({"newContent": "y"})),
        json!({"tool_name": "write_file", "tool_input": {"file_path": "a", "content": "y"}})
    );
    let post = event("tool:post", json!({"tool_name": "t", "result": {"success": true, "output": 1}}));
    let result = read(r#"{"newContent": "z"}"#, &post).data.unwrap();
    assert_eq!(result["result"], json!({"success": true, "output": "z"}));
}

#[test]
fn context_messages_and_plain_words_go_where_the_convention_says() {
    let both = said(json!({"contextInjection": "note", "systemMessage": "seen"}));
    assert!(matches!(&both.action, HookAction::InjectContext(injection) if injection.text == "note"));
    assert_eq!(both.message.unwrap().text, "seen");
    assert_eq!(read("plain words", &call()), HookResult::proceed());
    let prompt = event("prompt:submit", json!({"prompt": "hi"}));
    assert!(matches!(read("plain words", &prompt).action, HookAction::InjectContext(_)));
    for nothing in ["", "  \n", "[1]", "7", "{}", r#"{"decision": "approve"}"#] {
        assert_eq!(read(nothing, &call()).action, HookAction::Continue, "{nothing}");
    }
}
