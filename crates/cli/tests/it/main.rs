//! The front door: the binary, in a home of its own, as a person would use it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
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
mod chat_honest;
#[cfg(unix)]
mod chat_job;
mod chat_keys;
mod chat_line;
mod chat_past;
mod chat_sessions;
mod chat_stops;
#[cfg(unix)]
mod children;
#[cfg(target_os = "linux")]
mod clock;
mod config;
mod confinement;
mod connecting;
mod credentials;
mod demo;
mod desk;
mod doctor;
mod fetched;
mod fetching;
#[cfg(unix)]
mod git_programs;
mod harmless;
mod help;
#[cfg(target_os = "linux")]
mod hostile;
mod init;
mod keyring;
mod kills;
mod known_keys;
mod llama;
mod llama_vendors;
mod locks;
mod looking;
mod module;
#[cfg(target_os = "linux")]
mod names;
mod narrow;
mod outputs;
mod pages;
mod parts;
mod picture;
mod plain_keys;
mod plan;
mod plans_of_bundles;
#[cfg(unix)]
mod processes;
mod profile;
mod profile_phases;
#[cfg(unix)]
mod project_root;
mod provider;
mod run;
mod run_events;
mod run_failures;
mod run_flags;
mod run_hints;
mod run_lines;
#[cfg(target_os = "linux")]
mod run_pipes;
mod run_terminal;
#[cfg(target_os = "linux")]
mod sandbox;
mod session;
#[cfg(target_os = "linux")]
mod session_damage;
mod session_index;
mod session_kills;
mod session_many;
mod session_place;
mod session_resume;
#[cfg(target_os = "linux")]
mod session_salvage;
mod settings;
#[cfg(target_os = "linux")]
mod shell_policy;
mod stall;
mod steer;
mod tape;
mod terminal;
mod tool;
mod tour;
mod trust;
mod trust_connections;
mod tutorials;
mod update;
mod wrong;
