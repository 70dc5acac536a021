//! What is written to a journal is what is read, whatever happened to the file's end, and damage is named.

use std::io::Write as _;
use std::sync::Arc;

use amplifier_app::journal::{
    Around, FileJournal, Follower, JournalFileError, LeaseError, Passage, RecordReader, Repair, verify,
};
use amplifier_app::paths::SessionFolder;
use amplifier_core::journal::Journal as _;
use amplifier_protocol::message::Message;
use amplifier_protocol::record::{Record, RecordBody};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{event, folder, opened, owner, read_all, write_journal};

const LARGE: usize = 64 * 1024;

/// JSON with everything that could go wrong on its way to a line and back.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no such number", |n| n.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any_large_text().prop_map(Value::from),
    ];
    let key = prop_oneof![
        any::<String>(),
        Just("$blob".to_owned()),
        Just("$$blob".to_owned()),
        Just("$json".to_owned())
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Text around the limit, where one quote or one escape more decides.
fn any_large_text() -> impl Strategy<Value = String> {
    (prop_oneof![Just("x"), Just("é"), Just("\""), Just("\n\u{0}"), Just("😀")], 0_usize..8)
        .prop_map(|(unit, over)| unit.repeat((LARGE - 4 + over).div_ceil(unit.len())))
}

/// A block of a type nobody knows, with spaces, line feeds and spellings of its own.
fn any_foreign_block() -> impl Strategy<Value = String> {
    (any_json(), prop_oneof![Just(""), Just(" "), Just("\n\t"), Just("\r\n")]).prop_map(|(value, gap)| {
        let spelled = serde_json::to_string(&value).unwrap().replace("/", "\\/");
        format!("{{{gap}\"type\":{gap}\"foreign\",{gap}\"n\": 1.50e2,{gap}\"s\": \"\\u00e9\", \"v\":{spelled}{gap}}}")
    })
}

fn any_body() -> impl Strategy<Value = RecordBody> {
    let message = (any::<String>(), any_foreign_block())
        .prop_map(|(text, block)| {
            let text = serde_json::to_string(&text).unwrap();
            let json =
                format!(r#"{{"role":"assistant","content":[{{"type":"text","text":{text}}},{block}]}}"#);
            Arc::new(serde_json::from_str::<Message>(&json).unwrap())
        })
        .boxed();
    prop_oneof![
        any_json().prop_map(|data| RecordBody::Event { name: "x:y".parse().unwrap(), data }),
        message.clone().prop_map(RecordBody::Message),
        prop::collection::vec(message, 0..3).prop_map(RecordBody::Messages),
        (any_json(), any::<String>()).prop_map(|(input, call_id)| {
            let body = json!({"call_started": {"call_id": call_id, "owner": "o", "operation": "t", "effect": "write", "input": input}});
            serde_json::from_value(body).unwrap()
        }),
        any_json().prop_map(|result| {
            let body = json!({"call_finished": {"call_id": "c", "outcome": {"status": "answered", "result": result}}});
            serde_json::from_value(body).unwrap()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_appended_is_read_back_equal_and_spelled_the_same(bodies in prop::collection::vec(any_body(), 1..6)) {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let mut records = vec![opened()];
        for (seq, body) in (2..).zip(bodies) {
            records.push(Record { body, ..event(seq, Value::Null) });
        }
        write_journal(&folder, &records);
        let back = read_all(&folder);
        prop_assert_eq!(&back, &records);
        prop_assert_eq!(serde_json::to_string(&back).unwrap(), serde_json::to_string(&records).unwrap());
        prop_assert_eq!(verify(&folder).unwrap().records, records.len() as u64);
        let lines = std::fs::read_to_string(folder.events()).unwrap();
        prop_assert_eq!(lines.lines().count(), records.len());
    }
}

#[test]
fn a_last_line_torn_at_any_byte_is_cut_kept_aside_and_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let whole = folder(dir.path());
    write_journal(&whole, &[opened(), event(2, json!("stays")), event(3, json!("torn é"))]);
    let bytes = std::fs::read(whole.events()).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for end in last..bytes.len() {
        let folder = folder(&dir.path().join(end.to_string()));
        std::fs::create_dir_all(folder.dir()).unwrap();
        std::fs::write(folder.events(), &bytes[..end]).unwrap();
        assert_eq!(read_all(&folder).len(), 2, "readers do not show a torn line");
        let (journal, found) = FileJournal::open(&folder, owner()).unwrap();
        assert_eq!(found.last_seq, 2);
        let torn = &bytes[last..end];
        match found.repair {
            None => assert!(torn.is_empty()),
            Some(Repair { line, bytes, saved, .. }) => {
                assert_eq!((line, bytes), (3, torn.len() as u64));
                assert_eq!(std::fs::read(saved).unwrap(), [b"3 ", torn, b"\n"].concat());
            }
        }
        journal.append(&event(3, json!("again"))).unwrap();
        drop(journal);
        assert_eq!(read_all(&folder), [opened(), event(2, json!("stays")), event(3, json!("again"))]);
    }
}

#[test]
fn a_complete_last_line_with_a_wrong_checksum_is_torn_and_in_the_middle_it_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    write_journal(&folder, &[opened(), event(2, json!("two")), event(3, json!("three"))]);
    let whole = std::fs::read_to_string(folder.events()).unwrap();
    std::fs::write(folder.events(), whole.replace("three", "thrEE")).unwrap();
    let (journal, found) = FileJournal::open(&folder, owner()).unwrap();
    assert_eq!((found.last_seq, found.repair.map(|repair| repair.line)), (2, Some(3)));
    drop(journal);

    let middle = whole.replace("two", "tWo");
    std::fs::write(folder.events(), &middle).unwrap();
    let error = FileJournal::open(&folder, owner()).err().unwrap();
    assert_eq!(error.to_string(), format!("{}:2 is damaged", folder.events().display()));
    let mut reader = RecordReader::open(&folder).unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), opened());
    assert!(matches!(reader.next(), Some(Err(JournalFileError::Damaged { line: 2, .. }))));
    assert!(reader.next().is_none());
    let mut follower = Follower::open(&folder);
    assert_eq!(follower.read_new().unwrap(), [opened()]);
    assert!(matches!(follower.read_new(), Err(JournalFileError::Damaged { line: 2, .. })));
    assert_eq!(std::fs::read_to_string(folder.events()).unwrap(), middle, "nothing was dropped");
}

#[test]
fn a_missing_or_doubled_line_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    write_journal(&folder, &[opened(), event(2, json!(2)), event(3, json!(3))]);
    let whole = std::fs::read_to_string(folder.events()).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    for (order, line) in [(vec![0, 2], 2), (vec![0, 1, 1, 2], 3), (vec![0, 1, 2, 2], 4), (vec![1], 1)] {
        let text: String = order.iter().map(|at: &usize| format!("{}\n", lines[*at])).collect();
        std::fs::write(folder.events(), text).unwrap();
        let error = verify(&folder).unwrap_err();
        assert_eq!(error.to_string(), format!("{}:{line} is damaged", folder.events().display()));
        assert!(FileJournal::open(&folder, owner()).is_err());
    }
}

