//! A folder to work in with bundles, a home, and git repositories.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use amplifier_app::Strictness;
use amplifier_app::env::Environment;
use amplifier_app::library::Access;
use amplifier_app::open::{OpenRequest, OpenSession, Which, open};
use amplifier_app::paths::Home;
use amplifier_app::prepare::{BundleFault, PrepareOptions, PreparedBundle, prepare_bundle};
use amplifier_core::contracts::RequestBudget;
use amplifier_protocol::message::{Message, Role};
use serde_json::Value;
use tempfile::TempDir;

pub struct Workshop {
    dir: TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for folder in ["work", "user", "repos"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub fn home(&self) -> Home {
        Home::new(self.path("home"))
    }

    /// Puts a file into the working folder.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        write(&self.path("work").join(name), text.as_ref());
        self
    }

    /// A session that talks to nobody but a script.
    pub fn scripted(&self, head: &str, responses: &Value, body: &str) -> &Self {
        self.file(
            "bundle.md",
            format!(
                "---\nbundle: {{name: mine}}\nsession: {{orchestrator: loop-basic, context: context-simple}}\n\
                 providers:\n  - module: provider-mock\n    config: {{responses: {responses}}}\n{head}\n---\n{body}"
            ),
        )
    }

    /// What git and the library get as their environment: nothing of the person who runs the tests but the way to git.
    pub fn environment(&self) -> Environment {
        #[expect(clippy::disallowed_methods, reason = "git must be found")]
        let path = std::env::var("PATH").unwrap();
        let user = self.path("user").display().to_string();
        let variables = [
            ("PATH", path),
            ("HOME", user),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_AUTHOR_NAME", "a".to_owned()),
            ("GIT_AUTHOR_EMAIL", "a@example.com".to_owned()),
            ("GIT_COMMITTER_NAME", "a".to_owned()),
            ("GIT_COMMITTER_EMAIL", "a@example.com".to_owned()),
        ];
        Environment::Fixed(variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub fn access(&self) -> Access {
        Access::new(self.home(), self.environment(), self.path("work"))
    }

    /// Commits files to a repository, which is made when it is not there; gives its address and the commit.
    pub fn commit(&self, repo: &str, files: &[(&str, &str)]) -> (String, String) {
        let dir = self.path("repos").join(repo);
        if !dir.exists() {
            std::fs::create_dir(&dir).unwrap();
            self.git(&dir, &["init", "--quiet", "--initial-branch=main"]);
        }
        for (name, text) in files {
            write(&dir.join(name), text.as_bytes());
        }
        self.git(&dir, &["add", "--all"]);
        self.git(&dir, &["commit", "--quiet", "--message=x"]);
        let commit = self.git(&dir, &["rev-parse", "HEAD"]).trim().to_owned();
        (format!("git+file://{}@main", dir.display()), commit)
    }

    fn git(&self, dir: &Path, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(dir).args(args).env_clear().envs(self.environment().all());
        let output = git.output().expect("git is needed for this test; install it");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub async fn prepare(&self, reference: &str) -> Result<PreparedBundle, BundleFault> {
        prepare_bundle(reference, &self.access(), PrepareOptions::default()).await
    }

    pub fn request(&self, which: Which) -> OpenRequest {
        OpenRequest {
            trust: Arc::default(),
            home: self.home(),
            which,
            working_dir: self.path("work"),
            strictness: Strictness::Lenient,
            environment: self.environment(),
            approval: None,
            display: None,
            tap: None,
            prompt: None,
            resolver: None,
            lock: None,
            origin: None,
            request: None,
            cancel: amplifier_app::CancelToken::new(),
        }
    }

    pub async fn open(&self, bundle: &PreparedBundle) -> OpenSession {
        let plan = bundle.plan().unwrap();
        let (prompt, resolver, lock) = (Some(bundle.prompt()), bundle.resolver(&plan), bundle.lock());
        open(OpenRequest { prompt, resolver, lock, ..self.request(Which::New(Box::new(plan))) })
            .await
            .unwrap()
    }

    /// Prepares and opens what lies in the working folder.
    pub async fn session(&self) -> OpenSession {
        self.open(&self.prepare("./").await.unwrap()).await
    }

    /// The bundle file that is the only one of the session's sub-sessions, and its journal as text.
    pub fn journals(&self) -> Vec<(String, String)> {
        let mut found: Vec<_> = std::fs::read_dir(self.home().sessions())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|dir| {
                let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
                (name, std::fs::read_to_string(dir.join("events.jsonl")).unwrap())
            })
            .collect();
        found.sort();
        found
    }
}

/// What the model would see now.
pub async fn seen(session: &OpenSession) -> Vec<Arc<Message>> {
    let context = session.session.coordinator().context().unwrap();
    context.messages_for_request(RequestBudget::default()).await.unwrap()
}

/// The system prompt of the next request.
pub async fn system(session: &OpenSession) -> String {
    let seen = seen(session).await;
    let first = seen.first().filter(|message| message.role == Role::System);
    first.map(|message| message.content.visible_text().into_owned()).unwrap_or_default()
}

fn write(path: &Path, text: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
