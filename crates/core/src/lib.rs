//! The kernel: contracts, coordinator, hook dispatch, session life, loader, cancellation.
//!
//! Mechanism only. It opens a [`session`] from a mount plan by letting the [`loader`] mount modules into a
//! [`coordinator`]; modules keep the [`contracts`]; [`hooks`] watch and control. It reads no file, no environment and no
//! clock but the one it is given: records leave through the [`journal`] port, spending is counted in the [`ledger`].

#![deny(missing_docs)]

pub mod cancel;
pub mod canonical;
pub mod clock;
pub mod contracts;
pub mod coordinator;
pub mod error;
pub mod estimate;
pub mod history;
pub mod hooks;
pub mod journal;
pub mod ledger;
pub mod loader;
pub mod redact;
pub mod report;
pub mod retry;
pub mod session;
mod sync;
pub mod validate;
pub mod watch;

/// The pages of `docs/contracts/`, so that their samples are compiled and run with the other documentation tests.
#[cfg(doctest)]
mod contract_pages {
    #[doc = include_str!("../../../docs/contracts/README.md")]
    mod shared {}
    #[doc = include_str!("../../../docs/contracts/context.md")]
    mod context {}
    #[doc = include_str!("../../../docs/contracts/hook.md")]
    mod hook {}
    #[doc = include_str!("../../../docs/contracts/module-source.md")]
    mod module_source {}
    #[doc = include_str!("../../../docs/contracts/orchestrator.md")]
    mod orchestrator {}
    #[doc = include_str!("../../../docs/contracts/provider.md")]
    mod provider {}
    #[doc = include_str!("../../../docs/contracts/tool.md")]
    mod tool {}
}
