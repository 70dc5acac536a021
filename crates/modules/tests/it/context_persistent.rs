//! `context-persistent`: what a process leaves behind, the next one goes on from.

use std::path::Path;
use std::sync::Arc;

use amplifier_core::contracts::{Capability, ContextManager, Module, RequestBudget};
use amplifier_protocol::event::ContextInclude;
use amplifier_protocol::message::{Message, Messages, Role};
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{EventRecorder, ScriptedProvider, Step, TestCoordinator, TestSession};
use serde_json::{Value, json};

use crate::kit;

async fn module() -> Arc<dyn Module> {
    kit::built_in("context-persistent").await
}

/// A hub that works in a folder, with the context, what it warned of and what it tells.
async fn mounted(dir: &Path, config: Value) -> (TestCoordinator, Vec<String>, Arc<EventRecorder>) {
    let hub = TestCoordinator::new();
    let working_dir = Capability::Value(json!(dir.display().to_string()));
    hub.register_capability("session.working_dir", working_dir);
    let recorder = hub.recorder();
    let (_, warnings) = hub.mount(&*module().await, config).await.unwrap();
    (hub, warnings, recorder)
}

/// A process that ended: nothing is cleaned up, and its lock goes with it.
fn killed(hub: &TestCoordinator) {
    hub.unmount(&amplifier_core::coordinator::MountPoint::Context, None).unwrap();
}

async fn add(hub: &TestCoordinator, messages: impl IntoIterator<Item = Message>) {
    for message in messages {
        hub.context().unwrap().add_message(Arc::new(message)).await.unwrap();
    }
}

async fn stored(hub: &TestCoordinator) -> Messages {
    hub.context().unwrap().messages().await.unwrap()
}

fn texts(messages: &Messages) -> Vec<String> {
    messages.iter().map(|message| message.content.visible_text().into_owned()).collect()
}

fn here() -> Value {
    json!({"transcript_path": "t.jsonl"})
}

#[tokio::test]
async fn every_message_is_a_line_when_the_add_returns_and_is_there_again_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (hub, warnings, _) = mounted(dir.path(), here()).await;
    assert_eq!(warnings, Vec::<String>::new());
    for n in 0..20 {
        add(&hub, [Message::user(format!("m{n}"))]).await;
        let lines = std::fs::read_to_string(dir.path().join("t.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), n + 1);
    }
    let before = stored(&hub).await;
    killed(&hub);
    let (hub, _, _) = mounted(dir.path(), here()).await;
    assert_eq!(stored(&hub).await, before);
}

#[tokio::test]
async fn the_file_wins_over_what_a_session_puts_back_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (hub, _, _) = mounted(dir.path(), here()).await;
    add(&hub, [Message::user("a"), Message::text(Role::Assistant, "b")]).await;
    killed(&hub);
    let (hub, _, recorder) = mounted(dir.path(), here()).await;
    let filtered = vec![Arc::new(Message::text(Role::Assistant, "b"))];
    hub.context().unwrap().set_messages(filtered).await.unwrap();
    assert_eq!(texts(&stored(&hub).await), ["a", "b"]);
    let told = recorder.events("context:set_messages_ignored").remove(0).1;
    assert_eq!((&told["kept_messages"], &told["offered_messages"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn what_the_journal_has_beyond_the_file_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("notes.md"), "Be exact.").unwrap();
    let config = json!({"transcript_path": "t.jsonl", "memory_files": ["notes.md"]});
    let (hub, _, _) = mounted(dir.path(), config.clone()).await;
    add(&hub, [Message::user("a")]).await;
    killed(&hub);
    let (hub, _, recorder) = mounted(dir.path(), config).await;
    // Written first to the journal, then the process was killed.
    let journal = ["a", "b"].map(|text| Arc::new(Message::user(text))).to_vec();
    hub.context().unwrap().set_messages(journal).await.unwrap();
    assert_eq!(texts(&stored(&hub).await), ["[Context from notes.md]\n\nBe exact.", "a", "b"]);
    assert_eq!(recorder.count("context:set_messages_ignored"), 0);
    assert_eq!(std::fs::read_to_string(dir.path().join("t.jsonl")).unwrap().lines().count(), 3);
}

#[tokio::test]
async fn a_new_file_takes_what_it_is_given_and_a_cleared_one_forgets() {
    let dir = tempfile::tempdir().unwrap();
    let (hub, _, _) = mounted(dir.path(), here()).await;
    hub.context().unwrap().set_messages(vec![Arc::new(Message::user("put back"))]).await.unwrap();
    killed(&hub);
    let (hub, _, _) = mounted(dir.path(), here()).await;
    assert_eq!(texts(&stored(&hub).await), ["put back"]);
    hub.context().unwrap().clear().await.unwrap();
    add(&hub, [Message::user("new")]).await;
    killed(&hub);
    assert_eq!(texts(&stored(&mounted(dir.path(), here()).await.0).await), ["new"]);
}

#[tokio::test]
async fn a_torn_end_is_mended_and_told_and_open_calls_are_answered_in_the_view() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let (hub, _, _) = mounted(dir.path(), here()).await;
    let call = ToolCall::new("c", "write", json!({"a": 1}));
    let mut calling = Message::text(Role::Assistant, "");
    calling.tool_calls.push(call.clone());
    add(&hub, [Message::user("go"), calling, Message::tool_result(&call, "written")]).await;
    killed(&hub);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    let (hub, warnings, _) = mounted(dir.path(), here()).await;
    assert!(warnings[0].contains("torn") && warnings[0].contains("t.jsonl.torn"), "{warnings:?}");
    let view = hub.context().unwrap().messages_for_request(RequestBudget::default()).await.unwrap();
    assert_eq!((stored(&hub).await.len(), view.len()), (2, 3));
    assert_eq!(view[2].tool_call_id.as_deref(), Some("c"));
    assert!(view[2].content.visible_text().contains("may or may not have taken effect"));
    // The journal knew how it came out: the real result takes the place.
    add(&hub, [Message::tool_result(&call, "written after all"), Message::user("go on")]).await;
    let view = hub.context().unwrap().messages_for_request(RequestBudget::default()).await.unwrap();
    assert_eq!(texts(&view), ["go", "", "written after all", "go on"]);
}

#[tokio::test]
async fn memory_files_begin_a_conversation_once_and_the_unusable_are_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.md"), "alpha").unwrap();
    std::fs::write(dir.path().join("empty.md"), "  \n").unwrap();
    std::fs::write(dir.path().join("bytes.md"), [0xff, 0xfe]).unwrap();
    let config = json!({"memory_files": ["a.md", "gone.md", "empty.md", "bytes.md", "."], "transcript_path": "t.jsonl"});
    let (hub, warnings, recorder) = mounted(dir.path(), config.clone()).await;
    let messages = stored(&hub).await;
    assert_eq!((messages.len(), messages[0].role), (1, Role::System));
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert_eq!(recorder.of::<ContextInclude>().len(), 1);
    killed(&hub);
    let (hub, warnings, _) = mounted(dir.path(), config).await;
    assert_eq!((stored(&hub).await.len(), warnings.len()), (1, 0));
}

