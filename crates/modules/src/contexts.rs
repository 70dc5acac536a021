//! Modules that keep the conversation.

pub(crate) mod simple;
