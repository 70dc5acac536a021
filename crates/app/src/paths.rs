//! Where everything lives below the home folder. Pure: it touches no disk and reads no environment; the caller hands in
//! the root that a flag or the environment named.

use std::path::{Path, PathBuf};

use amplifier_protocol::ids::SessionId;
use sha2::{Digest, Sha256};

/// The home folder and the names of everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The user's settings.
    pub fn settings(&self) -> PathBuf {
        self.root.join("settings.yaml")
    }

    /// Keys of model services, in plain text for their owner alone.
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys.env")
    }

    /// The names of the keys that the keyring of the system holds.
    pub fn keyring_names(&self) -> PathBuf {
        self.root.join("keyring.json")
    }

    /// Collections and profiles.
    pub fn share(&self) -> PathBuf {
        self.root.join("share")
    }

    /// The list of collections.
    pub fn collections(&self) -> PathBuf {
        self.root.join("share/collections.yaml")
    }

    /// The profiles, a folder for each collection.
    pub fn profiles(&self) -> PathBuf {
        self.root.join("share/profiles")
    }

    /// Everything that was fetched.
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// Names that stand for bundles, and the bundle in use.
    pub fn registry(&self) -> PathBuf {
        self.root.join("registry.json")
    }

    /// Fetched repositories, a folder for each commit.
    pub fn git_cache(&self) -> PathBuf {
        self.root.join("cache/git")
    }

    /// Other fetched sources, a folder for each content hash.
    pub fn fsspec_cache(&self) -> PathBuf {
        self.root.join("cache/fsspec")
    }

    /// Environments of hosted Python modules, a folder for each set of requirements.
    pub fn python_cache(&self) -> PathBuf {
        self.root.join("cache/python")
    }

    /// The directories and sources that the user trusts.
    pub fn trust(&self) -> PathBuf {
        self.root.join("state/trust.json")
    }

    /// What a person allowed for good, by folder.
    pub fn approvals(&self) -> PathBuf {
        self.root.join("state/approvals.json")
    }

    /// All sessions, a folder for each.
    pub fn sessions(&self) -> PathBuf {
        self.root.join("state/sessions")
    }

    /// What lists show of all sessions, in one file. Rebuilt when it is gone or wrong.
    pub fn session_index(&self) -> PathBuf {
        self.root.join("state/sessions.idx")
    }

    /// Held while the index of sessions is written.
    pub fn session_index_lock(&self) -> PathBuf {
        self.root.join("state/sessions.lock")
    }

    /// What was typed in the chats of one folder.
    pub fn history(&self, folder: &Path) -> PathBuf {
        self.root.join("state/history").join(name_of(folder))
    }

    /// The folder of one session. A checked id cannot lead out of [`Home::sessions`].
    pub fn session(&self, id: &SessionId) -> SessionFolder {
        SessionFolder::new(self.sessions().join(id.as_str()))
    }
}

/// A name for what is kept about a folder elsewhere: readable, and the folder's alone.
fn name_of(folder: &Path) -> String {
    let hash = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let digits: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let words = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let readable: String =
        words.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    format!("{readable}-{digits}")
}

/// The folder of one session and the names of the files in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFolder {
    dir: PathBuf,
}

impl SessionFolder {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The plan the session was opened with, secrets still written as references.
    pub fn mount_plan(&self) -> PathBuf {
        self.dir.join("mount_plan.json")
    }

    /// What the session's system prompt is made from.
    pub fn prompt(&self) -> PathBuf {
        self.dir.join("prompt.json")
    }

    /// What it needed the user's consent for, if anything.
    pub fn consent(&self) -> PathBuf {
        self.dir.join("consent.json")
    }

    /// What exactly its sources were, when it was opened from a locked bundle.
    pub fn lock(&self) -> PathBuf {
        self.dir.join("sources.lock")
    }

    /// The journal: the one truth about the session.
    pub fn events(&self) -> PathBuf {
        self.dir.join("events.jsonl")
    }

    /// Places in the journal, so that opening does not read all of it. Rebuilt when it is gone or wrong.
    pub fn index(&self) -> PathBuf {
        self.dir.join("events.idx")
    }

    /// What repairs cut from the journal's end.
    pub fn torn(&self) -> PathBuf {
        self.dir.join("events.torn")
    }

    /// That its journal was found to be damaged.
    pub fn damage(&self) -> PathBuf {
        self.dir.join("damaged.json")
    }

    /// The conversation, a view of the journal.
    pub fn transcript(&self) -> PathBuf {
        self.dir.join("transcript.jsonl")
    }

    /// An old transcript that held more than the journal gave when it was made anew.
    pub fn lost_transcript(&self, number: u32) -> PathBuf {
        self.dir.join(format!("transcript.lost-{number}.jsonl"))
    }

    /// What lists show, a view of the journal.
    pub fn metadata(&self) -> PathBuf {
        self.dir.join("metadata.json")
    }

    /// Large values of the journal, each named by its hash.
    pub fn blobs(&self) -> PathBuf {
        self.dir.join("blobs")
    }

    /// Who writes the journal now.
    pub fn lease(&self) -> PathBuf {
        self.dir.join("lease")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lives_below_the_state_of_its_home() {
        let folder = Home::new("/h").session(&"s-1".parse().unwrap());
        assert_eq!(folder.events(), Path::new("/h/state/sessions/s-1/events.jsonl"));
        assert_eq!(folder.lease(), Path::new("/h/state/sessions/s-1/lease"));
    }

    #[test]
    fn folders_of_the_same_name_have_histories_of_their_own() {
        let home = Home::new("/h");
        let (one, other) = (home.history(Path::new("/a/my work")), home.history(Path::new("/b/my work")));
        assert!(one.starts_with("/h/state/history") && one != other);
        assert!(one.to_string_lossy().contains("/my-work-"), "{}", one.display());
    }
}
