//! Files, as tools reach them: where a path may lead, and how one is opened and replaced. Not a tool itself.
//!
//! `paths.rs` decides, `place.rs` opens what was decided and nothing else, so that no link put in between leads elsewhere.

pub(crate) mod paths;
pub(crate) mod place;
