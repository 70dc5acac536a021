//! The two liberties of a test crate: a poisoned lock is still a lock, and a name in a test is a good name.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic: the panic itself is what the test shows.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name written in a test.
#[expect(clippy::panic, reason = "a test that spells a name wrongly is a broken test and must say so")]
pub(crate) fn parsed<T: FromStr>(text: &str) -> T
where
    T::Err: Display,
{
    text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
}
