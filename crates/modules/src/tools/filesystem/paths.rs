//! From what the model wrote to a path that may be read. Links are followed before anything is decided.

use std::path::{Path, PathBuf};

use amplifier_core::contracts::ToolFailure;
use amplifier_core::coordinator::Coordinator;
use serde_json::{Value, json};

use super::Config;

/// A path that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// As it is shown: absolute, links not followed.
    pub(super) shown: PathBuf,
    /// As the model wrote it.
    pub(super) text: String,
    /// The roots it must lie in; `None` for anywhere.
    pub(super) roots: Option<Vec<PathBuf>>,
}

/// Makes what the model wrote absolute and finds the roots it is confined to.
pub(super) async fn ask(
    text: &str,
    config: &Config,
    coordinator: &Coordinator,
) -> Result<Asked, ToolFailure> {
    if text.trim().is_empty() {
        return Err(ToolFailure::new("file_path is required").of_kind("InvalidInput"));
    }
    let base = working_dir(config, coordinator);
    let shown = if text.starts_with('@') {
        mentioned(text, coordinator).await?
    } else {
        absolute(text, base.as_deref(), coordinator)?
    };
    let allowed = config.allowed_read_paths.as_ref().or(config.allowed_paths.as_ref());
    let roots = match allowed {
        None => None,
        Some(roots) => Some(
            roots
                .iter()
                .map(|root| absolute(root, base.as_deref(), coordinator))
                .collect::<Result<Vec<_>, _>>()?,
        ),
    };
    Ok(Asked { shown, text: text.to_owned(), roots })
}

/// Follows links and refuses what lies outside the roots. Touches the disk, so it belongs on a blocking thread.
pub(super) fn confine(asked: &Asked) -> Result<PathBuf, ToolFailure> {
    let missing = || ToolFailure::new(format!("Path not found: {}", asked.text)).of_kind("NotFound");
    let denied = || {
        let message = format!("Access denied: {} is not within allowed read paths", asked.shown.display());
        ToolFailure::new(message).of_kind("AccessDenied")
    };
    let real = asked.shown.canonicalize();
    let Some(roots) = &asked.roots else { return real.map_err(|error| unreadable(asked, &error)) };
    // A root that is not there holds nothing.
    let roots: Vec<_> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    match real {
        Ok(real) if inside(&real) => Ok(real),
        Ok(_) => Err(denied()),
        // Outside the roots nobody learns whether something is there.
        Err(_) => {
            let ancestor = asked.shown.ancestors().skip(1).find_map(|path| path.canonicalize().ok());
            Err(if ancestor.is_some_and(|path| inside(&path)) { missing() } else { denied() })
        }
    }
}

/// Why a path cannot be opened, in words for the model.
pub(super) fn unreadable(asked: &Asked, error: &std::io::Error) -> ToolFailure {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            ToolFailure::new(format!("Path not found: {}", asked.text)).of_kind("NotFound")
        }
        _ => ToolFailure::new(format!("Error reading file: {}: {error}", asked.text)).of_kind("OSError"),
    }
}

fn working_dir(config: &Config, coordinator: &Coordinator) -> Option<PathBuf> {
    let of_session = coordinator.capability_text("session.working_dir").map(PathBuf::from);
    match (&config.working_dir, of_session) {
        (Some(own), Some(session)) => Some(session.join(own)),
        (Some(own), None) => Some(PathBuf::from(own)),
        (None, session) => session,
    }
}

fn absolute(text: &str, base: Option<&Path>, coordinator: &Coordinator) -> Result<PathBuf, ToolFailure> {
    let path = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = coordinator.capability_text("user.home_dir").ok_or_else(|| {
                let message =
                    format!("`{text}` begins with `~`, which means nothing here; give the whole path");
                ToolFailure::new(message).of_kind("InvalidInput")
            })?;
            Path::new(&home).join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(text),
    };
    let joined = match base {
        Some(base) => base.join(path),
        None => path,
    };
    if !joined.is_absolute() {
        let message = format!(
            "relative path `{text}` cannot be resolved: no `working_dir` is configured and the session has none; give \
             an absolute path"
        );
        return Err(ToolFailure::new(message).of_kind("InvalidInput"));
    }
    // Drops `.` and doubled separators; `..` stays, because behind a link it leads elsewhere than it looks.
    Ok(joined.components().collect())
}

/// `@name:path`, as bundles name their files.
async fn mentioned(text: &str, coordinator: &Coordinator) -> Result<PathBuf, ToolFailure> {
    use amplifier_core::contracts::CapabilityError;
    match coordinator.call_capability("mention_resolver", json!({ "mention": text })).await {
        Ok(Value::String(path)) => Ok(PathBuf::from(path)),
        Ok(_) => Err(ToolFailure::new(format!("@mention not found: {text}")).of_kind("NotFound")),
        Err(CapabilityError::Absent { .. }) => {
            Err(ToolFailure::new("@mention paths require mention_resolver capability (not available)")
                .of_kind("InvalidInput"))
        }
        Err(error) => {
            Err(ToolFailure::new(format!("@mention not resolved: {text}: {error}")).of_kind("NotFound"))
        }
    }
}
