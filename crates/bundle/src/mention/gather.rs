//! Follows mentions: reads each file once, goes on to the mentions in it, and stops at every bound.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::resolve::{self, Resolved};
use super::scan::{Mention, Quotes, scan};
use super::{
    Block, FailedMention, FoundMention, Gathered, MentionFault, MentionKind, MentionLimits, Roots, Speaker,
};
use crate::context::ContextPath;
use crate::fetch::{Files, PathKind, Stamp};
use crate::include::hex;

/// Texts that were read before; a file that did not change is not read again.
#[derive(Debug, Default)]
pub struct FileCache {
    texts: HashMap<PathBuf, Cached>,
}

#[derive(Debug, Clone)]
struct Cached {
    stamp: Stamp,
    text: Arc<str>,
    hash: String,
}

/// Follows the mentions of one prompt.
pub struct Gatherer<'g, F> {
    files: &'g F,
    roots: &'g Roots,
    cache: &'g mut FileCache,
    limits: MentionLimits,
    quotes: Quotes,
    gathered: Gathered,
    /// Where the block with a hash stands.
    by_hash: HashMap<String, usize>,
    bytes: u64,
    visited: usize,
}

/// A text that waits to be scanned.
struct Waiting {
    text: Arc<str>,
    speaker: Speaker,
    within: Option<PathBuf>,
    depth: usize,
}

impl<'g, F: Files> Gatherer<'g, F> {
    /// Begins with nothing gathered.
    pub fn new(files: &'g F, roots: &'g Roots, cache: &'g mut FileCache) -> Self {
        Self {
            files,
            roots,
            cache,
            limits: MentionLimits::default(),
            quotes: Quotes::Read,
            gathered: Gathered::default(),
            by_hash: HashMap::new(),
            bytes: 0,
            visited: 0,
        }
    }

