//! What the plan of a bundle, a profile or a file asks for, by who wrote each of its values.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use amplifier_bundle::home::Source;
use amplifier_bundle::origin::Place;
use amplifier_bundle::plan::PlanDraft;

use amplifier_protocol::locate::join;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::powers::{Surroundings, of_plan};
use super::{Author, CheckError, Power, Subject, project};
use crate::choice::{Choice, Chosen};
use crate::files::{Durability, FileError, write_atomic};
use crate::library::Access;
use crate::paths::SessionFolder;
use crate::plain;
use crate::prepare::{PlanFile, PreparedBundle};
use crate::registry::Registry;
use crate::settings::{Layer, Scope, SettingsError};
use crate::shelf;
use crate::store::StoreError;

/// Keys of configs that name files with programs.
const FILES_OF_PROGRAMS: [&str; 2] = ["hooks_dir", "config_file"];

/// What was chosen asks for, and in whose name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub subject: Subject,
    pub wants: Vec<Power>,
}

impl Request {
    /// What was chosen to run. Nothing is run, fetched or asked for it.
    pub fn of(choice: &Choice, chosen: &Chosen, access: &Access) -> Result<Self, SettingsError> {
        Ok(match chosen {
            Chosen::File(file) => Self { subject: plan_subject(file), wants: of_file(file, access) },
            Chosen::Profile(profile) => Self {
                subject: Subject::Profile(profile.id.to_string()),
                wants: of_draft(profile.draft(), Author::Stranger, access),
            },
            Chosen::Bundle(bundle) => {
                let author = author(choice, access);
                let subject = match (author, access.trust.project()) {
                    (Author::Stranger, Some(project)) => Subject::Directory(project.root.clone()),
                    _ => bundle_subject(bundle),
                };
                let mut wants = of_draft(&bundle.loaded.plan, author, access);
                if let (Subject::Directory(root), Some(project)) = (&subject, access.trust.project()) {
                    wants.extend(project.wants.iter().cloned());
                    wants.extend(includes_outside(bundle, root, access));
                    wants.sort();
                    wants.dedup();
                }
                Self { subject, wants }
            }
        })
    }

    /// Passes what the user agreed to.
    pub fn check(self, access: &Access) -> Result<(), CheckError> {
        access.trust.check(&self.subject, self.wants)
    }

    /// What a session was opened with, as far as it needed consent.
    pub(crate) fn of_session(folder: &SessionFolder) -> Result<Option<Self>, StoreError> {
        let path = folder.consent();
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::at("read", &path)(error).into()),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|source| StoreError::Json { path, source })
    }

    /// Keeps it with a session, so that a resumed session needs the same consent.
    pub(crate) fn keep(&self, folder: &SessionFolder) -> Result<(), FileError> {
        let path = folder.consent();
        if self.wants.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(FileError::at("remove", &path)(error))
                }
                _ => Ok(()),
            };
        }
        let text =
            serde_json::to_vec_pretty(self).map_err(|error| FileError::at("write", &path)(error.into()))?;
        write_atomic(&path, &text, Durability::Synced)
    }
}

/// The files outside of a project that its bundle includes, unless the user registered them.
fn includes_outside(bundle: &PreparedBundle, root: &Path, access: &Access) -> Vec<Power> {
    let registered = Registry::new(&access.home).read();
    let is_registered = |name: &str| registered.as_ref().is_ok_and(|registered| registered.knows(name));
    let mut known = vec![root.to_owned()];
    let mut found = Vec::new();
    for file in &bundle.loaded.graph.files {
        let home = &file.bundle.home;
        if !home.is_local() || known.iter().any(|root| home.file.starts_with(root)) {
            continue;
        }
        if is_registered(&file.reference) {
            known.push(home.root.clone());
            continue;
        }
        let (module, key) = ("bundle".to_owned(), "includes".to_owned());
        found.push(Power::Path { module, key, path: home.file.display().to_string() });
    }
    found
}

