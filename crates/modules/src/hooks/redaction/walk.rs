//! Goes through a payload and copies it only where something must be hidden.

use std::borrow::Cow;

use amplifier_core::redact::{names_a_secret, redact, redact_text};
use amplifier_protocol::tool::picture_bytes;
use serde_json::{Map, Value};

use super::{Config, Rule, entropy, personal};

/// How deep a payload is followed; deeper is hidden as a whole.
const MAX_DEPTH: usize = 128;
const TOO_DEEP: &str = "[REDACTED:DEPTH]";

/// Keys whose values are random by nature and needed as they are.
const RANDOM_BY_NATURE: [&str; 9] =
    ["id", "hash", "sha", "sha256", "digest", "commit", "signature", "encrypted_content", "etag"];

/// Applies the rules of a config.
pub(in crate::hooks) struct Redactor {
    secrets: bool,
    personal: bool,
    high_entropy: bool,
    allowed: Vec<Vec<String>>,
}

/// Which rules found something.
#[derive(Default)]
struct Found {
    secrets: bool,
    personal: bool,
}

impl Redactor {
    pub(in crate::hooks) fn new(config: &Config) -> Self {
        let has = |rule| config.rules.contains(&rule);
        Self {
            secrets: has(Rule::Secrets),
            personal: has(Rule::PiiBasic),
            high_entropy: config.high_entropy,
            allowed: config.allowlist.iter().map(|path| steps(path)).collect(),
        }
    }

    /// The rules that another module offers, if it does.
    pub(in crate::hooks) fn of_rules(rules: Value) -> Option<Self> {
        serde_json::from_value::<Config>(rules).ok().map(|config| Self::new(&config))
    }

    /// The data without what the rules hide, and which rules found something; `None` when there was nothing to hide.
    pub(in crate::hooks) fn clean(
        &self,
        data: &Map<String, Value>,
    ) -> Option<(Map<String, Value>, Vec<Rule>)> {
        let (mut found, mut path) = (Found::default(), Vec::new());
        let cleaned = self.map(data, &mut path, &mut found)?;
        let secrets = found.secrets.then_some(Rule::Secrets);
        let personal = found.personal.then_some(Rule::PiiBasic);
        Some((cleaned, secrets.into_iter().chain(personal).collect()))
    }

    fn map(
        &self,
        map: &Map<String, Value>,
        path: &mut Vec<String>,
        found: &mut Found,
    ) -> Option<Map<String, Value>> {
        let mut changed: Option<Map<String, Value>> = None;
        for (key, value) in map {
            // The bytes of a picture are random by nature, and hiding a part would break the whole.
            if key == "data" && picture_bytes(map).is_some() {
                continue;
            }
            path.push(key.clone());
            let cleaned = if self.is_allowed(path) { None } else { self.entry(key, value, path, found) };
            path.pop();
            if let Some(cleaned) = cleaned {
                changed.get_or_insert_with(|| map.clone()).insert(key.clone(), cleaned);
            }
        }
        changed
    }

    fn entry(&self, key: &str, value: &Value, path: &mut Vec<String>, found: &mut Found) -> Option<Value> {
        if !self.secrets || !names_a_secret(key) {
            return self.value(value, path, found);
        }
        // The kernel knows what of such a value may stay: nothing, or a reference to a variable.
        let alone = Value::Object(Map::from_iter([(key.to_owned(), value.clone())]));
        let hidden = redact(&alone).get(key).cloned()?;
        found.secrets |= hidden != *value;
        (hidden != *value).then_some(hidden)
    }

    fn value(&self, value: &Value, path: &mut Vec<String>, found: &mut Found) -> Option<Value> {
        if path.len() > MAX_DEPTH {
            found.secrets = true;
            return Some(Value::from(TOO_DEEP));
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
            Value::String(text) => self.text(text, path, found).map(Value::String),
            Value::Object(map) => self.map(map, path, found).map(Value::Object),
            Value::Array(items) => {
                let mut changed: Option<Vec<Value>> = None;
                for (at, item) in items.iter().enumerate() {
                    path.push(at.to_string());
                    let cleaned = if self.is_allowed(path) { None } else { self.value(item, path, found) };
                    path.pop();
                    if let Some(cleaned) = cleaned
                        && let Some(place) = changed.get_or_insert_with(|| items.clone()).get_mut(at)
                    {
                        *place = cleaned;
                    }
                }
                changed.map(Value::Array)
            }
        }
    }

