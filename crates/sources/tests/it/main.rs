//! The front doors of `sources`: real repositories, real servers on the loopback, real processes, temporary folders.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its fixtures too"
)]

mod archives;
mod downloads;
mod failures;
mod files;
mod locks;
mod modules;
mod processes;
mod repositories;
mod smart_http;
mod submodules;
mod support;

use amplifier_testing::http as server;
