//! Bundles through the front door: folders of text in, plans and notices out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the exemption for tests does not reach their helper functions"
)]

mod defects;
mod explained;
mod golden;
mod hostile;
mod index;
mod layers;
mod memory;
mod prompt;
