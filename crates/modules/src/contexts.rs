//! Modules that keep the conversation. What they share is `window`: the part of a conversation that a model sees.

pub(crate) mod persistent;
pub(crate) mod simple;
mod window;
