//! `@name:path` in the text of a profile: files of its context folders, read when a session needs them.
//!
//! A context folder is a namespace; `@name:context/a.md` finds `a.md` in it too. How far other mentions reach, and when
//! the texts become messages, is for whoever opens the session.

use std::path::{Path, PathBuf};

use amplifier_bundle::fetch::Files;
use amplifier_bundle::mention::{Block, FileCache, Gathered, Gatherer, Quotes, Roots, Speaker};

use crate::chain::Profile;
use crate::error::ProfileError;

/// The roots of a profile's mentions: its context folders, and the working folder of the session.
pub fn roots(profile: &Profile, base: impl Into<PathBuf>) -> Result<Roots, ProfileError> {
    let dir = profile.dir.join("contexts");
    let mut namespaces = Vec::new();
    let entries = match std::fs::read_dir(&dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        entries => Some(entries.map_err(ProfileError::io("read", &dir))?),
    };
    for entry in entries.into_iter().flatten() {
        let entry = entry.map_err(ProfileError::io("read", &dir))?;
        if let (Some(name), true) = (entry.file_name().to_str(), entry.path().is_dir()) {
            namespaces.push((name.to_owned(), entry.path()));
        }
    }
    namespaces.sort();
    Ok(Roots { namespaces, base: base.into(), ..Roots::default() })
}

/// Gathers the files that a text mentions; quoted mentions are words, not mentions.
pub fn gather(
    files: &impl Files,
    text: &str,
    speaker: &Speaker,
    roots: &Roots,
    cache: &mut FileCache,
) -> Gathered {
    let mut gatherer = Gatherer::new(files, roots, cache).with_quotes(Quotes::Skip);
    gatherer.text(text, speaker);
    gatherer.finish()
}

/// Gathers what the body of a profile mentions.
pub fn gather_profile(
    files: &impl Files,
    profile: &Profile,
    roots: &Roots,
    cache: &mut FileCache,
) -> Gathered {
    let body = profile.composed.instruction.as_ref().map_or("", |body| body.text.text.as_str());
    gather(files, body, &Speaker::Instruction, roots, cache)
}

/// A gathered text as the message a session gets: where it comes from, an empty line, the text.
pub fn message(block: &Block) -> String {
    let arrow = |(mention, path): &(String, PathBuf)| format!("{mention} → {}", Path::display(path));
    let sources = block.sources.iter().map(arrow).collect::<Vec<_>>().join(", ");
    format!("[Context from {sources}]\n\n{}", block.text)
}
