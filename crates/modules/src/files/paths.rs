//! From what the model wrote to a path that may be read or written. Links are followed before anything is decided.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use amplifier_core::contracts::{CapabilityError, ToolFailure};
use amplifier_core::coordinator::Coordinator;
use serde_json::{Value, json};

/// What the config of a tool says about paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// What relative paths are relative to; without it the session's own.
    pub(crate) working_dir: Option<String>,
    /// What may be read; without it the working folder and what may be written.
    pub(crate) read: Option<Vec<String>>,
    /// What may be written; without it the working folder.
    pub(crate) write: Option<Vec<String>>,
    /// What may not be written all the same.
    pub(crate) denied_write: Vec<String>,
}

/// The rules in a session.
#[derive(Clone)]
pub(crate) struct Reach {
    rules: Rules,
    coordinator: Coordinator,
}

/// What a path is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    Write,
}

impl Purpose {
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// A path that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// As it is shown: absolute, links not followed.
    pub(crate) shown: PathBuf,
    /// As the model wrote it.
    pub(crate) text: String,
    purpose: Purpose,
    /// The roots it must lie in.
    roots: Vec<PathBuf>,
    /// The roots it must not lie in.
    denied: Vec<PathBuf>,
}

impl Reach {
    pub(crate) fn new(rules: Rules, coordinator: Coordinator) -> Self {
        Self { rules, coordinator }
    }

    /// Makes what the model wrote absolute and finds the roots it is confined to.
    pub(crate) async fn ask(&self, text: &str, purpose: Purpose) -> Result<Asked, ToolFailure> {
        if text.trim().is_empty() {
            return Err(ToolFailure::new("file_path is required").of_kind("InvalidInput"));
        }
        if text.contains('\0') {
            return Err(
                ToolFailure::new("file_path holds a zero byte, which no path can").of_kind("InvalidInput")
            );
        }
        let mut roots = self.roots(purpose)?;
        let shown = if text.starts_with('@') {
            let mentioned = self.mentioned(text).await?;
            // Whoever resolves mentions vouches for what it gives to read.
            if purpose == Purpose::Read {
                roots.push(mentioned.clone());
            }
            mentioned
        } else {
            self.absolute(text)?
        };
        let denied = match purpose {
            Purpose::Read => Vec::new(),
            Purpose::Write => self.all_absolute(&self.rules.denied_write)?,
        };
        Ok(Asked { shown, text: text.to_owned(), purpose, roots, denied })
    }

    /// What relative paths are relative to.
    pub(crate) fn working_dir(&self) -> Option<PathBuf> {
        let of_session = self.coordinator.capability_text("session.working_dir").map(PathBuf::from);
        match (&self.rules.working_dir, of_session) {
            (Some(own), Some(session)) => Some(session.join(own)),
            (Some(own), None) => Some(PathBuf::from(own)),
            (None, session) => session,
        }
    }

    fn roots(&self, purpose: Purpose) -> Result<Vec<PathBuf>, ToolFailure> {
        let named = match purpose {
            Purpose::Read => &self.rules.read,
            Purpose::Write => &self.rules.write,
        };
        if let Some(named) = named {
            return self.all_absolute(named);
        }
        let mut roots: Vec<_> = self.working_dir().into_iter().collect();
        if purpose == Purpose::Read {
            // What may be written may be looked at.
            roots.extend(self.all_absolute(self.rules.write.as_deref().unwrap_or_default())?);
        }
        Ok(roots)
    }

    fn all_absolute(&self, texts: &[String]) -> Result<Vec<PathBuf>, ToolFailure> {
        texts.iter().map(|text| self.absolute(text)).collect()
    }

