//! Names that were checked once and are then known to be good: module ids, session ids, event names.
//!
//! Each is built by parsing, never from a bare string, and is cheap to clone. This file holds no lists of known
//! names: which modules and events exist is other files' business.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::{ContextV7, Uuid};

use crate::time::Timestamp;

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
    #[error("{what} `{text}` {} {found:?}; {allowed}", if text.starts_with(*found) { "begins with" } else { "holds" })]
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

/// The rules of one kind of name.
pub trait NameKind: 'static {
    /// What such a name is called in messages.
    const WHAT: &'static str;
    /// What such a name may hold, as a sentence part.
    const ALLOWED: &'static str;
    /// Whether a character may stand at this byte of the name.
    fn fits(at: usize, c: char) -> bool;
}

/// A checked name of one kind. Use it through [`ModuleId`], [`SessionId`] and [`EventName`].
pub struct Name<K> {
    text: Text,
    kind: PhantomData<fn() -> K>,
}

/// Names known at compile time cost no allocation; the others are shared.
#[derive(Clone)]
enum Text {
    Static(&'static str),
    Shared(Arc<str>),
}

/// The id of a module, such as `loop-basic` or `tool-bash`.
///
/// Modules outside our tree choose their own, so any text without spaces or path separators is accepted.
pub type ModuleId = Name<ModuleName>;

/// The id of a session: a UUID v7 when we make it, or any file-name-safe text a caller chose.
///
/// It names a folder, so path separators and leading dots are refused at the border.
pub type SessionId = Name<SessionName>;

/// The name of an event, such as `tool:pre`. The set is open: modules emit their own.
pub type EventName = Name<EventNameKind>;

/// The rules of a [`ModuleId`].
pub enum ModuleName {}

/// The rules of a [`SessionId`].
pub enum SessionName {}

/// The rules of an [`EventName`].
pub enum EventNameKind {}

impl NameKind for ModuleName {
    const WHAT: &'static str = "module id";
    const ALLOWED: &'static str = "use letters, digits, `-`, `_` and `.`";

    fn fits(_at: usize, c: char) -> bool {
        !c.is_whitespace() && !c.is_control() && c != '/' && c != '\\'
    }
}

impl NameKind for SessionName {
    const WHAT: &'static str = "session id";
    const ALLOWED: &'static str = "use letters, digits, `-`, `_` and `.`, not starting with a dot";

    fn fits(at: usize, c: char) -> bool {
        c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '@' | '+') || (c == '.' && at > 0)
    }
}

impl NameKind for EventNameKind {
    const WHAT: &'static str = "event name";
    const ALLOWED: &'static str = "use `namespace:action`, lower case";

    fn fits(_at: usize, c: char) -> bool {
        !c.is_whitespace() && !c.is_control() && c != '*'
    }
}

impl<K: NameKind> Name<K> {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        match &self.text {
            Text::Static(text) => text,
            Text::Shared(text) => text,
        }
    }

    /// A name that stands in a program's text. It is not checked here: whoever keeps a list of such names tests it.
    pub const fn fixed(text: &'static str) -> Self {
        Self { text: Text::Static(text), kind: PhantomData }
    }

    fn shared(text: &str) -> Self {
        Self { text: Text::Shared(Arc::from(text)), kind: PhantomData }
    }
}

impl ModuleId {
    /// The Python package a module of this id lives in: `tool-bash` is `amplifier_module_tool_bash`.
    pub fn package(&self) -> String {
        format!("amplifier_module_{}", self.as_str().replace('-', "_"))
    }
}

impl SessionId {
    /// A new id that sorts by the time of creation. Those of the same microsecond have no order.
    pub fn generate(now: Timestamp) -> Self {
        Self::shared(&unique(now).hyphenated().to_string())
    }

    /// The recommended id of a child: the parent's id, a dash, and eight random digits.
    pub fn child(&self) -> Self {
        // Its end is random, whatever the time.
        let random = unique(Timestamp::default()).simple().to_string();
        let suffix = random.get(24..).unwrap_or(&random);
        let parent = self.as_str().get(..MAX_NAME_BYTES - 9).unwrap_or(self.as_str());
        Self::shared(&format!("{parent}-{suffix}"))
    }

