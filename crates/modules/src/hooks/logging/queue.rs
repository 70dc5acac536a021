//! Between the turn and the disk: a bounded queue and the one task that empties it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use amplifier_core::contracts::CapabilityCall;
use tokio::sync::{Notify, mpsc, oneshot};

use super::Config;
use super::file::LogFile;
use super::line::Line;
use crate::hooks::redaction::Redactor;

/// How many jobs are taken from the queue at once.
const BATCH: usize = 512;
/// How long a line may wait for others. Every write wakes three threads, which costs a turn more than the line does.
const MOMENT: Duration = Duration::from_millis(20);

enum Job {
    Line(Line, usize),
    Flush(oneshot::Sender<Result<(), String>>),
}

/// The way to the log. Clones are the same way.
#[derive(Clone)]
pub(super) struct Queue {
    jobs: mpsc::Sender<Job>,
    shared: Arc<Shared>,
}

struct Shared {
    /// Something waits that the disk should see at once.
    urgent: Notify,
    waiting_bytes: AtomicUsize,
    max_waiting_bytes: usize,
    max_line_bytes: usize,
    dropped: AtomicU64,
    redactor: OnceLock<Redactor>,
    keys: OnceLock<Arc<dyn CapabilityCall>>,
    trouble: Mutex<Trouble>,
}

/// What is wrong with the disk, and whether the person knows.
#[derive(Default)]
enum Trouble {
    #[default]
    None,
    New(String),
    Told,
}

impl Queue {
    /// Begins to write to a file.
    pub(super) fn start(file: LogFile, config: &Config) -> Self {
        let (jobs, waiting) = mpsc::channel(config.max_waiting_lines.clamp(1, 1_000_000));
        let shared = Arc::new(Shared {
            urgent: Notify::new(),
            waiting_bytes: AtomicUsize::new(0),
            max_waiting_bytes: config.max_waiting_bytes,
            max_line_bytes: config.max_line_bytes,
            dropped: AtomicU64::new(0),
            redactor: OnceLock::new(),
            keys: OnceLock::new(),
            trouble: Mutex::default(),
        });
        tokio::spawn(empty(waiting, file, Arc::clone(&shared)));
        Self { jobs, shared }
    }

    /// Puts a line into the queue, or counts it as left out when the queue is full. Never waits.
    pub(super) fn offer(&self, line: Line) {
        let weight = line.weight();
        let is_error = line.is_error();
        let waiting = self.shared.waiting_bytes.fetch_add(weight, Ordering::AcqRel);
        // A line alone may be larger than the whole room; it is let through, or it could never be written.
        let fits = waiting == 0 || waiting.saturating_add(weight) <= self.shared.max_waiting_bytes;
        if !fits || self.jobs.try_send(Job::Line(line, weight)).is_err() {
            self.shared.waiting_bytes.fetch_sub(weight, Ordering::AcqRel);
            self.shared.dropped.fetch_add(1, Ordering::AcqRel);
        }
        let is_filling = waiting > self.shared.max_waiting_bytes / 2
            || self.jobs.capacity() < self.jobs.max_capacity() / 2;
        if is_error || is_filling {
            self.shared.urgent.notify_one();
        }
    }

    /// Waits until everything offered before is on the disk.
    pub(super) async fn flush(&self) -> Result<(), String> {
        let (done, answer) = oneshot::channel();
        let gone = || "the log's writer is gone".to_owned();
        self.jobs.send(Job::Flush(done)).await.map_err(|_| gone())?;
        self.shared.urgent.notify_one();
        answer.await.map_err(|_| gone())?
    }

    /// Applies these rules too, from now on. The first ones count.
    pub(super) fn redact_with(&self, redactor: Redactor) {
        // Set once, when the session is ready; a second module with the same rules changes nothing.
        self.shared.redactor.set(redactor).ok();
    }

    /// Hides known keys with this, from now on. The first one counts.
    pub(super) fn hide_keys_with(&self, hide: Arc<dyn CapabilityCall>) {
        self.shared.keys.set(hide).ok();
    }