#[test]
fn an_endless_line_is_a_named_error_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    write_journal(&folder, &[opened()]);
    let file = std::fs::OpenOptions::new().write(true).open(folder.events()).unwrap();
    // A hole: long without taking room on the disk.
    file.set_len(1 << 33).unwrap();
    let error = verify(&folder).unwrap_err();
    assert!(matches!(error, JournalFileError::LineTooLong { line: 2, .. }), "{error}");
}

#[test]
fn a_second_writer_is_refused_with_the_name_of_the_first_until_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let (first, found) = FileJournal::open(&folder, owner()).unwrap();
    assert_eq!(found.generation, 1);
    let error = FileJournal::open(&folder, owner()).err().unwrap();
    assert!(
        matches!(&error, JournalFileError::Lease(LeaseError::Held { owner: Some(held), .. }) if *held == owner())
    );
    let text = error.to_string();
    assert!(text.contains("`the test` (process ") && text.contains("lease"), "{text}");
    drop(first);
    assert_eq!(FileJournal::open(&folder, owner()).unwrap().1.generation, 2);
}

#[test]
fn large_values_are_kept_once_and_a_lost_or_changed_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let book = "word ".repeat(40_000);
    write_journal(&folder, &[opened(), event(2, json!([book, book])), event(3, json!({"again": book}))]);
    let blobs: Vec<_> =
        std::fs::read_dir(folder.blobs()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(blobs.len(), 1);
    assert_eq!(std::fs::read_to_string(&blobs[0]).unwrap(), book);
    assert!(std::fs::metadata(folder.events()).unwrap().len() < 2000);
    let hash = blobs[0].file_name().unwrap().to_str().unwrap().to_owned();

    std::fs::write(&blobs[0], book.replacen("word", "wOrd", 1)).unwrap();
    let error = RecordReader::open(&folder).unwrap().nth(1).unwrap().unwrap_err();
    assert!(matches!(&error, JournalFileError::Blob { line: 2, .. }), "{error}");
    assert!(std::error::Error::source(&error).unwrap().to_string().contains(&hash));
    std::fs::remove_file(&blobs[0]).unwrap();
    let error = RecordReader::from_seq(&folder, 3).unwrap().next().unwrap().unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains(&hash));
}

