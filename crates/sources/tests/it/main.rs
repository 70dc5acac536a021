//! The front doors of `sources`: real repositories, real servers on the loopback, real processes, temporary folders.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its fixtures too"
)]

mod files;
mod repositories;
mod support;