    /// What is wrong, told once for each time it begins.
    pub(super) fn trouble(&self) -> Option<String> {
        let mut trouble = self.shared.trouble();
        match std::mem::take(&mut *trouble) {
            Trouble::New(text) => {
                *trouble = Trouble::Told;
                Some(text)
            }
            other => {
                *trouble = other;
                None
            }
        }
    }
}

impl Shared {
    // A panic while a text is swapped leaves a text: nothing is half done.
    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, result: &Result<(), String>) {
        let mut trouble = self.trouble();
        match result {
            Ok(()) => *trouble = Trouble::None,
            Err(text) if matches!(*trouble, Trouble::None) => *trouble = Trouble::New(text.clone()),
            Err(_) => {}
        }
    }
}

async fn empty(mut waiting: mpsc::Receiver<Job>, mut file: LogFile, shared: Arc<Shared>) {
    let writer = file.path().display().to_string();
    loop {
        let mut batch = Vec::new();
        match waiting.recv().await {
            Some(job) => batch.push(job),
            None => return,
        }
        // Nobody is told here when more comes: that is what would cost.
        if !waiting.is_closed() {
            tokio::time::timeout(MOMENT, shared.urgent.notified()).await.ok();
        }
        while batch.len() < BATCH
            && let Ok(job) = waiting.try_recv()
        {
            batch.push(job);
        }
        if let Some(keys) = shared.keys.get() {
            for job in &mut batch {
                if let Job::Line(line, _) = job {
                    line.hide_keys(&**keys, &writer).await;
                }
            }
        }
        let shared = Arc::clone(&shared);
        let written = tokio::task::spawn_blocking(move || {
            write(batch, &mut file, &shared);
            file
        });
        // An error means that the runtime ends; whoever waits for a flush learns it from the closed channel.
        let Ok(back) = written.await else { return };
        file = back;
    }
}

fn write(batch: Vec<Job>, file: &mut LogFile, shared: &Shared) {
    let mut lines = Vec::with_capacity(batch.len());
    // Errors are what is looked for after a crash. The rest is synced when the session ends.
    let mut sync = false;
    let mut dropped = shared.dropped.swap(0, Ordering::AcqRel);
    if dropped > 0 {
        lines.push(Line::Dropped(dropped).into_bytes(None, usize::MAX));
    }
    let mut result = Ok(());
    for job in batch {
        match job {
            Job::Line(line, weight) => {
                sync |= line.is_error();
                lines.push(line.into_bytes(shared.redactor.get(), shared.max_line_bytes));
                shared.waiting_bytes.fetch_sub(weight, Ordering::AcqRel);
            }
            Job::Flush(done) => {
                result = commit(&mut lines, &mut dropped, file, shared).and_then(|()| synced(file));
                // Nobody waits any more when the session's end took too long.
                done.send(result.clone()).ok();
            }
        }
    }
    if !lines.is_empty() {
        result = commit(&mut lines, &mut dropped, file, shared);
        if sync && result.is_ok() {
            result = synced(file);
        }
    }
    shared.note(&result);
}

/// Writes the lines; `dropped` is how many the first of them speaks for, if it is a count.
fn commit(
    lines: &mut Vec<Vec<u8>>,
    dropped: &mut u64,
    file: &mut LogFile,
    shared: &Shared,
) -> Result<(), String> {
    let all = lines.len();
    let written = file.append(lines);
    lines.clear();
    let spoken_for = std::mem::take(dropped);
    written.map_err(|(lost, error)| {
        let mut missing = u64::try_from(lost).unwrap_or(u64::MAX);
        if lost == all && spoken_for > 0 {
            missing = missing - 1 + spoken_for;
        }
        shared.dropped.fetch_add(missing, Ordering::AcqRel);
        format!("the log `{}` cannot be written: {error}; lines are being left out", file.path().display())
    })
}

fn synced(file: &mut LogFile) -> Result<(), String> {
    file.sync().map_err(|error| format!("the log `{}` cannot be synced: {error}", file.path().display()))
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
