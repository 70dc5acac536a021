//! Which files a search visits: ripgrep's rules, in parallel, within a time, never through a link.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{Pulse, ToolCx, ToolFailure};
use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{DirEntry, WalkBuilder, WalkState};

use super::Limits;
use crate::files::paths::Asked;

/// More threads than this wait for the disk, not for the processor.
const THREADS: usize = 8;
/// How many entries are visited between two signs of life.
const BEAT: u64 = 1_024;

/// What is searched.
pub(super) struct Ground {
    /// With every link followed.
    pub(super) root: PathBuf,
    /// As it is shown.
    shown: PathBuf,
}

impl Ground {
    /// Finds a path the model wrote. Touches the disk.
    pub(super) fn find(asked: &Asked) -> Result<Self, ToolFailure> {
        let root = asked.confine()?;
        root.symlink_metadata().map_err(|error| asked.unreadable(&error))?;
        Ok(Self { root, shown: asked.shown.clone() })
    }

    /// A path below the root as it is shown.
    pub(super) fn shown(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => self.shown.clone(),
            Ok(below) => self.shown.join(below),
            Err(_) => path.to_owned(),
        }
    }
}

/// Whether files that are usually passed over are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ignored {
    PassedOver,
    Visited,
}

/// Which entries are visited.
pub(super) struct Choice {
    pub(super) ignored: Ignored,
    pub(super) overrides: Option<Override>,
    pub(super) types: Option<Types>,
}

/// Stops a search: on a wish, or when its time is up.
#[derive(Clone)]
pub(super) struct Stop {
    cancel: CancelToken,
    pulse: Pulse,
    deadline: Instant,
    late: Arc<AtomicBool>,
    visited: Arc<AtomicU64>,
}

impl Stop {
    pub(super) fn new(cx: &ToolCx, timeout: Duration) -> Self {
        let now = Instant::now();
        Self {
            cancel: cx.cancel.clone(),
            pulse: cx.pulse.clone(),
            deadline: now.checked_add(timeout).unwrap_or(now),
            late: Arc::default(),
            visited: Arc::default(),
        }
    }

    /// Whether to stop now.
    pub(super) fn wanted(&self) -> bool {
        if self.visited.fetch_add(1, Ordering::Relaxed).is_multiple_of(BEAT) {
            self.pulse.beat();
        }
        if self.cancel.is_immediate() {
            return true;
        }
        let late = Instant::now() >= self.deadline;
        if late {
            self.late.store(true, Ordering::Relaxed);
        }
        late
    }

    /// Whether the time was up before the end.
    pub(super) fn was_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    pub(super) fn check_cancelled(&self) -> Result<(), ToolFailure> {
        if self.cancel.is_immediate() {
            return Err(ToolFailure::new("cancelled").of_kind("Cancelled"));
        }
        Ok(())
    }
}

/// Visits every entry on several threads; `visitor` makes what each thread visits with.
pub(super) fn walk<V>(
    ground: &Ground,
    choice: Choice,
    limits: &Limits,
    stop: &Stop,
    visitor: impl Fn() -> V + Sync,
) where
    V: FnMut(&DirEntry) + Send,
{
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS);
    let mut builder = WalkBuilder::new(&ground.root);
    builder.follow_links(false).threads(threads);
    if choice.ignored == Ignored::Visited {
        builder.standard_filters(false);
    } else {
        builder.hidden(!limits.hidden);
        let exclusions = limits.exclusions.clone();
        // Names below the root only: a project may itself live in a folder called `build`.
        builder.filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let excluded = || exclusions.iter().any(|name| entry.file_name() == name.as_str());
            entry.depth() == 0 || !is_folder || !excluded()
        });
    }
    if let Some(overrides) = choice.overrides {
        builder.overrides(overrides);
    }
    if let Some(types) = choice.types {
        builder.types(types);
    }
    builder.build_parallel().run(|| {
        let mut visit = visitor();
        let stop = stop.clone();
        Box::new(move |entry| {
            if stop.wanted() {
                return WalkState::Quit;
            }
            // What cannot be listed is passed over, as ripgrep does; the rest is still worth having.
            if let Ok(entry) = &entry {
                visit(entry);
            }
            WalkState::Continue
        })
    });
}
