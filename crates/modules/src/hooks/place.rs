//! Where hooks keep their files: paths from a config made absolute, folders and files for their owner alone.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use amplifier_core::contracts::Mounted;
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::{LoadError, MountCx};

use crate::workspace::Workspace;

/// Declines the mount when these paths need a working folder and the session has none.
pub(super) fn homeless(paths: &[&str], cx: &MountCx) -> Option<Mounted> {
    let relative = paths.iter().find(|path| !path.starts_with('~') && !Path::new(path).is_absolute())?;
    if working_dir(&cx.coordinator).is_some_and(|folder| folder.is_absolute()) {
        return None;
    }
    let reason =
        format!("`{relative}` is relative and the session has no working folder; give an absolute path");
    Some(Mounted::Skipped { reason })
}

/// Makes a path of the config absolute: `~` is the person's folder, the rest is relative to the working folder.
pub(super) fn resolve(text: &str, cx: &MountCx) -> Result<PathBuf, LoadError> {
    let coordinator = &cx.coordinator;
    let path = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = coordinator.capability_text("user.home_dir").ok_or_else(|| {
                refused(cx, format!("`{text}` begins with `~` and the session knows no `user.home_dir`"))
            })?;
            Path::new(&home).join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(text),
    };
    let path = match working_dir(coordinator) {
        Some(base) => base.join(path),
        None => path,
    };
    if path.is_absolute() {
        return match Workspace::of(coordinator).leads_out(&path) {
            None => Ok(path),
            Some(real) => {
                let real = real.display();
                Err(refused(
                    cx,
                    format!("`{text}` leads to `{real}`, out of a directory that is not trusted"),
                ))
            }
        };
    }
    Err(refused(
        cx,
        format!("`{text}` is relative and the session has no working folder; give an absolute path"),
    ))
}

/// The folder the session works in.
pub(super) fn working_dir(coordinator: &Coordinator) -> Option<PathBuf> {
    coordinator.capability_text("session.working_dir").map(PathBuf::from)
}

/// The path with links followed; what does not exist yet hangs below the nearest folder that does.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

/// A mount that cannot go on.
pub(super) fn refused(cx: &MountCx, message: impl Into<String>) -> LoadError {
    LoadError::Mount { id: cx.module().clone(), message: message.into() }
}

/// Makes a folder and those above it, for the owner alone. A folder that exists keeps its mode.
///
/// A new one in a project's `.amplifier` is kept out of version control: who adds everything to a commit does not mean
/// what sessions said.
pub(super) fn private_dir(path: &Path) -> io::Result<()> {
    let new = below_amplifier(path).filter(|folder| !folder.exists());
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    match new.map(|folder| std::fs::write(folder.join(".gitignore"), "*\n")) {
        // Another process may have made the folder, or taken it away; then it has been told, or it need not be.
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The folder directly below `.amplifier` that holds this path or is it.
fn below_amplifier(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| folder.parent().is_some_and(|above| above.ends_with(".amplifier")))
}

/// Options that create files for the owner alone.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Replaces a file as a whole and syncs it: readers see the old bytes or the new ones.
pub(super) fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temp = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = write_new(&temp, bytes).and_then(|()| std::fs::rename(&temp, path));
    if written.is_err() {
        // The first error is the one worth telling; a temporary file that stays is overwritten by the next attempt.
        std::fs::remove_file(&temp).ok();
    }
    written
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = private_file().write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_leaves_in_a_project_is_kept_out_of_version_control_and_nothing_else_is() {
        let temp = tempfile::tempdir().unwrap();
        let ignored = |folder: &str| {
            private_dir(&temp.path().join(folder)).unwrap();
            let holders = Path::new(folder).ancestors().filter(|holder| {
                let path = temp.path().join(holder).join(".gitignore");
                std::fs::read_to_string(path).is_ok_and(|text| text == "*\n")
            });
            holders.map(|holder| holder.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ignored("p/.amplifier/backups/s-1/objects"), ["p/.amplifier/backups"]);
        assert_eq!(ignored("p/.amplifier/logs"), ["p/.amplifier/logs"]);
        assert_eq!(ignored("q/.amplifier"), [""; 0]);
        assert_eq!(ignored("q/logs"), [""; 0]);
        // Whoever made the folder, or took the file away, wants it so.
        std::fs::create_dir(temp.path().join("q/.amplifier/logs")).unwrap();
        assert_eq!(ignored("q/.amplifier/logs"), [""; 0]);
    }
}
