//! Everything between the front ends and the kernel: paths, environment, clock, the session store, and opening.
//!
//! All policy, no terminal: `cli` and `daemon` parse, call this crate and render what it returns.

pub mod about;
mod agents;
pub mod approval;
pub mod backups;
pub mod bundles;
pub mod catalog;
pub mod choice;
pub mod clock;
pub mod compact;
pub mod connect;
pub mod conversation;
pub mod credentials;
pub mod denial;
pub mod detect;
pub mod diff;
pub mod doctor;
pub mod ended;
pub mod env;
pub mod expand;
pub mod failure;
pub mod files;
pub mod inquire;
pub mod invoke;
pub mod journal;
pub mod keys;
pub mod lack;
pub mod library;
pub mod lockfile;
pub mod modes;
pub mod open;
pub mod output;
pub mod overrides;
pub mod paths;
pub mod plain;
pub mod prepare;
pub mod profiles;
pub mod project;
pub mod prompt;
pub mod providers;
pub mod registry;
pub mod resolver;
pub mod seat;
pub mod sessions;
pub mod settings;
pub mod shelf;
pub mod spawn;
pub mod spelling;
pub mod start;
pub mod store;
pub mod tape;
pub mod telling;
pub mod told;
pub mod toolbox;
pub mod trust;
pub mod turns;
pub mod updates;
pub mod words;

// What a front end meets of the kernel; it depends on this crate alone.
pub use amplifier_bundle::explain::Setting;
pub use amplifier_bundle::mention::{FailedMention, Speaker};
pub use amplifier_bundle::notice::{Notice, Severity, Strictness as BundleStrictness};
pub use amplifier_bundle::origin::Place;
pub use amplifier_bundle::tree::{Tree, TreeFile, TreeOutcome, tree};
pub use amplifier_core::cancel::{CancelLevel, CancelToken};
pub use amplifier_core::canonical::{PlanHash, plan_hash};
pub use amplifier_core::contracts::{
    ApprovalError, ApprovalSystem, DisplayMessage, DisplaySystem, ModuleSourceResolver, Prompt, TurnError,
};
pub use amplifier_core::error::{causes, chain};
pub use amplifier_core::redact::redact;
pub use amplifier_core::report::{LoadEntry, LoadOutcome};
pub use amplifier_core::session::{ExecuteError, Session, Strictness};
pub use amplifier_modules::watchdog;
pub use amplifier_sources::cache::{Cache, Cleared, Entry as CacheEntry, Selection, Verdict};
pub use amplifier_sources::error::FetchError;
pub use amplifier_sources::fetch::Freshness;
pub use amplifier_sources::limits::Limits;
pub use amplifier_sources::lock::BundleLock;
pub use amplifier_sources::progress::{Progress, Report, Stage};
