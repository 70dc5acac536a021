//! Lines to services: the client with its open connections, and how many requests it carries at once. A line belongs to
//! one service and one key and is shared by all sessions of the process, since that is whom a service counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The open lines. A line nobody uses any more is closed.
static LINES: LazyLock<Mutex<HashMap<[u8; 32], Weak<Line>>>> = LazyLock::new(Mutex::default);

/// A line to a service.
pub(super) struct Line {
    pub(super) client: reqwest::Client,
    gate: Option<Semaphore>,
    most: u64,
    waiting: AtomicU64,
}

/// How full a line is.
pub(super) struct Load {
    pub(super) active: u64,
    pub(super) waiting: u64,
    pub(super) most: u64,
}

impl Line {
    /// The line of these settings, the key among them; opened by the first who asks.
    pub(super) fn find<E>(
        parts: &[&str],
        most: u32,
        client: impl FnOnce() -> Result<reqwest::Client, E>,
    ) -> Result<Arc<Self>, E> {
        let mut digest = Sha256::new();
        for part in parts {
            // Length first, so that no two lists of parts read the same.
            digest.update(part.len().to_le_bytes());
            digest.update(part.as_bytes());
        }
        digest.update(most.to_le_bytes());
        let key: [u8; 32] = digest.finalize().into();
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|_, line| line.strong_count() > 0);
        if let Some(line) = lines.get(&key).and_then(Weak::upgrade) {
            return Ok(line);
        }
        let gate = (most > 0).then(|| Semaphore::new(most as usize));
        let (most, waiting) = (u64::from(most), AtomicU64::new(0));
        let line = Arc::new(Self { client: client()?, gate, most, waiting });
        lines.insert(key, Arc::downgrade(&line));
        Ok(line)
    }

    /// A place on the line at once, or how full it is.
    pub(super) fn try_enter(&self) -> Result<Option<SemaphorePermit<'_>>, Load> {
        let Some(gate) = &self.gate else { return Ok(None) };
        gate.try_acquire().map(Some).map_err(|_| Load {
            active: self.most.saturating_sub(u64::try_from(gate.available_permits()).unwrap_or(u64::MAX)),
            waiting: self.waiting.load(Ordering::Relaxed) + 1,
            most: self.most,
        })
    }

    /// A place on the line, as soon as there is one.
    pub(super) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        let gate = self.gate.as_ref()?;
        let _counted = Waiting::new(&self.waiting);
        // The gate is never closed.
        gate.acquire().await.ok()
    }
}

/// Counts one who waits, however the waiting ends.
struct Waiting<'a>(&'a AtomicU64);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
