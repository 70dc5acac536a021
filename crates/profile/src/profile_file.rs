//! One `profile.md`, read and checked. What it extends, and what it refers to, is not looked at here.

use std::path::Path;
use std::sync::Arc;

use amplifier_bundle::bundle::{self, Bundle, HeadKind, Text};
use amplifier_bundle::disk::Disk;
use amplifier_bundle::error::BundleError;
use amplifier_bundle::fetch::Files;
use amplifier_bundle::front_matter;
use amplifier_bundle::home::Home;
use amplifier_bundle::notice::Notice;
use amplifier_bundle::origin::{Place, SourceFile};
use amplifier_bundle::yaml::YamlLimits;
use sha2::{Digest, Sha256};

use crate::error::{ProfileError, Rejection};
use crate::share::ShareName;

/// The version of the format that is read here.
const SCHEMA_VERSION: &str = "2";

/// More than any profile people write.
pub(crate) const MOST_BYTES: u64 = 4 << 20;

/// A profile as its file says it.
#[derive(Debug, Clone)]
pub struct ProfileFile {
    /// What it says, sources made absolute.
    pub bundle: Bundle,
    /// What is worth telling about it.
    pub notices: Vec<Notice>,
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    pub(crate) bytes: Vec<u8>,
}

impl ProfileFile {
    /// Reads a file of this machine; `home` says where its paths lead.
    pub(crate) fn read(path: &Path, home: &Arc<Home>) -> Result<Self, ProfileError> {
        let read = Disk::default().read(path, MOST_BYTES);
        let bytes = read.map_err(|source| ProfileError::Read { path: path.to_owned(), source })?;
        Self::parse(bytes, home)
    }

    pub(crate) fn parse(bytes: Vec<u8>, home: &Arc<Home>) -> Result<Self, ProfileError> {
        let hash = hash_of(&bytes);
        let (bundle, notices) = bundle::read(bytes.clone(), home, &YamlLimits::default())?;
        let file = Self { bundle, notices, hash, bytes };
        match file.rejection() {
            None => Ok(file),
            Some((place, rejection)) => Err(ProfileError::Rejected { place, rejection }),
        }
    }

    /// The name the file gives itself. Checked when it was read.
    pub(crate) fn name(&self) -> Result<ShareName, ProfileError> {
        self.bundle.head.name().unwrap_or_default().parse()
    }

    /// What it builds on, as written.
    pub fn extends(&self) -> Option<Text> {
        let node = &self.bundle.head.extra.get("extends")?.node;
        let text = node.spelled().map(str::trim).filter(|text| !text.is_empty())?;
        Some(Text { text: text.to_owned(), place: node.place.clone() })
    }

    fn rejection(&self) -> Option<(Place, Rejection)> {
        let head = &self.bundle.head;
        let start = Place::start(&Arc::new(self.source_file()));
        if head.kind != HeadKind::Profile {
            let text = String::from_utf8_lossy(&self.bytes);
            let text = front_matter::without_byte_order_mark(&text);
            let why = if front_matter::opens_unclosed(text) {
                Rejection::Unclosed
            } else if front_matter::split(text).yaml.is_none() {
                Rejection::NoFrontMatter
            } else {
                Rejection::NoProfileSection
            };
            return Some((start, why));
        }
        let Some(name) = &head.name else { return Some((start, Rejection::NoName)) };
        if name.text.parse::<ShareName>().is_err() {
            return Some((name.place.clone(), Rejection::BadName(name.text.clone())));
        }
        let Some(version) = head.extra.get("schema_version") else {
            return Some((name.place.clone(), Rejection::NoSchemaVersion));
        };
        match version.node.spelled() {
            Some(SCHEMA_VERSION) => {}
            found => {
                let found = found.map_or_else(|| version.node.preview(), str::to_owned);
                return Some((version.node.place.clone(), Rejection::SchemaVersion(found)));
            }
        }
        if head.version.is_none() {
            return Some((name.place.clone(), Rejection::NoVersion));
        }
        // What is missing here may stand in the profile below.
        let has = |slot: &str| self.bundle.session.as_ref().is_some_and(|session| session.at(slot).is_some());
        let missing = ["orchestrator", "context"].into_iter().find(|slot| !has(slot));
        match missing {
            Some(slot) if self.extends().is_none() => Some((name.place.clone(), Rejection::NoSlot(slot))),
            _ => None,
        }
    }

    fn source_file(&self) -> SourceFile {
        let text = String::from_utf8_lossy(&self.bytes);
        SourceFile::new(&self.bundle.home.file, front_matter::without_byte_order_mark(&text))
    }
}

/// Whether a failure to read only means that the file is something else, such as a README.
pub(crate) fn is_something_else(error: &ProfileError) -> bool {
    match error {
        ProfileError::Rejected { rejection, .. } => {
            matches!(rejection, Rejection::NoFrontMatter | Rejection::NoProfileSection | Rejection::Unclosed)
        }
        ProfileError::Bundle(BundleError::NotText { .. } | BundleError::UnknownFormat(_)) => true,
        _ => false,
    }
}

/// What a text is known by in locks.
pub(crate) fn hash_of(text: &[u8]) -> String {
    hex(&Sha256::digest(text))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}
