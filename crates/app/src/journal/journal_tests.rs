//! What a failing disk does to a journal; the rest is tested through the front door in `tests/it`.

use super::*;
use amplifier_protocol::time::Timestamp;
use serde_json::json;

fn owner() -> Owner {
    Owner::this_process("test", Timestamp::from_micros(0))
}

fn opened() -> Record {
    let body =
        RecordBody::Opened { session_id: "s".parse().unwrap(), parent_id: None, plan_hash: "h".to_owned() };
    Record { seq: 1, ts: Timestamp::from_micros(0), turn: 0, body }
}

fn event(seq: u64, data: serde_json::Value) -> Record {
    let body = RecordBody::Event { name: "x:y".parse().unwrap(), data };
    Record { seq, ts: Timestamp::from_micros(0), turn: 0, body }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_fails_every_later_call_with_the_first_error_and_the_file_name() {
    let dir = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(dir.path());
    let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
    journal.append(&opened()).unwrap();
    journal.sync().await.unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let disk = std::mem::replace(&mut lock(&journal.shared.sink).file, full);
    journal.append(&event(2, json!(null))).unwrap();
    let error = journal.sync().await.unwrap_err();
    assert!(error.message.contains("events.jsonl") && error.message.contains("space"), "{error}");
    lock(&journal.shared.sink).file = disk;
    assert_eq!(journal.append(&event(3, json!(null))).unwrap_err(), error);
    assert_eq!(journal.sync().await.unwrap_err(), error);
    drop(journal);
    assert_eq!(verify(&folder).unwrap().records, 1);
}

#[tokio::test]
async fn a_read_only_file_is_an_error_and_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(dir.path());
    let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
    lock(&journal.shared.sink).file = std::fs::File::open(folder.events()).unwrap();
    journal.append(&opened()).unwrap();
    assert!(journal.sync().await.unwrap_err().message.contains("events.jsonl"));
}

#[tokio::test]
async fn a_lost_lease_stops_the_writer_before_it_writes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(dir.path());
    let (first, _) = FileJournal::open(&folder, owner()).unwrap();
    first.append(&opened()).unwrap();
    first.sync().await.unwrap();
    std::fs::remove_file(folder.lease()).unwrap();
    let (second, found) = FileJournal::open(&folder, owner()).unwrap();
    assert_eq!(found.last_seq, 1);
    second.append(&event(2, json!("second"))).unwrap();
    second.sync().await.unwrap();
    first.append(&event(2, json!("first"))).unwrap();
    assert!(first.sync().await.unwrap_err().message.contains("taken away"));
    assert_eq!(verify(&folder).unwrap().records, 2);
}

#[test]
fn a_flood_without_syncs_stays_small_in_memory_and_reaches_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(dir.path());
    let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
    journal.append(&opened()).unwrap();
    for seq in 2..3000 {
        journal.append(&event(seq, json!("x".repeat(2000)))).unwrap();
        assert!(lock(&journal.shared.state).waiting.bytes() <= SPILL_BYTES + 4096);
    }
    assert!(std::fs::metadata(folder.events()).unwrap().len() > 5_000_000);
}

#[tokio::test]
async fn callers_that_come_during_a_sync_share_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(dir.path());
    let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
    let journal = Arc::new(journal);
    journal.append(&opened()).unwrap();
    // Holding the sink keeps the first round running until all callers are there.
    let (held, is_held) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let holder = Arc::clone(&journal.shared);
    let holding = std::thread::spawn(move || {
        let _sink = lock(&holder.sink);
        held.send(()).unwrap();
        released.recv().unwrap();
    });
    is_held.recv().unwrap();
    let mut callers = Vec::new();
    for seq in 2..50 {
        journal.append(&event(seq, json!(seq))).unwrap();
        let journal = Arc::clone(&journal);
        callers.push(tokio::spawn(async move { journal.sync().await }));
    }
    tokio::task::yield_now().await;
    release.send(()).unwrap();
    holding.join().unwrap();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert!(*journal.shared.rounds.borrow() <= 2);
    assert_eq!(verify(&folder).unwrap().records, 49);
}

#[tokio::test]
async fn wrong_sequence_numbers_and_a_missing_opening_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = SessionFolder::new(dir.path());
    let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
    assert!(journal.append(&event(1, json!(1))).unwrap_err().message.contains("`opened`"));
    journal.append(&opened()).unwrap();
    let error = journal.append(&event(3, json!(1))).unwrap_err();
    assert!(error.message.contains("sequence number 3 where 2 belongs"), "{error}");
    journal.append(&event(2, json!(1))).unwrap();
    journal.sync().await.unwrap();
    assert_eq!(verify(&folder).unwrap(), Verified { records: 2, torn_bytes: 0 });
}
