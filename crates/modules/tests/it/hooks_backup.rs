//! `hooks-backup` in real sessions.

use std::sync::Arc;

use amplifier_core::contracts::{ContextManager, Tool, ToolCx, ToolFailure};
use amplifier_modules::hooks::backup::{About, Backups, Limits, Restored, session_folder};
use amplifier_protocol::event::ContextPreCompact;
use amplifier_protocol::message::Message;
use amplifier_protocol::time::Timestamp;
use amplifier_protocol::tool::{Effects, ToolCall, ToolSpec};
use amplifier_testing::{MockContextManager, MockTool, ScriptedProvider, Step, TestSession};
use serde_json::{Value, json};

use crate::hooks_kit::{Desk, call, json_lines, looping};

fn backups(desk: &Desk) -> Backups {
    let folder = session_folder(&desk.path(".amplifier/backups"), &"test-session".parse().unwrap());
    let limits = Limits { max_file_bytes: 1_000_000, max_total_bytes: 1_000_000, max_entries: 100 };
    Backups::open(&folder, limits).unwrap()
}

fn about() -> About {
    About { time: Timestamp::default(), turn: 0, tool_name: "restore".to_owned(), tool_call_id: None }
}

async fn guarded(desk: &Desk, config: Value) -> TestSession {
    let writer = MockTool::new("write_file").effects(Effects::WRITES);
    let builder = desk.with_hook("hooks-backup", config).await.tool(Arc::new(writer));
    builder.tool(Arc::new(MockTool::new("read_file").effects(Effects::READS))).open().await.unwrap()
}

/// Says what it is told to say, and writes.
struct Writer(MockTool, std::path::PathBuf);

#[async_trait::async_trait]
impl Tool for Writer {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    fn effects(&self) -> Effects {
        Effects::WRITES
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        std::fs::write(&self.1, "after").unwrap();
        self.0.execute(input, cx).await
    }
}

#[tokio::test]
async fn what_a_tool_overwrites_in_a_turn_can_be_restored() {
    let desk = Desk::new();
    desk.write("src/a.txt", "before");
    let input = json!({"file_path": "src/a.txt", "content": "after"});
    let calls = [ToolCall::new("c1", "write_file", input)];
    let provider = ScriptedProvider::new([Step::call(calls), Step::say("done")]);
    let writer = Writer(MockTool::new("write_file").effects(Effects::WRITES), desk.path("src/a.txt"));
    let builder = desk.with_hook("hooks-backup", json!({})).await.tool(Arc::new(writer));
    let session = looping(builder, provider).await.open().await.unwrap();
    session.execute("go").await.unwrap();
    let mut backups = backups(&desk);
    let entry = &backups.entries()[0];
    assert_eq!(
        (entry.tool_name.as_str(), entry.tool_call_id.as_deref(), entry.turn),
        ("write_file", Some("c1"), 1)
    );
    assert_eq!(entry.path, desk.path("src/a.txt"));
    assert_eq!(backups.restore(1, &desk.dir(), &about()).unwrap(), Restored::Written(desk.path("src/a.txt")));
    assert_eq!(std::fs::read_to_string(desk.path("src/a.txt")).unwrap(), "before");
}

#[tokio::test]
async fn only_tools_that_declare_writes_cause_copies_and_only_of_files_in_the_folder() {
    let desk = Desk::new();
    let outside = Desk::new();
    outside.write("secret", "s");
    desk.write("a", "1");
    let session = guarded(&desk, json!({})).await;
    let emit = async |tool: &str, path: &str| {
        let emitted = session.coordinator().emit(call(tool, json!({ "file_path": path }))).await;
        assert_eq!(emitted.denied(), None);
    };
    emit("read_file", "a").await;
    emit("nobody", "a").await;
    for _ in 0..2 {
        emit("write_file", &outside.path("secret").display().to_string()).await;
    }
    assert!(backups(&desk).entries().is_empty());
    assert_eq!(desk.shown().len(), 1, "what is not kept is said once: {:?}", desk.shown());
    emit("write_file", "a").await;
    assert_eq!(backups(&desk).entries().len(), 1);
    let allowed = json!({"allowed_paths": [outside.dir().display().to_string()], "backup_dir": "b2"});
    let session = guarded(&desk, allowed).await;
    let input = json!({ "file_path": outside.path("secret").display().to_string() });
    session.coordinator().emit(call("write_file", input)).await;
    assert!(desk.path("b2/test-session/index.jsonl").is_file());
}

#[tokio::test]
async fn a_required_backup_that_cannot_be_made_stops_the_change_and_another_only_warns() {
    for (required, stops) in [(true, true), (false, false)] {
        let desk = Desk::new();
        desk.write("a", "1");
        desk.write("blocked", "a file where a folder should be");
        let session = guarded(&desk, json!({"required": required, "backup_dir": "blocked"})).await;
        let emitted = session.coordinator().emit(call("write_file", json!({"file_path": "a"}))).await;
        assert_eq!(emitted.denied().is_some(), stops);
        assert_eq!(desk.shown().is_empty(), stops, "{:?}", desk.shown());
    }
}

/// The public implementation listens for an event nobody emits and writes a transcript without messages.
#[tokio::test]
async fn the_conversation_is_kept_before_it_is_shortened_and_at_the_end() {
    let desk = Desk::new();
    let context = Arc::new(MockContextManager::new());
    context.add_message(Arc::new(Message::user("hello, my key is AKIAIOSFODNN7EXAMPLE"))).await.unwrap();
    let builder =
        desk.with_hook("hooks-backup", json!({"max_transcripts": 2})).await.context(context.clone());
    let session = builder.open().await.unwrap();
    for _ in 0..3 {
        session.coordinator().emit(ContextPreCompact { message_count: 1, token_count: 5 }).await;
    }
    session.cleanup().await;
    let folder = desk.path(".amplifier/backups/test-session/transcripts");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0].starts_with("transcript_compact_20250101_000000_")
            && names[1].starts_with("transcript_final_")
    );
    let lines = json_lines(&folder.join(&names[0]));
    assert_eq!(lines[0]["message_count"], json!(1));
    assert_eq!(lines[1]["content"], json!("hello, my key is [REDACTED]"));
}
