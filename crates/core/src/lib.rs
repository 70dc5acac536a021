//! The kernel: contracts, coordinator, hook dispatch, session life, loader, cancellation.

#![deny(missing_docs)]

pub mod cancel;
pub mod canonical;
pub mod clock;
pub mod error;
pub mod estimate;
pub mod journal;
pub mod ledger;
pub mod redact;
pub mod retry;
mod sync;
pub mod validate;
