//! A file by its folder, held open, and its name in it. What was decided about a path stays true while it is used:
//! every folder on the way is opened without following links, and a link put there later is refused.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

/// How many names are tried for the file that is written beside the old one.
const NAMES: u32 = 1_000;

/// What to do about folders that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folders {
    /// They must be there.
    Expected,
    /// They are made.
    Made,
}

/// A file's place.
pub(crate) struct Place {
    folder: Dir,
    name: OsString,
}

impl Place {
    /// Goes to a path whose links were all followed before. A link on the way means that somebody changed it since.
    pub(crate) fn reach(real: &Path, folders: Folders) -> Result<Self> {
        let name = real.file_name().ok_or_else(|| Error::new(ErrorKind::IsADirectory, "no file name"))?;
        let parent = real.parent().unwrap_or(real);
        Ok(Self { folder: open_folder(parent, folders)?, name: name.to_owned() })
    }

    /// What is there, if anything. A link is seen as a link.
    pub(crate) fn about(&self) -> Result<Option<Metadata>> {
        match self.folder.symlink_metadata(&self.name) {
            Ok(about) => Ok(Some(about)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the file to read. Never waits, as opening a pipe would.
    pub(crate) fn open(&self) -> Result<File> {
        let mut how = OpenOptions::new();
        how.read(true).follow(FollowSymlinks::No).nonblock(true);
        Ok(self.folder.open_with(&self.name, &how)?.into_std())
    }

    /// The file's bytes, if there are no more than `most` of them.
    pub(crate) fn read(&self, most: u64) -> Result<Vec<u8>> {
        let file = self.open()?;
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
            return Err(Error::new(ErrorKind::FileTooLarge, format!("larger than {most} bytes")));
        }
        Ok(bytes)
    }

    /// Puts bytes in the file's place: whole or not at all, also when the machine stops in between. The mode of what was
    /// there is kept, and its owner where the system lets us.
    pub(crate) fn replace(&self, bytes: &[u8]) -> Result<()> {
        let old = self.about()?;
        if let Some(old) = &old {
            if old.is_dir() {
                return Err(Error::new(ErrorKind::IsADirectory, "Is a directory"));
            }
            if !old.is_file() {
                return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
            }
            // A rename needs no right to the file itself; whoever took that right away meant it.
            if old.permissions().readonly() {
                return Err(Error::new(ErrorKind::PermissionDenied, "the file is read-only"));
            }
        }
        let (mut file, name) = self.beside()?;
        let written = (|| {
            if let Some(old) = &old {
                take_over(&file, old)?;
            }
            file.write_all(bytes)?;
            file.sync_all()?;
            self.folder.rename(&name, &self.folder, &self.name)
        })();
        if written.is_err() {
            // What went wrong first is what counts.
            drop(self.folder.remove_file(&name));
        }
        written?;
        self.settle()
    }

    /// Takes the file away.
    pub(crate) fn remove(&self) -> Result<()> {
        self.folder.remove_file(&self.name)?;
        self.settle()
    }

    /// A new file in the same folder, and its name.
    fn beside(&self) -> Result<(cap_std::fs::File, OsString)> {
        let mut how = OpenOptions::new();
        how.write(true).create_new(true);
        let process = std::process::id();
        for number in 0..NAMES {
            let mut name = OsString::from(".");
            name.push(&self.name);
            name.push(format!(".{process}-{number}.tmp"));
            match self.folder.open_with(&name, &how) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                opened => return Ok((opened?, name)),
            }
        }
        Err(Error::new(ErrorKind::AlreadyExists, "too many unfinished files beside it"))
    }

    /// Makes a rename or removal last.
    fn settle(&self) -> Result<()> {
        // The handle we hold only names the folder; one that can be read can also be synced.
        if cfg!(unix) { self.folder.open(".")?.sync_all() } else { Ok(()) }
    }
}

/// Opens a folder whose links were all followed before.
pub(crate) fn open_folder(real: &Path, folders: Folders) -> Result<Dir> {
    let mut parts = real.components().peekable();
    let mut top = PathBuf::new();
    while let Some(part) = parts.next_if(|part| matches!(part, Component::Prefix(_) | Component::RootDir)) {
        top.push(part);
    }
    let mut folder = Dir::open_ambient_dir(top, ambient_authority())?;
    for part in parts {
        let Component::Normal(name) = part else {
            return Err(Error::new(ErrorKind::InvalidInput, "the path goes back and forth"));
        };
        folder = match folder.open_dir_nofollow(name) {
            Err(error) if error.kind() == ErrorKind::NotFound && folders == Folders::Made => {
                make(&folder, name)?;
                folder.open_dir_nofollow(name)?
            }
            opened => opened?,
        };
    }
    Ok(folder)
}

fn make(folder: &Dir, name: &OsStr) -> Result<()> {
    match folder.create_dir(name) {
        // Somebody else was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn take_over(file: &cap_std::fs::File, old: &Metadata) -> Result<()> {
    #[cfg(unix)]
    {
        use cap_std::fs::MetadataExt;
        // Only root may give files away; for everybody else the new file is their own, as after any editor.
        drop(std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid())));
    }
    file.set_permissions(old.permissions())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn root() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        (place, root)
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_leaves_nothing_beside_it() {
        let (_keep, root) = root();
        let path = root.join("run.sh");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        Place::reach(&path, Folders::Expected).unwrap().replace(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(root.read_dir().unwrap().count(), 1);
    }

    #[test]
    fn folders_are_made_only_when_asked() {
        let (_keep, root) = root();
        let path = root.join("a/b/c.txt");
        assert!(Place::reach(&path, Folders::Expected).is_err());
        Place::reach(&path, Folders::Made).unwrap().replace(b"x").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
    }

    #[test]
    fn a_link_put_in_the_way_after_the_decision_is_refused() {
        let (_keep, root) = root();
        let (_far, outside) = self::root();
        std::fs::write(outside.join("secret"), "s").unwrap();
        symlink(&outside, root.join("folder")).unwrap();
        symlink(outside.join("secret"), root.join("file")).unwrap();
        assert!(Place::reach(&root.join("folder/secret"), Folders::Expected).is_err());
        assert!(Place::reach(&root.join("folder/new/x"), Folders::Made).is_err());
        let file = Place::reach(&root.join("file"), Folders::Expected).unwrap();
        assert!(file.open().is_err() && file.replace(b"x").is_err());
        assert_eq!(std::fs::read(outside.join("secret")).unwrap(), b"s");
    }

    #[test]
    fn a_read_only_file_and_a_folder_are_not_replaced() {
        let (_keep, root) = root();
        std::fs::write(root.join("fixed"), "f").unwrap();
        std::fs::set_permissions(root.join("fixed"), std::fs::Permissions::from_mode(0o444)).unwrap();
        std::fs::create_dir(root.join("folder")).unwrap();
        for name in ["fixed", "folder"] {
            assert!(Place::reach(&root.join(name), Folders::Expected).unwrap().replace(b"x").is_err());
        }
        assert_eq!(root.read_dir().unwrap().count(), 2);
    }
}
