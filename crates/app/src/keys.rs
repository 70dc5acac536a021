//! Keys of model services that a person has stored: in the keyring of the system, or in a file that only its owner can read.
//! They are looked for when a variable is wanted that the process does not have, and handed to modules under its name.
//!
//! Values are never shown and never part of an error. Which keys there are stands in settings only as `${NAME}`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::env::{self, Environment};
use crate::files::{FileError, OTHER_HOME};
use crate::paths::Home;
use crate::settings::{SettingsError, change_file, read_file};

mod ring;

/// The largest file of keys that is read.
const MOST_BYTES: u64 = 1 << 20;
/// What a new file of keys begins with.
const HEADING: &str = "# Keys in plain text, for their owner alone. `amplifier provider add` writes them.\n";

/// Where a key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// The keyring of the system.
    Keyring,
    /// A file, in plain text.
    File,
}

impl KeyPlace {
    pub fn name(self) -> &'static str {
        match self {
            Self::Keyring => "keyring",
            Self::File => "file",
        }
    }
}

/// What is amiss with the stored keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Others can read them.
    Open(String),
    /// A key, or where they are, cannot be read.
    Unreadable(String),
    /// A name has a key in two places, and one of them is used.
    Twice(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Open(told) | Self::Unreadable(told) | Self::Twice(told)) = self;
        f.write_str(told)
    }
}

/// Why keys cannot be read or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("`{name}` is no name for a variable: capital letters, digits and `_`")]
    Name { name: String },
    #[error("the key is empty")]
    Empty,
    #[error("the key has more than one line")]
    Lines,
    #[error("there is no keyring here: {reason}")]
    NoKeyring { reason: String },
    #[error("the keyring did not answer within {seconds} s")]
    Silent { seconds: u64 },
    #[error("the keyring refused: {reason}")]
    Refused { reason: String },
    #[error("`{}` is no list of names", path.display())]
    Broken {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
}

impl KeysError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoKeyring { .. } | Self::Silent { .. } | Self::Refused { .. } => Some(
                "`--store file` keeps it in a file in plain text; `--key-from-env NAME` keeps nothing at all",
            ),
            Self::Settings(SettingsError::File(error)) => Some(error.cure().unwrap_or(OTHER_HOME)),
            _ => None,
        }
    }
}

/// The stored keys of a home. Nothing is read before something is looked for.
pub struct Keys {
    file: PathBuf,
    /// Which keys the keyring has: nobody asks it for one that it has not.
    names: PathBuf,
    /// Why there is no keyring.
    no_keyring: Option<String>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    kept: Option<Kept>,
    found: BTreeMap<String, String>,
    problems: Vec<Problem>,
}

