//! A clock that a test moves by hand.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use amplifier_core::clock::Clock;
use amplifier_protocol::time::Timestamp;

/// Stands still until it is moved. Begins at 2025-01-01 00:00:00 UTC.
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Where a new clock stands.
    pub const START: Timestamp = Timestamp::from_micros(1_735_689_600_000_000);

    /// A clock at [`ManualClock::START`].
    pub fn new() -> Self {
        Self(AtomicI64::new(Self::START.as_micros()))
    }

    /// Puts the clock to a time, also back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Ordering::Release);
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::AcqRel);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_only_when_it_is_moved() {
        let clock = ManualClock::new();
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_secs(2));
        assert_eq!(clock.now().since(ManualClock::START), Duration::from_secs(2));
        clock.set(Timestamp::from_micros(7));
        assert_eq!(clock.now(), Timestamp::from_micros(7));
    }
}
