//! One file a command.

pub mod backup;
pub mod module;
pub mod plan;
pub mod provider;
pub mod run;
