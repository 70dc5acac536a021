//! The system clock, kept from going back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use amplifier_core::clock::Clock;
use amplifier_protocol::time::Timestamp;

/// Nothing of this program was written before 2023: a time before it comes from a clock that was wrong.
const FIRST: Timestamp = Timestamp::from_micros(1_672_531_200_000_000);

/// Whether a time that was written down can be right.
pub fn can_be_right(time: Timestamp) -> bool {
    time >= FIRST
}

/// The time of day. When the machine's clock is set back, this one stands still until it has caught up, so that records
/// stay in order and durations stay sane.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest: AtomicI64,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the clock that is handed to everybody else")]
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.latest.fetch_max(micros, Ordering::Relaxed).max(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back() {
        let clock = SystemClock::default();
        let ahead = clock.now().as_micros() + 3_600_000_000;
        clock.latest.store(ahead, Ordering::Relaxed);
        assert_eq!(clock.now().as_micros(), ahead);
    }
}
