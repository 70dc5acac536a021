//! Tests of the test crate: the suites hold the fakes to the contracts and catch implementations that break them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the exemption for tests does not reach their helper functions"
)]

mod fakes;
mod native;
mod wire;
mod wire_module;
mod wrong;
