//! Mentions: `@namespace:path`, `@path`, `@~/path` and `@"a path"` in a text bring the files they name into the prompt.
//!
//! A [`Gatherer`] follows them: files, folders as listings, and the mentions inside those files, to a bounded depth and
//! size, each content once. Nothing here fails: what cannot be had is reported. Paths stay inside the roots they are
//! given, links resolved; which roots there are is the caller's decision. Where the text goes is `prompt.rs`.

mod gather;
mod resolve;
mod scan;

use std::path::PathBuf;
use std::sync::Arc;

pub use self::gather::{FileCache, Gatherer};
pub use self::scan::{Mention, Quotes, scan};

/// Where mentions may lead.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    /// Namespaces and their folders; of two with one name the first counts.
    pub namespaces: Vec<(String, PathBuf)>,
    /// The working folder of the session: relative paths start here and stay here.
    pub base: PathBuf,
    /// What `~` stands for; `None` refuses it.
    pub home: Option<PathBuf>,
    /// Folders that a person's own words may reach beside the working folder.
    pub allowed: Vec<PathBuf>,
    /// Named context files: a mention of `namespace:name` may mean one of them.
    pub named: Vec<(String, PathBuf)>,
    /// The real path of a folder whose links may not lead out of it.
    pub untrusted: Option<PathBuf>,
}

/// Who speaks: it decides how far the words reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// A person at the prompt: the working folder and the allowed folders.
    Person,
    /// A file: its own folder within its root first, then the working folder.
    File {
        /// Where its relative paths start.
        dir: PathBuf,
        /// What they may not leave.
        root: PathBuf,
    },
    /// An instruction without a file of its own: the working folder.
    Instruction,
}

/// Bounds of what one prompt gathers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MentionLimits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
    /// Files in all.
    pub files: usize,
    /// Mentions in all, those that lead nowhere included.
    pub mentions: usize,
    /// Files that lead to each other below the first one.
    pub depth: usize,
    /// Names in the listing of a folder.
    pub names: usize,
}

impl Default for MentionLimits {
    fn default() -> Self {
        Self {
            file_bytes: 2 << 20,
            total_bytes: 8 << 20,
            files: 500,
            mentions: 2_000,
            depth: 3,
            names: 1_000,
        }
    }
}

/// What was gathered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gathered {
    /// The texts, each once, in the order in which they were first met.
    pub blocks: Vec<Block>,
    /// Mentions that led somewhere.
    pub found: Vec<FoundMention>,
    /// Mentions that did not.
    pub failed: Vec<FailedMention>,
    /// How many led to a text that was there already.
    pub repeated: usize,
}

/// A text and everything that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The keys or mentions that led to it, each with the path.
    pub sources: Vec<(String, PathBuf)>,
    /// The text.
    pub text: Arc<str>,
    /// The hash of the text, SHA-256 in hex.
    pub hash: String,
}

/// A mention that led somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMention {
    /// The mention with its `@`, or the key of a declared file.
    pub mention: String,
    /// Where it led.
    pub path: PathBuf,
    /// How it was understood.
    pub kind: MentionKind,
    /// The hash of the text there.
    pub hash: String,
}

/// How a mention was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MentionKind {
    /// A path in a namespace.
    Namespace,
    /// A path below the home folder.
    Home,
    /// A path on this machine.
    Path,
    /// Not a mention: a file the bundle declares.
    Declared,
}

impl MentionKind {
    /// The name in events.
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Namespace => "bundle_namespace",
            Self::Home => "home_shortcut",
            Self::Path => "relative_path",
            Self::Declared => "bundle_context_decl",
        }
    }
}

/// A mention that led nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedMention {
    /// The mention with its `@`, or the key of a declared file.
    pub mention: String,
    /// The file it stands in; `None` for a text without one.
    pub within: Option<PathBuf>,
    /// The line it stands in, from 1.
    pub line: usize,
    /// Why.
    pub reason: MentionFault,
}

/// Why a mention led nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MentionFault {
    /// Nothing is there.
    #[error("nothing is there")]
    NotFound,
    /// We may not read it.
    #[error("permission denied")]
    Denied,
    /// No bundle has that name.
    #[error("no bundle called `{0}` is loaded")]
    UnknownNamespace(String),
    /// It names an agent that cannot be asked; this is why.
    #[error("{0}")]
    NoAgent(String),
    /// It leads out of its root.
    #[error("it leads out of `{}`", .0.display())]
    Escape(PathBuf),
    /// It is not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It is too large.
    #[error("it is {size} bytes long; at most {limit} are read")]
    TooLarge {
        /// Its size.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// The prompt is full.
    #[error("{what} exceeds the limit of {limit}")]
    Full {
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// The chain of files is too long.
    #[error("it stands more than {0} files deep")]
    TooDeep(usize),
    /// The system said no.
    #[error("{0}")]
    Io(String),
}

impl MentionFault {
    /// The name in events.
    pub fn wire_name(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Denied => "permission_error",
            Self::UnknownNamespace(_) => "bundle_not_registered",
            Self::NoAgent(_) => "agent_not_available",
            Self::Escape(_) => "path_traversal_rejected",
            Self::NotText => "not_text",
            Self::TooLarge { .. } | Self::Full { .. } => "too_large",
            Self::TooDeep(_) => "too_deep",
            Self::Io(_) => "unknown",
        }
    }
}

#[cfg(test)]
#[path = "mention_tests.rs"]
mod tests;
