//! What a sync or a compilation tells while it runs. Bytes and percents of fetches are told by `sources`.

use crate::share::{ProfileId, ShareName};

/// Hears how the work goes. Called from the work itself: it must be quick and must not wait.
pub trait Steps: Send + Sync {
    fn step(&self, step: &Step);
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A collection is being looked at.
    Collection { name: ShareName },
    /// The profiles of a collection are in place.
    Extracted { name: ShareName, profiles: usize },
    /// A reference of a profile is being resolved: the `number`th `of` so many.
    Resolving { id: ProfileId, reference: String, number: usize, of: usize },
    /// The folder of a profile is new.
    Compiled { id: ProfileId },
    /// Nothing had to be done.
    Unchanged { id: ProfileId },
    /// A profile could not be compiled; the others go on.
    Failed { id: ProfileId, message: String },
}

/// Nobody listens.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Steps for Silent {
    fn step(&self, _step: &Step) {}
}
