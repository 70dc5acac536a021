//! The file of a conversation: one JSON line a message, only ever appended to.
//!
//! Besides messages there is one other line, `{"cleared": true}`: what stands before it no longer counts. A line that a
//! crash left torn is moved to a file beside it when the file is opened; nothing else is ever taken out. Everything here
//! may wait for the disk.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_protocol::message::{Message, Messages};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When what was written must have reached the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sync {
    /// Before a message counts as stored.
    #[default]
    Message,
    /// When the system likes.
    None,
}

/// One line.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum Line {
    Message(Arc<Message>),
    /// A message, as it is written down; it is read as any other.
    Hidden(Value),
    Cleared {
        cleared: bool,
    },
}

impl Line {
    pub(super) fn cleared() -> Self {
        Self::Cleared { cleared: true }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Cleared {
            cleared: bool,
        }
        if let Ok(message) = serde_json::from_slice(bytes) {
            return Some(Self::Message(Arc::new(message)));
        }
        let cleared: Cleared = serde_json::from_slice(bytes).ok()?;
        Some(Self::Cleared { cleared: cleared.cleared })
    }
}

/// Why the file could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum TranscriptError {
    #[error("cannot {action} `{}`", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is in use by another session; give this one its own `transcript_path`", path.display())]
    InUse { path: PathBuf },
    #[error("`{}` is closed: the session has ended", path.display())]
    Closed { path: PathBuf },
    #[error("a message cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl TranscriptError {
    fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }

    /// The error and its causes in one line.
    pub(super) fn chain(&self) -> String {
        amplifier_core::error::chain(self)
    }
}

/// What opening found.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) messages: Messages,
    pub(super) torn: Option<Torn>,
    /// Lines in the middle that are no messages, counted from 1. They stay in the file.
    pub(super) unreadable: Vec<u64>,
}

/// A torn last line that was moved away.
#[derive(Debug)]
pub(super) struct Torn {
    pub(super) bytes: u64,
    pub(super) saved: PathBuf,
}

pub(super) struct Transcript {
    path: PathBuf,
    // Absent once closed; its lock goes with it.
    file: Option<File>,
    // The end of the last whole line.
    len: u64,
    sync: Sync,
}

impl Transcript {
    /// Opens or makes the file, for this session alone, and reads what it holds.
    pub(super) fn open(path: &Path, sync: Sync) -> Result<(Self, Loaded), TranscriptError> {
        let dir = path.parent().unwrap_or(Path::new("/"));
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(dir).map_err(TranscriptError::at("create folder", dir))?;
        let file = private().read(true).append(true).create(true).open(path);
        let file = file.map_err(TranscriptError::at("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(TranscriptError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(TranscriptError::at("lock", path)(source)),
        }
        sync_dir(dir)?;
        let mut transcript = Self { path: path.to_owned(), file: Some(file), len: 0, sync };
        let loaded = transcript.load()?;
        Ok((transcript, loaded))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file free for others.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    /// Appends lines: all of them or, when that fails, none.
    pub(super) fn append(&mut self, lines: impl Iterator<Item = Line>) -> Result<(), TranscriptError> {
        let mut bytes = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut bytes, &line)?;
            bytes.push(b'\n');
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let path = &self.path;
        let Some(file) = &mut self.file else { return Err(TranscriptError::Closed { path: path.clone() }) };
        let written = file.write_all(&bytes).and_then(|()| match self.sync {
            Sync::Message => file.sync_data(),
            Sync::None => Ok(()),
        });
        if let Err(source) = written {
            // Half a line must not stay before the next one. When even that fails, the next opening mends it.
            file.set_len(self.len).map_err(TranscriptError::at("mend", path))?;
            return Err(TranscriptError::at("write", path)(source));
        }
        self.len += u64::try_from(bytes.len()).unwrap_or(0);
        Ok(())
    }

    fn load(&mut self) -> Result<Loaded, TranscriptError> {
        let path = self.path.clone();
        let Some(file) = &self.file else { return Ok(Loaded::default()) };
        let mut reader = BufReader::new(file);
        let (mut loaded, mut line, mut number) = (Loaded::default(), Vec::new(), 0_u64);
        // A bad line is torn only when nothing follows it; its length is what would be cut then.
        let mut bad = 0;
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(TranscriptError::at("read", &path))?;
            if read == 0 {
                break;
            }
            number += 1;
            if bad > 0 {
                loaded.unreadable.push(number - 1);
                self.len += bad;
                bad = 0;
            }
            let bytes = u64::try_from(read).unwrap_or(0);
            match (line.ends_with(b"\n"), Line::read(&line)) {
                (true, Some(Line::Message(message))) => loaded.messages.push(message),
                (true, Some(Line::Cleared { .. })) => loaded.messages.clear(),
                _ => {
                    bad = bytes;
                    continue;
                }
            }
            self.len += bytes;
        }
        if bad > 0 {
            loaded.torn = Some(self.cut(bad)?);
        }
        Ok(loaded)
    }

