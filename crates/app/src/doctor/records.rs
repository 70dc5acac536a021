//! What earlier runs left: sessions, what was fetched, and the times they noted.

use amplifier_core::clock::Clock;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::time::Timestamp;
use amplifier_sources::cache::Cache;

use super::{Check, Finding, Patient, chain, count, some};
use crate::clock::SystemClock;
use crate::journal::{Owner, RecordReader, last_owner};
use crate::paths::{Home, SessionFolder};
use crate::store::SessionStore;

/// Nothing of this program is older.
const EARLIEST: Timestamp = Timestamp::from_micros(1_735_689_600_000_000);
const LATEST: Timestamp = Timestamp::from_micros(4_102_444_800_000_000);
/// Clocks of two machines that share a home may differ by this much.
const LEEWAY_MICROS: i64 = 3_600_000_000;

pub(super) fn sessions(patient: &Patient) -> Vec<Finding> {
    let check = Check::Sessions;
    let store = SessionStore::new(patient.access.home.clone());
    // Not by a list: that mends what it finds, and an examination changes nothing.
    let ids = match store.ids() {
        Ok(ids) => ids,
        Err(error) => return vec![check.problem(chain(&error)).cure("make the folder readable")],
    };
    let me = Owner::this_process("", SystemClock::default().now());
    let home = store.home();
    let is_in_use = |id: &SessionId| {
        last_owner(&home.session(id).lease())
            .is_some_and(|owner| owner.host != me.host || is_alive(owner.pid))
    };
    let total = ids.len();
    let unread = ids.into_iter().filter(|id| store.metadata(id).is_err() && !has_journal(&home.session(id)));
    let (busy, left): (Vec<_>, Vec<_>) = unread.partition(is_in_use);
    if left.is_empty() {
        let now = match busy.len() {
            0 => String::new(),
            busy => format!(", {} in its first turn now", count(busy, "session", "sessions")),
        };
        return vec![check.ok(format!("{}{now}", count(total, "session", "sessions")))];
    }
    let ids: Vec<_> = left.iter().map(ToString::to_string).collect();
    let told = format!(
        "{} of {total} cannot be listed, because the first turn never ended or a file is broken: {}",
        left.len(),
        some(&ids)
    );
    vec![
        check
            .warning(told)
            .cure("`amplifier run --resume ID` goes on with one; what was said is in its journal"),
    ]
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