    fn text(&self, text: &str, path: &[String], found: &mut Found) -> Option<String> {
        let mut clean = Cow::Borrowed(text);
        if self.secrets {
            replace(&mut clean, redact_text, &mut found.secrets);
            if self.high_entropy && !is_random_by_nature(path) {
                replace(&mut clean, entropy::hide, &mut found.secrets);
            }
        }
        if self.personal {
            replace(&mut clean, personal::hide, &mut found.personal);
        }
        match clean {
            Cow::Owned(clean) => Some(clean),
            Cow::Borrowed(_) => None,
        }
    }

    fn is_allowed(&self, path: &[String]) -> bool {
        let fits = |allowed: &Vec<String>| {
            let mut pairs = allowed.iter().zip(path);
            allowed.len() == path.len() && pairs.all(|(wanted, step)| wanted == "*" || wanted == step)
        };
        self.allowed.iter().any(fits)
    }
}

fn replace(text: &mut Cow<'_, str>, hide: impl Fn(&str) -> Cow<'_, str>, found: &mut bool) {
    let hidden = match hide(text) {
        Cow::Owned(hidden) => hidden,
        Cow::Borrowed(_) => return,
    };
    *text = Cow::Owned(hidden);
    *found = true;
}

fn is_random_by_nature(path: &[String]) -> bool {
    // Items of a list are named by the key the list stands under.
    let key = path.iter().rev().find(|step| step.parse::<usize>().is_err());
    key.is_some_and(|key| {
        let last = key.rsplit(['_', '-', '.']).next().unwrap_or(key).to_ascii_lowercase();
        RANDOM_BY_NATURE.contains(&last.as_str()) || RANDOM_BY_NATURE.contains(&key.as_str())
    })
}

/// `a.b[0].c` as `a`, `b`, `0`, `c`.
fn steps(path: &str) -> Vec<String> {
    path.split(['.', '[', ']']).filter(|step| !step.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn clean(config: Config, data: Value) -> Option<Value> {
        let Value::Object(data) = data else { panic!("data is an object") };
        Redactor::new(&config).clean(&data).map(|(data, _)| Value::Object(data))
    }

    #[test]
    fn nothing_to_hide_is_no_change() {
        let data = json!({"id": "toolu_01A09q90qw90lq917835lq9", "usage": {"input_tokens": 5}, "list": [1, null, "x"]});
        assert_eq!(clean(Config::default(), data), None);
    }

    #[test]
    fn the_allowlist_names_places_with_dots_brackets_and_stars() {
        let allowlist = ["a.mail", "list[1]", "all.*"].map(str::to_owned).to_vec();
        let data = json!({
            "a": {"mail": "me@example.org", "other": "me@example.org"},
            "list": ["me@example.org", "me@example.org"], "all": {"x": "me@example.org"}
        });
        assert_eq!(
            clean(Config { allowlist, ..Config::default() }, data),
            Some(json!({
                "a": {"mail": "me@example.org", "other": "[REDACTED:PII]"},
                "list": ["[REDACTED:PII]", "me@example.org"], "all": {"x": "me@example.org"}
            }))
        );
    }

    #[test]
    fn a_payload_deeper_than_any_real_one_is_hidden_where_it_becomes_too_deep() {
        let mut deep = json!("AKIAIOSFODNN7EXAMPLE");
        for _ in 0..400 {
            deep = json!({"a": deep});
        }
        let text = clean(Config::default(), json!({"d": deep})).unwrap().to_string();
        assert!(text.contains("[REDACTED:DEPTH]") && !text.contains("AKIA"));
    }
}
