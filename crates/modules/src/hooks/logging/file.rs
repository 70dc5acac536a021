//! The file of a log: opened for its owner alone, added to in whole lines, put aside when it is full.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::hooks::place::{private_dir, private_file};

/// Whether other sessions write to the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    Own,
    Shared,
}

/// A log on disk. Blocking: use it away from the turn.
pub(super) struct LogFile {
    path: PathBuf,
    sharing: Sharing,
    max_bytes: u64,
    max_files: u32,
    open: Option<Opened>,
}

struct Opened {
    file: File,
    size: u64,
    // After a crash or a full disk the last line may lack its end; the next one must not be glued to it.
    torn: bool,
    unsynced: bool,
}

impl LogFile {
    pub(super) fn new(path: PathBuf, sharing: Sharing, max_bytes: u64, max_files: u32) -> Self {
        Self { path, sharing, max_bytes, max_files: max_files.max(1), open: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The same, open, so that a folder that cannot be written to is known at once.
    pub(super) fn opened(mut self) -> io::Result<Self> {
        self.open()?;
        Ok(self)
    }

    /// Adds lines; how many were not written, and why, if that is not none.
    pub(super) fn append(&mut self, lines: &[Vec<u8>]) -> Result<(), (usize, io::Error)> {
        let lock = match self.sharing {
            Sharing::Own => None,
            Sharing::Shared => {
                // Another process may have put the file aside meanwhile.
                self.open = None;
                Some(self.lock().map_err(|error| (lines.len(), error))?)
            }
        };
        let mut written = 0;
        while let Some(rest) = lines.get(written..).filter(|rest| !rest.is_empty()) {
            match self.append_some(rest) {
                Ok(count) => written += count,
                Err(error) => {
                    self.open = None;
                    return Err((rest.len(), error));
                }
            }
        }
        drop(lock);
        Ok(())
    }

    /// Makes what was written durable.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let Some(open) = self.open.as_mut().filter(|open| open.unsynced) {
            open.file.sync_data()?;
            open.unsynced = false;
        }
        Ok(())
    }

    /// Adds as many lines as the file has room for, at least one.
    fn append_some(&mut self, lines: &[Vec<u8>]) -> io::Result<usize> {
        let max_bytes = self.max_bytes;
        let first = lines.first().map_or(0, Vec::len);
        if self.open()?.size > 0 && self.open()?.size + length(first) > max_bytes {
            self.put_aside()?;
        }
        let open = self.open()?;
        let mut bytes = if open.torn { vec![b'\n'] } else { Vec::new() };
        let mut count = 0;
        for line in lines {
            if count > 0 && open.size + length(bytes.len() + line.len()) > max_bytes {
                break;
            }
            bytes.extend_from_slice(line);
            count += 1;
        }
        (open.torn, open.unsynced) = (true, true);
        open.file.write_all(&bytes)?;
        open.torn = false;
        open.size += length(bytes.len());
        Ok(count)
    }

    fn open(&mut self) -> io::Result<&mut Opened> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                if let Some(folder) = self.path.parent() {
                    private_dir(folder)?;
                }
                let mut file = private_file().read(true).append(true).create(true).open(&self.path)?;
                let size = file.metadata()?.len();
                let mut last = [b'\n'];
                if size > 0 {
                    file.seek(SeekFrom::End(-1))?;
                    file.read_exact(&mut last)?;
                }
                Opened { file, size, torn: last != [b'\n'], unsynced: false }
            }
        };
        Ok(self.open.insert(open))
    }

    /// `log.jsonl` becomes `log.1.jsonl`, that `log.2.jsonl`, and the oldest goes.
    fn put_aside(&mut self) -> io::Result<()> {
        self.sync()?;
        self.open = None;
        let kept = self.max_files - 1;
        if kept == 0 {
            return std::fs::remove_file(&self.path);
        }
        for number in (1..kept).rev() {
            rename_if_there(&self.numbered(number), &self.numbered(number + 1))?;
        }
        rename_if_there(&self.path, &self.numbered(1))
    }

    fn numbered(&self, number: u32) -> PathBuf {
        self.path.with_extension(format!("{number}.jsonl"))
    }

    fn lock(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            private_dir(folder)?;
        }
        let lock =
            private_file().write(true).create(true).truncate(false).open(self.path.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<u8> {
        format!("{text}\n").into_bytes()
    }

    #[test]
    fn a_full_file_is_put_aside_and_the_oldest_goes() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/log.jsonl");
        let mut log = LogFile::new(path.clone(), Sharing::Own, 8, 3);
        log.append(&["1111", "222", "333", "444444444444", "555"].map(line)).unwrap();
        let read = |name: &str| std::fs::read_to_string(temp.path().join("a").join(name)).ok();
        assert_eq!(read("log.jsonl").unwrap(), "555\n");
        assert_eq!(read("log.1.jsonl").unwrap(), "444444444444\n");
        assert_eq!(read("log.2.jsonl").unwrap(), "222\n333\n");
        assert_eq!(read("log.3.jsonl"), None);
    }

    #[test]
    fn a_torn_last_line_is_ended_before_the_next() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("log.jsonl");
        std::fs::write(&path, "{\"torn").unwrap();
        LogFile::new(path.clone(), Sharing::Own, 100, 2).append(&[line("{}")]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"torn\n{}\n");
    }

    #[test]
    fn two_writers_of_a_shared_log_lose_no_line_over_a_rotation() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let write = |name: &'static str| {
            let mut log = LogFile::new(path.clone(), Sharing::Shared, 300, 100);
            std::thread::spawn(move || {
                for number in 0..100 {
                    log.append(&[line(&format!("{name}{number}"))]).unwrap();
                }
            })
        };
        for writer in [write("a"), write("b")] {
            writer.join().unwrap();
        }
        let texts = std::fs::read_dir(temp.path())
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()));
        let lines: usize = texts.map(|text| text.unwrap().lines().count()).sum();
        assert_eq!(lines, 200);
    }
}
