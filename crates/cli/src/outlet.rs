//! The way out for a command that listens while it prints: what is printed waits in a queue, and a thread writes it. A reader
//! that stalls holds up the writing and then the work, but never who listens for signals and deadlines.
//!
//! The order of lines is kept: standard output and standard error have a queue each only where they lead to different places.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// How much may wait before the work does, in bytes.
const BOUND: usize = 1024 * 1024;

/// Where something goes, and what it means that it does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To standard output; it has to arrive.
    Answer,
    /// To the terminal on standard output; the next picture replaces it.
    Picture,
    /// To standard error.
    Aside,
}

/// Writes one thing; blocks as long as the reader wants.
type Write = fn(Way, &[u8]);

/// The queues.
pub struct Outlet {
    answers: Arc<Lane>,
    asides: Arc<Lane>,
    write: Write,
}

/// What waits for one reader.
#[derive(Default)]
struct Lane {
    state: Mutex<State>,
    /// For the thread that writes, and for whoever waits for room.
    changed: Condvar,
    empty: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Way, Vec<u8>)>,
    /// How much is not written yet, with what is being written.
    bytes: usize,
    /// How much of that belongs on standard output.
    output_bytes: usize,
    writer: Writer,
    gate: Gate,
}

#[derive(Default, PartialEq, Eq)]
enum Writer {
    /// Nothing has been printed yet.
    #[default]
    Absent,
    There,
}

#[derive(Default, PartialEq, Eq)]
enum Gate {
    /// Who prints more than the reader takes has to wait.
    #[default]
    Held,
    /// Nobody waits any more: the end is near.
    Open,
}

impl Outlet {
    pub fn new(write: Write) -> Self {
        let answers = Arc::<Lane>::default();
        let asides = if lead_to_one_place() { Arc::clone(&answers) } else { Arc::default() };
        Self { answers, asides, write }
    }

    /// Takes something to be written, and never waits.
    pub fn push(&self, way: Way, bytes: Vec<u8>) {
        let lane = if way == Way::Aside { &self.asides } else { &self.answers };
        let mut state = lane.lock();
        if state.writer == Writer::Absent {
            let (lane, write) = (Arc::clone(lane), self.write);
            let thread = std::thread::Builder::new().name("printer".to_owned());
            if thread.spawn(move || lane.write_on(write)).is_err() {
                // Without a thread there is no queue either.
                drop(state);
                return write(way, &bytes);
            }
            state.writer = Writer::There;
        }
        state.add(way, bytes.len());
        state.waiting.push_back((way, bytes));
        lane.changed.notify_all();
    }

    /// Waits until there is room. Blocks; whoever listens for what asks to stop must not call it.
    pub fn wait_for_room(&self) {
        for lane in [&self.answers, &self.asides] {
            let mut state = lane.lock();
            while state.bytes >= BOUND && state.gate == Gate::Held {
                state = lane.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    pub fn has_room(&self) -> bool {
        [&self.answers, &self.asides].iter().all(|lane| lane.lock().bytes < BOUND)
    }

    /// Lets everybody go on who waits for room, from now on.
    pub fn let_go(&self) {
        for lane in [&self.answers, &self.asides] {
            lane.lock().gate = Gate::Open;
            lane.changed.notify_all();
        }
    }

    /// Waits until everything is written.
    pub async fn drained(&self) {
        self.answers.drained().await;
        self.asides.drained().await;
    }

    /// Waits until everything for standard error is written.
    pub async fn asides_drained(&self) {
        self.asides.drained().await;
    }

    /// Whether everything pushed to standard output has been handed to the system. An answer that still waits here when the
    /// process exits is lost.
    pub fn is_delivered(&self) -> bool {
        self.answers.lock().output_bytes == 0
    }
}

impl State {
    fn add(&mut self, way: Way, size: usize) {
        self.bytes += size;
        self.output_bytes += if way == Way::Aside { 0 } else { size };
    }

    fn remove(&mut self, way: Way, size: usize) {
        self.bytes -= size;
        self.output_bytes -= if way == Way::Aside { 0 } else { size };
    }
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn drained(&self) {
        while self.lock().bytes > 0 {
            self.empty.notified().await;
        }
    }

    /// Writes one after the other, until the process ends.
    fn write_on(&self, write: Write) {
        let mut state = self.lock();
        loop {
            let Some((way, bytes)) = state.waiting.pop_front() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            write(way, &bytes);
            state = self.lock();
            state.remove(way, bytes.len());
            self.changed.notify_all();
            if state.bytes == 0 {
                self.empty.notify_one();
            }
        }
    }
}

/// Whether somebody could see in which order lines of the two streams come.
#[cfg(unix)]
fn lead_to_one_place() -> bool {
    use std::fs::File;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::fs::MetadataExt;

    let place = |stream: BorrowedFd<'_>| {
        let about = File::from(stream.try_clone_to_owned().ok()?).metadata().ok()?;
        Some((about.dev(), about.ino()))
    };
    place(std::io::stdout().as_fd()) == place(std::io::stderr().as_fd())
}

#[cfg(not(unix))]
fn lead_to_one_place() -> bool {
    true
}
