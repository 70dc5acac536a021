//! What the index says, read without keeping its text: ten thousand lines are ten megabytes, and a list shows twenty.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use bstr::io::BufReadExt;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use serde_json::Deserializer;

use super::{CHILD, EMPTY, OPEN};
use crate::store::Metadata;

/// How much of the file is read at once.
const BUFFER: usize = 128 * 1024;
/// About how long the lines of a session are together.
const USUAL: u64 = 1_024;

/// The folders in which sessions were started, each once.
type Folders = IndexSet<Box<str>, RandomState>;

/// What the index says of all sessions.
#[derive(Default)]
pub(crate) struct Contents {
    /// Kept open: somebody may put another file in its place, and the places below are of this one.
    file: Option<File>,
    sessions: HashMap<Box<str>, Known, RandomState>,
    folders: Folders,
    lines: usize,
}

/// What it says of one. The last line with metadata counts, and the last word on whether it is open.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    /// When it was last used, in microseconds.
    at: i64,
    line: Option<Place>,
    folder: Option<u32>,
    is_open: bool,
    /// Whether nobody said anything in it; the time is the length of its journal then.
    is_empty: bool,
    pub(crate) is_child: bool,
}

/// Where a line stands in the file, and where in it the metadata begins.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    length: u32,
    metadata: u32,
}

impl Known {
    /// Whether it can be shown as it is.
    pub(crate) fn is_settled(&self) -> bool {
        !self.is_open && !self.is_empty && self.line.is_some()
    }

    /// When it was last used; nothing where nobody noted that.
    pub(crate) fn used(&self) -> i64 {
        if self.is_empty { 0 } else { self.at }
    }

    /// How long the journal was when nobody had said anything in it, if that is what is known last.
    pub(crate) fn empty_journal(&self) -> Option<u64> {
        let bytes = (self.is_empty && !self.is_open).then_some(self.at)?;
        u64::try_from(bytes).ok()
    }

    /// What was said of it after its line, or without one.
    pub(super) fn mark(&self) -> Option<(i64, u8)> {
        match (self.is_open, self.is_empty) {
            (true, _) => Some((self.at, OPEN)),
            (false, true) => Some((self.at, EMPTY)),
            (false, false) => None,
        }
    }

    /// Which of [`Contents::folders`] it was started in.
    pub(crate) fn folder(&self) -> Option<usize> {
        self.folder.and_then(|folder| usize::try_from(folder).ok())
    }
}

/// The beginning of a line, and what is behind it.
struct Head<'a> {
    id: &'a str,
    at: i64,
    flags: &'a [u8],
    rest: &'a [u8],
}

fn head(line: &[u8]) -> Option<Head<'_>> {
    let mut words = line.trim_ascii_end().splitn(4, |byte| *byte == b' ');
    let id = std::str::from_utf8(words.next()?).ok()?;
    let at = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    Some(Head { id, at, flags: words.next()?, rest: words.next().unwrap_or_default() })
}

impl Contents {
    /// Reads them all. What cannot be read says nothing, and lines that make no sense are passed over.
    pub(super) fn of(path: &Path) -> Self {
        let mut contents = Self::default();
        let Ok(file) = File::open(path) else { return contents };
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        contents.sessions.reserve(usize::try_from(bytes / USUAL).unwrap_or(0));
        let mut offset = 0_u64;
        // An error ends it: the sessions it does not know of are looked at one by one.
        let read = BufReader::with_capacity(BUFFER, &file).for_byte_line_with_terminator(|line| {
            contents.add(line, offset);
            offset += line.len() as u64;
            Ok(true)
        });
        drop(read);
        contents.file = Some(file);
        contents
    }

    fn add(&mut self, line: &[u8], offset: u64) {
        let Some(head) = head(line) else { return };
        self.lines += 1;
        let known = match self.sessions.get_mut(head.id) {
            Some(known) => known,
            None => self.sessions.entry(head.id.into()).or_default(),
        };
        (known.is_open, known.is_empty) = (head.flags.contains(&OPEN), head.flags.contains(&EMPTY));
        if known.is_empty || known.is_open {
            known.at = head.at;
        }
        let Some((folder, metadata)) = behind(head.rest, &mut self.folders) else { return };
        let before = line.trim_ascii_end().len() - head.rest.len();
        let Ok(length) = u32::try_from(line.len()) else { return };
        let Ok(metadata) = u32::try_from(before + metadata) else { return };
        known.line = Some(Place { offset, length, metadata });
        (known.at, known.folder, known.is_child) = (head.at, folder, head.flags.contains(&CHILD));
    }

    /// A session by the name of its folder.
    pub(crate) fn get(&self, id: &str) -> Option<(&str, &Known)> {
        self.sessions.get_key_value(id).map(|(id, known)| (&**id, known))
    }

    /// The names of all sessions that it says something of.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.sessions.keys().map(|id| &**id)
    }

    /// The folders in which sessions were started.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(|folder| Path::new(&**folder))
    }

    /// How many lines there are.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// The metadata of a session; nothing when it is not there, is broken or was written by another version.
    pub(crate) fn metadata(&self, known: &Known) -> Option<Metadata> {
        let line = self.line(known)?;
        let begin = usize::try_from(known.line?.metadata).ok()?;
        serde_json::from_slice(line.get(begin..)?).ok()
    }

    /// The line that tells of a session, as it stands.
    pub(super) fn line(&self, known: &Known) -> Option<Vec<u8>> {
        let (place, mut file) = (known.line?, self.file.as_ref()?);
        let mut line = vec![0; usize::try_from(place.length).ok()?];
        file.seek(SeekFrom::Start(place.offset)).ok()?;
        file.read_exact(&mut line).ok()?;
        Some(line)
    }
}

/// The folder and where the metadata begins; nothing when there is no metadata.
fn behind(text: &[u8], folders: &mut Folders) -> Option<(Option<u32>, usize)> {
    let mut plain = Deserializer::from_slice(text).into_iter::<Option<&str>>();
    let (folder, end) = match plain.next()? {
        Ok(folder) => (folder.map(|folder| place_of(folder, folders)), plain.byte_offset()),
        // A text with escapes cannot be borrowed.
        Err(_) => {
            let mut escaped = Deserializer::from_slice(text).into_iter::<String>();
            (Some(place_of(&escaped.next()?.ok()?, folders)), escaped.byte_offset())
        }
    };
    (end < text.len()).then(|| (folder.and_then(|folder| u32::try_from(folder).ok()), end))
}

fn place_of(folder: &str, folders: &mut Folders) -> usize {
    folders.get_index_of(folder).unwrap_or_else(|| folders.insert_full(folder.into()).0)
}
