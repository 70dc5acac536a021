//! What a sub-session gives back, how it ends, and which model it asks (reference §6.7 to §6.11 and §14.1).

use amplifier_app::open::{OpenSession, Which, open};
use amplifier_core::contracts::CapabilityError;
use serde_json::{Value, json};

use crate::workshop::Workshop;

/// A session with the agent `helper`, whose head says `more`.
fn shop(more: &str) -> Workshop {
    let shop = Workshop::new();
    shop.scripted("agents: {include: [helper]}", &json!(["ok"]), "Parent.");
    shop.file(
        "agents/helper.md",
        format!("---\nmeta: {{name: helper, description: Helps.}}\n{more}\n---\nYou help."),
    );
    shop
}

async fn spawn(session: &OpenSession, instruction: &str) -> Result<Value, CapabilityError> {
    let arguments = json!({"agent_name": "helper", "instruction": instruction});
    session.session.coordinator().call_capability("session.spawn", arguments).await
}

fn child_plan(shop: &Workshop, answer: &Value) -> Value {
    let id = answer["session_id"].as_str().unwrap().parse().unwrap();
    serde_json::from_slice(&std::fs::read(shop.home().session(&id).mount_plan()).unwrap()).unwrap()
}

#[tokio::test]
async fn the_answer_tells_what_the_loop_said_at_its_end() {
    let shop = shop("");
    let session = shop.session().await;
    let answer = spawn(&session, "go").await.unwrap();
    assert_eq!(
        (&answer["output"], &answer["status"], &answer["turn_count"]),
        (&json!("ok"), &json!("success"), &json!(1))
    );
    assert_eq!(answer["metadata"], json!({"orchestrator": "loop-basic", "turn_count": 0}));
    session.session.cleanup().await;
}

#[tokio::test]
async fn a_turn_that_fails_is_told_and_its_session_is_closed_all_the_same() {
    let shop = shop(
        "providers: [{module: provider-mock, config: {responses: [{error: {kind: authentication_error, message: no entry}}]}}]",
    );
    let session = shop.session().await;
    let error = spawn(&session, "go").await.unwrap_err().to_string();
    assert!(error.contains("no entry"), "{error}");
    let journals = shop.journals();
    let (id, journal) = journals.iter().find(|(_, journal)| journal.contains("no entry")).unwrap();
    assert!(journal.contains("\"session:end\""), "{journal}");
    // Nobody holds it any more: it can be opened.
    let child = open(shop.request(Which::Resume(id.parse().unwrap(), None))).await.unwrap();
    child.session.cleanup().await;
    session.session.cleanup().await;
}

#[tokio::test]
async fn files_that_the_instruction_mentions_come_with_it() {
    let shop = shop("");
    shop.file("notes.md", "NOTES OF THE PROJECT");
    let session = shop.session().await;
    let answer = spawn(&session, "read @notes.md and tell").await.unwrap();
    let journals = shop.journals();
    let (_, journal) = journals.iter().find(|(id, _)| answer["session_id"] == json!(id)).unwrap();
    let asked = journal.lines().find(|line| line.contains("\"role\":\"user\"")).unwrap();
    assert!(asked.contains("NOTES OF THE PROJECT") && asked.contains("read @notes.md and tell"), "{asked}");
    session.session.cleanup().await;
}

#[tokio::test]
async fn a_pattern_that_fits_nothing_leaves_the_choice_to_the_next_preference() {
    let shop = shop(
        "provider_preferences:\n  - {provider: mock, model: 'zzz-*'}\n  - {provider: nobody, model: m}\n  - {provider: mock, \
         model: 'MOCK-[0-9]'}\n  - {provider: mock, model: never}",
    );
    let session = shop.session().await;
    let answer = spawn(&session, "go").await.unwrap();
    let plan = child_plan(&shop, &answer);
    assert_eq!(plan["providers"][0]["config"]["default_model"], json!("mock-1"));
    session.session.cleanup().await;
}

#[tokio::test]
async fn preferences_that_all_fail_leave_the_plan_as_it_is() {
    let shop =
        shop("provider_preferences:\n  - {provider: mock, model: 'zzz-*'}\n  - {provider: nobody, model: m}");
    let session = shop.session().await;
    let answer = spawn(&session, "go").await.unwrap();
    let parent = serde_json::to_value(session.session.coordinator().plan()).unwrap();
    assert_eq!(child_plan(&shop, &answer)["providers"], parent["providers"]);
    session.session.cleanup().await;
}

#[tokio::test]
async fn only_files_that_are_new_are_told_as_resolved() {
    let shop = Workshop::new();
    shop.scripted("", &json!(["ok"]), "See @a.md and @b.md").file("a.md", "A");
    let session = shop.session().await;
    session.session.execute("one").await.unwrap();
    session.session.execute("two").await.unwrap();
    shop.file("b.md", "B");
    session.session.execute("three").await.unwrap();
    session.session.cleanup().await;
    let (_, journal) = shop.journals().remove(0);
    let events = journal.lines().filter(|line| line.contains("\"mentions:resolved\""));
    let told: Vec<Vec<String>> = events
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            let found = event["body"]["event"]["data"]["resolutions"].as_array().unwrap().clone();
            found.iter().map(|found| found["mention"].as_str().unwrap().to_owned()).collect()
        })
        .collect();
    assert_eq!(told, [["@a.md"], ["@b.md"]]);
}