/// Who wrote the local files of a bundle that was chosen so.
fn author(choice: &Choice, access: &Access) -> Author {
    let layer = |place: &Place| access.settings.layer_of(place);
    let by_layer = |layer| match layer {
        Layer::File(Scope::Project | Scope::Local) => Author::Stranger,
        Layer::File(Scope::User) | Layer::Environment | Layer::BuiltIn => Author::Own,
    };
    match choice {
        Choice::Nothing => access.settings.bundle().map_or(Author::Own, |(_, place)| by_layer(layer(place))),
        Choice::Bundle(name) => match access.settings.bundle_name(name) {
            Some(place) => by_layer(layer(place)),
            None => {
                let registered = Registry::new(&access.home).read().is_ok_and(|known| known.knows(name));
                if registered { Author::Own } else { Author::Named }
            }
        },
        Choice::Profile(_) | Choice::Plan(_) => Author::Named,
    }
}

fn of_file(file: &PlanFile, access: &Access) -> Vec<Power> {
    powers(file.value(), &|_| Author::Named, access)
}

fn of_draft(draft: &PlanDraft, local: Author, access: &Access) -> Vec<Power> {
    let (cache, share) = (project::real(&access.home.cache()), project::real(&access.home.share()));
    let known: RefCell<HashMap<PathBuf, Author>> = RefCell::default();
    let by_file = |path: &Path| {
        if let Some(author) = known.borrow().get(path) {
            return *author;
        }
        let real = project::real(path);
        let is_fetched = real.starts_with(&cache) || real.starts_with(&share);
        let author = match () {
            () if path.starts_with(shelf::ROOT) => Author::User,
            () if is_fetched => Author::Stranger,
            () => local,
        };
        known.borrow_mut().insert(path.to_owned(), author);
        author
    };
    let author = |pointer: &str| match draft.place_of(pointer) {
        // The settings of a project that is trusted were agreed to as they stand.
        Some(place) if access.settings.layer_of(&place) != Layer::BuiltIn => Author::User,
        Some(place) => by_file(&place.file.path),
        None => local,
    };
    let plan = draft.to_json();
    let mut wants = powers(&plan, &author, access);
    files(&plan, "", &author, access, &mut wants);
    wants.sort();
    wants.dedup();
    wants
}

fn powers(plan: &Value, author: &dyn Fn(&str) -> Author, access: &Access) -> Vec<Power> {
    // A key that its plan holds in plain text is the plan's own.
    let variable = |name: &str| {
        let value = access.environment.get(name).filter(|_| !name.starts_with(plain::PREFIX));
        value.filter(|value| !value.is_empty())
    };
    let base = project::real(&access.base);
    let outside = |text: &str| {
        let real = base.join(text).canonicalize().ok()?;
        (!real.starts_with(&base)).then_some(real)
    };
    of_plan(plan, &Surroundings { author, variable: &variable, outside: &outside })
}

/// The files of hooks and servers that a stranger's plan names, with their content.
fn files(
    value: &Value,
    pointer: &str,
    author: &dyn Fn(&str) -> Author,
    access: &Access,
    found: &mut Vec<Power>,
) {
    match value {
        Value::Object(entries) => {
            for (key, entry) in entries {
                let below = join(pointer, key);
                match entry {
                    Value::String(text)
                        if FILES_OF_PROGRAMS.contains(&key.as_str())
                            && author(&below) == Author::Stranger =>
                    {
                        project::tree(&access.base, &access.base.join(text), found);
                    }
                    _ => files(entry, &below, author, access, found),
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                files(item, &join(pointer, &at.to_string()), author, access, found);
            }
        }
        _ => {}
    }
}

fn plan_subject(file: &PlanFile) -> Subject {
    Subject::Plan(project::real(&file.path).display().to_string())
}

fn bundle_subject(bundle: &PreparedBundle) -> Subject {
    let root = bundle.loaded.graph.files.first().map(|file| &file.bundle.home);
    Subject::Bundle(match root.map(|home| (&home.source, &home.file)) {
        Some((Source::Local, file)) => project::real(file).display().to_string(),
        Some((Source::Fetched { uri, .. }, _)) => crate::credentials::shown(uri),
        _ => bundle.reference.clone(),
    })
}
