//! Modules that keep the conversation. What they share is `window`: the part of a conversation that a model sees.

mod events;
pub(crate) mod persistent;
pub(crate) mod simple;
mod window;
