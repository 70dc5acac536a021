//! The writing end of a journal: lines go to the file in order, large values before the lines that name them.
//!
//! It is used by one thread at a time and may wait for the disk. Who may wait, and when, is `journal.rs`'s business.

use std::fs::File;
use std::io::Write;

use super::blobs::Blobs;
use super::error::JournalFileError;
use super::fold::Blob;
use super::index::{self, Entry, Spacing};
use super::lease::Lease;
use crate::files::{FileError, sync_dir};
use crate::paths::SessionFolder;

/// Lines that wait to be written, and the large values they name.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) lines: Vec<u8>,
    pub(super) blobs: Vec<Blob>,
    pub(super) blob_bytes: usize,
    /// How many lines there are.
    pub(super) count: u64,
}

impl Batch {
    /// What it holds in memory.
    pub(super) fn bytes(&self) -> usize {
        self.lines.len() + self.blob_bytes
    }
}

/// The open file and all that belongs to writing it.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) folder: SessionFolder,
    pub(super) file: File,
    pub(super) lease: Lease,
    pub(super) blobs: Blobs,
    /// Where the next line goes, and its number.
    pub(super) end: Entry,
    pub(super) spacing: Spacing,
    /// Places for the index, which may only name what is durable.
    pub(super) entries: Vec<Entry>,
    /// Whether lines were written since the last sync.
    pub(super) unsynced: bool,
    /// Whether the file's own name may not be durable yet.
    pub(super) unnamed: bool,
}

impl Sink {
    /// Writes lines without waiting for the disk to keep them; large values are kept first, because a line must never
    /// be found without the value it names.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<(), JournalFileError> {
        if batch.count == 0 {
            return Ok(());
        }
        self.lease.check()?;
        self.blobs.keep(&batch.blobs)?;
        let path = self.folder.events();
        self.unsynced = true;
        self.file.write_all(&batch.lines).map_err(FileError::at("write", &path))?;
        let begin = self.end;
        self.end = Entry { seq: begin.seq + batch.count, offset: begin.offset + batch.lines.len() as u64 };
        if self.spacing.takes(begin) {
            self.entries.push(begin);
        }
        Ok(())
    }

    /// Waits until everything written is durable. Returns the last sequence number.
    pub(super) fn sync(&mut self) -> Result<u64, JournalFileError> {
        let path = self.folder.events();
        if self.unsynced {
            self.file.sync_data().map_err(FileError::at("sync", &path))?;
            self.unsynced = false;
        }
        if self.unnamed {
            sync_dir(self.folder.dir())?;
            self.folder.dir().parent().map_or(Ok(()), sync_dir)?;
            self.unnamed = false;
        }
        for entry in self.entries.drain(..) {
            // The journal is whole without it; an index that lags only makes the next opening read more.
            index::add(&self.folder.index(), entry).ok();
        }
        Ok(self.end.seq - 1)
    }
}
