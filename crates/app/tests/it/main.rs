//! The front doors of `app`, over real files in temporary folders.

mod journal;
mod kills;
mod store;
mod support;
