//! Files, as tools reach them: where a path may lead, and how one is opened and replaced. Not a tool itself.
//!
//! `paths.rs` decides, `place.rs` opens what was decided and nothing else, so that no link put in between leads elsewhere.

pub(crate) mod names;
pub(crate) mod paths;
pub(crate) mod place;

use amplifier_core::contracts::ToolFailure;

/// Runs what touches the disk where it may wait.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.unwrap_or_else(|error| Err(ToolFailure::new(format!("the file access broke off: {error}"))))
}
