//! Modules that run a turn, and the driver they share.

mod driver;
pub(crate) mod loop_basic;
pub(crate) mod loop_events;
pub(crate) mod loop_streaming;

pub use driver::{CANCELLED_NOTE, asked_provider};
