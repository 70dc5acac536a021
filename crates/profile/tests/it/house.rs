//! A home with `share/` and `cache/`, collections on the disk, and profiles as short as they can be.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use amplifier_profile::compile::{Compiled, Outcome};
use amplifier_profile::steps::{Step, Steps};
use amplifier_profile::sync::{Compilation, SyncReport};
use amplifier_profile::{ProfileContext, ProfileError, ProfileId, Profiles, Share};
use amplifier_protocol::mount_plan::PlanForm;
use amplifier_protocol::time::Timestamp;
use amplifier_sources::cache::Cache;
use amplifier_sources::fetch::{Fetcher, Freshness};
use serde_json::Value;

use crate::schemas::{head, misfits};
use crate::support::World;

/// A clock that moves one minute at each look, so that an unchanged time means that nothing was written.
pub struct Minutes(Mutex<i64>);

impl Default for Minutes {
    fn default() -> Self {
        // 2025-11-28T10:29:00Z
        Self(Mutex::new(1_764_325_740_000_000))
    }
}

impl amplifier_core::clock::Clock for Minutes {
    fn now(&self) -> Timestamp {
        let mut at = self.0.lock().unwrap();
        *at += 60_000_000;
        Timestamp::from_micros(*at)
    }
}

/// Keeps the steps it hears.
#[derive(Default)]
pub struct Heard(Mutex<Vec<Step>>);

impl Steps for Heard {
    fn step(&self, step: &Step) {
        self.0.lock().unwrap().push(step.clone());
    }
}

impl Heard {
    /// What was resolved, in the order of the text.
    pub fn resolved(&self) -> Vec<String> {
        let steps = std::mem::take(&mut *self.0.lock().unwrap());
        let mut found: Vec<_> = steps
            .into_iter()
            .filter_map(|step| match step {
                Step::Resolving { reference, number, .. } => Some((number, reference)),
                _ => None,
            })
            .collect();
        found.sort();
        found.into_iter().map(|(_, reference)| reference).collect()
    }
}

pub struct House {
    pub world: World,
    pub profiles: Arc<Profiles>,
    pub heard: Arc<Heard>,
}

impl House {
    pub fn new() -> Self {
        let world = World::new();
        let profiles = Arc::new(Self::profiles(&world));
        Self { world, profiles, heard: Arc::default() }
    }

    fn profiles(world: &World) -> Profiles {
        let clock = Arc::new(Minutes::default());
        let cache = Cache::new(world.path("home/cache"));
        let fetcher = Fetcher::new(cache, world.git(), Arc::new(crate::support::Stopped));
        Profiles::new(Share::new(world.path("home/share")), Arc::new(fetcher), clock)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.world.path(name)
    }

    pub fn share(&self, name: &str) -> PathBuf {
        self.world.path("home/share").join(name)
    }

    /// Writes a file, with the folders it needs.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.world.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn register(&self, text: &str) {
        self.write("home/share/collections.yaml", text);
    }

    /// A collection `c` in the folder `collection`, with one file.
    pub fn one(&self, name: &str, text: &str) {
        self.write(&format!("collection/{name}/profile.md"), text);
        self.register(&format!("collections:\n  c:\n    source: {}\n", self.path("collection").display()));
    }

    pub fn cx(&self) -> ProfileContext {
        ProfileContext { steps: self.heard.clone(), ..ProfileContext::default() }
    }

    pub fn fresh(&self) -> ProfileContext {
        ProfileContext { freshness: Freshness::Refresh, ..self.cx() }
    }

    pub fn offline(&self) -> ProfileContext {
        ProfileContext { freshness: Freshness::Offline, ..self.cx() }
    }

    /// Syncs without compiling.
    pub async fn extract(&self) -> Vec<SyncReport> {
        self.profiles.sync(Compilation::Leave, &self.cx()).await.unwrap()
    }

    pub async fn compile(&self, id: &str) -> Result<Compiled, ProfileError> {
        let compiled = self.profiles.compile(&id.parse().unwrap(), &self.cx()).await;
        if compiled.is_ok() {
            let text = fs::read_to_string(self.share(&format!("profiles/{id}/profile.md"))).unwrap();
            assert_eq!(misfits("profile", &head(&text)), [""; 0], "{text}");
        }
        compiled
    }

    /// Syncs, compiles, and gives the plan.
    pub async fn plan(&self, id: &str) -> Value {
        self.extract().await;
        self.compile(id).await.unwrap_or_else(|error| panic!("{}", error.chain()));
        self.plan_as(id, PlanForm::Nested)
    }

    pub fn plan_as(&self, id: &str, form: PlanForm) -> Value {
        let plan = self.profiles.plan(&id.parse::<ProfileId>().unwrap(), form).unwrap().plan.to_json();
        assert_eq!(misfits("mount-plan", &plan), [""; 0], "{plan:#}");
        plan
    }

    /// The same folder without `share/profiles/<id>`'s contents changing: every file with its bytes.
    pub fn snapshot(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let dir = self.share(name);
        files(&dir).into_iter().map(|file| (file.clone(), fs::read(dir.join(&file)).unwrap())).collect()
    }
}

/// What compiling did, in one word or as the names of what was resolved.
pub fn outcome(compiled: &Compiled) -> Vec<&str> {
    match &compiled.outcome {
        Outcome::Unchanged => vec!["unchanged"],
        Outcome::Built { resolved } => resolved.iter().map(String::as_str).collect(),
    }
}

/// Every file below a folder, sorted.
pub fn files(dir: &Path) -> Vec<String> {
    listing(dir).into_iter().filter(|path| !path.ends_with('/')).collect()
}

/// Every file and folder below a folder, folders with a slash, sorted.
pub fn listing(dir: &Path) -> Vec<String> {
    fn walk(dir: &Path, prefix: &str, found: &mut Vec<String>) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        for entry in entries.map(Result::unwrap) {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().unwrap().is_dir() {
                found.push(format!("{name}/"));
                walk(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }
    let mut found = Vec::new();
    walk(dir, "", &mut found);
    found.sort();
    found
}

/// The head of a profile and the two modules it needs, without sources.
pub fn profile(name: &str, rest: &str) -> String {
    format!(
        "---\nprofile:\n  name: {name}\n  version: 1.0.0\n  schema_version: 2\nsession:\n  orchestrator: {{module: loop-basic}}\n  context: {{module: context-simple}}\n{rest}---\n"
    )
}

/// The files of a module's repository.
pub fn module(id: &str) -> Vec<(String, String)> {
    let package = format!("amplifier_module_{}", id.replace('-', "_"));
    vec![(format!("{package}/__init__.py"), format!("# {id}\n"))]
}
