//! The front doors of `app`, over real files in temporary folders.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its fixtures too"
)]

mod bundles;
mod children;
mod hand;
mod journal;
mod kills;
mod places;
mod prompts;
mod registry;
mod sessions;
mod spawns;
mod store;
mod support;
mod workshop;