    /// Copies a torn line to where it is kept, durably, and only then cuts it.
    fn cut(&self, bytes: u64) -> Result<Torn, TranscriptError> {
        let (path, saved) = (&self.path, beside(&self.path));
        let mut source = File::open(path).map_err(TranscriptError::at("read", path))?;
        let mut keep =
            private().append(true).create(true).open(&saved).map_err(TranscriptError::at("open", &saved))?;
        let copied = source.seek(SeekFrom::Start(self.len)).and_then(|_| io::copy(&mut source, &mut keep));
        let copied = copied.and_then(|_| keep.write_all(b"\n")).and_then(|()| keep.sync_all());
        copied.map_err(TranscriptError::at("write", &saved))?;
        if let Some(dir) = saved.parent() {
            sync_dir(dir)?;
        }
        if let Some(file) = &self.file {
            let cut = file.set_len(self.len).and_then(|()| file.sync_all());
            cut.map_err(TranscriptError::at("repair", path))?;
        }
        Ok(Torn { bytes, saved })
    }
}

/// Where cut bytes are kept.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".torn");
    path.with_file_name(name)
}

/// Options that create files for the owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the names in a folder durable.
fn sync_dir(path: &Path) -> Result<(), TranscriptError> {
    // Only unix lets a folder be opened and synced; elsewhere the file system orders names by itself.
    if cfg!(unix) {
        let synced = File::open(path).and_then(|dir| dir.sync_all());
        synced.map_err(TranscriptError::at("sync folder", path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Line {
        Line::Message(Arc::new(Message::user(text)))
    }

    fn texts(loaded: &Loaded) -> Vec<String> {
        loaded.messages.iter().map(|message| message.content.visible_text().into_owned()).collect()
    }

    fn opened(path: &Path) -> (Transcript, Loaded) {
        Transcript::open(path, Sync::Message).unwrap()
    }

    #[test]
    fn what_is_appended_is_found_again_and_a_cleared_part_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.jsonl");
        let (mut file, loaded) = opened(&path);
        assert!(texts(&loaded).is_empty());
        file.append([said("a"), Line::cleared(), said("b"), said("c")].into_iter()).unwrap();
        drop(file);
        let (_, loaded) = opened(&path);
        assert_eq!(texts(&loaded), ["b", "c"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 4, "nothing is taken out");
    }

    #[test]
    fn a_torn_end_of_any_length_is_moved_beside_and_the_rest_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let (mut file, _) = opened(&path);
        file.append([said("one"), said("two")].into_iter()).unwrap();
        drop(file);
        let whole = std::fs::read(&path).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for end in first + 1..whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            let (mut file, loaded) = opened(&path);
            assert_eq!(texts(&loaded), ["one"], "cut at {end}");
            let torn = loaded.torn.unwrap();
            let saved = std::fs::read(&torn.saved).unwrap();
            assert!(saved.ends_with(&[&whole[first..end], b"\n"].concat()));
            file.append([said("three")].into_iter()).unwrap();
            drop(file);
            assert_eq!(texts(&opened(&path).1), ["one", "three"]);
        }
    }

    #[test]
    fn a_bad_line_in_the_middle_is_named_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let text = "{\"role\":\"user\",\"content\":\"a\"}\n\u{0}\u{0}garbage\n{\"role\":\"user\",\"content\":\"b\"}\n";
        std::fs::write(&path, text).unwrap();
        let (_, loaded) = opened(&path);
        assert_eq!((texts(&loaded), loaded.unreadable), (vec!["a".to_owned(), "b".to_owned()], vec![2]));
        assert!(loaded.torn.is_none());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn two_sessions_cannot_write_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let (mut file, _) = opened(&path);
        assert!(matches!(Transcript::open(&path, Sync::None), Err(TranscriptError::InUse { .. })));
        file.close();
        assert!(Transcript::open(&path, Sync::None).is_ok());
        assert!(matches!(file.append([said("x")].into_iter()), Err(TranscriptError::Closed { .. })));
    }
}
