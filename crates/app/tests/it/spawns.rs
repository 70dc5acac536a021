//! Sub-sessions: who an agent is, what it has, and that it ends with its parent.

use std::time::Duration;

use amplifier_app::CancelLevel;
use amplifier_app::open::{OpenSession, Which, open};
use amplifier_core::contracts::CapabilityError;
use amplifier_protocol::status::SessionState;
use serde_json::{Value, json};

use crate::workshop::Workshop;

/// An agent that answers from a script of its own.
fn agent(name: &str, responses: &Value, more: &str, body: &str) -> String {
    format!(
        "---\nmeta: {{name: {name}, description: Helps.}}\nproviders:\n  - module: provider-mock\n    config: \
         {{responses: {responses}}}\n{more}\n---\n{body}"
    )
}

/// A session with `tool-task` and the agent `helper`.
fn shop(responses: &Value, helper: &str) -> Workshop {
    let shop = Workshop::new();
    shop.scripted(
        "tools: [{module: tool-task}, {module: tool-todo}]\nagents: {include: [helper]}",
        responses,
        "Parent.",
    );
    shop.file("agents/helper.md", helper);
    shop
}

async fn spawn(session: &OpenSession, arguments: Value) -> Result<Value, CapabilityError> {
    session.session.coordinator().call_capability("session.spawn", arguments).await
}