#[tokio::test]
async fn memory_files_that_cannot_fit_refuse_the_mount_with_the_size_of_each() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.md"), "a".repeat(4_000)).unwrap();
    std::fs::write(dir.path().join("b.md"), "b".repeat(400_000)).unwrap();
    let hub = TestCoordinator::new();
    let dir_text = dir.path().display().to_string();
    hub.register_capability("session.working_dir", Capability::Value(json!(dir_text)));
    let config = json!({"memory_files": ["a.md", "b.md"], "max_tokens": 10_000});
    let refused = hub.mount(&*module().await, config).await.unwrap_err().to_string();
    assert!(refused.contains("`a.md` 1009") && refused.contains("`b.md` 100000"), "{refused}");
}

#[tokio::test]
async fn the_file_is_in_the_sessions_folder_or_below_the_working_folder() {
    let (dir, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let own = dir.path().join("test-session");
    for (offered, expected) in [
        (Some(own.clone()), own.join("context-messages.jsonl")),
        (Some(dir.path().join("parent")), dir.path().join("parent/test-session/context-messages.jsonl")),
        (None, work.path().join(".amplifier/sessions/test-session/context-messages.jsonl")),
    ] {
        let hub = TestCoordinator::new();
        let text = |path: &Path| Capability::Value(json!(path.display().to_string()));
        hub.register_capability("session.working_dir", text(work.path()));
        if let Some(offered) = offered {
            hub.register_capability("session.dir", text(&offered));
        }
        hub.mount(&*module().await, json!({})).await.unwrap();
        assert!(expected.is_file(), "{}", expected.display());
    }
    let refused = TestCoordinator::new().mount(&*module().await, json!({})).await.unwrap_err();
    assert!(refused.to_string().contains("set `transcript_path`"), "{refused}");
}

#[tokio::test]
async fn unknown_keys_are_named_also_beside_the_shared_ones() {
    let dir = tempfile::tempdir().unwrap();
    let config =
        json!({"transcript_path": "t.jsonl", "max_token": 9, "memory_file": [], "truncate_boundary": 0.5});
    let (_, warnings, _) = mounted(dir.path(), config).await;
    assert_eq!(
        warnings,
        [
            "unknown config key `max_token` is ignored; did you mean `max_tokens`?",
            "unknown config key `memory_file` is ignored; did you mean `memory_files`?",
            "`truncate_boundary` has no effect; `truncate_chars` says how much of a text stays",
        ]
    );
}

#[tokio::test]
async fn a_file_in_use_is_refused_and_free_again_when_its_session_ended() {
    let dir = tempfile::tempdir().unwrap();
    let path = json!({"transcript_path": dir.path().join("t.jsonl").display().to_string()});
    let path = path.as_object().cloned().unwrap();
    let provider = || Arc::new(ScriptedProvider::new([Step::say("hello")]));
    let open = async || {
        let builder = TestSession::builder().module(kit::built_in("loop-basic").await);
        builder.module_with(module().await, path.clone()).provider(provider()).open().await
    };
    let first = open().await.unwrap();
    first.execute("hi").await.unwrap();
    let context = first.coordinator().context().unwrap();
    let refused = open().await.err().unwrap();
    let told: Vec<_> = refused.report.modules.iter().map(ToString::to_string).collect();
    assert!(told.join(" ").contains("in use by another session"), "{told:?}");
    first.cleanup().await;
    // Somebody still holds the context; what they add now would be lost, so it is refused.
    assert!(context.add_message(Arc::new(Message::user("late"))).await.is_err());
    let second = open().await.unwrap();
    second.execute("again").await.unwrap();
    let context: Arc<dyn ContextManager> = second.coordinator().context().unwrap();
    assert_eq!(texts(&context.messages().await.unwrap()), ["hi", "hello", "again", "hello"]);
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (_hub, _, _) = mounted(dir.path(), json!({"transcript_path": "new/t.jsonl", "sync": "none"})).await;
    let mode = |path: &str| std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("new"), mode("new/t.jsonl")), (0o700, 0o600));
}
