//! `transcript.jsonl` as it is written: added to at its end, or made anew beside and put in its place when it is whole, so
//! that nothing that goes wrong in between takes what stands there.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use amplifier_protocol::message::Message;

use super::StoreError;
use super::fold::Change;
use super::metadata::{self, Progress};
use crate::files::{FileError, private, temp_beside};
use crate::paths::SessionFolder;

/// The transcript, open at its end.
pub(super) struct Transcript {
    folder: SessionFolder,
    path: PathBuf,
    /// Where it stands until it is whole; nothing while the old one is added to.
    beside: Option<PathBuf>,
    file: BufWriter<File>,
    /// What the transcript is now; the rest of it is the metadata's.
    written: Progress,
    crc: crc32fast::Hasher,
}

/// Removes what was begun beside a transcript, on the way of an error. The error is the one worth telling; a file that stays
/// is overwritten by the next attempt.
pub(super) fn scrap(folder: &SessionFolder) -> impl FnOnce(StoreError) -> StoreError {
    let beside = temp_beside(&folder.transcript());
    move |error| {
        std::fs::remove_file(beside).ok();
        error
    }
}

impl Transcript {
    /// Opens it and cuts what an update that did not end has written after what is known.
    pub(super) fn open(folder: &SessionFolder, known: Progress) -> Result<Self, StoreError> {
        let path = folder.transcript();
        let mut file = private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(FileError::at("open", &path))?;
        cut(&mut file, known.transcript_bytes).map_err(FileError::at("write", &path))?;
        let crc = crc32fast::Hasher::new_with_initial_len(known.transcript_crc, known.transcript_bytes);
        Ok(Self {
            folder: folder.clone(),
            path,
            beside: None,
            file: BufWriter::new(file),
            written: known,
            crc,
        })
    }

    /// An empty one, which takes the place of the old one when it is closed.
    pub(super) fn anew(folder: &SessionFolder) -> Result<Self, StoreError> {
        let path = folder.transcript();
        let beside = temp_beside(&path);
        let mut options = private();
        let file = options.write(true).create(true).truncate(true).open(&beside);
        Ok(Self {
            folder: folder.clone(),
            file: BufWriter::new(file.map_err(FileError::at("create", &path))?),
            path,
            beside: Some(beside),
            written: Progress::default(),
            crc: crc32fast::Hasher::new(),
        })
    }

    pub(super) fn apply(&mut self, change: Change) -> Result<(), StoreError> {
        match change {
            Change::None => Ok(()),
            Change::Added(message) => self.add(&message),
            Change::Replaced(messages) => {
                self.clear()?;
                messages.iter().try_for_each(|message| self.add(message))
            }
        }
    }

    /// Begins anew, beside the old one.
    fn clear(&mut self) -> Result<(), StoreError> {
        if self.beside.is_none() {
            // What the old one was given since it was opened is cut when it is next opened, should it stay.
            *self = Self::anew(&self.folder)?;
            return Ok(());
        }
        self.file
            .flush()
            .and_then(|()| cut(self.file.get_mut(), 0))
            .map_err(FileError::at("write", &self.path))?;
        (self.written, self.crc) = (Progress::default(), crc32fast::Hasher::new());
        Ok(())
    }

    fn add(&mut self, message: &Message) -> Result<(), StoreError> {
        let mut line = serde_json::to_string(message)
            .map_err(|source| StoreError::Json { path: self.path.clone(), source })?;
        // A raw line feed can only stand between the tokens of a foreign block, where a blank means the same.
        if line.contains(['\n', '\r']) {
            line = line.replace(['\n', '\r'], " ");
            self.written.respelled = true;
        }
        line.push('\n');
        self.written.transcript_bytes += line.len() as u64;
        self.crc.update(line.as_bytes());
        Ok(self.file.write_all(line.as_bytes()).map_err(FileError::at("write", &self.path))?)
    }

    /// Keeps the old one under another name if it begins with all that the new one holds and goes on: what it holds beyond
    /// may be nowhere else.
    pub(super) fn keep_longer(&mut self) -> Result<(), StoreError> {
        let Some(beside) = &self.beside else { return Ok(()) };
        self.file.flush().map_err(FileError::at("write", &self.path))?;
        if goes_on_after(&self.path, beside).map_err(FileError::at("read", &self.path))? {
            let lost = (1_u32..).map(|number| self.folder.lost_transcript(number));
            if let Some(lost) = lost.into_iter().find(|path| !path.exists()) {
                std::fs::rename(&self.path, &lost).map_err(FileError::at("keep", &self.path))?;
            }
        }
        Ok(())
    }

    /// Gives up one that was made anew.
    pub(super) fn drop_anew(self) -> Result<(), StoreError> {
        let Some(beside) = self.beside else { return Ok(()) };
        Ok(std::fs::remove_file(beside).map_err(FileError::at("write", &self.path))?)
    }

    /// Writes what is left of it and tells what it is. Not synced: one that a power failure took does not fit its checksum
    /// any more and is made again from the journal.
    pub(super) fn close(mut self) -> Result<Progress, StoreError> {
        self.file.flush().map_err(FileError::at("write", &self.path))?;
        if let Some(beside) = &self.beside {
            metadata::forget_progress(&self.folder)?;
            std::fs::rename(beside, &self.path).map_err(FileError::at("replace", &self.path))?;
        }
        Ok(Progress { transcript_crc: self.crc.finalize(), ..self.written })
    }
}

/// Whether a file begins with the whole of another one and is longer.
fn goes_on_after(path: &Path, beginning: &Path) -> io::Result<bool> {
    let mut longer = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let bytes = std::fs::metadata(beginning)?.len();
    if longer.metadata()?.len() <= bytes {
        return Ok(false);
    }
    let beginning = std::fs::read(beginning)?;
    let mut same = vec![0; beginning.len()];
    longer.read_exact(&mut same)?;
    Ok(same == beginning)
}

fn cut(file: &mut File, bytes: u64) -> io::Result<()> {
    if file.metadata()?.len() != bytes {
        file.set_len(bytes)?;
    }
    file.seek(SeekFrom::Start(bytes)).map(|_| ())
}
