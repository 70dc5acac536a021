//! Records and journals for the tests.

use std::path::Path;

use amplifier_app::journal::{FileJournal, Owner, RecordReader};
use amplifier_app::paths::SessionFolder;
use amplifier_core::journal::Journal as _;
use amplifier_protocol::record::{Record, RecordBody};
use amplifier_protocol::time::Timestamp;
use serde_json::{Value, json};

pub fn owner() -> Owner {
    Owner::this_process("the test", Timestamp::from_micros(0))
}

pub fn folder(dir: &Path) -> SessionFolder {
    SessionFolder::new(dir.join("session"))
}

pub fn record(seq: u64, turn: u64, body: Value) -> Record {
    let ts = Timestamp::from_micros(1_763_245_489_000_000 + i64::try_from(seq).unwrap());
    Record { seq, ts, turn, body: serde_json::from_value(body).unwrap() }
}

pub fn opened() -> Record {
    record(1, 0, json!({"opened": {"session_id": "s", "parent_id": null, "plan_hash": "sha256:1"}}))
}

pub fn event(seq: u64, data: Value) -> Record {
    let body = RecordBody::Event { name: "x:y".parse().unwrap(), data };
    Record { body, ..record(seq, 1, json!({"message": {"role": "user", "content": ""}})) }
}

/// Writes records to a new journal and closes it.
pub fn write_journal(folder: &SessionFolder, records: &[Record]) {
    let (journal, _) = FileJournal::open(folder, owner()).unwrap();
    for record in records {
        journal.append(record).unwrap();
    }
}

pub fn read_all(folder: &SessionFolder) -> Vec<Record> {
    RecordReader::open(folder).unwrap().map(Result::unwrap).collect()
}
