//! `{collection}/{profile}` hints of a mount plan to folders in `share/`, when a session is opened.
//!
//! Whether a folder is there is looked at when the source is asked for, not before. What is no hint, such as an address, is
//! for the resolver that comes after.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_core::contracts::{ModuleSource, ModuleSourceResolver, Resolved, SourceError};
use amplifier_protocol::ids::ModuleId;
use async_trait::async_trait;
use serde_json::Value;

use crate::mount_type::MountType;
use crate::share::{ProfileId, Share, ShareName};

const NO_HINT: &str = "profile_hint must be dict with collection/profile or 'collection/profile' string";
const HALF_HINT: &str = "profile_hint must specify both collection and profile";

/// Finds the modules of compiled profiles.
pub struct DaemonModuleSourceResolver {
    share: Share,
    next: Option<Arc<dyn ModuleSourceResolver>>,
}

/// A module that lies in the folder of a profile, if it does.
struct ProfileModule {
    id: ModuleId,
    /// The folders it may lie in, the most likely first.
    paths: Vec<PathBuf>,
    /// What the hint is to others.
    other: Option<Arc<dyn ModuleSource>>,
}

/// What a plan's `source` is to us.
enum Hint {
    Profile(ProfileId),
    /// An address, a path, a name, or nothing at all.
    Other,
}

impl DaemonModuleSourceResolver {
    pub fn new(share: Share) -> Self {
        Self { share, next: None }
    }

    /// Who is asked about sources that are no hints.
    #[must_use]
    pub fn then(self, next: Arc<dyn ModuleSourceResolver>) -> Self {
        Self { next: Some(next), ..self }
    }

    /// The folders a module of a profile may lie in.
    fn paths(&self, id: &ModuleId, profile: &ProfileId) -> Result<Vec<PathBuf>, String> {
        let dir = self.share.profile_dir(profile);
        let path = |mount: MountType| dir.join(mount.as_str()).join(id.as_str());
        if matches!(id.as_str(), "." | "..") {
            return Err(format!("`{id}` is no name of a folder"));
        }
        let inferred = MountType::infer(id.as_str());
        let others = MountType::ALL.into_iter().filter(|mount| Some(*mount) != inferred);
        // The section of the plan a module stands in is not told here; a profile may list any id in any section.
        let there: Vec<_> = others.map(path).filter(|path| path.is_dir()).collect();
        match (inferred, there.is_empty()) {
            (None, true) => Err(format!("Could not determine mount type for module: {id}")),
            (inferred, _) => Ok(inferred.map(path).into_iter().chain(there).collect()),
        }
    }
}

#[async_trait]
impl ModuleSourceResolver for DaemonModuleSourceResolver {
    async fn resolve(
        &self,
        id: &ModuleId,
        hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        let refuse = |message: String| {
            let source_hint = match hint {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => "none".to_owned(),
            };
            SourceError::Unavailable { id: id.clone(), source_hint, message }
        };
        match (read(hint), &self.next) {
            (Ok(Hint::Profile(profile)), next) => {
                let paths = self.paths(id, &profile).map_err(refuse)?;
                // Two words with a slash are a path too, where no profile is called so.
                let is_there = self.share.profile_dir(&profile).is_dir();
                let other = match next.as_ref().filter(|_| !is_there) {
                    Some(next) => next.resolve(id, hint).await.ok(),
                    None => None,
                };
                Ok(Arc::new(ProfileModule { id: id.clone(), paths, other }))
            }
            (Ok(Hint::Other), Some(next)) => next.resolve(id, hint).await,
            (Ok(Hint::Other), None) => Err(refuse(NO_HINT.to_owned())),
            (Err(message), _) => Err(refuse(message)),
        }
    }
}

#[async_trait]
impl ModuleSource for ProfileModule {
    async fn resolve(&self) -> Result<Resolved, SourceError> {
        if let Some(other) = &self.other
            && let Ok(found) = other.resolve().await
        {
            return Ok(found);
        }
        match self.paths.iter().find(|path| path.is_dir()) {
            Some(path) => Ok(Resolved::Folder(path.clone())),
            None => {
                let tried =
                    self.paths.iter().map(|path| format!("Module path not found: {}", path.display()));
                Err(SourceError::NotFound { id: self.id.clone(), tried: tried.collect() })
            }
        }
    }
}

/// Reads a hint: `collection/profile` with one slash and no scheme, or a mapping of the two.
fn read(hint: Option<&Value>) -> Result<Hint, String> {
    let (collection, profile) = match hint {
        Some(Value::Object(map)) => {
            let part = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
            (part("collection"), part("profile"))
        }
        Some(Value::String(text)) => {
            let is_other = text.starts_with(['.', '/', '~']) || text.contains(':');
            match text.split_once('/') {
                Some((collection, profile)) if !is_other && !profile.contains('/') => (collection, profile),
                _ => return Ok(Hint::Other),
            }
        }
        _ => return Ok(Hint::Other),
    };
    if collection.is_empty() || profile.is_empty() {
        return Err(HALF_HINT.to_owned());
    }
    let name = |text: &str| text.parse::<ShareName>().map_err(|error| error.to_string());
    Ok(Hint::Profile(ProfileId { collection: name(collection)?, profile: name(profile)? }))
}
