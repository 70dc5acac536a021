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
mod capabilities;
mod children;
mod credentials;
mod hand;
mod journal;
mod kills;
mod model;
mod places;
mod profile_sessions;
mod prompts;
mod registry;
mod sessions;
mod spawn_rules;
mod spawns;
mod start;
mod store;
mod support;
mod workshop;
