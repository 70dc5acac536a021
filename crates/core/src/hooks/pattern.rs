//! Which events a handler hears: one, a namespace, or all.

use std::fmt;
use std::str::FromStr;

use amplifier_protocol::event::Event;
use amplifier_protocol::ids::{EventName, NameError};

/// `tool:pre`, `tool:*` or `*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventPattern {
    /// One event.
    Exact(EventName),
    /// Every event of a namespace.
    Namespace(String),
    /// Every event.
    All,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no event pattern; use a name (`tool:pre`), a namespace (`tool:*`) or `*`")]
pub struct PatternError {
    text: String,
    #[source]
    cause: Option<NameError>,
}

impl EventPattern {
    /// The pattern of one event type.
    pub fn event<E: Event>() -> Self {
        Self::Exact(EventName::of::<E>())
    }

    /// Whether an event is heard.
    pub fn matches(&self, event: &str) -> bool {
        match self {
            Self::Exact(name) => name.as_str() == event,
            Self::Namespace(namespace) => {
                event.strip_prefix(namespace.as_str()).is_some_and(|rest| rest.starts_with(':'))
            }
            Self::All => true,
        }
    }
}

impl FromStr for EventPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let refuse = |cause| PatternError { text: text.to_owned(), cause };
        if text == "*" {
            return Ok(Self::All);
        }
        match text.strip_suffix(":*") {
            Some(namespace) => {
                namespace.parse::<EventName>().map_err(|cause| refuse(Some(cause)))?;
                Ok(Self::Namespace(namespace.to_owned()))
            }
            None => text.parse().map(Self::Exact).map_err(|cause| refuse(Some(cause))),
        }
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => name.fmt(f),
            Self::Namespace(namespace) => write!(f, "{namespace}:*"),
            Self::All => f.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_hears_a_name_a_namespace_or_everything() {
        let hears = |pattern: &str, event: &str| pattern.parse::<EventPattern>().unwrap().matches(event);
        assert!(hears("tool:pre", "tool:pre") && !hears("tool:pre", "tool:post"));
        assert!(hears("tool:*", "tool:post") && !hears("tool:*", "toolbox:post") && !hears("tool:*", "tool"));
        assert!(hears("*", "anything"));
        for bad in ["", "to*l:pre", "*:pre", "tool: pre", ":*"] {
            assert!(bad.parse::<EventPattern>().is_err(), "{bad:?}");
        }
    }
}
