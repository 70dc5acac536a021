//! What printing remembers for the life of the process: how it prints, what waits to be printed, and what became of it.
//!
//! There is one standard output and one standard error, and whatever prints there, from whichever thread, has to keep to the
//! same manner and the same order. So this is one value of the whole process, and the only one: everything else is handed on.
//! `render.rs` alone uses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use amplifier_app::ended::ToldError;
use tokio::sync::Notify;

use crate::outlet::Outlet;
use crate::typed::Flags;

/// The voice of this process.
pub static VOICE: Voice = Voice {
    manner: OnceLock::new(),
    queue: OnceLock::new(),
    lost: AtomicBool::new(false),
    unread: AtomicBool::new(false),
    answered: AtomicBool::new(false),
    told: Mutex::new(Vec::new()),
};

pub struct Voice {
    manner: OnceLock<Manner>,
    /// The queue of a command that listens while it prints, and who is told when nobody reads any more.
    queue: OnceLock<(Outlet, Arc<Notify>)>,
    /// Whether something could not be printed.
    lost: AtomicBool,
    /// Whether something was printed that nobody reads any more.
    unread: AtomicBool,
    /// Whether something was printed to standard output.
    answered: AtomicBool,
    /// The errors that were told, for the summary that programs read.
    told: Mutex<Vec<ToldError>>,
}

/// How much is told beside the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Errors alone.
    Quiet,
    /// What the person should know.
    #[default]
    Usual,
    /// Every step.
    Verbose,
}

/// Whether colours may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Palette {
    /// Where there is a terminal.
    #[default]
    Colors,
    /// Everywhere.
    Always,
    /// Nowhere.
    Plain,
}

/// How this process prints.
#[derive(Debug, Clone, Default)]
pub struct Manner {
    pub tone: Tone,
    pub palette: Palette,
    /// What commands that are told need to work as they are printed.
    pub flags: Flags,
}

impl Voice {
    /// Says how this process prints. Only the first word counts.
    pub fn set_manner(&self, manner: Manner) {
        self.manner.get_or_init(|| manner);
    }

    pub fn manner(&self) -> &Manner {
        self.manner.get_or_init(Manner::default)
    }

    /// From now on what is printed waits in a queue.
    pub fn set_queue(&self, outlet: impl FnOnce() -> Outlet, unread: Arc<Notify>) {
        self.queue.get_or_init(|| (outlet(), unread));
    }

    pub fn queue(&self) -> Option<&Outlet> {
        self.queue.get().map(|(outlet, _)| outlet)
    }

    /// Nobody reads any more; whoever waits to hear it does.
    pub fn is_left(&self) {
        self.unread.store(true, Ordering::Relaxed);
        if let Some((_, unread)) = self.queue.get() {
            unread.notify_one();
        }
    }

    pub fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Something could not be printed; says whether it is the first time.
    pub fn lose(&self) -> bool {
        !self.lost.swap(true, Ordering::Relaxed)
    }

    pub fn has_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Something is printed to standard output.
    pub fn answer(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    pub fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Remembers an error that is told.
    pub fn remember(&self, told: ToldError) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }

    /// Every error that was told, in order.
    pub fn told(&self) -> Vec<ToldError> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
