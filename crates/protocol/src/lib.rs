//! Every shape that crosses a boundary, as serde types without I/O.

#![deny(missing_docs)]

pub mod ids;
pub mod locate;
pub mod mount_plan;
