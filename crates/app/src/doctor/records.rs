//! What earlier runs left: sessions, what was fetched, and the times they noted.

use std::fs::File;
use std::io::ErrorKind;

use amplifier_core::clock::Clock;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::time::Timestamp;
use amplifier_sources::cache::Cache;

use super::house::may_write;
use super::{Check, Finding, Patient, chain, count, some};
use crate::clock::SystemClock;
use crate::files::{FileError, OTHER_HOME, READ};
use crate::journal::{JournalFileError, Owner, RecordReader, last_owner, verify};
use crate::paths::{Home, SessionFolder};
use crate::sessions::{mark, rescue, size_of};
use crate::spelling::quoted;
use crate::store::{SessionStore, StoreError, check_journal};

/// Nothing of this program is older.
const EARLIEST: Timestamp = Timestamp::from_micros(1_735_689_600_000_000);
const LATEST: Timestamp = Timestamp::from_micros(4_102_444_800_000_000);
/// Clocks of two machines that share a home may differ by this much.
const LEEWAY_MICROS: i64 = 3_600_000_000;

/// How many sessions are looked at, the newest first, and how many are named each for itself.
const LOOKED_AT: usize = 1_000;
const NAMED: usize = 3;
/// How many bytes of journals are read and compared with their checksums, the newest sessions first.
const READ_BYTES: u64 = 32 * 1024 * 1024;

pub(super) fn sessions(patient: &Patient) -> Vec<Finding> {
    let check = Check::Sessions;
    let store = SessionStore::new(patient.access.home.clone());
    // Not by a list: that mends what it finds, and an examination changes nothing.
    let ids = match store.ids() {
        Ok(ids) => ids,
        Err(error) => return vec![check.problem(chain(&error)).cure("make the folder readable")],
    };
    let total = ids.len();
    let mut ills = Ills::default();
    let looked_at = ids.iter().take(LOOKED_AT);
    looked_at.for_each(|id| ills.look(&store, id));
    let mut findings = ills.findings();
    findings.extend(index(&patient.access.home));
    if findings.is_empty() {
        let now = match ills.busy {
            0 => String::new(),
            busy => format!(", {} in its first turn now", count(busy, "session", "sessions")),
        };
        let first = match (total > LOOKED_AT, ills.read) {
            (_, read) if read == total => String::new(),
            (false, read) => format!("; {} read whole", count(read, "journal was", "journals were")),
            (true, read) => {
                let journals = count(read, "journal was", "journals were");
                format!("; the {LOOKED_AT} newest were looked at, {journals} read whole")
            }
        };
        findings.push(check.ok(format!("{}{now}{first}", count(total, "session", "sessions"))));
    }
    findings
}

/// What is wrong with sessions: what a resume would stumble over.
#[derive(Default)]
struct Ills {
    /// How many journals were read from end to end, and how long all of them are.
    read: usize,
    read_bytes: u64,
    /// Begun just now by somebody who is at work.
    busy: usize,
    /// Nobody said anything in them, or their journals are gone and nothing else tells.
    empty: Vec<String>,
    /// Their files are damaged or cannot be read: what is told of each, and what helps.
    broken: Vec<(String, String)>,
    /// Their plans are of no use.
    planless: Vec<String>,
}

impl Ills {
    fn look(&mut self, store: &SessionStore, id: &SessionId) {
        let folder = store.home().session(id);
        let is_in_use = || {
            let me = Owner::this_process("", SystemClock::default().now());
            last_owner(&folder.lease()).is_some_and(|owner| owner.host != me.host || is_alive(owner.pid))
        };
        match check_journal(&folder).and_then(|()| self.read(&folder)) {
            Err(_) if is_in_use() => {}
            Err(error) => self.broken.push(told(&folder, id, &error)),
            Ok(()) if store.metadata(id).is_err() && !has_journal(&folder) => match is_in_use() {
                true => self.busy += 1,
                false => self.empty.push(id.to_string()),
            },
            Ok(()) => match store.plan(&folder).map(drop).and_then(|()| look_at_lease(&folder)) {
                Ok(()) => {}
                Err(error) if rescue::cure_of_store(&error).is_some() => {
                    self.broken.push(told(&folder, id, &error));
                }
                Err(_) => self.planless.push(id.to_string()),
            },
        }
    }

