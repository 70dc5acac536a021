//! Hooks: they watch, guard and extend what happens. `place.rs` and `wildcard.rs` are what several of them share.

pub(crate) mod approval;
pub mod backup;
pub(crate) mod logging;
mod place;
pub(crate) mod redaction;
pub(crate) mod shell;
mod wildcard;
