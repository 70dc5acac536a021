//! A JSON Schema as a flat list of keys: the name with everything around it, a type in words, the default, the meaning.
//!
//! It reads the schemas that our own types derive. It is no validator; of a keyword it does not know it says nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How deep keys may lie in keys. Deeper ones are left to the schema.
const DEEPEST: usize = 4;

/// A key of a config or of a tool's input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Key {
    /// The whole name: `grep.max_results`, `rules[].action` in a list, `tools.*.require_approval` in a map.
    pub name: String,
    /// Its type in words.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it must be there.
    pub required: bool,
    /// What holds without it, where that is not nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// What it means.
    pub description: String,
}

/// The keys of an object, in the order its author gave them.
pub fn keys(schema: &Value) -> Vec<Key> {
    let mut reader = Reader { whole: schema, keys: Vec::new() };
    reader.fields(Around { prefix: "", depth: 0 }, schema, None);
    reader.keys
}

struct Reader<'a> {
    whole: &'a Value,
    keys: Vec<Key>,
}

/// Where the fields of an object stand.
#[derive(Clone, Copy)]
struct Around<'a> {
    prefix: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// The fields of an object. `given` is the object's own default, which beats those of its fields.
    fn fields(&mut self, around: Around<'_>, object: &'a Value, given: Option<&Value>) {
        for (name, field) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let target = self.meant(field);
            let default = given.and_then(|given| given.get(name)).or(field.get("default"));
            let inner = self.inner(target).filter(|_| around.depth < DEEPEST);
            let whole_name = format!("{}{name}", around.prefix);
            let described = [field, target].into_iter().find_map(|schema| schema.get("description"));
            self.keys.push(Key {
                kind: self.kind(field),
                required: list(object, "required").any(|required| required == name),
                // The keys inside tell it piece by piece.
                default: default
                    .filter(|value| !(value.is_null() || inner.is_some() && value.is_object()))
                    .cloned(),
                description: described.and_then(Value::as_str).unwrap_or_default().trim().to_owned(),
                name: whole_name.clone(),
            });
            if let Some((joint, inner)) = inner {
                let prefix = format!("{whole_name}{joint}");
                let given = default.filter(|value| joint == "." && value.is_object()).cloned();
                self.fields(Around { prefix: &prefix, depth: around.depth + 1 }, inner, given.as_ref());
            }
        }
    }

    /// The schema behind references and behind "or null".
    fn meant(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..DEEPEST {
            let mut real = list(schema, "anyOf").filter(|part| !is_null(part));
            schema = match (schema.get("$ref").and_then(Value::as_str), real.next(), real.next()) {
                (Some(name), _, _) => match self.named(name) {
                    Some(named) => named,
                    None => return schema,
                },
                (None, Some(only), None) => only,
                _ => return schema,
            };
        }
        schema
    }

    fn named(&self, reference: &str) -> Option<&'a Value> {
        self.whole.pointer(reference.strip_prefix('#')?)
    }

    /// The object that a field is, is a list of or is a map of, and what joins the names.
    fn inner(&self, schema: &'a Value) -> Option<(&'static str, &'a Value)> {
        let element = |key: &str| schema.get(key).map(|element| self.meant(element));
        let has_fields = |schema: &&'a Value| schema.get("properties").is_some();
        if has_fields(&schema) {
            return Some((".", schema));
        }
        let listed = || element("items").and_then(|item| self.object_of(item)).map(|item| ("[].", item));
        let mapped = || element("additionalProperties").filter(has_fields).map(|value| (".*.", value));
        listed().or_else(mapped)
    }

    /// The object, also where something simpler may stand in its place.
    fn object_of(&self, schema: &'a Value) -> Option<&'a Value> {
        let parts = list(schema, "anyOf").map(|part| self.meant(part));
        std::iter::once(schema).chain(parts).find(|part| part.get("properties").is_some())
    }

    fn kind(&self, schema: &'a Value) -> String {
        let schema = self.meant(schema);
        if let Some(value) = schema.get("const") {
            return bare(value);
        }
        let words: Vec<_> = list(schema, "enum").chain(constants(schema)).map(bare).collect();
        if !words.is_empty() {
            return format!("one of {}", words.join(", "));
        }
        let parts = list(schema, "anyOf").chain(list(schema, "oneOf")).filter(|part| !is_null(part));
        let mut parts: Vec<_> = parts.map(|part| self.kind(part)).collect();
        parts.dedup();
        if !parts.is_empty() {
            return parts.join(" or ");
        }
        let kinds = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind.as_str()],
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect()
            }
            _ => return "anything".to_owned(),
        };
        kinds.into_iter().map(|kind| self.plain(kind, schema)).collect::<Vec<_>>().join(" or ")
    }

    fn plain(&self, kind: &str, schema: &'a Value) -> String {
        let of = |key: &str| schema.get(key).filter(|element| element.is_object());
        match kind {
            "array" => of("items").map_or("list".to_owned(), |items| format!("list of {}", self.kind(items))),
            "object" => of("additionalProperties")
                .map_or("object".to_owned(), |values| format!("map of {}", self.kind(values))),
            other => other.to_owned(),
        }
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The words of an enumeration whose words are described one by one.
fn constants(schema: &Value) -> impl Iterator<Item = &Value> {
    list(schema, "oneOf").filter_map(|part| part.get("const"))
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(schema: &Value) -> Vec<String> {
        let show = |key: Key| {
            let default = key.default.map_or(String::new(), |value| format!(" = {value}"));
            let required = if key.required { " (required)" } else { "" };
            format!("{}: {}{required}{default}", key.name, key.kind)
        };
        keys(schema).into_iter().map(show).collect()
    }

    #[test]
    fn types_are_said_in_words() {
        let schema = json!({
            "properties": {
                "a": {"type": ["string", "null"], "default": null},
                "b": {"type": "array", "items": {"type": "integer"}, "default": [1]},
                "c": {"type": "object", "additionalProperties": {"type": "number"}},
                "d": {"$ref": "#/$defs/Word", "default": "x"},
                "e": {"anyOf": [{"$ref": "#/$defs/Word"}, {"type": "null"}]},
                "f": true,
                "g": {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
            },
            "required": ["f"],
            "$defs": {"Word": {"oneOf": [{"const": "x"}, {"const": "y"}]}},
        });
        assert_eq!(
            shown(&schema),
            [
                "a: string",
                "b: list of integer = [1]",
                "c: map of number",
                "d: one of x, y = \"x\"",
                "e: one of x, y",
                "f: anything (required)",
                "g: boolean or string",
            ]
        );
    }

    #[test]
    fn keys_in_keys_are_told_with_their_whole_name_and_the_default_that_holds_there() {
        let inner = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}});
        let schema = json!({
            "properties": {
                "one": {"$ref": "#/$defs/Inner", "default": {"n": 2}},
                "many": {"type": "array", "items": {"$ref": "#/$defs/Inner"}, "default": []},
                "map": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Inner"}},
            },
            "$defs": {"Inner": inner},
        });
        assert_eq!(
            shown(&schema),
            [
                "one: object",
                "one.n: integer = 2",
                "many: list of object = []",
                "many[].n: integer = 1",
                "map: map of object",
                "map.*.n: integer = 1",
            ]
        );
    }

    #[test]
    fn a_shape_that_holds_itself_comes_to_an_end() {
        let schema = json!({
            "properties": {"tree": {"$ref": "#/$defs/Tree"}, "odd": {"$ref": "#/$defs/Odd"}},
            "$defs": {
                "Tree": {"properties": {"tree": {"$ref": "#/$defs/Tree"}}},
                "Odd": {"$ref": "#/$defs/Odd"},
            },
        });
        assert_eq!(keys(&schema).len(), DEEPEST + 2);
    }
}
