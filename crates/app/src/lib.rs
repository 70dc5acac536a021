//! Everything between the front ends and the kernel: paths, environment, clock, the session store, and opening.
//!
//! All policy, no terminal: `cli` and `daemon` parse, call this crate and render what it returns.

pub mod backups;
pub mod catalog;
pub mod clock;
pub mod detect;
pub mod env;
pub mod expand;
pub mod files;
pub mod inquire;
pub mod journal;
pub mod open;
pub mod paths;
pub mod prepare;
pub mod providers;
pub mod store;

// What a front end meets of the kernel; it depends on this crate alone.
pub use amplifier_core::cancel::CancelLevel;
pub use amplifier_core::contracts::{
    ApprovalError, ApprovalSystem, DisplayMessage, DisplaySystem, Prompt, TurnError,
};
pub use amplifier_core::session::{ExecuteError, Session, Strictness};
