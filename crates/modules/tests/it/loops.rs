//! The loops through the front door of a real session.
//!
//! `golden` and `injections` hold the known cases of every loop; the others hold what is new, one topic each.

mod events;
mod fallback;
mod golden;
mod injections;
mod parallel;
mod stage;
mod steering;
mod streaming;