/// What a reader gets who reads around damage: records by their numbers, gaps in brackets, and the lines it blames.
fn around(folder: &SessionFolder, known: u64) -> (String, Vec<u64>) {
    let (mut around, mut got, mut blamed) = (Around::open(folder, known).unwrap(), Vec::new(), Vec::new());
    loop {
        let passage = around.advance().unwrap();
        blamed.extend(around.take_faults().into_iter().map(|fault| fault.line));
        match passage {
            Passage::Line => {
                let peek = around.line().unwrap();
                let seq = peek.seq;
                let (record, faults) = peek.record_around();
                assert_eq!((record.unwrap().seq, faults.len()), (seq, 0));
                got.push(seq.to_string());
            }
            Passage::Gap(gap) if gap.records() == 1 => got.push(format!("[{}]", gap.from)),
            Passage::Gap(gap) => got.push(format!("[{}-{}]", gap.from, gap.to)),
            Passage::End => return (got.join(" "), blamed),
        }
    }
}

#[test]
fn whatever_was_done_to_lines_the_whole_ones_are_read_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let records: Vec<_> = (2..=8).map(|seq| event(seq, json!({"n": seq}))).collect();
    write_journal(&folder, &[vec![opened()], records].concat());
    let text = std::fs::read_to_string(folder.events()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let spoilt = |line: usize| lines[line - 1].replacen("\"v\"", "\"w\"", 1);
    let order = |order: &[usize]| order.iter().map(|line| lines[line - 1]).collect::<String>();
    let cases = [
        (text.clone(), "1 2 3 4 5 6 7 8", vec![]),
        (text.replace(lines[2], &spoilt(3)), "1 2 [3] 4 5 6 7 8", vec![3]),
        (text.replace(lines[0], &spoilt(1)), "[1] 2 3 4 5 6 7 8", vec![1]),
        (text.replace(lines[2], "\n\n"), "1 2 [3] 4 5 6 7 8", vec![3, 4, 5]),
        (order(&[1, 2, 5, 6, 7, 8]), "1 2 [3-4] 5 6 7 8", vec![3]),
        (order(&[1, 3, 2, 4, 5, 6, 7, 8]), "1 2 3 4 5 6 7 8", vec![2, 3, 4]),
        (order(&[1, 7, 3, 4, 5, 6, 2, 8]), "1 2 3 4 5 6 7 8", vec![2, 3, 7, 8]),
        (order(&[1, 6, 7, 2, 3, 4, 5, 8]), "1 2 3 4 5 6 7 8", vec![2, 4, 8]),
        (order(&[1, 2, 3, 3, 2, 4, 5, 6, 7, 8]), "1 2 3 4 5 6 7 8", vec![4, 5, 6]),
        (order(&[1, 2, 3]), "1 2 3 [4-8]", vec![]),
        // A torn end is none of ours, and a whole journal may have grown since.
        (format!("{}{}", order(&[1, 2, 3, 4, 5, 6, 7]), spoilt(8)), "1 2 3 4 5 6 7", vec![]),
        (String::new(), "[1-8]", vec![]),
        ("no\njournal\n".to_owned(), "[1-8]", vec![1]),
    ];
    for (journal, expected, blamed) in cases {
        std::fs::write(folder.events(), &journal).unwrap();
        assert_eq!(around(&folder, 8), (expected.to_owned(), blamed), "{journal}");
        assert_eq!(std::fs::read_to_string(folder.events()).unwrap(), journal);
    }
    std::fs::remove_file(folder.events()).unwrap();
    assert_eq!(around(&folder, 8).0, "[1-8]");
    assert!(Around::open(&folder, 0).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_see_a_growing_prefix_while_a_writer_writes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let expected: Vec<_> = std::iter::once(opened())
        .chain((2..=400).map(|seq| event(seq, json!("é".repeat(usize::try_from(seq).unwrap() * 7)))))
        .collect();
    let mut followers: Vec<_> = [0, 0, 150].map(|after| (Follower::after(&folder, after), Vec::new())).into();
    let writer = {
        let (folder, expected) = (folder.clone(), expected.clone());
        tokio::spawn(async move {
            let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
            for record in &expected {
                journal.append(record).unwrap();
                if record.seq % 20 == 0 {
                    journal.sync().await.unwrap();
                }
            }
        })
    };
    loop {
        let is_over = writer.is_finished();
        for (follower, seen) in &mut followers {
            seen.extend(follower.read_new().unwrap());
        }
        if is_over {
            break;
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    assert_eq!(followers[0].1, expected);
    assert_eq!(followers[1].1, expected);
    assert_eq!(followers[2].1, expected[150..]);
}

#[test]
fn a_follower_passes_over_a_torn_end_that_a_repair_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let mut follower = Follower::open(&folder);
    assert_eq!(follower.read_new().unwrap(), []);
    write_journal(&folder, &[opened()]);
    std::fs::OpenOptions::new()
        .append(true)
        .open(folder.events())
        .unwrap()
        .write_all(b"{\"v\":1,\"se")
        .unwrap();
    assert_eq!(follower.read_new().unwrap(), [opened()]);
    assert_eq!(follower.read_new().unwrap(), []);
    write_journal(&folder, &[event(2, json!("new"))]);
    assert_eq!(follower.read_new().unwrap(), [event(2, json!("new"))]);
}

#[tokio::test]
async fn opening_a_long_journal_reads_only_its_tail_and_a_lost_index_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let (journal, _) = FileJournal::open(&folder, owner()).unwrap();
    journal.append(&opened()).unwrap();
    for seq in 2..=6000 {
        journal.append(&event(seq, json!({"n": seq, "pad": "p".repeat(500)}))).unwrap();
        if seq % 500 == 0 {
            journal.sync().await.unwrap();
        }
    }
    drop(journal);
    let index = std::fs::read_to_string(folder.index()).unwrap();
    assert!(index.lines().count() >= 2, "{index}");

    // Damage before the last entry: opening does not look there, the full check does.
    let whole = std::fs::read_to_string(folder.events()).unwrap();
    std::fs::write(folder.events(), whole.replacen("\"n\":77,", "\"n\":78,", 1)).unwrap();
    assert_eq!(FileJournal::open(&folder, owner()).unwrap().1.last_seq, 6000);
    assert!(matches!(verify(&folder), Err(JournalFileError::Damaged { line: 77, .. })));
    std::fs::write(folder.events(), &whole).unwrap();

    for bad_index in [None, Some("nonsense\n".repeat(40)), Some(index.replace("0 ", "1 "))] {
        match bad_index {
            None => std::fs::remove_file(folder.index()).unwrap(),
            Some(text) => std::fs::write(folder.index(), text).unwrap(),
        }
        assert_eq!(FileJournal::open(&folder, owner()).unwrap().1.last_seq, 6000);
        let tail: Vec<_> = RecordReader::from_seq(&folder, 5999).unwrap().map(|r| r.unwrap().seq).collect();
        assert_eq!(tail, [5999, 6000]);
        let entries = std::fs::read_to_string(folder.index()).unwrap();
        let first: u64 = entries.lines().next().unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(first > 1 && first < 6000, "{entries}");
    }
}

#[cfg(unix)]
#[test]
fn everything_in_a_session_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    write_journal(&folder, &[opened(), event(2, json!("x".repeat(70_000)))]);
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder.dir().to_owned()), mode(folder.blobs())), (0o700, 0o700));
    assert_eq!((mode(folder.events()), mode(folder.lease())), (0o600, 0o600));
}

#[test]
fn the_documented_lines_are_a_journal() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/journal.md"))
            .unwrap();
    let lines: String =
        page.lines().filter(|line| line.starts_with("{\"v\":")).map(|line| format!("{line}\n")).collect();
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    std::fs::create_dir_all(folder.blobs()).unwrap();
    std::fs::write(folder.events(), &lines).unwrap();
    let book = "All work and no play makes Jack a dull boy.\n".repeat(2000);
    let hash = lines.split("\"$blob\":\"").nth(1).unwrap().split('"').next().unwrap();
    std::fs::write(folder.blobs().join(hash), &book).unwrap();
    let records = read_all(&folder);
    assert_eq!(records.len(), lines.lines().count());
    assert!(records.len() >= 7);
    assert!(records.iter().any(|record| matches!(&record.body, RecordBody::CallFinished { .. })));
    // Written again they are the same bytes, so the page shows what the program writes.
    let again = folder_of_records(dir.path(), &records);
    assert_eq!(std::fs::read_to_string(again.events()).unwrap(), lines);
}

fn folder_of_records(dir: &std::path::Path, records: &[Record]) -> amplifier_app::paths::SessionFolder {
    let folder = folder(&dir.join("again"));
    write_journal(&folder, records);
    folder
}