    /// The agent that a child's id ends with: `<child>_<agent>`.
    pub fn agent(&self) -> Option<&str> {
        let (child, agent) = self.as_str().rsplit_once('_')?;
        let (_, digits) = child.rsplit_once('-')?;
        let is_child = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_child && !agent.is_empty()).then_some(agent)
    }
}

/// An id that nobody else has. A time before 1970 counts as 1970: there is none by an earlier one.
fn unique(now: Timestamp) -> Uuid {
    let micros = u64::try_from(now.as_micros()).unwrap_or(0);
    let nanos = u32::try_from(micros % 1_000_000 * 1_000).unwrap_or(0);
    let context = ContextV7::new().with_additional_precision();
    Uuid::new_v7(uuid::Timestamp::from_unix(context, micros / 1_000_000, nanos))
}

impl EventName {
    /// The name of an event type. Its constant was checked by the test over the event table.
    pub const fn of<E: crate::event::Event>() -> Self {
        Self::fixed(E::NAME)
    }

    /// The part before the colon: `tool` of `tool:pre`, or the whole name without one.
    pub fn namespace(&self) -> &str {
        self.as_str().split_once(':').map_or(self.as_str(), |(namespace, _)| namespace)
    }
}

impl<K: NameKind> FromStr for Name<K> {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty { what: K::WHAT });
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(NameError::TooLong { what: K::WHAT, bytes: text.len() });
        }
        match text.char_indices().find(|(at, c)| !K::fits(*at, *c)) {
            Some((_, found)) => {
                Err(NameError::Character { what: K::WHAT, text: text.to_owned(), found, allowed: K::ALLOWED })
            }
            None => Ok(Self::shared(text)),
        }
    }
}

impl<K> Clone for Name<K> {
    fn clone(&self) -> Self {
        Self { text: self.text.clone(), kind: PhantomData }
    }
}

impl<K: NameKind> PartialEq for Name<K> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl<K: NameKind> Eq for Name<K> {}

impl<K: NameKind> PartialOrd for Name<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: NameKind> Ord for Name<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl<K: NameKind> Hash for Name<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl<K: NameKind> Borrow<str> for Name<K> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl<K: NameKind> fmt::Display for Name<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<K: NameKind> fmt::Debug for Name<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.as_str())
    }
}

impl<K: NameKind> Serialize for Name<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, K: NameKind> Deserialize<'de> for Name<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl<K: NameKind> JsonSchema for Name<K> {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed(K::WHAT)
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
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
        assert_eq!(SessionId::generate(Timestamp::default()).as_str().len(), 36);
    }

    #[test]
    fn generated_ids_differ_and_sort_by_time() {
        let at = |micros| SessionId::generate(Timestamp::from_micros(micros));
        let now = 1_763_245_489_123_456;
        let first = at(now);
        assert!(first < at(now + 1) && at(now + 1) < at(now + 1_000) && at(-1) < first);
        assert_ne!(first, at(now));
        assert!(first.child().as_str().starts_with(first.as_str()));
    }

    #[test]
    fn the_agent_of_a_child_is_read_off_its_id() {
        let agent = |id: &str| id.parse::<SessionId>().unwrap().agent().map(str::to_owned);
        let child = SessionId::generate(Timestamp::default()).child();
        let below = format!("{child}_code-reviewer-01234567_scout");
        assert_eq!(agent(&format!("{child}_code-reviewer")).as_deref(), Some("code-reviewer"));
        assert_eq!(agent(&below).as_deref(), Some("scout"));
        assert_eq!((agent(child.as_str()), agent("my_session"), agent("a-b_c")), (None, None, None));
    }

    #[test]
    fn the_package_of_a_module_has_underscores() {
        let id: ModuleId = "loop-streaming".parse().unwrap();
        assert_eq!(id.package(), "amplifier_module_loop_streaming");
    }

    #[test]
    fn a_bad_name_is_refused_while_reading_json() {
        assert!(serde_json::from_str::<ModuleId>("\"a b\"").is_err());
        let id: ModuleId = serde_json::from_str("\"tool-bash\"").unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"tool-bash\"");
    }
}
