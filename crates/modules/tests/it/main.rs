//! The built-in modules' integration tests: one binary, a file per topic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the exemption for tests does not reach their helper functions"
)]

mod conformance;
mod context_persistent;
mod context_simple;
