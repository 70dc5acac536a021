//! Policy shared by the terminal and the daemon: where things live, what is kept, how a session comes up.

pub mod files;
pub mod journal;
pub mod paths;
pub mod store;