#[tokio::test]
async fn a_task_runs_in_a_session_of_its_own_and_its_cost_counts() {
    let asks = json!([
        {"text": "", "tool_calls": [{"name": "task", "arguments": {"agent": "helper", "instruction": "look"}}],
         "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "cost_usd": "0.01"}},
        {"text": "parent done", "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "cost_usd": "0.01"}}
    ]);
    let answers = json!([{"text": "child says hi", "usage": {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10, "cost_usd": "0.5"}}]);
    let shop = shop(&asks, &agent("helper", &answers, "", "You help. See @notes.md"));
    shop.file("notes.md", "NOTES OF THE PROJECT");
    let session = shop.session().await;
    assert_eq!(session.session.execute("go").await.unwrap(), "parent done");
    let messages = session.session.coordinator().context().unwrap().messages().await.unwrap();
    assert!(messages.iter().any(|message| message.content.visible_text().contains("child says hi")));
    assert_eq!(session.cost().map(|cost| cost.to_string()), Some("0.52".to_owned()));
    session.session.cleanup().await;
    let journals = shop.journals();
    let (id, child) = journals.iter().find(|(id, _)| id.ends_with("_helper")).unwrap();
    assert!(child.contains(&format!("\"parent_id\":\"{}\"", session.session.id())), "{child}");
    assert!(child.contains("child says hi"));
    // The child's prompt is its own, and starts from the folder its parent works in.
    assert!(child.contains(&shop.path("work/notes.md").display().to_string()), "{child}");
    let folder = shop.home().session(&id.parse().unwrap());
    let kept = std::fs::read_to_string(folder.prompt()).unwrap();
    assert!(kept.contains("You help.") && !kept.contains("Parent."), "{kept}");
    assert!(std::fs::read_to_string(folder.metadata()).unwrap().contains("parent_id"));
}

#[tokio::test]
async fn what_agents_spent_still_counts_when_the_session_goes_on() {
    let asks = json!([
        {"text": "", "tool_calls": [{"name": "task", "arguments": {"agent": "helper", "instruction": "look"}}],
         "usage": {"input_tokens": 1, "output_tokens": 1, "cost_usd": "0.01"}},
        {"text": "parent done", "usage": {"input_tokens": 1, "output_tokens": 1, "cost_usd": "0.01"}}
    ]);
    let answers = json!([{"text": "child says hi", "usage": {"input_tokens": 5, "output_tokens": 5, "cost_usd": "0.5"}}]);
    let shop = shop(&asks, &agent("helper", &answers, "", "You help."));
    let session = shop.session().await;
    session.session.execute("go").await.unwrap();
    let spent = session.session.coordinator().ledger().statement().total;
    assert_eq!((spent.cost_nanos, spent.steps, spent.spawns), (520_000_000, 3, 1));
    session.session.cleanup().await;
    let id = session.session.id().clone();
    drop(session);
    let resumed = open(shop.request(Which::Resume(id, None))).await.unwrap();
    let earlier = resumed.session.coordinator().ledger().statement().by_spender["earlier"];
    assert_eq!(earlier, spent);
    resumed.session.cleanup().await;
}

#[tokio::test]
async fn w17_a_child_has_the_capabilities_its_parent_has() {
    let asks = json!([
        {"text": "", "tool_calls": [{"name": "task", "arguments": {"agent": "deeper", "instruction": "look"}}]},
        "middle done"
    ]);
    let shop = shop(&json!(["unused"]), &agent("helper", &asks, "", "You help."));
    shop.file("agents/deeper.md", agent("deeper", &json!(["deep down"]), "", "Deep."));
    shop.scripted(
        "tools: [{module: tool-task}]\nagents: {include: [helper, deeper]}",
        &json!(["unused"]),
        "Parent.",
    );
    let session = shop.session().await;
    let answer = spawn(&session, json!({"agent_name": "helper", "instruction": "go"})).await.unwrap();
    assert_eq!(
        (answer["output"].as_str(), answer["status"].as_str()),
        (Some("middle done"), Some("success"))
    );
    // The child could spawn by itself: `session.spawn` is there, and it knows how deep it is.
    assert!(shop.journals().iter().any(|(_, journal)| journal.contains("deep down")));
}

#[tokio::test]
async fn what_the_rules_exclude_is_not_mounted_in_the_child() {
    let shop = shop(&json!(["unused"]), &agent("helper", &json!(["ok"]), "agents: none", "You help."));
    shop.scripted(
        "tools: [{module: tool-task}, {module: tool-todo}]\nspawn: {exclude_tools: [tool-task]}\nagents: {include: [helper]}",
        &json!(["unused"]),
        "Parent.",
    );
    let session = shop.session().await;
    let answer = spawn(&session, json!({"agent_name": "helper", "instruction": "go"})).await.unwrap();
    let id = answer["session_id"].as_str().unwrap().parse().unwrap();
    let plan = std::fs::read_to_string(shop.home().session(&id).mount_plan()).unwrap();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!((&plan["tools"], plan.get("agents")), (&json!([{"module": "tool-todo"}]), None));
}

#[tokio::test]
async fn a_sub_session_is_gone_on_with_only_by_the_one_that_started_it() {
    let shop = shop(&json!(["unused"]), &agent("helper", &json!(["first", "second"]), "", "You help."));
    let session = shop.session().await;
    let first = spawn(&session, json!({"agent_name": "helper", "instruction": "one"})).await.unwrap();
    let resume = json!({"sub_session_id": first["session_id"], "instruction": "two"});
    let at = session.session.coordinator();
    let second = at.call_capability("session.resume", resume.clone()).await.unwrap();
    assert_eq!(
        (second["session_id"].clone(), second["turn_count"].clone()),
        (first["session_id"].clone(), json!(2))
    );
    let stranger = shop.session().await;
    let refused = stranger.session.coordinator().call_capability("session.resume", resume).await.unwrap_err();
    assert!(refused.to_string().contains("was not started by this one"), "{refused}");
    let unknown = json!({"sub_session_id": "nobody", "instruction": "x"});
    assert!(at.call_capability("session.resume", unknown).await.unwrap_err().to_string().contains("nobody"));
}

#[tokio::test]
async fn a_child_is_cancelled_with_its_parent() {
    let slow = json!([{"text": "never", "delay_ms": 600_000}]);
    let asks = json!([{"text": "", "tool_calls": [{"name": "task", "arguments": {"agent": "helper", "instruction": "look"}}]}, "done"]);
    let shop = shop(&asks, &agent("helper", &slow, "", "You help."));
    let session = shop.session().await;
    let (running, watched) = (session.session.clone(), session.session.clone());
    let turn = tokio::spawn(async move { running.execute("go").await });
    // The child announces its model call before it waits for the answer.
    while !shop
        .journals()
        .iter()
        .any(|(id, journal)| id.ends_with("_helper") && journal.contains("call_started"))
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    watched.cancel(CancelLevel::Immediate).await;
    let ended = tokio::time::timeout(Duration::from_secs(60), turn).await.unwrap();
    drop(ended.unwrap());
    assert_eq!(watched.status().status, SessionState::Cancelled);
    session.session.cleanup().await;
    let (_, child) = shop.journals().into_iter().find(|(id, _)| id.ends_with("_helper")).unwrap();
    assert!(!child.contains("never"), "{child}");
    assert!(child.contains("cancel"), "{child}");
}

#[tokio::test]
async fn w25_an_agent_nobody_knows_is_named_with_those_that_are_known() {
    let shop = shop(&json!(["unused"]), &agent("helper", &json!(["ok"]), "", "You help."));
    let session = shop.session().await;
    let refused =
        spawn(&session, json!({"agent_name": "other:agent", "instruction": "x"})).await.unwrap_err();
    assert!(
        refused.to_string().contains("`other:agent`") && refused.to_string().contains("`helper`"),
        "{refused}"
    );
    // `self` is the session once more, with its own prompt.
    let again = spawn(&session, json!({"agent_name": "self", "instruction": "x"})).await.unwrap();
    assert_eq!(again["output"], json!("unused"));
}

#[tokio::test]
async fn a_preference_chooses_provider_and_model_and_never_the_credentials() {
    let helper = "---\nmeta: {name: helper, description: Helps.}\nprovider_preferences:\n  - {provider: nobody, model: m}\n  \
                  - {provider: mock, model: mock-9, config: {model: mock-8, api_key: stolen}}\n---\nYou help.";
    let shop = shop(&json!(["ok"]), helper);
    let session = shop.session().await;
    let answer = spawn(&session, json!({"agent_name": "helper", "instruction": "x"})).await.unwrap();
    let id = answer["session_id"].as_str().unwrap().parse().unwrap();
    let plan = std::fs::read_to_string(shop.home().session(&id).mount_plan()).unwrap();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let config = &plan["providers"][0]["config"];
    assert_eq!((config["default_model"].clone(), config["priority"].clone()), (json!("mock-9"), json!(0)));
    assert_eq!((config.get("model"), config.get("api_key")), (None, None));
}
