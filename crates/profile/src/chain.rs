//! A profile with everything it extends: the chain from the lowest base to the profile itself, merged.
//!
//! Modules are merged by id across levels: the same id takes the config of both, its source from below unless it names
//! one; a new id is added at the end. Two entries of one id within one profile stay two. Heads are never inherited.

use std::path::PathBuf;

use amplifier_bundle::bundle::Head;
use amplifier_bundle::compose::{self, Budget, Composed};
use amplifier_bundle::home::Home;
use amplifier_bundle::include::LoadLimits;
use amplifier_bundle::node::{Mark, Node};
use amplifier_bundle::notice::Notice;
use amplifier_bundle::origin::Place;

use crate::error::{ProfileError, Rejection};
use crate::origin;
use crate::profile_file::ProfileFile;
use crate::share::{ProfileId, Share};

/// A profile and what it builds on.
#[derive(Debug)]
pub struct Profile {
    pub id: ProfileId,
    /// Its folder in `share/`.
    pub dir: PathBuf,
    /// The chain, the lowest base first, the profile itself last.
    pub layers: Vec<(ProfileId, ProfileFile)>,
    /// What they say together.
    pub composed: Composed,
    /// Hints for whoever shows the session.
    pub ui: Option<Node>,
    /// Hints for whoever delegates.
    pub task: Option<Node>,
    /// What is worth telling, of all files.
    pub notices: Vec<Notice>,
}

impl Profile {
    /// Reads a profile and its bases from `share/`.
    pub fn load(share: &Share, id: &ProfileId) -> Result<Self, ProfileError> {
        let mut layers = chain(share, id)?;
        layers.reverse();
        for at in 1..layers.len() {
            replace_other_modules(&mut layers, at);
        }
        let mut composed =
            compose::stack(layers.iter().map(|(_, file)| &file.bundle), &LoadLimits::default())?;
        let mut notices: Vec<_> = layers.iter().flat_map(|(_, file)| file.notices.clone()).collect();
        notices.append(&mut composed.notices);
        let [ui, task] = ["ui", "task"].map(|key| merged(&layers, key));
        let profile = Self {
            id: id.clone(),
            dir: share.profile_dir(id),
            layers,
            composed,
            ui: ui?,
            task: task?,
            notices,
        };
        profile.check_slots()?;
        Ok(profile)
    }

    /// The file of the profile itself.
    pub(crate) fn own(&self) -> Option<&ProfileFile> {
        self.layers.last().map(|(_, file)| file)
    }

    /// Who the profile is; never what a base says about itself.
    pub fn head(&self) -> Option<&Head> {
        self.own().map(|file| &file.bundle.head)
    }

    /// The surroundings of the file in which something was written.
    pub(crate) fn home_of(&self, place: &Place) -> Option<&Home> {
        let mut homes = self.layers.iter().map(|(_, file)| &file.bundle.home);
        homes.find(|home| home.file == place.file.path).map(AsRef::as_ref)
    }

    fn check_slots(&self) -> Result<(), ProfileError> {
        let session = self.composed.session.as_ref();
        for slot in ["orchestrator", "context"] {
            let found = session.and_then(|session| session.at(slot));
            if found.is_some_and(|node| !node.is_null() && node.mark != Mark::Delete) {
                continue;
            }
            if let Some(name) = self.head().and_then(|head| head.name.as_ref()) {
                let (place, rejection) = (name.place.clone(), Rejection::NoSlot(slot));
                return Err(ProfileError::Rejected { place, rejection });
            }
        }
        Ok(())
    }
}

/// The profile, then its base, and so on.
fn chain(share: &Share, id: &ProfileId) -> Result<Vec<(ProfileId, ProfileFile)>, ProfileError> {
    let mut found: Vec<(ProfileId, ProfileFile)> = Vec::new();
    let mut next = id.clone();
    loop {
        let path = share.profile_file(&next);
        if found.is_empty() && !path.is_file() {
            return Err(ProfileError::NoProfile { id: id.to_string() });
        }
        let file = ProfileFile::read(&path, &origin::home(share, &next))?;
        let extends = file.extends();
        found.push((next.clone(), file));
        let Some(extends) = extends else { return Ok(found) };
        let base = base_id(share, &next, &extends.text).ok_or_else(|| ProfileError::NoBase {
            place: extends.place.clone(),
            base: extends.text.clone(),
            id: next.to_string(),
        })?;
        if let Some(at) = found.iter().position(|(known, _)| *known == base) {
            let circle = found.iter().skip(at).map(|(id, _)| id).chain([&base]);
            let chain = circle.map(ToString::to_string).collect();
            return Err(ProfileError::Cycle { place: extends.place, chain });
        }
        next = base;
    }
}

/// `name` of the same collection, `collection/name`, `collection:name` or `collection:profiles/name.md`.
fn base_id(share: &Share, child: &ProfileId, text: &str) -> Option<ProfileId> {
    let (collection, name) = match text.split_once(':').or_else(|| text.split_once('/')) {
        Some((collection, name)) => {
            (collection.parse().ok()?, name.strip_prefix("profiles/").unwrap_or(name))
        }
        None => (child.collection.clone(), text),
    };
    let name = name.strip_suffix("/profile.md").or_else(|| name.strip_suffix(".md")).unwrap_or(name);
    let id = ProfileId { collection, profile: name.parse().ok()? };
    share.profile_file(&id).is_file().then_some(id)
}

/// Another module in a slot comes with its own source and config: those of the one below would not fit it.
fn replace_other_modules(layers: &mut [(ProfileId, ProfileFile)], at: usize) {
    for slot in ["orchestrator", "context"] {
        let (below, above) = layers.split_at_mut(at);
        let mut lower = below.iter().rev();
        let under = lower.find_map(|(_, file)| module_of(file.bundle.session.as_ref()?.at(slot)?));
        let Some((_, file)) = above.first_mut() else { continue };
        let over = file.bundle.session.as_mut().and_then(Node::as_map_mut);
        let Some(entry) = over.and_then(|session| session.get_mut(slot)) else { continue };
        let named = module_of(&entry.node);
        if entry.node.mark == Mark::Merge && named.is_some() && under.is_some() && named != under {
            entry.node.mark = Mark::Replace;
        }
    }
}

fn module_of(node: &Node) -> Option<&str> {
    node.as_text().or_else(|| node.at("module").and_then(Node::as_text))
}

/// A section nobody composes, merged deeply.
fn merged(layers: &[(ProfileId, ProfileFile)], key: &str) -> Result<Option<Node>, ProfileError> {
    let mut budget = Budget::new(LoadLimits::default().values);
    let mut found: Option<Node> = None;
    for (_, file) in layers {
        let Some(entry) = file.bundle.unknown.get(key) else { continue };
        match &mut found {
            None => found = Some(entry.node.clone()),
            Some(below) => compose::merge(below, entry.node.clone(), &mut budget)?,
        }
    }
    Ok(found)
}
