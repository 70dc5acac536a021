//! Where things come from: a URI becomes a folder on this machine.
//!
//! A [`uri::SourceUri`] says where; the [`fetch::Fetcher`] gets it, from this disk, through git or over HTTP, into a
//! [`cache`] that many processes share; a [`lock`] says what was got, so that it can be got again or refused;
//! the [`resolver`] offers all that to the kernel. It reads no environment, no settings and no clock but those handed in,
//! and it runs nothing it has fetched.

pub mod cache;
pub mod error;
pub mod fetch;
mod file;
pub mod git;
mod http;
pub mod limits;
pub mod lock;
pub mod progress;
pub mod resolver;
pub mod tree;
pub mod uri;
mod zip;
