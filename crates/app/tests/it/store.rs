//! Sessions are made, found and listed; their views follow the journal and can always be made again.

use amplifier_app::journal::FileJournal;
use amplifier_app::paths::{Home, SessionFolder};
use amplifier_app::store::{
    Metadata, SessionStore, StoreError, TITLE_CHARS, Views, ViewsUse, check_journal, read_history,
    rebuild_views, update_views,
};
use amplifier_core::history::Replay;
use amplifier_core::journal::Journal as _;
use amplifier_protocol::message::Message;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::record::Record;
use amplifier_protocol::status::SessionState;
use serde_json::{Value, json};

use crate::support::{opened, owner, read_all, record, write_journal};

struct Fixture {
    _dir: tempfile::TempDir,
    store: SessionStore,
    folder: SessionFolder,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(Home::new(dir.path().join("home")));
    let folder = store.create(&"s".parse().unwrap(), &plan()).unwrap();
    Fixture { _dir: dir, store, folder }
}

fn plan() -> MountPlan {
    let json = json!({
        "session": {"orchestrator": {"module": "loop-basic"}, "context": {"module": "context-simple"}},
        "providers": [{"module": "provider-x", "config": {"api_key": "${KEY}"}}]
    });
    MountPlan::read(&json).unwrap()
}

fn says(seq: u64, turn: u64, role: &str, text: &str) -> Record {
    record(seq, turn, json!({"message": {"role": role, "content": text}}))
}

fn ends(seq: u64, turn: u64, status: &str) -> Record {
    let data = json!({"orchestrator": "loop-basic", "turn_count": 0, "status": status});
    record(seq, turn, json!({"event": {"name": "orchestrator:complete", "data": data}}))
}