    fn absolute(&self, text: &str) -> Result<PathBuf, ToolFailure> {
        let path = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = self.coordinator.capability_text("user.home_dir").ok_or_else(|| {
                    let message =
                        format!("`{text}` begins with `~`, which means nothing here; give the whole path");
                    ToolFailure::new(message).of_kind("InvalidInput")
                })?;
                Path::new(&home).join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(text),
        };
        let joined = match self.working_dir() {
            Some(base) => base.join(path),
            None => path,
        };
        if !joined.is_absolute() {
            let message = format!(
                "relative path `{text}` cannot be resolved: no `working_dir` is configured and the session has none; \
                 give an absolute path"
            );
            return Err(ToolFailure::new(message).of_kind("InvalidInput"));
        }
        // Drops `.` and doubled separators; `..` stays, because behind a link it leads elsewhere than it looks.
        Ok(joined.components().collect())
    }

    /// `@name:path`, as bundles name their files.
    async fn mentioned(&self, text: &str) -> Result<PathBuf, ToolFailure> {
        match self.coordinator.call_capability("mention_resolver", json!({ "mention": text })).await {
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
}

impl Asked {
    /// The path with every link followed, if it lies where it may. What is not there yet is found through the folder it
    /// would be in. Touches the disk, so it belongs on a blocking thread.
    pub(crate) fn confine(&self) -> Result<PathBuf, ToolFailure> {
        let Some(real) = follow(&self.shown) else { return Err(self.denied()) };
        let inside = |roots: &[PathBuf]| {
            roots.iter().filter_map(|root| follow(root)).any(|root| real.starts_with(root))
        };
        if inside(&self.denied) {
            let shown = self.shown.display();
            let message = format!("Access denied: {shown} is within denied write paths");
            return Err(ToolFailure::new(message).of_kind("AccessDenied"));
        }
        // Outside the roots nobody learns whether something is there.
        if inside(&self.roots) { Ok(real) } else { Err(self.denied()) }
    }

    /// That it lies outside; what would have been allowed is in the details.
    fn denied(&self) -> ToolFailure {
        let (shown, word) = (self.shown.display(), self.purpose.word());
        let message = format!("Access denied: {shown} is not within allowed {word} paths");
        let mut failure = ToolFailure::new(message).of_kind("AccessDenied");
        let allowed = self.roots.iter().map(|root| Value::String(root.display().to_string())).collect();
        failure.details.insert("allowed".to_owned(), Value::Array(allowed));
        failure
    }

    /// That nothing is there.
    pub(crate) fn missing(&self) -> ToolFailure {
        ToolFailure::new(format!("Path not found: {}", self.text)).of_kind("NotFound")
    }

    /// Why it cannot be read, in words for the model.
    pub(crate) fn unreadable(&self, error: &std::io::Error) -> ToolFailure {
        match error.kind() {
            ErrorKind::NotFound => self.missing(),
            _ => ToolFailure::new(format!("Error reading file: {}: {error}", self.text)).of_kind("OSError"),
        }
    }

    /// That it is no text.
    pub(crate) fn no_text(&self) -> ToolFailure {
        let message = format!("Cannot read file: {} (not a text file or encoding issue)", self.text);
        ToolFailure::new(message).of_kind("UnicodeDecodeError")
    }
}

/// Follows every link of a path. Parts that do not exist are kept as they are; a link to nowhere has no answer, for
/// what is written through it would land where nobody looked.
fn follow(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            // Of a real path, so the parent is what it looks like.
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
        match real.symlink_metadata() {
            Ok(about) if about.is_symlink() => real = real.canonicalize().ok()?,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(_) => return None,
        }
    }
    Some(real)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_also_where_the_end_is_not_there_yet() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("in/deep")).unwrap();
        symlink(root.join("in/deep"), root.join("link")).unwrap();
        symlink(root.join("nowhere"), root.join("dangling")).unwrap();
        assert_eq!(follow(&root.join("link/new/file")), Some(root.join("in/deep/new/file")));
        assert_eq!(follow(&root.join("link/../x")), Some(root.join("in/x")));
        assert_eq!(follow(&root.join("new/../x")), Some(root.join("x")));
        assert_eq!(follow(&root.join("dangling")), None);
        assert_eq!(follow(&root.join("dangling/x")), None);
    }
}
