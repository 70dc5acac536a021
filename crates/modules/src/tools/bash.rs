//! `tool-bash`
mod policy;
mod shell;
