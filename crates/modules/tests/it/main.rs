//! The built-in modules through the front door: real sessions, real files, a scripted model.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the exemption for tests does not reach their helper functions"
)]

mod apply_patch;
mod asking;
mod azure;
mod bash;
mod bash_ends;
mod bash_sandbox;
mod chat_completions;
mod conformance;
mod context_persistent;
mod context_simple;
mod context_simple_view;
mod fault;
mod fault_bounds;
mod fault_rows;
mod filesystem;
mod filesystem_changes;
mod filesystem_patch;
mod gemini;
mod hooks_approval;
mod hooks_backup;
mod hooks_kit;
mod hooks_logging;
mod hooks_redaction;
mod hooks_shell;
mod infos;
mod kit;
mod local_servers;
mod loop_basic;
mod loop_basic_hooks;
mod loop_basic_stops;
mod loops;
mod mapping;
mod mcp;
mod parts;
mod pictures;
mod provider_mock;
mod schedulers;
mod sdk;
mod search;
mod seed_configs;
mod skills;
mod stage;
mod status_context;
mod streaming_ui;
mod tape;
mod task;
mod todo;
mod vendors;
mod web;
mod web_save;
mod web_server;
mod workshop;
