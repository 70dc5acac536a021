//! Where a path leads, by its text and by the links that are there. What changes afterwards is the sandbox's part.

use std::path::{Component, Path, PathBuf};

use super::Policy;
use crate::hooks::place::real_path;

/// What kind of place a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// A device that swallows or shows.
    Harmless,
    /// Inside the workspace.
    Workspace,
    /// A temporary folder.
    Temporary,
    /// The workspace as a whole, or what keeps its history.
    WholeWorkspace,
    /// Variables of a project, which are written freely and may hold its keys.
    Variables,
    /// The text alone does not say.
    Unknown,
    /// Anywhere else.
    Outside,
    /// Read by shells, tools or the system later on.
    Startup,
    /// Part of the system.
    System,
    /// The root, a home folder as a whole, a folder of the system as a whole.
    Whole,
    /// Another device.
    Device,
    /// Keys and passwords.
    Secret,
    /// A connection dressed up as a file.
    Socket,
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
/// In every home folder.
const SECRET: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".kube",
    ".oci",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".terraform.d",
    ".terraformrc",
    ".password-store",
    ".docker",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/github-copilot",
    ".config/google-chrome",
    ".config/chromium",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".composer/auth.json",
    ".local/share/keyrings",
    ".mozilla",
    ".thunderbird",
    "library/keychains",
    "library/application support/google/chrome",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".claude",
    ".codex",
    ".amplifierd",
    ".amplifier/keys.env",
];
/// Of these the name is enough, wherever they are.
const SECRET_ANYWHERE: &[&str] =
    &[".ssh", ".gnupg", ".aws", ".netrc", ".git-credentials", ".pgpass", ".amplifierd"];
