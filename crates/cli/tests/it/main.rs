//! The front door: the binary, in a home of its own, as a person would use it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which clippy's exemption for tests does not reach"
)]

mod agents;
mod approve;
mod backup;
mod bundle;
mod cache;
mod chat;
mod chat_agents;
mod chat_ask;
mod chat_commands;
mod chat_keys;
mod chat_sessions;
mod config;
mod credentials;
mod demo;
mod desk;
mod doctor;
mod help;
mod init;
mod keyring;
mod kills;
mod llama;
mod llama_vendors;
mod module;
mod pages;
mod parts;
mod picture;
mod plan;
mod plans_of_bundles;
mod processes;
mod profile;
mod provider;
mod run;
mod run_flags;
mod run_lines;
mod session;
mod session_kills;
mod session_many;
mod session_resume;
mod settings;
mod terminal;
mod tool;
mod tutorials;
mod update;
mod wrong;
