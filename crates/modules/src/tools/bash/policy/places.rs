//! Where a path leads, by its text alone. Links are not followed: that is the sandbox's part.

use std::path::{Component, Path, PathBuf};

use super::Policy;

/// What kind of place a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Inside the workspace.
    Workspace,
    /// The workspace as a whole, or what keeps its history.
    WholeWorkspace,
    /// A temporary folder.
    Temporary,
    /// A device that swallows or shows.
    Harmless,
    /// Another device.
    Device,
    /// The root, a home folder as a whole, a folder of the system as a whole.
    Whole,
    /// Part of the system.
    System,
    /// Keys and passwords.
    Secret,
    /// Read by shells, tools or the system later on.
    Startup,
    /// A connection dressed up as a file.
    Socket,
    /// Anywhere else.
    Outside,
    /// The text alone does not say.
    Unknown,
}

const SYSTEM: &[&str] = &[
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/boot",
    "/var",
    "/sys",
    "/proc",
    "/run",
    "/System",
    "/Library",
    "/private/etc",
    "/Applications",
];
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", "/private/tmp", "/dev/shm"];
const HARMLESS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/tty",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
const SECRET: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".kube",
    ".password-store",
    ".docker/config.json",
    ".config/gcloud",
    ".config/gh",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".local/share/keyrings",
    ".mozilla",
    ".amplifierd/settings.yaml",
];
const STARTUP: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".gitconfig",
    ".config/git",
    ".config/autostart",
    ".config/systemd",
    ".config/fish",
    ".vimrc",
    ".inputrc",
    "Library/LaunchAgents",
];

impl Policy {
    /// The place of a path as it is written in a command that runs in `folder`.
    pub(super) fn place(&self, text: &str, folder: Option<&Path>) -> Place {
        let text = text.trim_start_matches("file://");
        if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
            return Place::Socket;
        }
        let home = self.home.clone().unwrap_or_else(|| PathBuf::from("/home/user"));
        let path = match text.strip_prefix('~') {
            Some(rest) => match rest.split_once('/') {
                Some((_, rest)) => home.join(rest.trim_start_matches('/')),
                None => home.clone(),
            },
            None if text.starts_with('/') => PathBuf::from(text),
            None => match folder {
                Some(folder) => folder.join(text),
                None => return Place::Unknown,
            },
        };
        let path = tidy(&path);
        self.of_tidy(&everything(&path), &home)
    }

    fn of_tidy(&self, path: &Path, home: &Path) -> Place {
        let text = path.to_string_lossy();
        if HARMLESS.contains(&&*text) || path.starts_with("/dev/fd") {
            return Place::Harmless;
        }
        let within = |list: &[&str]| list.iter().any(|name| path.starts_with(home.join(name)));
        let named = |list: &[&str]| list.iter().any(|name| text.contains(&format!("/{name}")));
        let process = path.starts_with("/proc") && (path.ends_with("environ") || path.ends_with("mem"));
        let passwords = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private"];
        if process || within(SECRET) || passwords.iter().any(|place| path.starts_with(place)) {
            return Place::Secret;
        }
        if text.contains("/.ssh/") || text.ends_with("/.ssh") || named(&["id_rsa", "id_ed25519", "id_ecdsa"])
        {
            return Place::Secret;
        }
        if within(STARTUP) || text.contains("/.git/hooks") {
            return Place::Startup;
        }
        // A workspace that is the whole machine or a whole home protects nothing, so it excuses nothing.
        let narrow = |root: &&PathBuf| root.components().count() > 2 && !home.starts_with(root);
        if let Some(workspace) = self.workspace.as_ref().filter(narrow) {
            if path == workspace || path == workspace.join(".git") {
                return Place::WholeWorkspace;
            }
            if path.starts_with(workspace) {
                return Place::Workspace;
            }
            if workspace.starts_with(path) && path.components().count() > 2 {
                return Place::Whole;
            }
        }
        if let Some(root) = TEMPORARY.iter().find(|root| path.starts_with(root)) {
            return if path == Path::new(root) { Place::Outside } else { Place::Temporary };
        }
        let depth = path.components().count();
        if path.starts_with("/dev") {
            return Place::Device;
        }
        let homes = path.starts_with("/home") || path.starts_with("/Users");
        if path == home || path == Path::new("/root") || (homes && depth <= 3) || home.starts_with(path) {
            return Place::Whole;
        }
        if SYSTEM.iter().any(|root| path.starts_with(root)) {
            return if depth <= 2 { Place::Whole } else { Place::System };
        }
        let first = path.components().nth(1).map(|part| part.as_os_str().to_string_lossy().into_owned());
        match first {
            // A pattern in the first place could be any folder of the system.
            Some(first) if first.contains(['*', '?', '[', '{']) => Place::Whole,
            _ if depth <= 2 => Place::Whole,
            _ => Place::Outside,
        }
    }
}

/// The path without `.`, `..` and doubled separators.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => tidied.push(name),
            Component::ParentDir => {
                tidied.pop();
            }
            _ => {}
        }
    }
    tidied
}

/// `folder/*` is the folder.
fn everything(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    while let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned())
        && name.chars().all(|c| "*.?![]{}^,".contains(c))
    {
        path.pop();
    }
    path
}
