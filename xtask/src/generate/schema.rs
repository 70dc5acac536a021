//! JSON Schema in words: the fields of an object, the type of a value, and the named shapes they refer to.
//!
//! It reads the schemas our own types derive. It is no validator, and of a keyword it does not know it says nothing.

use std::collections::BTreeMap;

use serde_json::Value;

/// The shapes that schemas refer to by name.
pub(crate) type Shapes = BTreeMap<String, Value>;

/// Adds what stands under `$defs` to the shapes.
pub(crate) fn collect_shapes(schema: &Value, shapes: &mut Shapes) {
    for (name, shape) in schema.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        shapes.entry(name.clone()).or_insert_with(|| shape.clone());
    }
}

/// The description of a schema as paragraphs; empty when it has none.
pub(crate) fn description(schema: &Value) -> String {
    plain_links(schema.get("description").and_then(Value::as_str).unwrap_or("").trim())
}

/// A Markdown table of an object's fields, or a sentence saying that it has none.
pub(crate) fn fields(schema: &Value) -> String {
    let rows = field_rows(schema);
    if rows.is_empty() {
        return "It carries no fields of its own.\n".into();
    }
    format!("| field | type | required | meaning |\n|---|---|---|---|\n{}", rows.concat())
}

fn field_rows(schema: &Value) -> Vec<String> {
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let row = |(name, field): (&String, &Value)| {
        let need = if required.contains(&name.as_str()) { "yes" } else { "no" };
        format!("| `{name}` | {} | {need} | {} |\n", cell(&type_of(field)), cell(&description(field)))
    };
    let mut rows: Vec<_> =
        schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(row).collect();
    for part in list(schema, "allOf") {
        rows.extend(field_rows(part));
    }
    rows
}

/// A named shape: its fields, its values, or its variants.
pub(crate) fn shape(schema: &Value) -> String {
    let variants: Vec<_> = list(schema, "oneOf").chain(list(schema, "anyOf")).collect();
    if schema.get("properties").is_some() && variants.is_empty() {
        return fields(schema);
    }
    if variants.is_empty() {
        return format!("Type: {}\n", type_of(schema));
    }
    let mut text = String::from("One of:\n\n");
    for variant in variants {
        let meaning = description(variant);
        let dash = if meaning.is_empty() { "" } else { ": " };
        text.push_str(&format!("- {}{dash}{}\n", variant_label(variant), one_line(&meaning)));
    }
    if schema.get("properties").is_some() {
        text.push_str(&format!("\nand in every case:\n\n{}", fields(schema)));
    }
    text
}

/// A variant by its tag and fields: `action` = `deny`, with `reason`.
fn variant_label(variant: &Value) -> String {
    let Some(properties) = variant.get("properties").and_then(Value::as_object) else {
        return type_of(variant);
    };
    let tag = |(name, field): (&String, &Value)| {
        field.get("const").map(|value| format!("`{name}` = `{}`", bare(value)))
    };
    let tags: Vec<_> = properties.iter().filter_map(tag).collect();
    let others: Vec<_> = properties
        .iter()
        .filter(|(_, field)| field.get("const").is_none())
        .map(|(name, field)| format!("`{name}` ({})", type_of(field)))
        .collect();
    match (tags.is_empty(), others.is_empty()) {
        (false, false) => format!("{} with {}", tags.join(", "), others.join(", ")),
        (false, true) => tags.join(", "),
        (true, _) => format!("an object with {}", others.join(", ")),
    }
}

/// The type of a value in a few words, with links to named shapes.
pub(crate) fn type_of(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or(name);
        return format!("[{name}](#{})", anchor(name));
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", bare(value));
    }
    let values: Vec<_> = list(schema, "enum").map(|value| format!("`{}`", bare(value))).collect();
    if !values.is_empty() {
        return values.join(" or ");
    }
    let parts = list(schema, "anyOf").chain(list(schema, "oneOf")).chain(list(schema, "allOf"));
    let mut parts: Vec<_> = parts.map(type_of).collect();
    parts.dedup();
    if !parts.is_empty() {
        return parts.join(" or ");
    }
    match schema.get("type") {
        Some(Value::String(kind)) => plain_type(kind, schema),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<_> =
                kinds.iter().filter_map(Value::as_str).map(|kind| plain_type(kind, schema)).collect();
            kinds.join(" or ")
        }
        _ => "any JSON".into(),
    }
}

fn plain_type(kind: &str, schema: &Value) -> String {
    match kind {
        "array" => format!("list of {}", schema.get("items").map_or("any JSON".into(), type_of)),
        "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("map of {}", type_of(values)),
            _ => "object".into(),
        },
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some(format) => format!("string ({format})"),
            None => "string".into(),
        },
        other => other.into(),
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The anchor that Markdown renderers give a heading.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Links between Rust items mean nothing outside rustdoc; the name stays, its brackets go.
fn plain_links(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`")
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_said_in_words() {
        for (schema, words) in [
            (json!(true), "any JSON"),
            (json!({"type": "string"}), "string"),
            (json!({"type": ["string", "null"]}), "string or null"),
            (json!({"type": "array", "items": {"type": "integer"}}), "list of integer"),
            (json!({"type": "object", "additionalProperties": {"type": "number"}}), "map of number"),
            (json!({"type": "object", "additionalProperties": true}), "object"),
            (json!({"$ref": "#/$defs/ToolCall"}), "[ToolCall](#toolcall)"),
            (json!({"anyOf": [{"$ref": "#/$defs/Usage"}, {"type": "null"}]}), "[Usage](#usage) or null"),
            (json!({"enum": ["a", "b"]}), "`a` or `b`"),
            (json!({"const": 1}), "`1`"),
            (json!({"type": "string", "format": "uuid"}), "string (uuid)"),
        ] {
            assert_eq!(type_of(&schema), words, "{schema}");
        }
    }

    #[test]
    fn a_field_table_survives_pipes_and_line_breaks() {
        let schema =
            json!({"properties": {"a": {"type": "string", "description": "one | two\n  [`Three`]"}}});
        assert!(
            fields(&schema).ends_with("| `a` | string | no | one \\| two `Three` |\n"),
            "{}",
            fields(&schema)
        );
    }

    #[test]
    fn a_tagged_shape_lists_its_variants() {
        let schema = json!({"oneOf": [
            {"description": "Stops it.", "properties": {"action": {"const": "deny"}, "reason": {"type": "string"}}},
            {"properties": {"action": {"const": "continue"}}},
            {"const": "word"},
        ]});
        let expected = "One of:\n\n- `action` = `deny` with `reason` (string): Stops it.\n\
                        - `action` = `continue`\n- `word`\n";
        assert_eq!(shape(&schema), expected);
    }
}
