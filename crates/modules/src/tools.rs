//! Modules that do something for the model.

pub(crate) mod apply_patch;
pub(crate) mod bash;
pub(crate) mod echo;
pub(crate) mod filesystem;
pub(crate) mod mcp;
pub(crate) mod search;
pub(crate) mod skills;
pub(crate) mod task;
pub(crate) mod todo;
pub(crate) mod web;