    /// Compares a journal and its large values with their checksums, as long as not too much was read.
    fn read(&mut self, folder: &SessionFolder) -> Result<(), StoreError> {
        let bytes = size_of(folder.dir());
        if self.read_bytes.saturating_add(bytes) > READ_BYTES {
            return Ok(());
        }
        self.read_bytes += bytes;
        self.read += 1;
        match verify(folder) {
            // One that was begun and has nothing yet is told as that.
            Err(JournalFileError::File(error)) if error.is_missing() => Ok(()),
            verified => {
                verified?;
                drop(mark::review(folder));
                Ok(())
            }
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let check = Check::Sessions;
        let mut findings = Vec::new();
        if !self.empty.is_empty() {
            let these = count(self.empty.len(), "session holds", "sessions hold");
            findings.push(
                check
                    .warning(format!("{these} nothing: {}", some(&self.empty)))
                    .cure("`amplifier session delete ID` removes one"),
            );
        }
        for (told, cure) in self.broken.iter().take(NAMED) {
            findings.push(check.warning(told.clone()).cure(cure.clone()));
        }
        if let more @ 1.. = self.broken.len().saturating_sub(NAMED) {
            let more = count(more, "more session is", "more sessions are");
            findings.push(
                check
                    .warning(format!("{more} damaged or cannot be read, for such reasons"))
                    .cure("`amplifier session show ID` says why and what helps"),
            );
        }
        if !self.planless.is_empty() {
            let these = count(self.planless.len(), "session", "sessions");
            findings.push(
                check.warning(format!("the plan of {these} cannot be read: {}", some(&self.planless))).cure(
                    "`amplifier run --resume ID --bundle NAME` goes on with another; `amplifier session delete ID` \
                     removes one",
                ),
            );
        }
        findings
    }
}

/// What is told of a session that cannot be used, and what helps. Only what can be read is known to be damaged, and only
/// what may be entered can be deleted.
fn told(folder: &SessionFolder, id: &SessionId, error: &StoreError) -> (String, String) {
    let file = match error {
        StoreError::File(file) | StoreError::Journal(JournalFileError::File(file)) => Some(file),
        _ => None,
    };
    let is_denied = file.is_some_and(FileError::is_denied);
    let what = match file {
        Some(_) if is_denied => "cannot be read",
        Some(_) => "cannot be used",
        None => "is damaged",
    };
    if file.is_none() {
        mark::refused(folder, error);
    }
    let delete = format!("`amplifier session delete {id}` removes it");
    let cure = match (rescue::cure_of_store(error), is_denied) {
        (Some(cure), true) => cure,
        (Some(cure), false) => format!("{cure}; {delete}"),
        (None, _) => delete,
    };
    (format!("session `{id}` {what}: {}", chain(error)), cure)
}

/// Whether somebody who wants to write can try to.
fn look_at_lease(folder: &SessionFolder) -> Result<(), StoreError> {
    match std::fs::read(folder.lease()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(FileError::at(READ, &folder.lease())(error).into())
        }
        _ => Ok(()),
    }
}

/// Whether the list of all sessions can be kept up to date. Both files are made again where they are gone.
fn index(home: &Home) -> Option<Finding> {
    let files = [home.session_index(), home.session_index_lock()];
    let closed = files.into_iter().find_map(|path| {
        let error = match File::options().append(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            opened => opened.err()?,
        };
        let cure = match error.kind() {
            ErrorKind::IsADirectory => format!("move `{}` away: it is made again", path.display()),
            _ => format!("`rm -f {}` removes it: it is made again", quoted(&path)),
        };
        Some((path, error, cure))
    });
    let folder = || {
        let state = home.session_index().parent()?.to_path_buf();
        let error = may_write(&state).err().filter(|error| error.kind() != ErrorKind::NotFound)?;
        let cure = format!("`chmod u+rwx {}`, if the folder is yours; {OTHER_HOME}", quoted(&state));
        Some((state, error, cure))
    };
    let (path, error, cure) = folder().or(closed)?;
    let told = format!("the index of sessions cannot be written: `{}`: {error}", path.display());
    Some(Check::Sessions.warning(format!("{told}; lists are slow or behind")).cure(cure))
}

/// Whether a list can make the views of a session again.
fn has_journal(folder: &SessionFolder) -> bool {
    RecordReader::open(folder).is_ok_and(|mut records| matches!(records.next(), Some(Ok(_))))
}

#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // A process of somebody else may not be asked, and is there.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn is_alive(_pid: u32) -> bool {
    true
}

pub(super) fn cache(patient: &Patient) -> Vec<Finding> {
    let check = Check::Cache;
    let home = &patient.access.home;
    let entries = match Cache::new(home.cache()).list() {
        Ok(entries) => entries,
        Err(error) => {
            let cure = error.hint().unwrap_or("`amplifier cache clear` removes what can be fetched again");
            return vec![check.problem(error.chain()).cure(cure)];
        }
    };
    let unknown: Vec<_> =
        entries.iter().filter(|entry| entry.record.is_none()).map(|entry| entry.key.clone()).collect();
    let mut findings = Vec::new();
    if !unknown.is_empty() {
        let told =
            format!("{} on no record: {}", count(unknown.len(), "entry is", "entries are"), some(&unknown));
        findings
            .push(check.warning(told).cure("`amplifier cache clear KEY` removes one; it is fetched again"));
    }
    let bytes: u64 = entries.iter().filter_map(|entry| Some(entry.record.as_ref()?.bytes)).sum();
    let environments = environments(home);
    let entries = count(entries.len(), "source is", "sources are");
    let mut told = format!("{entries} kept ({} MiB)", bytes >> 20);
    if environments > 0 {
        told.push_str(&format!(", {}", count(environments, "Python environment", "Python environments")));
    }
    if bytes > 0 {
        told.push_str("; `amplifier cache verify` compares every file");
    }
    findings.push(check.ok(told));
    findings
}

fn environments(home: &Home) -> usize {
    std::fs::read_dir(home.python_cache()).map_or(0, Iterator::count)
}

pub(super) fn clock(patient: &Patient) -> Vec<Finding> {
    let check = Check::Clock;
    let now = SystemClock::default().now();
    let cure = "set the clock; with a wrong one servers refuse to be talked to and sessions are out of order";
    if now < EARLIEST || now > LATEST {
        return vec![check.problem(format!("it is not {now}")).cure(cure)];
    }
    let store = SessionStore::new(patient.access.home.clone());
    // Our ids begin with the time they were made at, so the first is the newest.
    let newest = store.ids().ok().and_then(|ids| store.metadata(ids.first()?).ok());
    let ahead =
        newest.filter(|newest| newest.updated.as_micros() > now.as_micros().saturating_add(LEEWAY_MICROS));
    vec![match ahead {
        Some(newest) => check
            .warning(format!(
                "it is {now}, and session `{}` was last used at {}",
                newest.session_id, newest.updated
            ))
            .cure(cure),
        None => check.ok(format!("it is {}", now.to_string().get(..16).unwrap_or_default())),
    }]
}