    /// The same with other bounds.
    #[must_use]
    pub fn with_limits(mut self, limits: MentionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The same with other rules for quotation marks.
    #[must_use]
    pub fn with_quotes(mut self, quotes: Quotes) -> Self {
        self.quotes = quotes;
        self
    }

    /// Follows the mentions of a text.
    pub fn text(&mut self, text: &str, speaker: &Speaker) {
        self.follow(Waiting { text: text.into(), speaker: speaker.clone(), within: None, depth: 0 });
    }

    /// Takes a file that the bundle declares, and follows the mentions in it.
    pub fn declared(&mut self, file: &ContextPath) {
        let dir = file.path.parent().map(Path::to_path_buf).unwrap_or_default();
        let root = self.root_of(&file.path).unwrap_or(dir);
        let resolved = Resolved { path: file.path.clone(), kind: MentionKind::Declared, root };
        match self.take(&file.key, &resolved, 0) {
            Ok(Some(waiting)) => self.follow(waiting),
            Ok(None) => {}
            Err(reason) => {
                let mention = file.key.clone();
                self.gathered.failed.push(FailedMention { mention, within: None, line: 0, reason });
            }
        }
    }

    /// What was gathered.
    pub fn finish(self) -> Gathered {
        self.gathered
    }

    /// Depth first, with a stack of its own: a file's mentions come right after the file.
    fn follow(&mut self, first: Waiting) {
        let mut stack = vec![(self.mentions(&first), first)];
        while let Some((mentions, waiting)) = stack.last_mut() {
            let Some(mention) = mentions.next() else {
                stack.pop();
                continue;
            };
            self.visited += 1;
            if self.visited > self.limits.mentions {
                if self.visited == self.limits.mentions + 1 {
                    let limit = self.limits.mentions as u64;
                    let reason = MentionFault::Full { what: "the number of mentions", limit };
                    let (mention, within, line) = (mention.text(), waiting.within.clone(), mention.line);
                    self.gathered.failed.push(FailedMention { mention, within, line, reason });
                }
                return;
            }
            match self.visit(&mention, waiting) {
                Ok(Some(next)) => stack.push((self.mentions(&next), next)),
                Ok(None) => {}
                Err(reason) => {
                    let failed = FailedMention {
                        mention: mention.text(),
                        within: waiting.within.clone(),
                        line: mention.line,
                        reason,
                    };
                    if !self.gathered.failed.contains(&failed) {
                        self.gathered.failed.push(failed);
                    }
                }
            }
        }
    }

    fn mentions(&self, waiting: &Waiting) -> std::vec::IntoIter<Mention> {
        scan(&waiting.text, self.quotes).into_iter()
    }

    fn visit(&mut self, mention: &Mention, waiting: &Waiting) -> Result<Option<Waiting>, MentionFault> {
        let resolved = resolve::resolve(self.files, self.roots, mention, &waiting.speaker)?;
        if waiting.depth > self.limits.depth {
            return Err(MentionFault::TooDeep(self.limits.depth));
        }
        self.take(&mention.text(), &resolved, waiting.depth)
    }

    /// Adds what stands at a path; gives its text to scan when it is new.
    fn take(
        &mut self,
        key: &str,
        resolved: &Resolved,
        depth: usize,
    ) -> Result<Option<Waiting>, MentionFault> {
        let path = &resolved.path;
        let is_folder = self.files.kind(path) == PathKind::Folder;
        let (text, hash) = if is_folder { self.listing(path)? } else { self.read(path)? };
        let found = FoundMention {
            mention: key.to_owned(),
            path: path.clone(),
            kind: resolved.kind,
            hash: hash.clone(),
        };
        if let Some(block) = self.by_hash.get(&hash).and_then(|at| self.gathered.blocks.get_mut(*at)) {
            let source = (key.to_owned(), path.clone());
            if !block.sources.contains(&source) {
                block.sources.push(source);
            }
            self.gathered.repeated += 1;
            self.gathered.found.push(found);
            return Ok(None);
        }
        self.reserve(text.len())?;
        self.by_hash.insert(hash.clone(), self.gathered.blocks.len());
        let sources = vec![(key.to_owned(), path.clone())];
        self.gathered.blocks.push(Block { sources, text: Arc::clone(&text), hash });
        self.gathered.found.push(found);
        if is_folder {
            return Ok(None);
        }
        let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let speaker = Speaker::File { dir, root: resolved.root.clone() };
        Ok(Some(Waiting { text, speaker, within: Some(path.clone()), depth: depth + 1 }))
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), MentionFault> {
        if self.gathered.blocks.len() >= self.limits.files {
            return Err(MentionFault::Full { what: "the number of files", limit: self.limits.files as u64 });
        }
        let total = self.bytes.saturating_add(bytes as u64);
        if total > self.limits.total_bytes {
            return Err(MentionFault::Full { what: "the size of all files", limit: self.limits.total_bytes });
        }
        self.bytes = total;
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<(Arc<str>, String), MentionFault> {
        let stamp = self.files.stamp(path);
        if let (Some(stamp), Some(known)) = (stamp, self.cache.texts.get(path))
            && known.stamp == stamp
            && stamp.modified.is_some()
        {
            return Ok((Arc::clone(&known.text), known.hash.clone()));
        }
        let bytes = self.files.read(path, self.limits.file_bytes).map_err(resolve::fault)?;
        let text = String::from_utf8(bytes).map_err(|_| MentionFault::NotText)?;
        // A text with a zero byte is a binary file that happens to be valid.
        if text.contains('\0') {
            return Err(MentionFault::NotText);
        }
        let text: Arc<str> = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").into();
        let hash = hex(&Sha256::digest(text.as_bytes()));
        if let Some(stamp) = stamp {
            let cached = Cached { stamp, text: Arc::clone(&text), hash: hash.clone() };
            self.cache.texts.insert(path.to_path_buf(), cached);
        }
        Ok((text, hash))
    }

    /// A folder as text: folders first, then files, by name.
    fn listing(&self, path: &Path) -> Result<(Arc<str>, String), MentionFault> {
        let mut names = self.files.list(path).map_err(resolve::fault)?;
        names.sort_by_key(|(name, kind)| (*kind != PathKind::Folder, name.to_lowercase(), name.clone()));
        let mut text = format!("Directory: {}\n\n", path.display());
        if names.is_empty() {
            text.push_str("  (empty directory)");
        }
        let lines: Vec<_> = names
            .iter()
            .take(self.limits.names)
            .map(|(name, kind)| {
                format!("  {} {name}", if *kind == PathKind::Folder { "DIR " } else { "FILE" })
            })
            .collect();
        text.push_str(&lines.join("\n"));
        if names.len() > self.limits.names {
            text.push_str(&format!("\n  ({} more)", names.len() - self.limits.names));
        }
        let hash = hex(&Sha256::digest(text.as_bytes()));
        Ok((text.into(), hash))
    }

    /// The root a declared file lies in: the innermost namespace that holds it.
    fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let holding = self.roots.namespaces.iter().map(|(_, dir)| dir).filter(|dir| path.starts_with(dir));
        holding.max_by_key(|dir| dir.components().count()).cloned()
    }
}
