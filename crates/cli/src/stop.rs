//! What may end a command before it is done: signals, a deadline, a reader that went away.

use std::sync::Arc;
use std::time::Duration;

use amplifier_app::CancelToken;
use amplifier_app::ended::Cause;
use amplifier_app::seat::Patience;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::exit::Exit;

/// How long what was asked to stop may take before it is stopped.
pub const GRACE: Duration = Duration::from_secs(2);

/// Why something has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C.
    Interrupt,
    /// Somebody ends the process.
    Terminate,
    /// The terminal is gone.
    HangUp,
    /// The time is up.
    TimeUp,
    /// Nobody reads standard output any more.
    Unread,
}

impl Stop {
    /// What the program ends with when it stopped for this.
    pub fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Interrupted,
            Self::Terminate => Exit::Terminated,
            Self::HangUp => Exit::HungUp,
            Self::TimeUp => Exit::TimedOut,
            Self::Unread => Exit::Unread,
        }
    }

    /// What it is to a turn.
    pub fn cause(self) -> Cause {
        match self {
            Self::TimeUp => Cause::TimeUp,
            Self::Interrupt | Self::Terminate | Self::HangUp | Self::Unread => Cause::Wish,
        }
    }

    /// Why, in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupted",
            Self::Terminate => "ended by another program",
            Self::HangUp => "the terminal was closed",
            Self::TimeUp => "not done in the time that the settings give",
            Self::Unread => "nobody reads the answers any more",
        }
    }
}

/// Hears everything that asks to stop, from the moment it is made.
pub struct Stops {
    #[cfg(unix)]
    signals: [(tokio::signal::unix::Signal, Stop); 3],
    deadline: Option<Instant>,
    unread: Option<Arc<Notify>>,
}

impl Stops {
    /// Listens from now on; the time counts from now too.
    pub fn listen(timeout: Option<Duration>, unread: Arc<Notify>) -> std::io::Result<Self> {
        let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let signals = [
                (signal(SignalKind::interrupt())?, Stop::Interrupt),
                (signal(SignalKind::terminate())?, Stop::Terminate),
                (signal(SignalKind::hangup())?, Stop::HangUp),
            ];
            Ok(Self { signals, deadline, unread: Some(unread) })
        }
        #[cfg(not(unix))]
        Ok(Self { deadline, unread: Some(unread) })
    }

    /// The time counts from now, unless one was given already.
    pub fn allow(&mut self, time: Duration) {
        self.deadline = self.deadline.or_else(|| Instant::now().checked_add(time));
    }

    /// No time counts any more.
    pub fn lift(&mut self) {
        self.deadline = None;
    }

    /// Does something that ends soon once it is cancelled, unless something asks to stop first.
    pub async fn unless_stopped<T>(
        &mut self,
        work: impl Future<Output = T>,
        cancel: &CancelToken,
    ) -> Result<T, Stop> {
        tokio::pin!(work);
        let stop = tokio::select! {
            // The work may hear it too and end by it; that it was stopped is what counts.
            biased;
            stop = self.next() => stop,
            done = &mut work => return Ok(done),
        };
        cancel.request_immediate();
        // Whatever it still says is overtaken by why it was stopped.
        drop(tokio::time::timeout(GRACE, work).await);
        Err(stop)
    }

    /// The next thing that asks to stop. The deadline asks once, and so does a reader that went away.
    pub async fn next(&mut self) -> Stop {
        let deadline = self.deadline;
        let time_up = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let reader = self.unread.clone();
        let unread = async {
            match reader {
                Some(reader) => reader.notified().await,
                None => std::future::pending().await,
            }
        };
        let stop = tokio::select! {
            stop = self.signal() => stop,
            () = time_up => Stop::TimeUp,
            () = unread => Stop::Unread,
        };
        match stop {
            Stop::TimeUp => self.deadline = None,
            Stop::Unread => self.unread = None,
            Stop::Interrupt | Stop::Terminate | Stop::HangUp => {}
        }
        stop
    }

    #[cfg(unix)]
    async fn signal(&mut self) -> Stop {
        let [(interrupt, a), (terminate, b), (hang_up, c)] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => *a,
            _ = terminate.recv() => *b,
            _ = hang_up.recv() => *c,
        }
    }

    #[cfg(not(unix))]
    async fn signal(&mut self) -> Stop {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Stop::Interrupt,
            // Nothing can be heard here; the deadline still counts.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Patience for Stops {
    type Stop = Stop;

    async fn wait_for<T: Send>(
        &mut self,
        work: impl Future<Output = T> + Send,
        cancel: &CancelToken,
    ) -> Result<T, Stop> {
        self.unless_stopped(work, cancel).await
    }

    /// An interrupt ends only what was being done.
    fn ends_all(stop: &Stop) -> bool {
        *stop != Stop::Interrupt
    }
}
