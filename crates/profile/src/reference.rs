//! What a profile refers to: modules, agents and context folders, each with where it comes from and where it goes.

use std::fmt;
use std::path::{Path, PathBuf};

use amplifier_bundle::home::{Home, is_relative};
use amplifier_bundle::node::{Mark, Node};
use amplifier_bundle::origin::Place;
use amplifier_protocol::ids::ModuleId;
use amplifier_sources::fetch::Base;
use amplifier_sources::uri::SourceUri;

use crate::chain::Profile;
use crate::error::ProfileError;
use crate::mount_type::MountType;
use crate::origin::{CollectionRecord, Tree};
use crate::share::Share;

/// What kind of thing a reference brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    Module(MountType),
    Agent,
    Context,
}

/// One thing to bring to the folder of a profile.
#[derive(Debug, Clone)]
pub struct Reference {
    pub slot: Slot,
    /// The id of the module, or the name of the agent or context.
    pub name: String,
    pub uri: SourceUri,
    /// As a lock keeps it: as written, made absolute, without credentials.
    pub shown: String,
    /// Where it is written.
    pub place: Place,
    pub(crate) base: Base,
}

impl Slot {
    /// The folder of a profile in which such things lie.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Module(mount) => mount.as_str(),
            Self::Agent => "agents",
            Self::Context => "contexts",
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Module(_) => "module",
            Self::Agent => "agent",
            Self::Context => "context",
        })
    }
}

impl Reference {
    /// Where it lies in the folder of the profile.
    pub fn target(&self, dir: &Path) -> PathBuf {
        let name = match self.slot {
            Slot::Agent => format!("{}.md", self.name),
            Slot::Module(_) | Slot::Context => self.name.clone(),
        };
        dir.join(self.slot.folder()).join(name)
    }
}

/// Everything a profile refers to, in the order in which it is written.
///
/// A module without a source, or with the name of an installed package as its source, brings nothing.
pub fn list(share: &Share, profile: &Profile) -> Result<Vec<Reference>, ProfileError> {
    let mut list = List { profile, found: Vec::new() };
    list.modules()?;
    for (name, agent) in &profile.composed.agents {
        if let (Some(text), Mark::Merge | Mark::Replace) = (&agent.entry.reference, agent.entry.mark) {
            list.add(Slot::Agent, name, &text.text, &text.place)?;
        }
    }
    for (name, folder) in &profile.composed.context {
        if folder.mark != Mark::Delete {
            list.add(Slot::Context, name, &folder.path.text, &folder.path.place)?;
        }
    }
    list.own_context(share)?;
    Ok(list.found)
}

struct List<'p> {
    profile: &'p Profile,
    found: Vec<Reference>,
}

