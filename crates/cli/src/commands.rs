//! One file a command.

pub mod plan;
pub mod run;
