//! `cargo xtask bench bundles`: a root with fifty includes, loaded and composed, in a cold process and in a warm one.
//!
//! The work is in `crates/bundle/benches/compose.rs`. The public bundle layer is in no package index, so it is not run
//! beside ours: it needs 952 ms for a cold process where the goals were measured, and the goal is a fiftieth of that.

use super::goals::{Goal, Share, judge};
use super::measurement::Run;
use super::{measure, show};
use crate::output::TaskError;
use crate::workspace::Workspace;

const fn row(name: &'static str, at_most: Option<f64>) -> Goal {
    Goal { name, at_most, over: None, times: None, share: Share::Whole }
}

/// In the order of the table; the last row is what reading and parsing the files costs alone.
const GOALS: &[Goal] = &[
    row("bundle_load_cold", Some(19_000_000.0)),
    row("bundle_load_warm", None),
    row("bundle_compose", None),
    row("bundle_floor_parse", None),
];

/// Measures and prints the table. Returns how many goals were not met.
pub(crate) fn bundles(workspace: &Workspace) -> Result<usize, TaskError> {
    let ours = measure(workspace, "amplifier-bundle", "compose", &[])?;
    show(&judge(GOALS, &ours, &Run::default()), "public", &[("ours", &ours)])
}
