//! The clock the kernel is given. It owns none: replay, tests and simulations hand in their own.

use amplifier_protocol::time::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now. May stand still; a clock that goes back yields durations of zero, never an error.
    fn now(&self) -> Timestamp;
}
