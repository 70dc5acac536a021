//! The built-in modules through the front door: real sessions, real files, a scripted model.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the exemption for tests does not reach their helper functions"
)]

mod conformance;
mod context_persistent;
mod context_simple;
mod context_simple_view;
mod filesystem;
mod filesystem_changes;
mod filesystem_patch;
mod kit;
mod loop_basic;
mod loop_basic_hooks;
mod loop_basic_stops;
mod provider_mock;
mod search;
mod workshop;
