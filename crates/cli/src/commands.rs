//! One file a command.

pub mod backup;
pub mod bundle;
pub mod cache;
pub mod collection;
pub mod config;
pub mod init;
pub mod load;
pub mod module;
pub mod plan;
pub mod profile;
pub mod provider;
pub mod run;
pub mod start;
