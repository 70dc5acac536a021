//! Bundles and agents: text that becomes a mount plan.

pub mod front_matter;
pub mod node;
pub mod notice;
pub mod origin;
pub mod yaml;
