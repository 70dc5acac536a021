//! Modules that talk to a model.

pub(crate) mod mock;
