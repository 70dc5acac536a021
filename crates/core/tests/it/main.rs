//! The kernel's integration tests: one binary, a file per topic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the exemption for tests does not reach their helper functions"
)]

mod coordinator;
mod hook_results;
mod hooks;
mod hostile;
mod interleavings;
mod journal;
mod kit;
mod ledger;
mod open;
mod providers;
mod session;
mod validate;
