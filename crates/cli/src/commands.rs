//! One file a command.

pub mod agents;
pub mod backup;
pub mod bundle;
pub mod cache;
pub mod chat;
pub mod collection;
pub mod completions;
pub mod config;
pub mod doctor;
pub mod init;
pub mod load;
pub mod man;
pub mod module;
pub mod plan;
pub mod profile;
pub mod provider;
pub mod run;
pub mod session;
pub mod start;
pub mod tool;
pub mod trust;
pub mod update;
pub mod version;
