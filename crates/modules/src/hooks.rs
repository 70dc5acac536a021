//! Hooks: they watch, guard and extend what happens. `place.rs` and `wildcard.rs` are what several of them share.

pub(crate) mod approval;
pub mod backup;
pub(crate) mod logging;
mod place;
pub(crate) mod redaction;
pub(crate) mod shell;
mod wildcard;
//! Modules that watch and steer a session.
mod choice;
pub(crate) mod scheduler_cost_aware;
pub(crate) mod scheduler_heuristic;
pub(crate) mod status_context;
pub(crate) mod streaming_ui;
pub(crate) mod todo_reminder;
