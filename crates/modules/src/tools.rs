//! Modules that do something for the model.

pub(crate) mod echo;
pub(crate) mod filesystem;
pub(crate) mod search;
