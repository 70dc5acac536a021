//! Modules that run a turn.

pub(crate) mod loop_basic;
