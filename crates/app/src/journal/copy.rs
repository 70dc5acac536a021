//! The beginning of a journal as the beginning of another one: the same lines under the same numbers, byte for byte, but for
//! the first, which says whose journal it is. Large values are shared, not copied: nobody ever changes one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use amplifier_protocol::record::Record;

use super::error::{JournalFileError, refusal};
use super::line;
use super::lines::{Lines, Step};
use crate::files::{COPY, FileError, create_private_dir, private, sync_dir};
use crate::paths::SessionFolder;

/// Copies the records up to `last` into a folder without a journal, `first` in the place of the first one. Durable when it
/// returns; the folder's own name is the caller's business.
pub fn copy_beginning(
    from: &SessionFolder,
    to: &SessionFolder,
    first: &Record,
    last: u64,
) -> Result<(), JournalFileError> {
    let path = to.events();
    let file = private().write(true).create_new(true).open(&path).map_err(FileError::at("create", &path))?;
    let mut out = BufWriter::with_capacity(256 * 1024, file);
    let body = line::body_text(&first.body)
        .map_err(|error| FileError::at("write", &path)(std::io::Error::other(refusal(&error).message)))?;
    let written = |result: std::io::Result<()>| result.map_err(FileError::at("write", &path));
    written(out.write_all(line::write(first, &body).as_bytes()))?;
    let mut lines = Lines::from_start(from)?;
    let mut blobs = BTreeMap::new();
    while let Step::Line(frame) = lines.step()? {
        if frame.seq > 1 && frame.seq <= last {
            for hash in named_blobs(lines.body(&frame)) {
                blobs.entry(hash).or_insert(frame.seq);
            }
            written(out.write_all(lines.bytes()))?;
        }
        // The next line is not looked at: it may be the damaged one that the copy shall do without.
        if frame.seq >= last {
            break;
        }
    }
    // A line must never be found without the value it names.
    share_blobs(from, to, &blobs)?;
    let file = out.into_inner().map_err(|error| FileError::at("write", &path)(error.into_error()))?;
    Ok(file.sync_all().map_err(FileError::at("sync", &path))?)
}

/// The hashes of the large values that a line may name. One too many does no harm.
fn named_blobs(body: &str) -> Vec<String> {
    let after = body.split(r#""$blob":""#).skip(1);
    let is_hash = |text: &&str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    after.filter_map(|rest| rest.get(..64)).filter(is_hash).map(str::to_owned).collect()
}

fn share_blobs(
    from: &SessionFolder,
    to: &SessionFolder,
    blobs: &BTreeMap<String, u64>,
) -> Result<(), JournalFileError> {
    if blobs.is_empty() {
        return Ok(());
    }
    let (source, target) = (from.blobs(), to.blobs());
    create_private_dir(&target)?;
    for (hash, line) in blobs {
        let (path, line) = (from.events(), *line);
        share(&source.join(hash), &target.join(hash)).map_err(|error| match error.is_missing() {
            true => JournalFileError::Blob { path, line, source: error.into() },
            false => error.into(),
        })?;
    }
    Ok(sync_dir(&target)?)
}

fn share(source: &Path, target: &Path) -> Result<(), FileError> {
    if std::fs::hard_link(source, target).is_ok() {
        return Ok(());
    }
    // Not every file system has links.
    std::fs::copy(source, target).map_err(FileError::at(COPY, source))?;
    File::open(target).and_then(|file| file.sync_all()).map_err(FileError::at("sync", target))
}
