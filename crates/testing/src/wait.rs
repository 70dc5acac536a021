//! Waiting for something that happens elsewhere: looked at again and again, and never without an end.

use std::time::{Duration, Instant};

const LONGEST: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until something is so.
///
/// # Panics
///
/// When it is not so after a minute.
pub async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let ends = tokio::time::Instant::now() + LONGEST;
    while !done() {
        assert!(tokio::time::Instant::now() < ends, "waited too long until {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// The same for a test that has no runtime.
///
/// # Panics
///
/// When it is not so after a minute.
pub fn block_until(what: &str, mut done: impl FnMut() -> bool) {
    let ends = Instant::now() + LONGEST;
    while !done() {
        assert!(Instant::now() < ends, "waited too long until {what}");
        std::thread::sleep(PAUSE);
    }
}
