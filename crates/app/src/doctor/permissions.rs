//! Whether somebody else on this machine can read what is private or change what sessions are made from.

use super::{Check, Finding, Patient};

#[cfg(not(unix))]
pub(super) fn look(_patient: &Patient) -> Vec<Finding> {
    vec![Check::Permissions.ok("not looked at on this system")]
}

#[cfg(unix)]
pub(super) fn look(patient: &Patient) -> Vec<Finding> {
    unix::look(patient)
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use super::{Check, Finding, Patient};
    use crate::doctor::count;
    use crate::paths::Home;
    use crate::spelling::quoted;

    /// How many sessions are looked at, newest first: what holds for them holds for the others.
    const SESSIONS: usize = 200;

    /// The bits of everybody who is not the owner.
    const OTHERS: u32 = 0o077;
    const OTHERS_WRITE: u32 = 0o022;

    pub(super) fn look(patient: &Patient) -> Vec<Finding> {
        let home = &patient.access.home;
        let mut findings = Vec::new();
        if let Some(mode) = mode(home.root()).filter(|mode| mode & OTHERS_WRITE != 0) {
            let told = format!("others may write to `{}` (mode {:03o})", home.root().display(), mode & 0o777);
            findings.push(problem(told, "chmod go-w", home.root()));
        }
        findings.extend(stranger(home.root()));
        for path in secrets(home) {
            if let Some(mode) = mode(&path).filter(|mode| mode & OTHERS != 0) {
                let told = format!("others may look into `{}` (mode {:03o})", path.display(), mode & 0o777);
                findings.push(problem(told, "chmod go=", &path));
            }
        }
        let open = open_sessions(&home.sessions());
        if open > 0 {
            let told = format!(
                "others may look into {} in `{}`",
                count(open, "session", "sessions"),
                home.sessions().display()
            );
            findings.push(problem(told, "chmod -R go=", &home.sessions()));
        }
        if findings.is_empty() {
            findings.push(Check::Permissions.ok("nobody else can read sessions and keys or change the home"));
        }
        findings
    }

    fn problem(told: String, command: &str, path: &Path) -> Finding {
        Check::Permissions.problem(told).cure(format!("`{command} {}`", quoted(path)))
    }

    fn mode(path: &Path) -> Option<u32> {
        std::fs::metadata(path).ok().map(|found| found.mode())
    }

    /// A home that another user owns, as after a command that was run as root.
    fn stranger(root: &Path) -> Option<Finding> {
        let me = rustix::process::geteuid();
        let owner = std::fs::metadata(root).ok()?.uid();
        (!me.is_root() && owner != me.as_raw()).then(|| {
            let told = format!("`{}` belongs to user {owner}, this is user {}", root.display(), me.as_raw());
            Check::Permissions.warning(told).cure(format!("`chown -R {} {}`", me.as_raw(), quoted(root)))
        })
    }

    /// The files and folders whose content is nobody else's business.
    fn secrets(home: &Home) -> Vec<PathBuf> {
        let private = |name: &str| {
            let name = name.to_ascii_lowercase();
            name == "token" || name.ends_with(".key") || name.starts_with("secrets")
        };
        let mut found = vec![home.sessions(), home.keys()];
        for entry in std::fs::read_dir(home.root()).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(private) {
                found.push(entry.path());
            }
        }
        found
    }

    fn open_sessions(sessions: &Path) -> usize {
        // Behind a closed folder nobody comes to them.
        if mode(sessions).is_none_or(|mode| mode & OTHERS == 0) {
            return 0;
        }
        let entries = std::fs::read_dir(sessions).into_iter().flatten().flatten();
        let modes = entries.take(SESSIONS).filter_map(|entry| entry.metadata().ok());
        modes.filter(|found| found.is_dir() && found.mode() & OTHERS != 0).count()
    }
}
