//! `${NAME}` and `${NAME:-default}` in a module's config, filled in from the environment at mount time.
//!
//! Only the copy a module gets is filled in: what is stored or shown keeps the reference, so no secret is written down.

use amplifier_core::loader::{ConfigExpander, ExpandError};
use amplifier_protocol::locate::join;
use serde_json::Value;

use crate::env::Environment;

/// Fills references in from an environment.
pub struct EnvExpander {
    environment: Environment,
}

impl EnvExpander {
    /// References mean variables of this environment.
    pub fn new(environment: Environment) -> Self {
        Self { environment }
    }

    fn walk(&self, value: &mut Value, pointer: &str) -> Result<(), ExpandError> {
        match value {
            Value::String(text) if text.contains("${") => *text = self.fill(text, pointer)?,
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.walk(item, &join(pointer, &at.to_string()))?;
                }
            }
            Value::Object(entries) => {
                for (key, entry) in entries {
                    self.walk(entry, &join(pointer, key))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn fill(&self, text: &str, pointer: &str) -> Result<String, ExpandError> {
        fill(text, |inside| self.look_up(inside, pointer))
    }

    fn look_up(&self, inside: &str, pointer: &str) -> Result<String, ExpandError> {
        let (name, default) = parts(inside);
        // As in a shell, an empty variable takes the default when there is one.
        let set = self.environment.get(name).filter(|value| default.is_none() || !value.is_empty());
        let value = set.or_else(|| default.map(str::to_owned));
        value.ok_or_else(|| ExpandError { reference: format!("${{{name}}}"), pointer: pointer.to_owned() })
    }
}

/// Every reference in a text filled in. `$${` stands for a plain `${`; a `${` that is never closed or names nothing is text.
pub(crate) fn fill<E>(text: &str, look_up: impl Fn(&str) -> Result<String, E>) -> Result<String, E> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let escaped = before.strip_suffix('$');
        let reference = from.find('}').and_then(|end| Some((from.get(2..end)?, from.get(end + 1..)?)));
        match (escaped, reference) {
            (Some(before), _) => {
                filled.push_str(before);
                filled.push_str("${");
                rest = from.get(2..).unwrap_or_default();
            }
            (None, Some((inside, after))) if is_reference(inside) => {
                filled.push_str(before);
                filled.push_str(&look_up(inside)?);
                rest = after;
            }
            (None, _) => {
                filled.push_str(before);
                filled.push_str("${");
                rest = from.get(2..).unwrap_or_default();
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The name and the default of a reference, from what stands between its braces.
pub(crate) fn parts(inside: &str) -> (&str, Option<&str>) {
    match inside.split_once(':') {
        Some((name, default)) => (name, Some(default.strip_prefix('-').unwrap_or(default))),
        None => (inside, None),
    }
}

/// The variables that a text names.
pub(crate) fn references(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(at) = rest.find("${") {
            let (before, from) = rest.split_at(at);
            rest = from.get(2..).unwrap_or_default();
            if before.ends_with('$') {
                continue;
            }
            if let Some(inside) = rest.split_once('}').map(|(inside, _)| inside)
                && is_reference(inside)
            {
                return inside.split(':').next();
            }
        }
        None
    })
}

fn is_reference(inside: &str) -> bool {
    is_variable(inside.split(':').next().unwrap_or_default())
}

/// Whether a reference can name it.
pub(crate) fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}

impl ConfigExpander for EnvExpander {
    fn expand(&self, mut config: Value) -> Result<Value, ExpandError> {
        self.walk(&mut config, "")?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn expand(config: Value) -> Result<Value, ExpandError> {
        let variables =
            [("KEY", "k"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        EnvExpander::new(Environment::Fixed(variables.into())).expand(config)
    }

    #[test]
    fn references_are_filled_in_everywhere_but_in_keys() {
        let config = json!({"${KEY}": ["${KEY}", "a ${KEY}-${KEY} b", 7], "d": {"e": "${NONE:-x y}", "f": "${NONE:z}"}});
        let filled = json!({"${KEY}": ["k", "a k-k b", 7], "d": {"e": "x y", "f": "z"}});
        assert_eq!(expand(config).unwrap(), filled);
    }

    #[test]
    fn an_unset_variable_is_an_error_that_says_where() {
        let error = expand(json!({"a": [{"api_key": "${MISSING}"}]})).unwrap_err();
        assert_eq!((error.reference.as_str(), error.pointer.as_str()), ("${MISSING}", "/a/0/api_key"));
    }

    #[test]
    fn an_empty_variable_takes_the_default_as_in_a_shell() {
        assert_eq!(expand(json!(["${EMPTY}", "${EMPTY:-d}"])).unwrap(), json!(["", "d"]));
    }

    #[test]
    fn what_only_looks_like_a_reference_stays_text() {
        let texts = json!(["$KEY", "${", "${}", "${1X}", "${a b}", "x ${KEY"]);
        assert_eq!(expand(texts.clone()).unwrap(), texts);
        assert_eq!(expand(json!("$${KEY}")).unwrap(), json!("${KEY}"));
    }
}
