//! Hooks: they watch, guard and extend what happens. `call_paths.rs`, `choice.rs`, `place.rs` and
//! `wildcard.rs` are what several share.

pub(crate) mod approval;
pub mod backup;
pub(crate) mod call_paths;
mod choice;
pub(crate) mod logging;
pub(crate) mod place;
pub(crate) mod redaction;
pub(crate) mod scheduler_cost_aware;
pub(crate) mod scheduler_heuristic;
pub(crate) mod shell;
pub(crate) mod status_context;
pub(crate) mod streaming_ui;
pub(crate) mod todo_reminder;
mod wildcard;
