//! A command that can always be stopped. Its own thread listens for what asks to stop and does nothing that blocks; the work
//! goes on beside it, on a runtime of its own, and what is printed waits in a queue (`outlet.rs`). So neither a tool that hangs
//! nor a reader that stalls keeps a signal or a deadline from being heard.

use std::sync::Arc;
use std::time::Duration;

use amplifier_app::{CancelLevel, CancelToken};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::exit::Exit;
use crate::render;
use crate::stop::{GRACE, Stop, Stops};

/// How long what was stopped may take to put its things in order before it is left.
const TIDYING: Duration = Duration::from_secs(10);
/// How long the last words may take to be read by whoever has asked to stop.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long threads that block may take to end with the program.
const THREADS: Duration = Duration::from_millis(200);

/// Who listens.
pub struct Attendant {
    stops: Stops,
    /// Where the work is done.
    work: Handle,
    /// Told when nobody reads any more.
    unread: Arc<Notify>,
    /// What asked to stop first.
    stopped: Option<Stop>,
    /// Says why it was stopped.
    tell: Box<dyn Fn(Stop)>,
}

/// Runs a command on this thread, which only listens, and waits for its last word to be read. The time counts from now;
/// `tell` says why it was stopped.
pub fn attend(
    timeout: Option<Duration>,
    tell: impl Fn(Stop) + 'static,
    command: impl AsyncFnOnce(&mut Attendant) -> Exit,
) -> Exit {
    let work = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    // A thread that works may be kept waiting; what wakes the one that listens must not depend on it.
    let ears = Builder::new_current_thread().enable_all().build();
    let (work, ears) = match (work, ears) {
        (Ok(work), Ok(ears)) => (work, ears),
        (Err(error), _) | (_, Err(error)) => {
            render::error(&error, None);
            return Exit::Failure;
        }
    };
    let unread = Arc::new(Notify::new());
    render::queue(Arc::clone(&unread));
    let exit = ears.block_on(async {
        let stops = match Stops::listen(timeout, Arc::clone(&unread)) {
            Ok(stops) => stops,
            Err(error) => {
                render::error(&error, None);
                render::drained().await;
                return Exit::Failure;
            }
        };
        let (work, tell) = (work.handle().clone(), Box::new(tell));
        let mut attendant = Attendant { stops, work, unread, stopped: None, tell };
        let exit = command(&mut attendant).await;
        attendant.last_words(exit).await
    });
    // Something that blocks its thread must not keep the person waiting for the shell.
    work.shutdown_timeout(THREADS);
    ears.shutdown_background();
    exit
}

impl Attendant {
    /// Gives the time that the settings give, unless one was given already.
    pub fn allow(&mut self, time: Duration) {
        self.stops.allow(time);
    }

    /// Replaces what says why the command was stopped, once more is known.
    pub fn tell_with(&mut self, tell: impl Fn(Stop) + 'static) {
        self.tell = Box::new(tell);
    }

    /// Who is to be told when nobody reads any more.
    pub fn unread(&self) -> Arc<Notify> {
        Arc::clone(&self.unread)
    }

    /// Does something that can be left at any time, unless something asks to stop first.
    pub async fn unless_stopped<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Exit> {
        let mut work = self.work.spawn(work);
        let stop = match self.done_or_stopped(&mut work).await? {
            Ok(done) => return Ok(done),
            Err(stop) => stop,
        };
        work.abort();
        (self.tell)(stop);
        Err(stop.exit())
    }

