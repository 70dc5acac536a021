//! What a sub-session stands on: the folder of its parent, wherever the bundle lies, and a way to resolve mentions.

use amplifier_app::open::OpenSession;
use serde_json::{Value, json};

use crate::workshop::Workshop;

/// A bundle in a folder of its own whose agent reads a file by path and another by mention.
fn shop() -> Workshop {
    let shop = Workshop::new();
    let calls = json!([
        {"tool_calls": [
            {"name": "read_file", "arguments": {"file_path": "plain.txt"}},
            {"name": "read_file", "arguments": {"file_path": "@mine:guide.md"}},
        ]},
        "child done",
    ]);
    shop.file(
        "b/bundle.md",
        "---\nbundle: {name: mine}\nsession: {orchestrator: loop-basic, context: context-simple}\nproviders: \
         [{module: provider-mock, config: {responses: [unused]}}]\ntools: [{module: tool-filesystem}]\nagents: \
         {include: [helper]}\n---\nParent.\n",
    );
    shop.file(
        "b/agents/helper.md",
        format!(
            "---\nmeta: {{name: helper, description: Helps.}}\nproviders: [{{module: provider-mock, config: {{responses: \
             {calls}}}}}]\n---\nYou help. See @notes.md\n"
        ),
    );
    for (name, text) in [
        ("plain.txt", "TEXT OF THE FOLDER"),
        ("b/plain.txt", "TEXT OF THE BUNDLE"),
        ("notes.md", "NOTES OF THE FOLDER"),
        ("b/notes.md", "NOTES OF THE BUNDLE"),
        ("b/guide.md", "GUIDE OF THE BUNDLE"),
    ] {
        shop.file(name, text);
    }
    shop
}

async fn spawn(session: &OpenSession) -> Value {
    let arguments = json!({"agent_name": "helper", "instruction": "go"});
    session.session.coordinator().call_capability("session.spawn", arguments).await.unwrap()
}

#[tokio::test]
async fn w17_a_child_works_where_its_parent_works_and_resolves_mentions() {
    let shop = shop();
    let session = shop.open(&shop.prepare("./b").await.unwrap()).await;
    assert_eq!(
        session.session.coordinator().capability_text("session.working_dir"),
        Some(shop.path("work").display().to_string())
    );
    let answer = spawn(&session).await;
    assert_eq!(answer["output"], "child done");
    let id = answer["session_id"].as_str().unwrap();
    let (_, child) = shop.journals().into_iter().find(|(name, _)| name == id).unwrap();
    // `session.working_dir`: a relative path starts where the parent works, not where the bundle lies.
    assert!(child.contains("TEXT OF THE FOLDER") && !child.contains("TEXT OF THE BUNDLE"), "{child}");
    // `mention_resolver`: a tool follows a mention into the bundle.
    assert!(child.contains("GUIDE OF THE BUNDLE"), "{child}");
    // And the base of its prompt is the same folder.
    let notes = shop.path("work/notes.md").display().to_string();
    let decoy = shop.path("work/b/notes.md").display().to_string();
    assert!(child.contains(&notes) && !child.contains(&decoy), "{child}");
}
