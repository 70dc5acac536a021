//! Modules that talk to a model.

pub(crate) mod chat_completions;
pub(crate) mod mock;
pub(crate) mod ollama;
pub(crate) mod vllm;
mod wire;
