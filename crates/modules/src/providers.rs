//! Modules that talk to a model.

pub(crate) mod chat_completions;
pub(crate) mod mock;
mod wire;
