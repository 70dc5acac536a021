//! Bundles and agents: text that becomes a mount plan.
//!
//! The way of a file, in reading order: [`front_matter`] splits it, [`yaml`] reads its head, [`bundle`] types it,
//! `include` loads what it builds on, `compose` merges the layers, `mention` gathers the files its text speaks of, and
//! `plan` writes the mount plan. Every value keeps its [`origin`] on the way. Nothing here touches the network or the
//! environment.

pub mod agent;
pub mod bundle;
pub mod compose;
pub mod context;
pub mod disk;
pub mod error;
pub mod explain;
pub mod fetch;
pub mod front_matter;
pub mod home;
pub mod include;
pub mod load;
pub mod mention;
pub mod mode;
pub mod node;
pub mod notice;
pub mod origin;
pub mod plan;
pub mod prompt;
pub mod schema;
pub mod tree;
pub mod yaml;
