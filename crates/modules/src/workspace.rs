//! What the user trusts in this session, as the application says: the one place where modules ask. Files of a directory that
//! is not trusted start no program, name no server and lead nowhere else.

use std::path::{Component, Path, PathBuf};

use amplifier_core::contracts::Capability;
use amplifier_core::coordinator::Coordinator;
use serde::Deserialize;

use crate::hooks::place::real_path;

/// The capability that holds it.
pub(crate) const CAPABILITY: &str = "workspace.trust";

/// The directories of the session by whether their user trusts them. Without an application that says so, none is untrusted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Workspace {
    untrusted: Vec<PathBuf>,
    /// Those of them whose files ask to start programs and the like.
    asking: Vec<PathBuf>,
    /// The working directory as the session names it, and its real path.
    #[serde(skip)]
    base: Option<(PathBuf, PathBuf)>,
}

impl Workspace {
    pub(crate) fn of(coordinator: &Coordinator) -> Self {
        let base = coordinator.capability_text("session.working_dir").map(PathBuf::from);
        let known = match coordinator.capability(CAPABILITY) {
            Some(Capability::Value(value)) => {
                serde_json::from_value(value).unwrap_or_else(|_| Self::closed())
            }
            _ => Self::default(),
        };
        Self { base: base.map(|base| (base.clone(), real_path(&base))), ..known }
    }

    #[cfg(test)]
    pub(crate) fn untrusted(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let untrusted: Vec<_> = roots.into_iter().collect();
        Self { asking: untrusted.clone(), untrusted, base: None }
    }

    /// What cannot be read is no permission.
    fn closed() -> Self {
        let all = vec![PathBuf::from("/")];
        Self { untrusted: all.clone(), asking: all, base: None }
    }

    /// Whether a file belongs to an untrusted directory, by its name or by where its links lead.
    pub(crate) fn is_untrusted(&self, path: &Path) -> bool {
        !self.untrusted.is_empty() && (self.holds(&self.written(path)) || self.holds(&real_path(path)))
    }

    /// Whether a directory is untrusted and its files ask to start programs, so that its own programs are suspect too.
    pub(crate) fn is_suspect(&self, directory: &Path) -> bool {
        let real = real_path(directory);
        self.asking.iter().any(|root| real.starts_with(root))
    }

    /// Where a path of an untrusted directory leads when that is outside of it.
    pub(crate) fn leads_out(&self, path: &Path) -> Option<PathBuf> {
        if self.untrusted.is_empty() || !self.holds(&self.written(path)) {
            return None;
        }
        let real = real_path(path);
        (!self.holds(&real)).then_some(real)
    }

    /// A path as it is written, without `.` and `..`, from the real path of the working directory.
    fn written(&self, path: &Path) -> PathBuf {
        let below =
            self.base.as_ref().and_then(|(base, real)| Some(real.join(path.strip_prefix(base).ok()?)));
        let mut written = PathBuf::new();
        for part in below.as_deref().unwrap_or(path).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    written.pop();
                }
                other => written.push(other),
            }
        }
        written
    }

    fn holds(&self, path: &Path) -> bool {
        self.untrusted.iter().any(|root| path.starts_with(root))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_link_out_of_an_untrusted_directory_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for directory in ["project/real", "elsewhere"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("project/out")).unwrap();
        std::os::unix::fs::symlink(root.join("project/real"), root.join("in")).unwrap();
        let workspace = Workspace { untrusted: vec![root.join("project")], ..Workspace::default() };
        let at = |path: &str| root.join(path);
        assert_eq!(workspace.leads_out(&at("project/out/new")), Some(at("elsewhere/new")));
        assert_eq!(workspace.leads_out(&at("project/real/new")), None);
        assert_eq!(workspace.leads_out(&at("elsewhere/new")), None);
        assert!(workspace.is_untrusted(&at("in/hooks")) && workspace.is_untrusted(&at("project/out/x")));
        assert!(!workspace.is_untrusted(&at("elsewhere")) && !Workspace::default().is_untrusted(&at("in")));
    }
}
