//! What the index says, read without keeping its text: ten thousand lines are ten megabytes, and a list shows twenty.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use amplifier_protocol::ids::SessionId;
use indexmap::IndexSet;

use super::Head;
use crate::store::Metadata;

/// How much of the file is read at once.
const BUFFER: usize = 128 * 1024;

/// What the index says of all sessions.
#[derive(Default)]
pub(crate) struct Contents {
    /// Kept open: somebody may put another file in its place, and the places below are of this one.
    file: Option<File>,
    sessions: HashMap<Box<str>, Known>,
    folders: IndexSet<Box<str>>,
    lines: usize,
}

/// What it says of one. The last line that tells more than a mark counts, and the last mark.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    pub(super) open: bool,
    /// When something last happened in it, in microseconds.
    pub(crate) at: i64,
    /// Which of [`Contents::folders`] it was started in.
    pub(crate) folder: Option<usize>,
    pub(crate) is_child: bool,
    line: Option<Place>,
}

/// Where a line stands in the file, and how much of it is its head.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    length: usize,
    head: usize,
}

impl Known {
    /// Whether it can be shown as it is.
    pub(crate) fn is_settled(&self) -> bool {
        !self.open && self.line.is_some()
    }
}

impl Contents {
    /// Reads them all. What cannot be read says nothing, and lines that make no sense are passed over.
    pub(super) fn of(path: &Path) -> Self {
        let mut contents = Self::default();
        let Ok(file) = File::open(path) else { return contents };
        let mut reader = BufReader::with_capacity(BUFFER, &file);
        let (mut line, mut offset) = (Vec::new(), 0_u64);
        while let Ok(read @ 1..) = reader.read_until(b'\n', &mut line) {
            contents.add(line.trim_ascii_end(), offset);
            offset += read as u64;
            line.clear();
        }
        contents.file = Some(file);
        contents
    }

    fn add(&mut self, line: &[u8], offset: u64) {
        let mut heads = serde_json::Deserializer::from_slice(line).into_iter::<Head<'_>>();
        let Some(Ok(head)) = heads.next() else { return };
        self.lines += 1;
        // Only the newest is copied: a session has two lines at least.
        let known = match self.sessions.get_mut(&*head.id) {
            Some(known) => known,
            None => self.sessions.entry(head.id.into()).or_default(),
        };
        known.open = head.open;
        let place = Place { offset, length: line.len(), head: heads.byte_offset() };
        if place.head < place.length {
            let folder = head.dir.map(|dir| match self.folders.get_index_of(&*dir) {
                Some(folder) => folder,
                None => self.folders.insert_full(dir.into()).0,
            });
            *known = Known { at: head.at, folder, is_child: head.child, line: Some(place), ..*known };
        }
    }

    pub(crate) fn get(&self, id: &SessionId) -> Option<&Known> {
        self.sessions.get(id.as_str())
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
        serde_json::from_slice(line.get(known.line?.head..)?).ok()
    }

    /// The line that tells of a session, as it stands.
    pub(super) fn line(&self, known: &Known) -> Option<Vec<u8>> {
        let (place, mut file) = (known.line?, self.file.as_ref()?);
        let mut line = vec![0; place.length];
        file.seek(SeekFrom::Start(place.offset)).ok()?;
        file.read_exact(&mut line).ok()?;
        Some(line)
    }
}
