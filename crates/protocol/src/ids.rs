//! Names that were checked once and are then known to be good: module ids, session ids, event names.
//!
//! Each is built by parsing, never from a bare string, and is cheap to clone (`Arc<str>`). This file holds no
//! lists of known names: which modules and events exist is other files' business.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest id or name we accept; longer ones are input errors, not names.
pub const MAX_NAME_BYTES: usize = 256;

/// Why a text is not an id or a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The text is empty.
    #[error("{what} is empty")]
    Empty {
        /// Which kind of name was parsed.
        what: &'static str,
    },
    /// The text is longer than [`MAX_NAME_BYTES`].
    #[error("{what} is {bytes} bytes long; at most {MAX_NAME_BYTES} are allowed")]
    TooLong {
        /// Which kind of name was parsed.
        what: &'static str,
        /// How long the text is.
        bytes: usize,
    },
    /// The text holds a character that such a name may not hold.
    #[error("{what} `{text}` holds {found:?}; {allowed}")]
    Character {
        /// Which kind of name was parsed.
        what: &'static str,
        /// The whole text.
        text: String,
        /// The first character that does not belong.
        found: char,
        /// What such a name may hold, as a sentence part.
        allowed: &'static str,
    },
}

fn check(
    what: &'static str,
    allowed: &'static str,
    text: &str,
    fits: fn(char) -> bool,
) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(NameError::TooLong { what, bytes: text.len() });
    }
    match text.chars().find(|c| !fits(*c)) {
        Some(found) => Err(NameError::Character { what, text: text.to_owned(), found, allowed }),
        None => Ok(()),
    }
}

/// The id of a module, such as `loop-basic` or `tool-bash`.
///
/// Any printable text without spaces or path separators is accepted, because modules outside our tree choose their own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ModuleId(Arc<str>);

/// The id of a session: a UUID v7 when we make it, or any file-name-safe text a caller chose.
///
/// It names a folder, so path separators and leading dots are refused at the border.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SessionId(Arc<str>);

/// The name of an event, such as `tool:pre`.
///
/// The set is open: any `namespace:action` text is a name, and so is a bare word, since older emitters use them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct EventName(Arc<str>);

impl ModuleId {
    /// The Python package a module of this id lives in: `tool-bash` is `amplifier_module_tool_bash`.
    pub fn package(&self) -> String {
        format!("amplifier_module_{}", self.0.replace('-', "_"))
    }
}

impl SessionId {
    /// A new id that sorts by time of creation.
    pub fn generate() -> Self {
        Self(Arc::from(uuid::Uuid::now_v7().hyphenated().to_string()))
    }

    /// The recommended id of a child: the parent's id, a dash, and eight random digits.
    pub fn child(&self) -> Self {
        let random = uuid::Uuid::now_v7().simple().to_string();
        let suffix = random.get(24..).unwrap_or(&random);
        let parent = self.0.get(..MAX_NAME_BYTES - 9).unwrap_or(&self.0);
        Self(Arc::from(format!("{parent}-{suffix}")))
    }
}

impl EventName {
    /// The part before the colon: `tool` of `tool:pre`, or the whole name without one.
    pub fn namespace(&self) -> &str {
        self.0.split_once(':').map_or(&*self.0, |(namespace, _)| namespace)
    }
}

impl FromStr for ModuleId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let allowed = "use letters, digits, `-`, `_` and `.`";
        check("module id", allowed, text, |c| {
            !c.is_whitespace() && !c.is_control() && c != '/' && c != '\\'
        })?;
        Ok(Self(Arc::from(text)))
    }
}

impl FromStr for SessionId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let allowed = "use letters, digits, `-`, `_` and `.`, not starting with a dot";
        check("session id", allowed, text, |c| {
            c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@' | '+')
        })?;
        if text.starts_with('.') {
            let text = text.to_owned();
            return Err(NameError::Character { what: "session id", text, found: '.', allowed });
        }
        Ok(Self(Arc::from(text)))
    }
}

impl FromStr for EventName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let allowed = "use `namespace:action`, lower case";
        check("event name", allowed, text, |c| !c.is_whitespace() && !c.is_control() && c != '*')?;
        Ok(Self(Arc::from(text)))
    }
}

/// What the three names share; written out per type because a generic name would hide which one a function takes.
mod shared {
    use super::*;

    impl ModuleId {
        /// The id as text.
        pub fn as_str(&self) -> &str {
            &self.0
        }
    }
    impl SessionId {
        /// The id as text.
        pub fn as_str(&self) -> &str {
            &self.0
        }
    }
    impl EventName {
        /// The name as text.
        pub fn as_str(&self) -> &str {
            &self.0
        }
    }

    impl fmt::Display for ModuleId {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }
    impl fmt::Display for SessionId {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }
    impl fmt::Display for EventName {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    impl fmt::Debug for ModuleId {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "`{}`", self.0)
        }
    }
    impl fmt::Debug for SessionId {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "`{}`", self.0)
        }
    }
    impl fmt::Debug for EventName {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "`{}`", self.0)
        }
    }

    impl TryFrom<String> for ModuleId {
        type Error = NameError;
        fn try_from(text: String) -> Result<Self, NameError> {
            text.parse()
        }
    }
    impl TryFrom<String> for SessionId {
        type Error = NameError;
        fn try_from(text: String) -> Result<Self, NameError> {
            text.parse()
        }
    }
    impl TryFrom<String> for EventName {
        type Error = NameError;
        fn try_from(text: String) -> Result<Self, NameError> {
            text.parse()
        }
    }

    impl From<ModuleId> for String {
        fn from(id: ModuleId) -> Self {
            id.0.as_ref().to_owned()
        }
    }
    impl From<SessionId> for String {
        fn from(id: SessionId) -> Self {
            id.0.as_ref().to_owned()
        }
    }
    impl From<EventName> for String {
        fn from(name: EventName) -> Self {
            name.0.as_ref().to_owned()
        }
    }

    impl Borrow<str> for ModuleId {
        fn borrow(&self) -> &str {
            &self.0
        }
    }
    impl Borrow<str> for EventName {
        fn borrow(&self) -> &str {
            &self.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_never_leaves_its_folder() {
        for bad in ["", "..", ".hidden", "a/b", "a\\b", "a b", "a\nb"] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad:?}");
        }
        assert_eq!(SessionId::generate().as_str().len(), 36);
    }

    #[test]
    fn generated_ids_differ_and_sort_by_time() {
        let first = SessionId::generate();
        let second = SessionId::generate();
        assert!(first < second);
        assert!(first.child().as_str().starts_with(first.as_str()));
    }

    #[test]
    fn the_package_of_a_module_has_underscores() {
        let id: ModuleId = "loop-streaming".parse().unwrap();
        assert_eq!(id.package(), "amplifier_module_loop_streaming");
    }
}
