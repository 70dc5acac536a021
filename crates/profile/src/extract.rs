//! Finds the profiles of a collection and copies each to `share/profiles/<collection>/<profile>/profile.md`.
//!
//! A profile is `profile.md` or `<name>/<name>.md` at any depth, or any Markdown file directly in the collection or in its
//! `profiles/`. Its name is the one in its head. Other Markdown is left alone; a profile with mistakes is told and left out,
//! and one that was there without them before stays as it was. So does one whose new text cannot be compiled (`sync.rs`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_bundle::disk::Disk;
use amplifier_bundle::fetch::Files;
use indexmap::IndexMap;

use crate::error::ProfileError;
use crate::lock_file::ProfileLock;
use crate::origin::{CollectionRecord, below};
use crate::profile_file::{MOST_BYTES, ProfileFile, hash_of, is_something_else};
use crate::share::{ProfileId, Share, ShareName};
use crate::staging::{remove, write_atomically};

/// The text of a profile in its folder.
const PROFILE_FILE: &str = "profile.md";

/// Bounds of looking around in a collection.
const MOST_FILES: usize = 20_000;
const DEEPEST: usize = 16;

/// What was extracted.
#[derive(Debug, Default)]
pub struct Extracted {
    /// The profiles, in the order of their paths.
    pub profiles: Vec<ProfileId>,
    /// Profiles that were left out, and why.
    pub skipped: Vec<Skipped>,
    /// Profiles that the collection no longer has; their folders are gone.
    pub removed: Vec<ProfileId>,
    /// Texts that were compiled and have given way to others.
    pub(crate) replaced: Vec<Replaced>,
}

