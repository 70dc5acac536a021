//! Large values on disk, each in a file named by its hash. It does not know who refers to them and deletes none.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::error::BlobError;
use super::fold::{Blob, BlobRef};
use crate::files::{Durability, FileError, READ, create_private_dir, sync_dir, write_atomic};

/// The hash that names a value: 64 lower-case hexadecimal digits.
pub(super) fn hash(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        text.extend([byte >> 4, byte & 0xf].into_iter().filter_map(|d| char::from_digit(d.into(), 16)));
    }
    text
}

/// The blobs of one session.
#[derive(Debug, Clone)]
pub(super) struct Blobs {
    dir: PathBuf,
}

impl Blobs {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Makes values durable. A value that is there already is not written again.
    pub(super) fn keep(&self, blobs: &[Blob]) -> Result<(), FileError> {
        if blobs.is_empty() {
            return Ok(());
        }
        let is_new = !self.dir.exists();
        create_private_dir(&self.dir)?;
        for blob in blobs {
            let path = self.dir.join(&blob.hash);
            // It was whole when it got its name; something else may have changed it since.
            if !std::fs::read(&path).is_ok_and(|there| there == blob.bytes) {
                write_atomic(&path, &blob.bytes, Durability::ContentSynced)?;
            }
        }
        // Also for those that were there: a process that was killed may not have come to this.
        sync_dir(&self.dir)?;
        match self.dir.parent() {
            Some(parent) if is_new => sync_dir(parent),
            _ => Ok(()),
        }
    }

    /// The value a reference names, checked against its hash.
    pub(super) fn fetch(&self, reference: &BlobRef) -> Result<String, BlobError> {
        let BlobRef { hash: name, bytes: length, .. } = reference;
        // The name comes from a file and becomes a path: nothing but digits may pass.
        if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(BlobError::Reference { text: name.clone() });
        }
        let path = self.dir.join(name);
        let damaged = || BlobError::Damaged { hash: name.clone() };
        let about = std::fs::metadata(&path).map_err(FileError::at(READ, &path))?;
        if about.is_file() && about.len() != *length {
            return Err(damaged());
        }
        let bytes = std::fs::read(&path).map_err(FileError::at(READ, &path))?;
        if hash(&bytes) != *name {
            return Err(damaged());
        }
        String::from_utf8(bytes).map_err(|_| damaged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_something_else_changed_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(dir.path().join("blobs"));
        let blob = Blob { hash: hash(b"value"), bytes: b"value".to_vec() };
        blobs.keep(std::slice::from_ref(&blob)).unwrap();
        std::fs::write(dir.path().join("blobs").join(&blob.hash), "other").unwrap();
        blobs.keep(std::slice::from_ref(&blob)).unwrap();
        let reference = BlobRef { hash: blob.hash, bytes: 5, literal: false };
        assert_eq!(blobs.fetch(&reference).unwrap(), "value");
    }
}
