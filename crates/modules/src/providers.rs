//! Modules that talk to a model.

pub(crate) mod anthropic;
pub(crate) mod azure_openai;
mod blocks;
pub(crate) mod chat_completions;
#[cfg(test)]
mod compacted_tests;
pub(crate) mod demo;
pub(crate) mod gemini;
#[cfg(test)]
mod mappers_tests;
pub(crate) mod mock;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod vllm;
mod wire;
