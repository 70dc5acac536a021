//! Modules that watch and steer a session.

mod choice;
pub(crate) mod scheduler_cost_aware;
pub(crate) mod scheduler_heuristic;
pub(crate) mod status_context;
pub(crate) mod streaming_ui;
pub(crate) mod todo_reminder;