impl List<'_> {
    fn modules(&mut self) -> Result<(), ProfileError> {
        let composed = &self.profile.composed;
        if let Some(session) = &composed.session {
            for mount in [MountType::Orchestrator, MountType::Context] {
                let Some(node) = session.at(mount.as_str()) else { continue };
                let source = match node.as_map() {
                    Some(_) => node.at("source"),
                    None => session.at(&format!("{mount}_source")),
                };
                let module = if node.as_map().is_some() { node.at("module") } else { Some(node) };
                self.module(mount, module.unwrap_or(node), source)?;
            }
        }
        let lists = [
            (MountType::Providers, &composed.providers),
            (MountType::Tools, &composed.tools),
            (MountType::Hooks, &composed.hooks),
        ];
        for (mount, modules) in lists {
            for entry in modules.entries.iter().filter(|entry| entry.node.mark != Mark::Delete) {
                let module = entry.node.at("module").unwrap_or(&entry.node);
                self.module(mount, module, entry.node.at("source"))?;
            }
        }
        Ok(())
    }

    fn module(&mut self, mount: MountType, module: &Node, source: Option<&Node>) -> Result<(), ProfileError> {
        let place = &module.place;
        let wrong = |what: String| ProfileError::ReferenceForm { place: place.clone(), what };
        let Some(id) = module.as_text() else {
            return Err(wrong(format!("`{mount}` names no module: write `module:` and its id")));
        };
        id.parse::<ModuleId>().map_err(|error| wrong(error.to_string()))?;
        let Some(source) = source.filter(|source| !source.is_null() && source.mark != Mark::Delete) else {
            return Ok(());
        };
        let Some(text) = source.as_text() else {
            let what = format!("the source of `{id}` is {}, not an address or a path", source.type_name());
            return Err(ProfileError::ReferenceForm { place: source.place.clone(), what });
        };
        self.add(Slot::Module(mount), id, text, &source.place)
    }

    fn add(&mut self, slot: Slot, name: &str, text: &str, place: &Place) -> Result<(), ProfileError> {
        if !is_file_name(name) {
            let what = format!("`{name}` is no name of a folder; use letters, digits, `-`, `_` and `.`");
            return Err(ProfileError::ReferenceForm { place: place.clone(), what });
        }
        let home = self.profile.home_of(place);
        let Some((uri, shown)) = parse(slot, text, place, home)? else { return Ok(()) };
        let same = |known: &&Reference| (known.slot, known.name.as_str()) == (slot, name);
        if let Some(known) = self.found.iter().find(same) {
            if known.uri == uri {
                return Ok(());
            }
            let (first, second) = (known.shown.clone(), shown);
            return Err(ProfileError::TwoSources {
                place: place.clone(),
                name: name.to_owned(),
                first,
                second,
            });
        }
        if let (SourceUri::File(file), Some(home)) = (&uri, home)
            && !home.is_local()
            && !Path::new(&file.path).starts_with(&home.root)
        {
            let what = format!("`{shown}` is a place on this machine, which a fetched profile does not see");
            return Err(ProfileError::ReferenceForm { place: place.clone(), what });
        }
        // The same once links are resolved.
        let base = match home {
            Some(home) if home.is_local() => Base::at(&home.dir),
            Some(home) => Base { confined_to: Some(home.root.clone()), ..Base::at(&home.dir) },
            None => Base { confined_to: Some(self.profile.dir.clone()), ..Base::at(&self.profile.dir) },
        };
        let (name, place) = (name.to_owned(), place.clone());
        self.found.push(Reference { slot, name, uri, shown, place, base });
        Ok(())
    }

    /// The collection's own `context/` folder, for `@collection:context/…`, unless the profile gives that name away.
    fn own_context(&mut self, share: &Share) -> Result<(), ProfileError> {
        let id = &self.profile.id;
        let name = id.collection.as_str();
        if self.found.iter().any(|known| known.slot == Slot::Context && known.name == name) {
            return Ok(());
        }
        let Some(record) = CollectionRecord::read(share, &id.collection) else { return Ok(()) };
        let Some(own) = record.context.as_deref() else { return Ok(()) };
        let Some(place) = self.profile.head().and_then(|head| head.name.as_ref()).map(|name| &name.place)
        else {
            return Ok(());
        };
        let text = match &record.tree {
            Tree::Local(root) | Tree::Cached(root) => root.join(own).to_string_lossy().into_owned(),
            Tree::Pinned(pinned) => format!("{pinned}#subdirectory={own}"),
        };
        self.add(Slot::Context, name, &text, place)
    }
}

/// A reference as written in a file; `None` for the name of an installed package.
fn parse(
    slot: Slot,
    text: &str,
    place: &Place,
    home: Option<&Home>,
) -> Result<Option<(SourceUri, String)>, ProfileError> {
    let text = text.trim();
    let uri_of = |text: &str| {
        text.parse::<SourceUri>().map_err(|source| {
            // What cannot be read may hold a credential anywhere, so only its beginning is shown.
            let text = text.split(['@', '?']).next().unwrap_or_default().chars().take(80).collect();
            ProfileError::ReferenceText { place: place.clone(), text, source }
        })
    };
    let mut written = text.to_owned();
    if !is_relative(text) {
        match (uri_of(text)?, slot) {
            (SourceUri::Named { subpath: None, .. }, Slot::Module(_)) => return Ok(None),
            (SourceUri::Named { .. }, _) => written = format!("./{text}"),
            (uri, _) => return Ok(Some(with_text(uri, text))),
        }
    }
    // Relative to the file that says so, wherever the program was started.
    let rebased = match home {
        Some(home) => home.rebase(&written),
        None => Ok(None),
    };
    let rebased = rebased.map_err(|escape| {
        let what = format!("{escape}; a fetched profile reaches only what was fetched with it");
        ProfileError::ReferenceForm { place: place.clone(), what }
    })?;
    let text = rebased.unwrap_or(written);
    Ok(Some(with_text(uri_of(&text)?, &text)))
}

/// An address and the text a lock keeps for it: as written, unless that would give a credential away.
fn with_text(uri: SourceUri, text: &str) -> (SourceUri, String) {
    let shown = uri.to_string();
    let open = shown.parse::<SourceUri>().is_ok_and(|read| read == uri);
    (uri, if open { text.to_owned() } else { shown })
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && !name.contains(|c: char| c.is_control() || matches!(c, '/' | '\\' | ':'))
}
