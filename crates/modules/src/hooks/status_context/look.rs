//! Looking at the repository in the background: one look at a time, only when something may have changed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use amplifier_git::Repository;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Config;
use super::git::{self, Repo, Wanted};
use super::refs;

/// A look that began this short a time before a turn, and is still under way, sees what the turn's own would see.
const MOMENT: Duration = Duration::from_millis(50);

/// What was seen last.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The repository; `None` when nobody looked to an end yet.
    pub(super) repo: Option<Arc<Repo>>,
    /// The system's own words for itself.
    pub(super) system: Option<String>,
    /// Whether a newer look is still under way.
    pub(super) late: bool,
}

/// Looks at one folder. Clones share what was seen.
#[derive(Clone)]
pub(super) struct Look(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    wanted: Option<Wanted>,
    timeout: Duration,
    state: Mutex<State>,
    // Counts looks that came to an end.
    looks: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    repo: Option<Arc<Repo>>,
    system: Option<String>,
    marks: Option<Marks>,
    /// How often what was seen was doubted, and how many of these doubts a look has answered.
    doubts: u64,
    answered: u64,
    looking: bool,
    /// When the first look began, until a turn began.
    early: Option<Instant>,
}

impl State {
    fn is_doubted(&self) -> bool {
        self.answered < self.doubts
    }
}

/// When what git writes about a repository last changed.
type Marks = Vec<Option<(SystemTime, u64)>>;

impl Look {
    pub(super) fn new(dir: PathBuf, config: &Config) -> Self {
        let wanted = config.include_git.then(|| Wanted::of(config));
        let timeout = Duration::from_millis(config.git_timeout_ms.max(1));
        let (state, looks) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { dir, wanted, timeout, state, looks }))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// What was seen may no longer be so.
    pub(super) fn doubt(&self) {
        self.0.lock().doubts += 1;
    }

    /// Looks before anybody asks: most sessions are opened for a prompt that is there already, and git has time until then.
    pub(super) fn begin_early(&self) {
        self.0.lock().early = Some(Instant::now());
        self.renew();
    }

    /// A turn begins: looks again, without waiting for it.
    pub(super) fn begin_turn(&self) {
        let mut state = self.0.lock();
        let early = state.early.take();
        if state.looking && early.is_some_and(|began| began.elapsed() < MOMENT) {
            return;
        }
        drop(state);
        self.renew();
    }

    fn renew(&self) {
        self.doubt();
        self.begin();
    }

    /// What is known, after waiting a moment for a new look.
    pub(super) async fn latest(&self, wait: Duration) -> Seen {
        if let Some(seen) = self.0.undoubted() {
            // Nobody waits for a look that only makes sure; what it finds counts from the next request on.
            self.begin();
            return seen;
        }
        // A look that began before the last doubt is waited for and then followed by another.
        let current = async {
            loop {
                let mut looks = self.0.looks.subscribe();
                self.begin();
                if looks.changed().await.is_err() || !self.0.lock().is_doubted() {
                    return;
                }
            }
        };
        // An error means that the wait is over, and then what is known counts.
        let late = tokio::time::timeout(wait, current).await.is_err();
        let state = self.0.lock();
        Seen { repo: state.repo.clone(), system: state.system.clone(), late }
    }

    /// Begins a look unless one is under way.
    fn begin(&self) {
        if !std::mem::replace(&mut self.0.lock().looking, true) {
            let ended = Ended(Arc::clone(&self.0));
            tokio::spawn(async move { ended.0.look().await });
        }
    }
}

/// Says that a look came to an end, however it did.
struct Ended(Arc<Inner>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.lock().looking = false;
        self.0.looks.send_modify(|looks| *looks = looks.wrapping_add(1));
    }
}

impl Inner {
    // Every change is one assignment, so a panic leaves nothing half changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was seen, when there is no reason to think that it changed.
    fn undoubted(&self) -> Option<Seen> {
        let state = self.lock();
        let repo = state.repo.as_ref().filter(|repo| !state.is_doubted() && repo.fault.is_none())?;
        Some(Seen { repo: Some(Arc::clone(repo)), system: state.system.clone(), late: false })
    }

    async fn look(&self) {
        // Doubts that come while it looks are for the next look.
        let doubts = self.lock().doubts;
        if self.lock().system.is_none() {
            let system = tokio::task::spawn_blocking(system_name).await.unwrap_or_default();
            self.lock().system = Some(system);
        }
        let Some(wanted) = &self.wanted else {
            self.lock().answered = doubts;
            return;
        };
        let dir = self.dir.clone();
        let found = tokio::task::spawn_blocking(move || {
            let repository = Repository::around(&dir)?;
            let main = refs::main_branch(repository.common_dir());
            Some((marks(repository.git_dir()), main, repository))
        });
        let (marks, main, repository) = match found.await {
            Ok(Some(found)) => found,
            Ok(None) => {
                let mut state = self.lock();
                (state.repo, state.answered) = (Some(Arc::new(Repo::default())), doubts);
                return;
            }
            // The runtime is going down.
            Err(_) => return,
        };
        let known = {
            let state = self.lock();
            state.marks.as_ref() == Some(&marks)
                && state.repo.as_ref().is_some_and(|repo| repo.fault.is_none())
                && !state.is_doubted()
        };
        if known {
            return;
        }
        let mut repo = git::read(repository, wanted, main, self.timeout).await;
        let mut state = self.lock();
        if repo.fault.is_some()
            && let Some(last) = state.repo.as_ref().filter(|last| last.exists)
        {
            // What was known, with what went wrong now.
            repo = Repo { fault: repo.fault, ..Repo::clone(last) };
        }
        state.repo = Some(Arc::new(repo));
        (state.marks, state.answered) = (Some(marks), doubts);
    }
}

fn marks(git_dir: &Path) -> Marks {
    let mark = |name: &str| {
        let metadata = std::fs::metadata(git_dir.join(name)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    ["HEAD", "index", "logs/HEAD", "packed-refs"].into_iter().map(mark).collect()
}

/// The system's name and version, where files tell; empty elsewhere.
fn system_name() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let pretty = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let parts = [pretty.unwrap_or_default().trim_matches('"'), kernel.trim()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}
