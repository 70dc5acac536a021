//! `tool-todo` and `hooks-todo-reminder` in a session.

use amplifier_core::history::History;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{Step, TestCoordinator};
use serde_json::{Value, json};

use crate::stage::{built_in, calls, script, session, texts};

fn todos(status: &str) -> Value {
    json!([
        {"content": "Run the tests", "activeForm": "Running the tests", "status": status},
        {"content": "Write it up", "activeForm": "Writing it up", "status": "pending"}
    ])
}

async fn answer(input: Value) -> (bool, Value) {
    let hub = TestCoordinator::new();
    hub.mount(&*built_in("tool-todo").await, json!({"max_todos": 3})).await.unwrap();
    let result = hub.call_tool(&ToolCall::new("c", "todo", input)).await.unwrap();
    (result.success, result.output)
}

/// Golden case 11.3: all.
#[tokio::test]
async fn the_golden_cases_hold() {
    let (ok, created) = answer(json!({"action": "create", "todos": todos("in_progress")})).await;
    assert_eq!(
        (ok, created),
        (true, json!({"status": "created", "count": 2, "todos": todos("in_progress")}))
    );
    let (_, updated) = answer(json!({"action": "update", "todos": todos("completed")})).await;
    let counts = json!({"status": "updated", "count": 2, "pending": 1, "in_progress": 0, "completed": 1});
    assert_eq!(updated, counts);
    let (_, listed) = answer(json!({"action": "list"})).await;
    assert_eq!(listed, json!({"status": "listed", "count": 0, "todos": []}));
    for (input, said) in [
        (json!({"action": "zap"}), "Unknown action: zap. Valid actions: create, update, list"),
        (
            json!({"action": "create", "todos": [{"content": "a"}]}),
            "Todo 0 missing required fields (content, status, activeForm)",
        ),
    ] {
        assert_eq!(answer(input).await, (false, json!(said)));
    }
}

#[tokio::test]
async fn better_than_the_reference_a_missing_list_is_refused_and_empties_nothing() {
    let (ok, said) = answer(json!({"action": "update"})).await;
    assert!(!ok && said.as_str().unwrap().contains("`todos` is required"), "{said}");
    let many: Vec<_> = (0..4).flat_map(|_| todos("pending").as_array().unwrap().clone()).collect();
    let (ok, said) = answer(json!({"action": "create", "todos": many})).await;
    assert!(!ok && said.as_str().unwrap().contains("at most 3"), "{said}");
    let (ok, cleared) = answer(json!({"action": "create", "todos": []})).await;
    assert_eq!((ok, &cleared["count"]), (true, &json!(0)));
}

#[tokio::test]
async fn the_schema_is_the_one_models_know() {
    let hub = TestCoordinator::new();
    hub.mount(&*built_in("tool-todo").await, json!({})).await.unwrap();
    let schema = hub.tool_specs()[0].parameters.clone();
    assert_eq!(schema["required"], json!(["action"]));
    assert_eq!(schema["properties"]["action"]["enum"], json!(["create", "update", "list"]));
    let item = &schema["properties"]["todos"]["items"];
    assert_eq!(item["required"], json!(["content", "activeForm", "status"]));
    assert_eq!(item["properties"]["status"]["enum"], json!(["pending", "in_progress", "completed"]));
    assert!(!schema.to_string().contains("$ref"), "{schema}");
}

/// Golden case 11.8: the reminder without a list. Better: nothing is said.
#[tokio::test]
async fn the_list_stands_behind_the_last_tool_result_and_nowhere_without_a_list() {
    let provider = script([
        calls("1", "echo", json!({"text": "one"})),
        calls("2", "todo", json!({"action": "create", "todos": todos("in_progress")})),
        calls("3", "echo", json!({"text": "two"})),
        calls("4", "echo", json!({"text": "three"})),
        Step::say("done"),
    ]);
    let modules = [
        ("tool-echo", json!({})),
        ("tool-todo", json!({})),
        ("hooks-todo-reminder", json!({"recent_tool_threshold": 2})),
    ];
    let session = session(&provider, &modules).await.open().await.unwrap();
    session.execute("go").await.unwrap();
    let requests = provider.requests();
    let last = |at: usize| texts(&requests[at]).pop().unwrap();
    // Better than the reference: nothing is said while there is no list.
    assert!(!last(0).contains("system-reminder") && !last(1).contains("system-reminder"));
    assert!(
        last(2).starts_with("{\"status\":\"created\"")
            && last(2).contains("→ Running the tests\n☐ Write it up")
    );
    assert!(last(2).contains("<system-reminder source=\"hooks-todo-reminder\">"), "{}", last(2));
    assert!(last(3).starts_with("two\n\n<system-reminder") && !last(3).contains("not been touched"));
    assert!(last(4).contains("not been touched for a while"), "{}", last(4));
    // It is never stored.
    let stored = session.coordinator().context().unwrap().messages().await.unwrap();
    assert!(stored.iter().all(|message| !message.content.visible_text().contains("system-reminder")));
}

#[tokio::test]
async fn a_resumed_session_finds_its_list_in_the_conversation() {
    let first = script([
        calls("1", "todo", json!({"action": "create", "todos": todos("in_progress").to_string()})),
        Step::say("done"),
    ]);
    let one = session(&first, &[("tool-todo", json!({}))]).await.open().await.unwrap();
    one.execute("go").await.unwrap();
    let messages = one.coordinator().context().unwrap().messages().await.unwrap();
    one.cleanup().await;

    let second = script([Step::say("again")]);
    let history = History { messages, ..History::default() };
    let two = session(&second, &[("tool-todo", json!({})), ("hooks-todo-reminder", json!({}))]).await;
    let two = two.configure(|builder| builder.resume(history)).open().await.unwrap();
    two.execute("go on").await.unwrap();
    let state = two.coordinator().with_state(|state| state.get("todo_state").cloned());
    assert_eq!(state, Some(todos("in_progress")));
    let request = texts(&second.requests()[0]);
    // No tool result is last, so the reminder is a message of its own.
    assert!(request.last().unwrap().contains("→ Running the tests"), "{request:?}");
    assert_eq!(request[request.len() - 2], "go on");
}