    /// Does something that ends soon once it is cancelled, unless something asks to stop first. What is done all the same
    /// comes too late, and has to be put away.
    pub async fn unless_cancelled<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
        cancel: &CancelToken,
        put_away: impl FnOnce(T),
    ) -> Result<T, Exit> {
        let mut work = self.work.spawn(work);
        let stop = match self.done_or_stopped(&mut work).await? {
            Ok(done) => return Ok(done),
            Err(stop) => stop,
        };
        cancel.request_immediate();
        // What went wrong with it is overtaken by why it was stopped.
        match tokio::time::timeout(GRACE, &mut work).await {
            Ok(Ok(done)) => put_away(done),
            Ok(Err(_)) | Err(_) => work.abort(),
        }
        (self.tell)(stop);
        Err(stop.exit())
    }

    async fn done_or_stopped<T>(&mut self, work: &mut JoinHandle<T>) -> Result<Result<T, Stop>, Exit> {
        tokio::select! {
            // The work may hear it too and end by it; that it was stopped is what counts.
            biased;
            stop = self.stops.next() => {
                self.stopped = Some(stop);
                Ok(Err(stop))
            }
            done = work => done.map(Ok).map_err(broken),
        }
    }

    /// Does the work of a session while listening for what asks to stop: politely first, then at once, then without waiting.
    /// Without a result when the work had to be left; `leave` tells it that. `raise` asks the work to stop, and `first` says how
    /// politely to begin.
    pub async fn supervise<T: Send + 'static, R: Future<Output = ()> + Send + 'static>(
        &mut self,
        work: impl Future<Output = Option<T>> + Send + 'static,
        leave: &Notify,
        raise: impl Fn(CancelLevel) -> R,
        first: impl Fn() -> CancelLevel,
    ) -> Result<(Option<T>, Option<Stop>), Exit> {
        let mut work = self.work.spawn(work);
        let mut level = CancelLevel::None;
        let mut patience: Option<Instant> = None;
        loop {
            let impatient = async {
                match patience {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let stop = tokio::select! {
                done = &mut work => return Ok((done.map_err(broken)?, self.stopped)),
                stop = self.stops.next() => Some(stop),
                () = impatient => None,
            };
            self.stopped = self.stopped.or(stop);
            // Who interrupts can do it again. When the time is up it is up: a tool is asked to end, and made to soon after.
            let asked = stop == Some(Stop::Interrupt) && level == CancelLevel::None;
            (level, patience) = match level {
                _ if asked && first() == CancelLevel::Graceful => (CancelLevel::Graceful, None),
                CancelLevel::Immediate => return Ok((self.leave(work, leave).await, self.stopped)),
                _ => {
                    // Whoever waits for a reader could not stop.
                    render::let_go();
                    (CancelLevel::Immediate, Some(Instant::now() + TIDYING))
                }
            };
            // It writes to the journal, which may have to wait for the reader too.
            drop(self.work.spawn(raise(level)));
        }
    }

    /// Leaves work that does not end. It has a moment to leave the terminal in order.
    async fn leave<T>(&self, mut work: JoinHandle<Option<T>>, leave: &Notify) -> Option<T> {
        leave.notify_one();
        let left = tokio::time::timeout(THREADS, &mut work).await;
        work.abort();
        left.ok()?.ok()?
    }

    /// Waits until everything is printed, unless something asks to stop.
    async fn last_words(&mut self, mut exit: Exit) -> Exit {
        loop {
            let patience = self.stopped.map(|_| LAST_WORDS).unwrap_or(Duration::MAX);
            let stop = tokio::select! {
                biased;
                () = render::drained() => return exit,
                stop = self.stops.next() => stop,
                () = tokio::time::sleep(patience) => return self.cut_off(exit).await,
            };
            match (stop, self.stopped) {
                // Then nothing keeps the printing from its end.
                (Stop::Unread, _) => {}
                (stop, None) => {
                    self.stopped = Some(stop);
                    exit = stop.exit();
                    (self.tell)(stop);
                }
                (_, Some(_)) => return self.cut_off(exit).await,
            }
        }
    }

    /// The exit code when the program stops waiting for its reader. The work may have succeeded after it was asked to stop;
    /// without its whole output that is no success.
    async fn cut_off(&self, exit: Exit) -> Exit {
        match self.stopped {
            Some(stop) if exit == Exit::Success && !render::is_delivered() => {
                (self.tell)(stop);
                // Standard error may have a reader that standard output lacks.
                drop(tokio::time::timeout(LAST_WORDS, render::asides_drained()).await);
                stop.exit()
            }
            _ => exit,
        }
    }
}

/// Work that ended before its end: a defect of ours, which was told where it happened.
fn broken(error: JoinError) -> Exit {
    if error.is_panic() {
        std::panic::resume_unwind(error.into_panic());
    }
    Exit::Failure
}
