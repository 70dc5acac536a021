//! The whole way of this crate in one call: a reference to a bundle or an agent becomes a plan whose values know where
//! they were set. Opening a session from it is `app`'s.

use std::path::Path;

use crate::agent;
use crate::compose::{self, Composed};
use crate::context::{self, ContextPath};
use crate::error::BundleError;
use crate::fetch::Fetch;
use crate::include::{self, Graph, LoadOptions};
use crate::mode::{self, Mode};
use crate::notice::Notice;
use crate::plan::{self, PlanDraft};

/// A bundle that is ready to become a session.
#[derive(Debug)]
pub struct LoadedBundle {
    /// The files it was made from.
    pub graph: Graph,
    /// What they say together.
    pub composed: Composed,
    /// The context files that are there, in the order in which they were declared.
    pub context: Vec<ContextPath>,
    /// The modes beside the bundle that was asked for.
    pub modes: Vec<Mode>,
    /// The mount plan.
    pub plan: PlanDraft,
}

impl LoadedBundle {
    /// What is worth telling, of all files and steps.
    pub fn notices(&self) -> &[Notice] {
        &self.composed.notices
    }

    /// What keeps it from becoming a session by itself; nothing, when it is complete.
    ///
    /// A bundle that is only included by others need not be complete.
    pub fn gaps(&self) -> Vec<&'static str> {
        let plan = self.plan.to_json();
        let mut gaps = Vec::new();
        if self.composed.head.name.is_none() {
            gaps.push("the bundle has no name");
        }
        for (pointer, gap) in [
            ("/session/orchestrator", "`session.orchestrator` is missing"),
            ("/session/context", "`session.context` is missing"),
            ("/providers/0", "there is no provider"),
        ] {
            if plan.pointer(pointer).is_none() {
                gaps.push(gap);
            }
        }
        gaps
    }
}

/// Loads a bundle or an agent by address, path or registered name; relative paths start at `base`.
///
/// # Errors
/// [`BundleError`] when it cannot be had, a file has mistakes, a bound is passed, or in strict mode anything is amiss.
pub async fn load_bundle<F: Fetch>(
    fetch: &F,
    reference: &str,
    base: &Path,
    options: &LoadOptions,
) -> Result<LoadedBundle, BundleError> {
    load_with(fetch, reference, base, options, Vec::new()).await
}

/// Loads what shall lie on top of bundles that are loaded later, for [`load_with`].
///
/// # Errors
/// As [`load_bundle`].
pub async fn load_layer<F: Fetch>(
    fetch: &F,
    reference: &str,
    base: &Path,
    options: &LoadOptions,
) -> Result<Composed, BundleError> {
    let graph = include::load(fetch, reference, base, options).await?;
    compose::compose(&graph, &options.limits)
}

/// Loads a bundle and lays others over it, the last on top; it stays the one that was asked for.
///
/// # Errors
/// As [`load_bundle`].
pub async fn load_with<F: Fetch>(
    fetch: &F,
    reference: &str,
    base: &Path,
    options: &LoadOptions,
    layers: Vec<Composed>,
) -> Result<LoadedBundle, BundleError> {
    let graph = include::load(fetch, reference, base, options).await?;
    let mut composed = compose::compose(&graph, &options.limits)?;
    for layer in layers {
        composed = compose::over(composed, layer, &options.limits)?;
    }
    let agents = agent::entries(fetch, &mut composed, &options.limits);
    let context = context::resolve(fetch, &mut composed);
    let plan = plan::draft(&composed, agents);
    let (modes, mut notices) = mode::load(fetch, &graph, &options.limits);
    composed.notices.append(&mut notices);
    if composed.notices.iter().any(|notice| notice.stops(options.strictness)) {
        let stops = composed.notices.into_iter().filter(|notice| notice.stops(options.strictness));
        return Err(BundleError::Invalid(stops.collect()));
    }
    Ok(LoadedBundle { graph, composed, context, modes, plan })
}
