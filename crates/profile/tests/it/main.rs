//! The front door of `profile`: real repositories, a server on the loopback, temporary folders.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its fixtures too"
)]

mod collections;
mod compiling;
mod house;
mod lifecycle;
mod plans;
mod schemas;
mod texts;

// The same repositories and the same server as the tests of `sources`.
#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "../../../sources/tests/it/server.rs"]
mod server;
#[allow(dead_code, reason = "not every test needs all of it")]
#[path = "../../../sources/tests/it/support.rs"]
mod support;
