//! A real writer process is killed at random moments, hundreds of times, and nothing it acknowledged is ever missing.

use std::io::BufReader;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use amplifier_app::journal::{FileJournal, Follower, JournalFileError, LeaseError, RecordReader, verify};
use amplifier_app::paths::SessionFolder;
use amplifier_core::journal::Journal as _;
use amplifier_protocol::record::{Record, RecordBody};
use serde_json::json;

use crate::support::{event, folder, opened, owner, read_all};

const LANES: u64 = 4;
const KILLS_PER_LANE: u64 = 80;
const CHILD_VARIABLE: &str = "AMPLIFIER_TEST_JOURNAL";

/// A small generator with a seed, so that a failing run can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The one content a record of this number can have, unless it is an `opened`.
fn expected(seq: u64) -> Record {
    let (unit, size) = match seq % 151 {
        0 => ("x", 70_000),
        1..20 => ("é\"", 300),
        _ => ("x", 40),
    };
    event(seq, json!({"n": seq, "$blob": "no", "text": format!("{seq}{}", unit.repeat(size))}))
}

/// Not a test of its own: the writer that `random_kills…` starts and kills. Without its variable it does nothing.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test hands its child a folder, as no argument reaches a test"
)]
fn writer_child() {
    let Some(dir) = std::env::var_os(CHILD_VARIABLE) else { return };
    let folder = SessionFolder::new(dir);
    let (journal, found) = FileJournal::open(&folder, owner()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut seq = found.last_seq + 1;
    let mut random = Random(seq * 7919 + 1);
    journal.append(&Record { seq, ..opened() }).unwrap();
    loop {
        for _ in 0..[1, 2, 5, 40][usize::try_from(random.below(4)).unwrap()] {
            seq += 1;
            journal.append(&expected(seq)).unwrap();
        }
        runtime.block_on(journal.sync()).unwrap();
        println!("\nack {seq}");
    }
}

fn start_writer(folder: &SessionFolder) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::writer_child", "--nocapture", "--test-threads", "1"])
        .env(CHILD_VARIABLE, folder.dir())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// The next acknowledged number; none when the output ended. A torn last line is no acknowledgement.
fn next_ack(output: &mut impl std::io::BufRead) -> Option<u64> {
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        if let Some(seq) = line.strip_suffix('\n').and_then(|line| line.strip_prefix("ack ")) {
            return Some(seq.parse().unwrap());
        }
        line.clear();
    }
    None
}

struct Lane {
    folder: SessionFolder,
    follower: Follower,
    random: Random,
    /// How many records were there after the last kill, and how many the follower has shown.
    known: u64,
    followed: u64,
    repairs: u64,
}

impl Lane {
    fn new(dir: &Path, number: u64) -> Self {
        let folder = folder(&dir.join(number.to_string()));
        let follower = Follower::open(&folder);
        Self { folder, follower, random: Random(number * 104_729 + 17), known: 0, followed: 0, repairs: 0 }
    }

    fn kill_once(&mut self, number: u64) {
        let (mut child, mut output) = start_writer(&self.folder);
        let mut acked = 0;
        for _ in 0..self.random.below(4) {
            acked = next_ack(&mut output).expect("the writer runs until it is killed");
            if number.is_multiple_of(10) {
                self.refuse_second_writer(child.id());
            }
            self.follow();
        }
        // Any moment of the writer's life will do; only its spread matters.
        std::thread::sleep(Duration::from_micros(self.random.below(9_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        while let Some(seq) = next_ack(&mut output) {
            acked = seq;
        }
        if self.random.below(2) == 0 {
            self.tear(acked);
        }
        self.check(acked);
    }

    fn refuse_second_writer(&self, pid: u32) {
        match FileJournal::open(&self.folder, owner()).err() {
            Some(JournalFileError::Lease(LeaseError::Held { owner: Some(holder), .. })) => {
                assert_eq!((holder.pid, holder.program.as_str()), (pid, "the test"));
            }
            other => panic!("a second writer got {other:?}"),
        }
    }

    fn follow(&mut self) {
        loop {
            let records = self.follower.read_new().unwrap();
            if records.is_empty() {
                return;
            }
            for record in records {
                self.followed += 1;
                assert_is_expected(&record, self.followed);
            }
        }
    }

    /// Does what a failing machine would have done besides: a last line that nobody was promised is on disk in part.
    fn tear(&mut self, acked: u64) {
        let Ok(bytes) = std::fs::read(self.folder.events()) else { return };
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let last = bytes.strip_suffix(b"\n").and_then(|rest| rest.rsplit(|byte| *byte == b'\n').next());
        if let Some(last) = last.filter(|_| lines > acked.max(self.followed).max(self.known)) {
            let cut = 1 + self.random.below(last.len() as u64);
            let file = std::fs::OpenOptions::new().write(true).open(self.folder.events()).unwrap();
            file.set_len(bytes.len() as u64 - cut).unwrap();
        }
    }

    /// Reopens, and compares what came since the last kill; the rest is compared again at the end.
    fn check(&mut self, acked: u64) {
        let events = self.folder.events();
        if !events.exists() {
            assert_eq!((acked, self.known), (0, 0));
            return;
        }
        let (journal, found) = FileJournal::open(&self.folder, owner()).unwrap();
        drop(journal);
        self.repairs += u64::from(found.repair.is_some());
        assert!(found.last_seq >= acked, "acknowledged {acked}, found {}", found.last_seq);
        assert!(found.last_seq >= self.known, "had {}, found {}", self.known, found.last_seq);
        let new: Vec<_> =
            RecordReader::from_seq(&self.folder, self.known + 1).unwrap().map(Result::unwrap).collect();
        assert_eq!(self.known + new.len() as u64, found.last_seq);
        for (seq, record) in (self.known + 1..).zip(&new) {
            assert_is_expected(record, seq);
        }
        self.known = found.last_seq;
    }
}

fn assert_is_expected(record: &Record, seq: u64) {
    match record.body {
        RecordBody::Opened { .. } => assert_eq!(record.seq, seq),
        _ => assert!(*record == expected(seq), "record {seq} is another"),
    }
}

#[test]
fn random_kills_lose_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let lanes: Vec<Lane> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..LANES)
            .map(|number| {
                let mut lane = Lane::new(dir.path(), number);
                scope.spawn(move || {
                    for kill in 0..KILLS_PER_LANE {
                        lane.kill_once(kill);
                    }
                    lane.follow();
                    lane
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for lane in &lanes {
        assert!(lane.known > KILLS_PER_LANE, "the writers wrote");
        assert_eq!(lane.followed, lane.known);
        let checked = verify(&lane.folder).unwrap();
        assert_eq!((checked.records, checked.torn_bytes), (lane.known, 0));
        for (seq, record) in (1..).zip(read_all(&lane.folder)) {
            assert_is_expected(&record, seq);
        }
    }
    let (records, repairs) =
        lanes.iter().fold((0, 0), |(known, repairs), lane| (known + lane.known, repairs + lane.repairs));
    println!(
        "{} kills, {records} records, {repairs} torn lines cut, {:?}",
        LANES * KILLS_PER_LANE,
        begun.elapsed()
    );
    assert!(repairs > 0, "some kills tore a line");
}
