//! Tools called by hand, in a session that is otherwise silent.

use amplifier_app::invoke::{self, InvokeError};
use amplifier_app::open::OpenSession;
use serde_json::{Value, json};

use crate::workshop::Workshop;

async fn call(session: &OpenSession, tool: &str, input: Value) -> Value {
    let result = invoke::invoke(session, tool, input).await.unwrap();
    assert!(result.success, "{tool}: {result:?}");
    result.output
}

#[tokio::test]
async fn a_call_by_hand_is_in_the_journal_and_heard_by_hooks() {
    let shop = Workshop::new();
    shop.scripted("tools: [{module: tool-filesystem}]\nhooks: [{module: hooks-backup}]", &json!([]), "x");
    shop.file("a.txt", "old");
    let session = shop.session().await;
    call(&session, "read_file", json!({"file_path": "a.txt"})).await;
    call(&session, "write_file", json!({"file_path": "a.txt", "content": "new"})).await;
    assert_eq!(std::fs::read_to_string(shop.path("work/a.txt")).unwrap(), "new");
    assert!(shop.path("work/.amplifier/backups").is_dir(), "the hook kept what was there");
    let folder = session.folder.dir().to_path_buf();
    session.session.cleanup().await;
    let (_, journal) = shop.journals().remove(0);
    assert!(journal.contains("call_started") && journal.contains("by-hand"), "{journal}");
    invoke::forget(&session).unwrap();
    assert!(!folder.exists());
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_anybody_hears_of_it() {
    let shop = Workshop::new();
    shop.scripted("tools: [{module: tool-filesystem}]", &json!([]), "x");
    let session = shop.session().await;
    let unfit = invoke::invoke(&session, "read_file", json!({"nonsense": 1})).await.unwrap_err();
    assert!(matches!(unfit, InvokeError::Input { .. }), "{unfit}");
    let unknown = invoke::invoke(&session, "read_fil", json!({})).await.unwrap_err();
    assert!(unknown.to_string().contains("read_file"), "{unknown}");
    session.session.cleanup().await;
    let (_, journal) = shop.journals().remove(0);
    assert!(!journal.contains("call_started"), "{journal}");
}

/// What a job is called is nobody's business: a process of somebody else with the very same command lives on when the
/// job is ended, and when the session is.
#[cfg(unix)]
#[tokio::test]
async fn w26_only_what_a_session_started_is_ended() {
    let shop = Workshop::new();
    shop.scripted("tools: [{module: tool-bash, config: {require_approval: never}}]", &json!([]), "x");
    let session = shop.session().await;
    let mut other = std::process::Command::new("sleep").arg("612").spawn().unwrap();
    let input = json!({"command": "sleep 612", "run_in_background": true});
    let jobs = [call(&session, "bash", input.clone()).await, call(&session, "bash", input).await];
    call(&session, "bash_kill", json!({"id": jobs[0]["id"]})).await;
    assert!(other.try_wait().unwrap().is_none(), "ending a job ended somebody else's process");
    session.session.cleanup().await;
    assert!(other.try_wait().unwrap().is_none(), "closing a session ended somebody else's process");
    other.kill().unwrap();
    other.wait().unwrap();
}
