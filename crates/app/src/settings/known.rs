//! Every key that settings may have: what it holds, which variable sets it, and what it is for. Checking, the list for people
//! and the schema for editors all read this one table.

use std::time::Duration;

use amplifier_bundle::notice::quoted;
use serde_json::{Map, Value, json};

use crate::env;

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An amount of money, not below zero.
    Dollars,
    /// A time, above zero.
    Seconds,
    /// A whole number above zero.
    Count,
    /// A list of texts.
    Texts,
    /// A list of providers.
    Providers,
    /// Texts by name.
    Named,
    /// A source and a config by module.
    Overrides,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The way to it, with dots.
    pub path: &'static str,
    pub shape: Shape,
    /// The variable that sets it for one process.
    pub variable: Option<&'static str>,
    /// What holds when nobody sets it, as it would be written.
    pub usual: Option<&'static str>,
    /// What it is for.
    pub about: &'static str,
}

const fn known(path: &'static str, shape: Shape, about: &'static str) -> Known {
    Known { path, shape, variable: None, usual: None, about }
}

impl Known {
    const fn variable(mut self, name: &'static str) -> Self {
        self.variable = Some(name);
        self
    }

    const fn usual(mut self, value: &'static str) -> Self {
        self.usual = Some(value);
        self
    }
}

/// All keys, in the order in which they are shown.
pub const KEYS: &[Known] = &[
    known(
        "bundle.active",
        Shape::Text,
        "The bundle that is used when none is named: a registered name, a path or an address.",
    )
    .variable(env::AMPLIFIER_BUNDLE),
    known(
        "bundle.app",
        Shape::Texts,
        "Bundles that are laid over every bundle, the last on top. Plan files and profiles stay as they are.",
    ),
    known(
        "bundle.added",
        Shape::Named,
        "Names for bundles, as `sources.bundles`; the place where other programs keep them.",
    ),
    known(
        "config.providers",
        Shape::Providers,
        "Model providers, the first is asked first: `module`, and where wanted `id`, `source` and `config`. They come before those of a bundle; an entry that a bundle has too, by `id` or else `module`, is laid over it. A plan file gets them only when it names none.",
    ),
    known(
        "sources.modules",
        Shape::Named,
        "Where a module comes from, by its id, whatever a bundle says and whatever is built in.",
    ),
    known("sources.bundles", Shape::Named, "Names for bundles, before those of the registry."),
    known(
        "overrides",
        Shape::Overrides,
        "By the id of a module: `source`, which wins over `sources.modules`, and `config`, which is laid over what a bundle says.",
    ),
    known(
        "prefer",
        Shape::Choice(&["native", "source"]),
        "Which implementation of a standard module is taken when a bundle names a source for it too: the built-in one, or the one from the source.",
    )
    .variable(env::AMPLIFIER_PREFER)
    .usual("native"),
    known(
        "approve",
        Shape::Choice(&["ask", "all", "safe", "none"]),
        "What tools may do without a question: `ask` asks, `all` allows, `safe` allows what only reads, `none` refuses. Without it: `ask` on a terminal, `none` elsewhere. The files of a project can make it stricter than the user's, never looser.",
    )
    .variable(env::AMPLIFIER_APPROVE),
    known(
        "limits.max_cost_usd",
        Shape::Dollars,
        "What a session may cost, with everything it starts. Where a bundle says less, less counts.",
    )
    .variable(env::AMPLIFIER_MAX_COST_USD),
    known("limits.timeout_seconds", Shape::Seconds, "How long one prompt may take.")
        .variable(env::AMPLIFIER_TIMEOUT_SECONDS),
    known(
        "limits.max_tokens",
        Shape::Count,
        "The most tokens an answer of the first provider may have. Where a bundle says less, less counts.",
    )
    .variable(env::AMPLIFIER_MAX_TOKENS),
    known("ui.color", Shape::Choice(&["auto", "always", "never"]), "Whether what is printed has colours.")
        .variable(env::AMPLIFIER_COLOR)
        .usual("auto"),
    known(
        "ui.thinking",
        Shape::Choice(&["folded", "shown"]),
        "How the chat shows what a model thinks.",
    )
    .variable(env::AMPLIFIER_THINKING)
    .usual("folded"),
];

/// Keys of other programs that read the same files; they mean nothing here, and that is no mistake.
pub const FOREIGN: &[&str] = &["routing", "configurator", "modules", "config.notifications"];

/// The keys of a provider.
pub const PROVIDER_KEYS: [&str; 5] = ["module", "id", "source", "config", "native"];
/// The keys of an override.
pub const OVERRIDE_KEYS: [&str; 2] = ["source", "config"];

/// The key at a path.
pub fn find(path: &str) -> Option<&'static Known> {
    KEYS.iter().find(|known| known.path == path)
}

