//! Why a journal on disk could not be opened or read. Each names the file, and the line where there is one.

use std::path::PathBuf;

use amplifier_core::journal::JournalError;

use super::lease::LeaseError;
use crate::files::FileError;

/// A journal on disk could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalFileError {
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// Somebody else writes this journal, or the lease could not be had.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A line that is not the last one is not what was written.
    #[error("{}:{line} is damaged", path.display())]
    Damaged {
        path: PathBuf,
        line: u64,
        #[source]
        damage: Damage,
    },
    /// The line is not what was written, and so are this many places behind it, which nobody tells one by one.
    #[error("{}:{line} is damaged{}", path.display(), behind(*more))]
    More { path: PathBuf, line: u64, more: u64 },
    /// The line was written by a newer version of this program.
    #[error("{}:{line} has record version {version}; this program reads up to {}", path.display(), amplifier_protocol::record::RECORD_VERSION)]
    Newer { path: PathBuf, line: u64, version: u32 },
    /// The line is longer than any that is ever written.
    #[error("{}:{line} is longer than {max} bytes", path.display())]
    LineTooLong { path: PathBuf, line: u64, max: usize },
    /// The line is intact, yet holds no record we know.
    #[error("{}:{line} holds no record we can read", path.display())]
    Record {
        path: PathBuf,
        line: u64,
        #[source]
        source: serde_json::Error,
    },
    /// A large value of the line is not there, or not what was written.
    #[error("{}:{line} refers to a large value that cannot be read", path.display())]
    Blob {
        path: PathBuf,
        line: u64,
        #[source]
        source: BlobError,
    },
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The line does not end with a checksum.
    #[error("it does not end with a checksum")]
    Unfinished,
    /// The bytes are not those the checksum was made of.
    #[error("its checksum is {found} where {expected} is written")]
    Checksum { expected: String, found: String },
    /// Intact, but not a line of a journal.
    #[error("it is not a journal line")]
    Shape,
    /// Intact, but for its end.
    #[error("it ends with a carriage return, as after a conversion of line ends")]
    LineEnd,
    /// A record is missing, or stands twice.
    #[error("it has sequence number {found} where {expected} belongs")]
    Sequence { expected: u64, found: u64 },
    /// A journal begins with the record of its opening.
    #[error("the first record is not `opened`")]
    NotOpened,
}

/// Why a large value could not be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The file is not there, or the disk refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not what its name says.
    #[error("blob `{hash}` is damaged: its content has another hash or length")]
    Damaged { hash: String },
    /// The reference in the line is malformed.
    #[error("the reference `{text}` is malformed")]
    Reference { text: String },
}

fn behind(more: u64) -> String {
    match more {
        0 => String::new(),
        1 => ", and so is one place behind it".to_owned(),
        more => format!(", and so are {more} places behind it"),
    }
}

/// An error with its causes as one text, for the kernel's port that carries text alone.
pub(super) fn refusal(error: &(dyn std::error::Error + 'static)) -> JournalError {
    JournalError { message: amplifier_core::error::chain(error) }
}
