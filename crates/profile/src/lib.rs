//! Profiles: text in collections that becomes folders in `share/`, and a mount plan with hints.
//!
//! Three phases, each a method of [`Profiles`]: `sync` brings collections to `share/profiles/<collection>/<profile>/profile.md`
//! ([`collections`], [`extract`]); `compile` resolves every reference of a profile into folders beside that file, and writes
//! `profile.lock` ([`chain`], [`mod@reference`], [`compile`], [`lock_file`]); `plan` makes the mount plan ([`plan`]), whose
//! hints the [`resolver`] turns into folders at run time. It opens no session and runs nothing it has fetched.

pub mod chain;
pub mod check;
pub mod collections;
pub mod compile;
mod copy;
pub mod error;
pub mod extract;
pub mod lock_file;
pub mod mention;
pub mod mount_type;
pub mod news;
mod origin;
pub mod plan;
pub mod profile_file;
mod profiles;
pub mod reference;
pub mod resolver;
pub mod share;
mod staging;
pub mod steps;
pub mod sync;

pub use self::error::ProfileError;
pub use self::profiles::{ProfileContext, Profiles};
pub use self::share::{ProfileId, Share, ShareName};