fn transcript(folder: &SessionFolder) -> Vec<Message> {
    let text = std::fs::read_to_string(folder.transcript()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(folder: &SessionFolder) -> Vec<String> {
    transcript(folder).iter().map(|message| message.content.visible_text().into_owned()).collect()
}

fn metadata(folder: &SessionFolder) -> Value {
    serde_json::from_slice(&std::fs::read(folder.metadata()).unwrap()).unwrap()
}

#[test]
fn a_session_is_made_once_and_its_plan_keeps_references_to_secrets() {
    let Fixture { store, folder, _dir } = fixture();
    let text = std::fs::read_to_string(folder.mount_plan()).unwrap();
    assert!(text.contains("${KEY}"), "{text}");
    assert_eq!(store.plan(&folder).unwrap(), plan());
    let again = store.create(&"s".parse().unwrap(), &plan()).unwrap_err();
    assert_eq!(again.to_string(), "session `s` exists already");
    assert_eq!(store.open(&"s".parse().unwrap()).unwrap(), folder);
    let missing = store.open(&"t".parse().unwrap()).unwrap_err();
    assert!(matches!(missing, StoreError::NotFound { .. }), "{missing}");
}

#[test]
fn views_follow_turn_by_turn_and_equal_those_made_anew() {
    let Fixture { folder, _dir, .. } = fixture();
    assert_eq!(update_views(&folder).unwrap(), Views::Empty);
    let long = format!("  first\n line {}", "ä".repeat(100));
    write_journal(
        &folder,
        &[opened(), says(2, 1, "user", &long), says(3, 1, "assistant", "one"), ends(4, 1, "success")],
    );
    assert_eq!(update_views(&folder).unwrap(), Views::Rebuilt);
    assert_eq!(texts(&folder), [long.as_str(), "one"]);
    write_journal(&folder, &[says(5, 2, "user", "again"), ends(6, 2, "error")]);
    assert_eq!(update_views(&folder).unwrap(), Views::Updated);
    assert_eq!(texts(&folder), [long.as_str(), "one", "again"]);

    let shown: Metadata = serde_json::from_value(metadata(&folder)).unwrap();
    let title = shown.title.clone().unwrap();
    assert!(title.starts_with("first line ä") && title.ends_with('…'), "{title}");
    assert_eq!(title.chars().count(), TITLE_CHARS);
    assert_eq!((shown.turns, shown.status, shown.plan_hash.as_str()), (2, SessionState::Failed, "sha256:1"));
    assert_eq!((shown.created, shown.updated), (opened().ts, ends(6, 2, "error").ts));

    let updated = (metadata(&folder), std::fs::read(folder.transcript()).unwrap());
    assert_eq!(rebuild_views(&folder).unwrap(), Views::Rebuilt);
    assert_eq!((metadata(&folder), std::fs::read(folder.transcript()).unwrap()), updated);
}

#[test]
fn views_that_are_gone_or_torn_are_made_right() {
    let Fixture { folder, _dir, .. } = fixture();
    write_journal(&folder, &[opened(), says(2, 1, "user", "a"), says(3, 1, "assistant", "b")]);
    rebuild_views(&folder).unwrap();
    let right = (metadata(&folder), std::fs::read(folder.transcript()).unwrap());
    type Breaks = fn(&SessionFolder);
    let damage: [(&str, Breaks); 5] = [
        ("metadata gone", |f| std::fs::remove_file(f.metadata()).unwrap()),
        ("metadata empty", |f| std::fs::write(f.metadata(), "").unwrap()),
        ("transcript gone", |f| std::fs::remove_file(f.transcript()).unwrap()),
        ("transcript torn", |f| {
            let bytes = std::fs::read(f.transcript()).unwrap();
            std::fs::write(f.transcript(), &bytes[..bytes.len() - 5]).unwrap();
        }),
        ("update that did not end", |f| {
            let mut bytes = std::fs::read(f.transcript()).unwrap();
            bytes.extend(b"{\"role\":\"user\",\"con");
            std::fs::write(f.transcript(), bytes).unwrap();
        }),
    ];
    for (name, break_it) in damage {
        break_it(&folder);
        update_views(&folder).unwrap();
        assert_eq!((metadata(&folder), std::fs::read(folder.transcript()).unwrap()), right, "{name}");
    }
}

#[test]
fn views_that_know_more_than_the_journal_are_left_as_they_are() {
    let Fixture { folder, _dir, .. } = fixture();
    write_journal(&folder, &[opened(), says(2, 1, "user", "a"), says(3, 1, "assistant", "b")]);
    rebuild_views(&folder).unwrap();
    let mut ahead = metadata(&folder);
    ahead["views"]["seq"] = json!(99);
    std::fs::write(folder.metadata(), ahead.to_string()).unwrap();
    let views = || (metadata(&folder), std::fs::read(folder.transcript()).unwrap());
    let before = views();
    let refused = [
        update_views(&folder).map(drop),
        rebuild_views(&folder).map(drop),
        read_history(&folder).map(drop),
        check_journal(&folder),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(matches!(error, StoreError::Behind { ends: Some(3), known: Some(99), .. }), "{error}");
        assert!(error.to_string().contains("ends at record 3, and the views that were made from it know 99"));
    }
    assert_eq!(views(), before);
}

#[test]
fn a_lost_record_is_not_taken_for_one_that_was_cut_before() {
    let Fixture { folder, _dir, .. } = fixture();
    write_journal(&folder, &[opened(), says(2, 1, "user", "a"), says(3, 1, "assistant", "b")]);
    rebuild_views(&folder).unwrap();
    let journal = std::fs::read_to_string(folder.events()).unwrap();
    let two: String = journal.split_inclusive('\n').take(2).collect();
    std::fs::write(folder.events(), two).unwrap();
    for (kept, passes) in [
        ("", false),
        ("{\"v\":1,\"se\n", false),
        ("2 {\"v\":1,\"se\n", false),
        ("3 {\"v\":1\n2 {\n", false),
        ("2 {\n3 {\"v\":1,\"se\n", true),
        ("3 \n", true),
    ] {
        std::fs::write(folder.torn(), kept).unwrap();
        assert_eq!(check_journal(&folder).is_ok(), passes, "{kept:?}");
    }
}

#[test]
fn a_journal_that_cannot_be_read_takes_nothing_from_the_views() {
    let Fixture { folder, _dir, .. } = fixture();
    let kept = json!({"messages": [{"role": "user", "content": "summary"}]});
    write_journal(&folder, &[opened(), says(2, 1, "user", "a"), record(3, 1, kept), says(4, 1, "user", "b")]);
    update_views(&folder).unwrap();
    let transcript = std::fs::read(folder.transcript()).unwrap();
    let journal = std::fs::read_to_string(folder.events()).unwrap();
    std::fs::write(folder.events(), journal.replacen("summary", "summery", 1)).unwrap();
    std::fs::remove_file(folder.metadata()).unwrap();
    assert!(matches!(update_views(&folder), Err(StoreError::Journal(_))));
    assert_eq!(std::fs::read(folder.transcript()).unwrap(), transcript);
    let left: Vec<_> =
        std::fs::read_dir(folder.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{left:?}");
}

#[test]
fn a_replaced_context_replaces_the_transcript() {
    let Fixture { folder, _dir, .. } = fixture();
    write_journal(&folder, &[opened(), says(2, 1, "user", "a"), says(3, 1, "assistant", "b")]);
    update_views(&folder).unwrap();
    let kept = json!({"messages": [{"role": "user", "content": "summary"}]});
    write_journal(&folder, &[record(4, 2, kept), says(5, 2, "assistant", "c")]);
    assert_eq!(update_views(&folder).unwrap(), Views::Updated);
    assert_eq!(texts(&folder), ["summary", "c"]);
    write_journal(&folder, &[says(6, 2, "user", "d")]);
    assert_eq!(update_views(&folder).unwrap(), Views::Updated);
    assert_eq!(texts(&folder), ["summary", "c", "d"]);
}

#[test]
fn foreign_blocks_with_line_feeds_and_large_texts_are_one_line_each() {
    let Fixture { folder, _dir, .. } = fixture();
    let foreign = "{\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"x\",\n \"n\": 1.50}]}}";
    let mut foreign_record = record(2, 1, json!({"message": {"role": "user", "content": ""}}));
    foreign_record.body = serde_json::from_str(foreign).unwrap();
    let book = "page\n".repeat(30_000);
    write_journal(&folder, &[opened(), foreign_record, says(3, 1, "assistant", &book)]);
    update_views(&folder).unwrap();
    let lines = std::fs::read_to_string(folder.transcript()).unwrap();
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.contains("\"n\": 1.50"), "the number keeps its spelling");
    assert_eq!(texts(&folder)[1], book);
}

#[test]
fn a_home_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("home");
    std::fs::write(&file, "a file where a folder belongs").unwrap();
    let error = SessionStore::new(Home::new(&file)).create(&"s".parse().unwrap(), &plan()).unwrap_err();
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn a_writer_at_work_does_not_keep_others_from_the_views() {
    let Fixture { folder, _dir, .. } = fixture();
    let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
    for record in [opened(), says(2, 1, "user", "a")] {
        journal.append(&record).unwrap();
    }
    journal.sync().await.unwrap();
    assert_eq!(update_views(&folder).unwrap(), Views::Rebuilt);
    assert_eq!(texts(&folder), ["a"]);
}

#[test]
fn w23_a_session_is_never_made_over_another() {
    let fixture = fixture();
    let id = "s".parse().unwrap();
    std::fs::write(fixture.folder.events(), "kept").unwrap();
    let error = fixture.store.create(&id, &plan()).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(fixture.folder.events()).unwrap(), "kept");
}

#[test]
fn the_history_is_read_from_the_views_and_is_that_of_the_whole_journal() {
    let Fixture { folder, _dir, .. } = fixture();
    let started = |seq, turn, id: &str, operation: &str| {
        let call = json!({"call_id": id, "owner": "m", "operation": operation, "effect": "write"});
        record(seq, turn, json!({"call_started": call}))
    };
    let answered = |seq, turn, id: &str, result: Value| {
        record(
            seq,
            turn,
            json!({"call_finished": {"call_id": id, "outcome": {"status": "answered", "result": result}}}),
        )
    };
    let usage = json!({"usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}});
    let wish = |seq, turn, ids: &[&str]| {
        let calls: Vec<_> = ids.iter().map(|id| json!({"id": id, "tool": "bash", "arguments": {}})).collect();
        record(seq, turn, json!({"message": {"role": "assistant", "content": "", "tool_calls": calls}}))
    };
    let steps = [
        vec![
            opened(),
            says(2, 1, "user", "a"),
            started(3, 1, "p1", "provider.complete"),
            answered(4, 1, "p1", usage),
        ],
        // The views end in the middle of calls, of which one ended, one began and one never did.
        vec![
            wish(5, 1, &["c1", "c2", "c3"]),
            started(6, 1, "c1", "bash"),
            answered(7, 1, "c1", json!({"success": true, "output": "x"})),
        ],
        vec![started(8, 1, "c2", "bash")],
        vec![
            record(9, 2, json!({"messages": [{"role": "user", "content": "short"}]})),
            says(10, 2, "user", "b"),
        ],
        vec![says(11, 2, "assistant", "done"), ends(12, 2, "success")],
    ];
    let whole = || {
        let mut replay = Replay::default();
        read_all(&folder).iter().for_each(|record| replay.push(record));
        replay.finish()
    };
    for records in &steps {
        write_journal(&folder, records);
        // Once with views that are behind, once with views that are not.
        for _ in 0..2 {
            let read = read_history(&folder).unwrap();
            assert_eq!(read.history, whole());
            assert_eq!(read.views == ViewsUse::Led, folder.metadata().exists());
            update_views(&folder).unwrap();
        }
    }
    assert_eq!(read_history(&folder).unwrap().views, ViewsUse::Led);
    // A transcript that somebody changed is not believed, though it is as long as it was.
    let text = std::fs::read_to_string(folder.transcript()).unwrap();
    std::fs::write(folder.transcript(), text.replace("done", "gone")).unwrap();
    let read = read_history(&folder).unwrap();
    assert_eq!((read.views, read.history), (ViewsUse::Damaged, whole()));
}