const SECRET_SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/keys",
    "/run/secrets",
    "/var/run/secrets",
    "/run/user",
];
/// What the kernel shows of a process without showing what it holds.
const OF_PROCESS: &[&str] = &[
    "cmdline",
    "comm",
    "stat",
    "statm",
    "status",
    "limits",
    "cgroup",
    "mounts",
    "mountinfo",
    "loginuid",
    "sched",
    "schedstat",
    "io",
    "oom_score",
    "net",
    "uptime",
    "wchan",
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
        let Some(folder) = folder.or_else(|| text.starts_with(['/', '~']).then_some(Path::new("/"))) else {
            return Place::Unknown;
        };
        self.of_tidy(&everything(&tidy(&self.absolute(text, folder))))
    }

    /// The place that a path leads to, over the links that are there; the worse one of it and of the path as written.
    pub(super) fn followed_place(&self, text: &str, folder: Option<&Path>) -> Place {
        let written = self.place(text, folder);
        let base = folder.or_else(|| text.starts_with(['/', '~']).then_some(Path::new("/")));
        match (written, base) {
            (Place::Harmless | Place::Socket | Place::Unknown, _) | (_, None) => written,
            (_, Some(base)) => written.max(self.of_tidy(&everything(&followed(&self.absolute(text, base))))),
        }
    }

    /// A path from the root, with `~` and what is relative worked out.
    pub(super) fn absolute(&self, text: &str, folder: &Path) -> PathBuf {
        match text.strip_prefix('~') {
            Some(rest) => match rest.split_once('/') {
                Some((_, rest)) => self.home_folder().join(rest.trim_start_matches('/')),
                None => self.home_folder(),
            },
            None => folder.join(text),
        }
    }

    fn home_folder(&self) -> PathBuf {
        self.home.clone().unwrap_or_else(|| PathBuf::from("/home/user"))
    }

    /// Whether a folder is the workspace or in it, however wide that is.
    pub(super) fn is_workspace(&self, folder: &Path) -> bool {
        let inside =
            |root: &PathBuf| tidy(folder).starts_with(root) && followed(folder).starts_with(real_path(root));
        self.workspace.as_ref().is_some_and(inside)
    }

    /// Whether something secret is inside a folder.
    pub(super) fn is_above_secrets(&self, folder: &Path) -> bool {
        let home = self.home_folder();
        let above = |folder: &Path| {
            home.starts_with(folder)
                || self.secrets.iter().any(|secret| secret.starts_with(folder))
                || ["/root", "/proc", "/dev", "/run/user", "/etc/shadow"]
                    .iter()
                    .any(|secret| Path::new(secret).starts_with(folder))
                || (["/home", "/Users"].iter().any(|homes| folder.starts_with(homes))
                    && folder.components().count() <= 3)
                || (folder.starts_with("/proc") && folder.components().count() <= 3 && folder.is_dir())
        };
        above(&tidy(folder)) || above(&followed(folder))
    }

    fn is_secret(&self, path: &Path) -> bool {
        // Some file systems know no capitals.
        let text = path.to_string_lossy().to_lowercase();
        let path = Path::new(&text);
        let mut parts = path.components().skip(1).map(|part| part.as_os_str().to_string_lossy());
        if parts.next().as_deref() == Some("proc")
            && parts.next().is_some_and(|process| {
                process.ends_with("self") || process.chars().all(|c| c.is_ascii_digit())
            })
            && parts.next().is_some_and(|of| !OF_PROCESS.contains(&&*of))
        {
            return true;
        }
        let lower = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
        let home = self.home_folder();
        let of_others = || -> Option<PathBuf> {
            let depth = if path.starts_with("/root") { 2 } else { 3 };
            let homes = ["/home", "/users", "/root"].iter().any(|homes| path.starts_with(homes));
            homes.then(|| path.components().take(depth).collect())
        };
        let homes = [lower(&home), lower(&real_path(&home))].into_iter().chain(of_others());
        let keys = ["id_rsa", "id_ed25519", "id_ecdsa", "id_dsa"];
        let part =
            |part: std::path::Component<'_>| SECRET_ANYWHERE.contains(&&*part.as_os_str().to_string_lossy());
        homes.into_iter().any(|home| SECRET.iter().any(|name| path.starts_with(home.join(name))))
            || self.secrets.iter().any(|secret| path.starts_with(lower(secret)))
            || SECRET_SYSTEM.iter().any(|secret| path.starts_with(secret))
            || (path.starts_with("/etc/ssh") && text.ends_with("_key"))
            || path.components().any(part)
            || keys.iter().any(|key| text.contains(&format!("/{key}")) && !text.ends_with(".pub"))
    }

    fn of_tidy(&self, path: &Path) -> Place {
        let text = path.to_string_lossy();
        if HARMLESS.contains(&&*text) || path.starts_with("/dev/fd") {
            return Place::Harmless;
        }
        if self.is_secret(path) {
            return Place::Secret;
        }
        let home = &self.home_folder();
        if STARTUP.iter().any(|name| path.starts_with(home.join(name))) || runs_later(path) {
            return Place::Startup;
        }
        // A workspace that is the whole machine or a whole home protects nothing, so it excuses nothing.
        let narrow = |root: &PathBuf| root.components().count() > 2 && !home.starts_with(root);
        let written = self.workspace.clone();
        let real = written.as_deref().map(real_path);
        for workspace in written.into_iter().chain(real).filter(narrow) {
            if path == workspace || path == workspace.join(".git") {
                return Place::WholeWorkspace;
            }
            if path.starts_with(&workspace) {
                return if holds_variables(path) { Place::Variables } else { Place::Workspace };
            }
            if workspace.starts_with(path) && path.components().count() > 2 {
                return Place::Whole;
            }
        }
        // A home may be temporary itself.
        if path == home || home.starts_with(path) && path.components().count() > 2 {
            return Place::Whole;
        }
        if path.starts_with(home) && home.components().count() > 1 {
            return if holds_variables(path) { Place::Variables } else { Place::Outside };
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
        if holds_variables(path) {
            return Place::Variables;
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

/// What `git` and this program run or obey later on, in any project.
fn runs_later(path: &Path) -> bool {
    let kept = |part: &std::ffi::OsStr| part == ".git" || part == ".amplifier";
    path.ends_with(".mcp.json") || path.parent().is_some_and(|above| above.iter().any(kept))
}

/// `.env` and its like; not the samples that are meant to be read.
fn holds_variables(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let sample = ["example", "sample", "template", "dist", "defaults", "schema"];
    let last = name.rsplit('.').next().unwrap_or_default();
    (name.starts_with(".env")
        && (name == ".env" || name == ".envrc" || name.starts_with(".env."))
        && !sample.contains(&last))
        || name.ends_with(".env")
}

/// Where a path leads over every link, also over those that lead to what is not there yet.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..16 {
        let real = real_path(&path);
        let Some(link) = real.ancestors().find(|part| part.is_symlink()) else { return tidy(&real) };
        let (Ok(target), Ok(rest)) = (std::fs::read_link(link), real.strip_prefix(link)) else { break };
        let led = link.parent().unwrap_or(Path::new("/")).join(target);
        path = if rest.as_os_str().is_empty() { led } else { led.join(rest) };
    }
    tidy(&path)
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
