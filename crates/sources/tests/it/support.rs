//! A home with nothing in it, repositories made on the spot, and a fetcher that sees only those.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use amplifier_core::clock::Clock;
use amplifier_protocol::time::Timestamp;
use amplifier_sources::cache::Cache;
use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::{Base, FetchContext, Fetched, Fetcher, Freshness, Identity};
use amplifier_sources::git::Git;
use amplifier_sources::progress::{Progress, Report, Stage};
use tempfile::TempDir;

/// A clock that stands still.
pub struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_763_245_489_000_000)
    }
}

/// Keeps what it hears.
#[derive(Default)]
pub struct Heard(Mutex<Vec<Report>>);

impl Progress for Heard {
    fn report(&self, report: &Report) {
        self.0.lock().unwrap().push(report.clone());
    }
}

impl Heard {
    pub fn stages(&self) -> Vec<Stage> {
        self.0.lock().unwrap().iter().map(|report| report.stage.clone()).collect()
    }

    pub fn text(&self) -> String {
        format!("{:?}", self.0.lock().unwrap())
    }
}

/// A temporary folder with a home for git, a place for repositories and a cache.
pub struct World {
    dir: PathBuf,
    _temp: Option<TempDir>,
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        std::fs::write(dir.path().join("home/gitconfig"), "").unwrap();
        Self { dir: dir.path().canonicalize().unwrap(), _temp: Some(dir) }
    }

    /// The world that another process made.
    pub fn at(dir: PathBuf) -> Self {
        Self { dir, _temp: None }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The user's git configuration.
    pub fn configure(&self, text: &str) {
        std::fs::write(self.path("home/gitconfig"), text).unwrap();
    }

    /// All that git sees of this machine is its path.
    #[expect(clippy::disallowed_methods, reason = "the programs of the machine are found through its path")]
    pub fn variables(&self) -> BTreeMap<OsString, OsString> {
        let mut variables: BTreeMap<OsString, OsString> = [
            ("HOME", self.path("home").into_os_string()),
            ("GIT_CONFIG_GLOBAL", self.path("home/gitconfig").into_os_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("PATH", std::env::var_os("PATH").unwrap()),
        ]
        .map(|(name, value)| (name.into(), value))
        .into();
        for role in ["AUTHOR", "COMMITTER"] {
            variables.insert(format!("GIT_{role}_NAME").into(), "T".into());
            variables.insert(format!("GIT_{role}_EMAIL").into(), "t@example.invalid".into());
            variables.insert(format!("GIT_{role}_DATE").into(), "2026-01-01T00:00:00Z".into());
        }
        variables
    }

    pub fn git(&self) -> Git {
        Git::new(self.variables())
    }

    pub fn fetcher(&self) -> Fetcher {
        self.fetcher_in("cache")
    }

    pub fn fetcher_in(&self, cache: &str) -> Fetcher {
        Fetcher::new(Cache::new(self.path(cache)), self.git(), Arc::new(Stopped))
    }

    pub fn cx(&self) -> FetchContext {
        FetchContext::new(Base::at(&self.dir))
    }

    pub fn repo(&self, name: &str) -> Repo {
        let repo = Repo { path: self.path(name), variables: self.variables() };
        std::fs::create_dir_all(&repo.path).unwrap();
        repo.run(&["init", "--quiet", "--initial-branch=main", "."]);
        repo
    }
}

pub fn cx_with(cx: FetchContext, freshness: Freshness) -> FetchContext {
    FetchContext { freshness, ..cx }
}

/// A repository on the disk.
pub struct Repo {
    pub path: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl Repo {
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(&self.path)
            .env_clear()
            .envs(&self.variables)
            .output()
            .expect("these tests need `git`; install it");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Writes files and commits all of it.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        for (name, text) in files {
            let path = self.path.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        self.run(&["add", "--all"]);
        self.run(&["commit", "--quiet", "--allow-empty", "--message", "x"]);
        self.run(&["rev-parse", "HEAD"])
    }

    pub fn uri(&self, rest: &str) -> String {
        format!("git+file://{}{rest}", self.path.display())
    }
}

pub async fn fetch(fetcher: &Fetcher, uri: &str, cx: &FetchContext) -> Result<Fetched, FetchError> {
    fetcher.fetch(&uri.parse().unwrap(), cx).await
}

pub fn commit_of(fetched: &Fetched) -> &str {
    match &fetched.identity {
        Identity::Commit { commit, .. } => commit.as_str(),
        other => panic!("no commit: {other:?}"),
    }
}

pub fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path.as_ref())
        .unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// The names in a folder, sorted.
pub fn names(path: impl AsRef<Path>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