#[derive(Clone, Default)]
struct Kept {
    file: BTreeMap<String, String>,
    keyring: Vec<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Keys {
    pub fn new(home: &Home, environment: &Environment) -> Self {
        // Without its address the bus of the session is guessed, and somebody else's keyring may be asked.
        let is_linux = cfg!(all(unix, not(target_os = "macos")));
        let no_bus = || environment.get(env::DBUS_SESSION_BUS_ADDRESS).is_none_or(|bus| bus.is_empty());
        let no_keyring =
            (is_linux && no_bus()).then(|| format!("`{}` is not set", env::DBUS_SESSION_BUS_ADDRESS));
        Self { file: home.keys(), names: home.keyring_names(), no_keyring, seen: Mutex::default() }
    }

    /// The file that keeps keys in plain text.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// A key by the name of its variable. What goes wrong is told by [`Keys::problems`].
    pub fn find(&self, name: &str) -> Option<String> {
        let kept = self.kept();
        if let Some(value) = kept.file.get(name) {
            return Some(value.clone());
        }
        if !kept.keyring.iter().any(|known| known == name) {
            return None;
        }
        if let Some(value) = self.seen().found.get(name) {
            return Some(value.clone());
        }
        match self.keyring().and_then(|()| ring::read(name)) {
            Ok(value) => {
                self.seen().found.insert(name.to_owned(), value.clone());
                Some(value)
            }
            Err(error) => {
                let problem =
                    Problem::Unreadable(format!("`{name}` is in the keyring and cannot be read: {error}"));
                let mut seen = self.seen();
                if !seen.problems.contains(&problem) {
                    seen.problems.push(problem);
                }
                None
            }
        }
    }

    /// The keys that nobody needs to be asked for.
    pub(crate) fn values_at_hand(&self) -> Vec<String> {
        let in_file = self.kept().file.into_values();
        in_file.chain(self.seen().found.values().cloned()).collect()
    }

    /// Whether looking for a key may take as long as a person takes.
    pub(crate) fn asks_keyring(&self, name: &str) -> bool {
        self.kept().keyring.iter().any(|known| known == name) && !self.seen().found.contains_key(name)
    }

    /// What went wrong so far.
    pub fn problems(&self) -> Vec<Problem> {
        self.seen().problems.clone()
    }

    /// The names of all keys, and where each is.
    pub fn names(&self) -> Vec<(String, KeyPlace)> {
        let kept = self.kept();
        let in_file = kept.file.into_keys().map(|name| (name, KeyPlace::File));
        in_file.chain(kept.keyring.into_iter().map(|name| (name, KeyPlace::Keyring))).collect()
    }

    /// Whether there is a keyring that answers.
    pub fn keyring(&self) -> Result<(), KeysError> {
        match &self.no_keyring {
            Some(reason) => Err(KeysError::NoKeyring { reason: reason.clone() }),
            None => ring::is_there(),
        }
    }

    /// Stores a key under the name of a variable, and nowhere else: what another place has under that name is an older key,
    /// and goes. Says what could not be taken away there; a key in the file goes before one in the keyring.
    pub fn store(&self, name: &str, value: &str, place: KeyPlace) -> Result<Option<Problem>, KeysError> {
        check_name(name)?;
        let value = value.trim();
        if value.is_empty() {
            return Err(KeysError::Empty);
        }
        if value.contains(['\n', '\r']) {
            return Err(KeysError::Lines);
        }
        let before = self.kept();
        let problem = match place {
            KeyPlace::File => {
                change_file(&self.file, MOST_BYTES, |text| Ok((Some(with(text, name, value)), ())))?;
                let is_in_keyring = before.keyring.iter().any(|known| known == name);
                is_in_keyring.then(|| self.forget_in_keyring(name).err()).flatten().map(|error| {
                    let file = self.file.display();
                    Problem::Twice(format!(
                        "an older key stays in the keyring as `{name}` ({error}); the one in `{file}` goes before it"
                    ))
                })
            }
            KeyPlace::Keyring => {
                self.keyring()?;
                // The name first: a key nobody knows of would stay in the keyring for ever.
                let is_new = !before.keyring.iter().any(|known| known == name);
                self.change_names(|names| {
                    names.retain(|known| known != name);
                    names.push(name.to_owned());
                })?;
                if let Err(error) = ring::write(name, value) {
                    if is_new {
                        self.change_names(|names| names.retain(|known| known != name))?;
                    }
                    return Err(error);
                }
                // Last, so that one of the two is always there.
                if before.file.contains_key(name) {
                    change_file(&self.file, MOST_BYTES, |text| {
                        Ok((text.map(|text| without(&text, name)), ()))
                    })?;
                }
                None
            }
        };
        let mut seen = self.seen();
        seen.kept = None;
        seen.found.remove(name);
        Ok(problem)
    }

    fn forget_in_keyring(&self, name: &str) -> Result<(), KeysError> {
        self.keyring()?;
        ring::delete(name)?;
        self.change_names(|names| names.retain(|known| known != name))
    }

    /// Forgets a key, wherever it is; says where it was.
    pub fn forget(&self, name: &str) -> Result<Option<KeyPlace>, KeysError> {
        let kept = self.kept();
        let mut place = None;
        if kept.file.contains_key(name) {
            change_file(&self.file, MOST_BYTES, |text| Ok((text.map(|text| without(&text, name)), ())))?;
            place = Some(KeyPlace::File);
        }
        if kept.keyring.iter().any(|known| known == name) {
            self.forget_in_keyring(name)?;
            place = Some(KeyPlace::Keyring);
        }
        *self.seen() = Seen::default();
        Ok(place)
    }

    fn change_names(&self, change: impl FnOnce(&mut Vec<String>)) -> Result<(), KeysError> {
        let mut broken = None;
        change_file(&self.names, MOST_BYTES, |text| {
            let names = text.map(|text| serde_json::from_str::<Vec<String>>(&text)).transpose();
            match names.map(Option::unwrap_or_default) {
                Ok(mut names) => {
                    change(&mut names);
                    let text = serde_json::Value::from(names);
                    Ok((Some(format!("{text:#}\n")), ()))
                }
                Err(source) => {
                    broken = Some(source);
                    Ok((None, ()))
                }
            }
        })?;
        match broken {
            Some(source) => Err(KeysError::Broken { path: self.names.clone(), source }),
            None => Ok(()),
        }
    }

    fn kept(&self) -> Kept {
        let mut seen = self.seen();
        if let Some(kept) = &seen.kept {
            return kept.clone();
        }
        let mut kept = Kept::default();
        match read_file(&self.file, MOST_BYTES) {
            Ok(text) => kept.file = lines(&text.unwrap_or_default()),
            Err(error) => seen.problems.push(unreadable(&error)),
        }
        seen.problems.extend(open_to_others(&self.file).map(Problem::Open));
        match read_file(&self.names, MOST_BYTES) {
            Ok(None) => {}
            Ok(Some(text)) => match serde_json::from_str(&text) {
                Ok(names) => kept.keyring = names,
                Err(error) => {
                    let told = format!("`{}` is no list of names: {error}", self.names.display());
                    seen.problems.push(Problem::Unreadable(told));
                }
            },
            Err(error) => seen.problems.push(unreadable(&error)),
        }
        for name in kept.keyring.iter().filter(|name| kept.file.contains_key(*name)) {
            let file = self.file.display();
            seen.problems.push(Problem::Twice(format!(
                "`{name}` is stored in `{file}` and in the keyring: the key in the file is used; storing it again keeps one"
            )));
        }
        seen.kept = Some(kept.clone());
        kept
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<FileError> for KeysError {
    fn from(error: FileError) -> Self {
        Self::Settings(error.into())
    }
}

fn unreadable(error: &SettingsError) -> Problem {
    Problem::Unreadable(amplifier_core::error::chain(error))
}

/// A file of keys is for its owner alone, whoever made it.
#[cfg(unix)]
fn open_to_others(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let about = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mode = about.permissions().mode() & 0o777;
    let shown = path.display();
    (mode & 0o077 != 0)
        .then(|| format!("`{shown}` holds keys and others can read it (mode {mode:o}); `chmod 600` it"))
}

#[cfg(not(unix))]
fn open_to_others(_path: &Path) -> Option<String> {
    None
}

fn check_name(name: &str) -> Result<(), KeysError> {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(());
    }
    Err(KeysError::Name { name: name.to_owned() })
}

/// `NAME=value` lines, as shells and other programs write them.
fn lines(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(line).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn line(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let bare = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    Some((name, bare.unwrap_or(value)))
}

fn with(text: Option<String>, name: &str, value: &str) -> String {
    let mut text = text.map_or_else(|| HEADING.to_owned(), |text| without(&text, name));
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("{name}={value}\n"));
    text
}

fn without(text: &str, name: &str) -> String {
    let others = text.lines().filter(|text| line(text).is_none_or(|(known, _)| known != name));
    others.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(dir: &Path) -> Keys {
        Keys::new(&Home::new(dir), &Environment::Fixed(BTreeMap::new()))
    }

    #[test]
    fn a_key_in_the_file_is_found_by_its_name_and_can_be_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let store = keys(dir.path());
        assert_eq!(store.find("A_KEY"), None);
        store.store("A_KEY", " one \n", KeyPlace::File).unwrap();
        store.store("B_KEY", "two=2", KeyPlace::File).unwrap();
        store.store("A_KEY", "three", KeyPlace::File).unwrap();
        let again = keys(dir.path());
        assert_eq!(
            (again.find("A_KEY").as_deref(), again.find("B_KEY").as_deref()),
            (Some("three"), Some("two=2"))
        );
        assert_eq!(again.forget("A_KEY").unwrap(), Some(KeyPlace::File));
        assert_eq!((again.find("A_KEY"), again.forget("A_KEY").unwrap()), (None, None));
        assert!(again.problems().is_empty(), "{:?}", again.problems());
        let text = std::fs::read_to_string(again.file()).unwrap();
        assert_eq!(text, format!("{HEADING}B_KEY=two=2\n"));
        assert!(!format!("{again:?}").contains("two"));
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_for_its_owner_and_an_open_one_is_told() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        keys(dir.path()).store("A_KEY", "one", KeyPlace::File).unwrap();
        let file = dir.path().join("keys.env");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        let open = keys(dir.path());
        assert_eq!(open.find("A_KEY").as_deref(), Some("one"));
        assert!(
            matches!(open.problems().as_slice(), [Problem::Open(told)] if told.contains("mode 644")),
            "{:?}",
            open.problems()
        );
    }

    #[test]
    fn a_key_that_is_in_two_places_is_told_with_the_one_that_is_used() {
        let dir = tempfile::tempdir().unwrap();
        keys(dir.path()).store("A_KEY", "one", KeyPlace::File).unwrap();
        std::fs::write(Home::new(dir.path()).keyring_names(), "[\"A_KEY\"]").unwrap();
        let twice = keys(dir.path());
        assert_eq!(twice.find("A_KEY").as_deref(), Some("one"));
        let told = twice.problems().iter().map(ToString::to_string).collect::<String>();
        assert!(
            told.contains("`A_KEY` is stored in") && told.contains("the key in the file is used"),
            "{told}"
        );
        // Where no keyring answers, what is in it stays, and goes last.
        let left = twice.store("A_KEY", "two", KeyPlace::File).unwrap();
        assert!(matches!(left, Some(Problem::Twice(_))), "{left:?}");
        assert_eq!(keys(dir.path()).find("A_KEY").as_deref(), Some("two"));
    }

    #[test]
    fn lines_of_other_programs_are_read_too() {
        let read = lines("# A=1\nexport B=\"x y\"\nC = 'z'\n\nnonsense\nD=a=b\n");
        let expected = [("B", "x y"), ("C", "z"), ("D", "a=b")];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = keys(dir.path());
        assert!(matches!(store.store("a key", "x", KeyPlace::File), Err(KeysError::Name { .. })));
        assert!(matches!(store.store("A", " ", KeyPlace::File), Err(KeysError::Empty)));
        assert!(matches!(store.store("A", "x\ny", KeyPlace::File), Err(KeysError::Lines)));
        assert!(!store.file().exists());
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn without_a_session_bus_no_keyring_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let error = keys(dir.path()).store("A", "x", KeyPlace::Keyring).unwrap_err();
        assert!(matches!(error, KeysError::NoKeyring { .. }), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