/// The words that may follow a path, such as `active` after `bundle`; the first words when the path is empty.
pub fn below(path: &str) -> Vec<&'static str> {
    let mut words: Vec<_> = KEYS
        .iter()
        .filter_map(|known| match path {
            "" => Some(known.path),
            path => known.path.strip_prefix(path)?.strip_prefix('.'),
        })
        .filter_map(|rest| rest.split('.').next())
        .collect();
    words.dedup();
    words
}

/// A time as settings spell it, above zero: neither less than can be measured nor more than can be waited for.
pub(super) fn seconds(spelled: &str) -> Option<Duration> {
    let time = Duration::try_from_secs_f64(spelled.parse().ok()?).ok()?;
    (!time.is_zero()).then_some(time)
}

impl Shape {
    /// A value that fits, where one word can.
    pub fn example(self) -> Option<&'static str> {
        match self {
            Self::Choice(words) => words.first().copied(),
            Self::Dollars => Some("0.50"),
            Self::Seconds => Some("600"),
            Self::Count => Some("4096"),
            Self::Text | Self::Texts | Self::Providers | Self::Named | Self::Overrides => None,
        }
    }

    /// What belongs there, in words.
    pub fn words(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Choice(words) => match words.split_last() {
                Some((last, [])) => format!("`{last}`"),
                Some((last, others)) => format!("{} or `{last}`", quoted(others.iter().copied())),
                None => "nothing".to_owned(),
            },
            Self::Dollars => "a number of dollars, 0 or more".to_owned(),
            Self::Seconds => "a number of seconds above 0".to_owned(),
            Self::Count => "a whole number above 0".to_owned(),
            Self::Texts => "a list of texts".to_owned(),
            Self::Providers => "a list of providers".to_owned(),
            Self::Named => "a mapping of texts".to_owned(),
            Self::Overrides => "a mapping of modules".to_owned(),
        }
    }

    fn schema(self) -> Value {
        let config = json!({"type": "object", "description": "What the module is configured with."});
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Choice(words) => json!({"enum": words}),
            Self::Dollars => json!({"type": "number", "minimum": 0}),
            Self::Seconds => json!({"type": "number", "exclusiveMinimum": 0}),
            Self::Count => json!({"type": "integer", "minimum": 1}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Named => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Self::Providers => json!({"type": "array", "items": {
                "type": "object",
                "required": ["module"],
                "additionalProperties": false,
                "properties": {
                    "module": {"type": "string", "description": "The module, such as `provider-anthropic`."},
                    "id": {"type": "string", "description": "The name of this instance, where there are several of one module."},
                    "source": {"type": "string", "description": "Where the module comes from."},
                    "native": {"type": "boolean", "description": "`false` takes the implementation from the source."},
                    "config": config,
                },
            }}),
            Self::Overrides => json!({"type": "object", "additionalProperties": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "source": {"type": "string", "description": "Where the module comes from."},
                    "config": config,
                },
            }}),
        }
    }
}

/// The JSON Schema of a settings file, for editors.
pub fn schema() -> Value {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Amplifier settings",
        "type": "object",
        "properties": {},
    });
    for known in KEYS {
        let mut shape = known.shape.schema();
        if let Value::Object(shape) = &mut shape {
            shape.insert("description".to_owned(), Value::from(known.about));
            if let Some(usual) = known.usual {
                shape.insert("default".to_owned(), Value::from(usual));
            }
        }
        let mut at = &mut root;
        let mut words = known.path.split('.').peekable();
        while let Some(word) = words.next() {
            let is_last = words.peek().is_none();
            let Value::Object(section) = at else { break };
            let properties = section.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(properties) = properties else { break };
            let new = if is_last { shape.clone() } else { json!({"type": "object", "properties": {}}) };
            at = properties.entry(word).or_insert(new);
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_stands_once_and_its_usual_value_fits() {
        for (at, known) in KEYS.iter().enumerate() {
            assert!(KEYS.iter().skip(at + 1).all(|other| other.path != known.path), "{}", known.path);
            if let (Some(usual), Shape::Choice(words)) = (known.usual, known.shape) {
                assert!(words.contains(&usual), "{}", known.path);
            }
        }
        assert_eq!(below("bundle"), ["active", "app", "added"]);
        assert_eq!(
            below(""),
            ["bundle", "config", "sources", "overrides", "prefer", "approve", "limits", "ui"]
        );
    }

    #[test]
    fn the_schema_has_every_key_at_its_place() {
        let schema = schema();
        for known in KEYS {
            let pointer = format!("/properties/{}", known.path.replace('.', "/properties/"));
            let found = schema.pointer(&pointer).unwrap_or_else(|| panic!("{pointer}"));
            assert_eq!(found.get("description"), Some(&json!(known.about)));
        }
    }
}
