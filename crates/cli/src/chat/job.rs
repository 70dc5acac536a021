//! The chat as a job of a shell: Ctrl-Z gives the terminal back, `fg` takes it again.
//!
//! How the terminal is left and taken again is `input.rs`'s business, what is drawn again `screen.rs`'s.

#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use rustix::process::{Signal, kill_current_process_group};
#[cfg(unix)]
use tokio::signal::unix::{self, SignalKind};

use super::input::Input;

/// How long one look for being continued takes, and how often it is looked.
#[cfg(unix)]
const LOOK: (Duration, usize) = (Duration::from_millis(20), 10);

/// Hears when the process goes on after it was stopped, by whomever.
pub struct Job {
    #[cfg(unix)]
    continued: unix::Signal,
}

#[cfg(unix)]
impl Job {
    pub fn listen() -> std::io::Result<Self> {
        // SIGCONT, which has no name of its own there.
        let continued = unix::signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        Ok(Self { continued })
    }

    /// Lets the shell have the terminal until it gives it back.
    pub async fn suspend(&mut self, input: &Input) {
        input.lend();
        self.stop().await;
        input.take_back();
    }

    /// Stops everything that the shell started as this job, until somebody lets it go on. Where no shell could do that, the
    /// system does not stop it, and it goes on at once.
    async fn stop(&mut self) {
        if kill_current_process_group(Signal::TSTP).is_err() {
            return;
        }
        // The signal may reach another thread a moment later, and the terminal must not be taken again before. Time goes on
        // for what is stopped: the look in which that happened ends without having heard anything, the next one hears it.
        for _ in 0..LOOK.1 {
            if tokio::time::timeout(LOOK.0, self.continued.recv()).await.is_ok() {
                return;
            }
        }
    }

    /// Waits until the process goes on after somebody else stopped it.
    pub async fn continued(&mut self) {
        if self.continued.recv().await.is_none() {
            std::future::pending().await
        }
    }
}

/// Elsewhere there are no such jobs.
#[cfg(not(unix))]
impl Job {
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    pub async fn suspend(&mut self, _input: &Input) {}

    pub async fn continued(&mut self) {
        std::future::pending().await
    }
}
