//! The kernel: contracts, coordinator, hook dispatch, session life, loader, cancellation.

#![deny(missing_docs)]

pub mod canonical;
pub mod redact;
pub mod validate;