/// The text of a profile that gave way to another.
#[derive(Debug)]
pub(crate) struct Replaced {
    pub(crate) id: ProfileId,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Replaced {
    /// Puts the old text back, unless somebody else has changed the new one since.
    pub(crate) fn put_back(&self, share: &Share) -> Result<bool, ProfileError> {
        let path = share.profile_dir(&self.id).join(PROFILE_FILE);
        let is_ours = fs::read(&path).is_ok_and(|text| text == self.new);
        if is_ours {
            write_atomically(&path, &self.old)?;
        }
        Ok(is_ours)
    }
}

/// A profile that was left out.
#[derive(Debug)]
pub struct Skipped {
    pub path: PathBuf,
    pub reason: ProfileError,
    /// The profile that this file held before; it stays as it was then.
    pub kept: Option<ProfileId>,
}

/// Copies the profiles of a fetched collection to `share/`, and keeps where they came from.
///
/// `real` is the collection on this machine and `tree` the whole it lies in.
pub(crate) fn extract(
    share: &Share,
    collection: &ShareName,
    (real, tree): (&Path, &Path),
    mut record: CollectionRecord,
) -> Result<Extracted, ProfileError> {
    let mut extracted = Extracted::default();
    let before = CollectionRecord::read(share, collection).map(|before| before.profiles).unwrap_or_default();
    let mut kept = IndexMap::new();
    let mut found: IndexMap<ShareName, (PathBuf, Vec<u8>)> = IndexMap::new();
    for path in candidates(real, collection)? {
        let within = below(&path, tree);
        let home = Arc::new(record.home(&within, &path));
        let file = match read(&path, &home) {
            Ok(file) => file,
            Err(reason) => {
                let held = held_in(&within, &before, share, collection)?;
                if held.is_none() && is_something_else(&reason) && !is_named_profile(&path) {
                    continue;
                }
                kept.extend(held.iter().map(|id| (id.profile.clone(), within.clone())));
                extracted.skipped.push(Skipped { path, reason, kept: held });
                continue;
            }
        };
        let name = file.name()?;
        if let Some((one, _)) = found.get(&name) {
            let (collection, name, one, two) = (collection.to_string(), name.to_string(), one.clone(), path);
            return Err(ProfileError::SameName { collection, name, one, two });
        }
        record.profiles.insert(name.to_string(), within);
        found.insert(name, (path, file.bytes));
    }
    let context = real.join("context");
    record.context = context.is_dir().then(|| below(&context, tree));
    for skipped in &mut extracted.skipped {
        // What another file holds now is not kept from before.
        skipped.kept = skipped.kept.take().filter(|id| !found.contains_key(&id.profile));
    }
    kept.retain(|name, _| !found.contains_key(name));
    record.profiles.extend(kept.iter().map(|(name, within)| (name.to_string(), within.clone())));
    for (profile, (_, bytes)) in found {
        let id = ProfileId { collection: collection.clone(), profile };
        let dir = share.profile_dir(&id);
        let to = dir.join(PROFILE_FILE);
        let old = fs::read(&to).ok();
        if old.as_ref() != Some(&bytes) {
            write_atomically(&to, &bytes)?;
            let was_compiled =
                |old: &Vec<u8>| ProfileLock::read(&dir).is_some_and(|lock| lock.profile_hash == hash_of(old));
            let replaced = old.filter(was_compiled).map(|old| Replaced { id: id.clone(), old, new: bytes });
            extracted.replaced.extend(replaced);
        }
        extracted.profiles.push(id);
    }
    for gone in before.into_keys() {
        let id = ProfileId { collection: collection.clone(), profile: gone.parse()? };
        if !extracted.profiles.contains(&id) && !kept.contains_key(&id.profile) {
            remove(&share.profile_dir(&id))?;
            extracted.removed.push(id);
        }
    }
    record.write(share, collection)?;
    Ok(extracted)
}

/// The profile that a file held before, if it is still there.
fn held_in(
    within: &str,
    before: &IndexMap<String, String>,
    share: &Share,
    collection: &ShareName,
) -> Result<Option<ProfileId>, ProfileError> {
    let Some((name, _)) = before.iter().find(|(_, file)| *file == within) else { return Ok(None) };
    let id = ProfileId { collection: collection.clone(), profile: name.parse()? };
    Ok(share.profile_dir(&id).join(PROFILE_FILE).is_file().then_some(id))
}

fn read(path: &Path, home: &Arc<amplifier_bundle::home::Home>) -> Result<ProfileFile, ProfileError> {
    let read = Disk::default().read(path, MOST_BYTES);
    ProfileFile::parse(read.map_err(|source| ProfileError::Read { path: path.to_owned(), source })?, home)
}

/// The files that may be profiles, in the order of their paths.
fn candidates(root: &Path, collection: &ShareName) -> Result<Vec<PathBuf>, ProfileError> {
    if root.is_file() {
        return Ok(vec![root.to_owned()]);
    }
    let mut found = Vec::new();
    let mut seen = 0;
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((dir, depth)) = folders.pop() {
        for entry in fs::read_dir(&dir).map_err(ProfileError::io("read", &dir))? {
            let entry = entry.map_err(ProfileError::io("read", &dir))?;
            seen += 1;
            if seen > MOST_FILES {
                let collection = collection.to_string();
                return Err(ProfileError::TooManyFiles { collection, limit: MOST_FILES });
            }
            let path = entry.path();
            // Links are not followed: a collection is what it holds.
            let kind = entry.file_type().map_err(ProfileError::io("look at", &path))?;
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if kind.is_dir() && !hidden && depth < DEEPEST && entry.file_name() != "node_modules" {
                folders.push((path, depth + 1));
            } else if kind.is_file() && is_candidate(&path, root) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_candidate(path: &Path, root: &Path) -> bool {
    let is_markdown = path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("md"));
    let dir = path.parent();
    let in_list = dir == Some(root) || dir == Some(&root.join("profiles"));
    let named_so = path.file_stem().is_some() && path.file_stem() == dir.and_then(Path::file_name);
    is_markdown && (in_list || named_so || is_named_profile(path))
}

fn is_named_profile(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == PROFILE_FILE)
}
