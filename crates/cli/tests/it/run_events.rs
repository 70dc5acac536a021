//! Every agreed event as a line of `--output jsonl`: samples made from its type, written by its type, read by the published
//! schema.

use amplifier_protocol::event::EVENTS;
use amplifier_protocol::record::{Record, RecordBody};
use amplifier_protocol::run::record_line;
use amplifier_protocol::time::Timestamp;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::desk::read;

/// How much of a shape a sample fills in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    /// What has to be there.
    Least,
    /// Everything.
    Most,
}

/// A value that a schema allows.
fn sample(schema: &Value, root: &Value, fill: Fill) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        // Two shapes are texts of a certain form, which their schemas do not tell.
        match reference.rsplit('/').next() {
            Some("Timestamp") => return json!("2026-01-01T00:00:00.000000+00:00"),
            Some("Usd") => return json!("0.25"),
            _ => {}
        }
        return sample(root.pointer(reference.trim_start_matches('#')).unwrap(), root, fill);
    }
    if let Some(value) =
        schema.get("const").or_else(|| schema.get("default").filter(|value| !value.is_null()))
    {
        return value.clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(choices) = schema[key].as_array() {
            let is_null = |choice: &&Value| choice["type"] == "null";
            let choice = match fill {
                Fill::Most => choices.iter().find(|choice| !is_null(choice)),
                Fill::Least => choices.iter().find(is_null).or(choices.first()),
            };
            return sample(choice.unwrap(), root, fill);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) if fill == Fill::Least && kinds.contains(&json!("null")) => "null",
        Value::Array(kinds) => kinds[0].as_str().unwrap(),
        kind => kind.as_str().unwrap_or("any"),
    };
    match kind {
        "object" => object(schema, root, fill),
        "array" if fill == Fill::Most => json!([sample(&schema["items"], root, fill)]),
        "array" => json!([]),
        "integer" => schema.get("minimum").cloned().unwrap_or(json!(3)),
        "number" => json!(1.5),
        "boolean" => json!(true),
        "null" => Value::Null,
        "string" => json!("some-text"),
        _ => json!({"any": "thing"}),
    }
}

fn object(schema: &Value, root: &Value, fill: Fill) -> Value {
    let needed: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    let mut made = Map::new();
    for (name, shape) in schema["properties"].as_object().into_iter().flatten() {
        if fill == Fill::Most || needed.contains(&&json!(name)) {
            made.insert(name.clone(), sample(shape, root, fill));
        }
    }
    Value::Object(made)
}

fn validator() -> Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/run-jsonl.schema.json");
    jsonschema::validator_for(&serde_json::from_str(&read(path.as_ref())).unwrap()).unwrap()
}

fn line(name: &str, data: Value) -> Value {
    let body = RecordBody::Event { name: name.parse().unwrap(), data };
    record_line(&Record { seq: 1, ts: Timestamp::from_micros(0), turn: 1, body }).unwrap()
}

#[test]
fn a_sample_of_every_event_is_a_valid_line() {
    let validator = validator();
    assert!(EVENTS.len() >= 56, "only {} events", EVENTS.len());
    for kind in EVENTS {
        let schema = (kind.schema)().to_value();
        for fill in [Fill::Least, Fill::Most] {
            let made = sample(&schema, &schema, fill);
            // What the type itself writes counts, not what we made up.
            let data =
                (kind.rewrite)(&made).unwrap_or_else(|error| panic!("{}: {error}: {made:#}", kind.name));
            let line = line(kind.name, data);
            let problems: Vec<_> = validator
                .iter_errors(&line)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(problems.is_empty(), "{}: {problems:#?}\n{line:#}", kind.name);
        }
    }
}

#[test]
fn a_sample_that_lacks_a_key_or_has_a_wrong_one_is_refused() {
    let validator = validator();
    let (mut lacking, mut wrong) = (0, 0);
    for kind in EVENTS {
        let schema = (kind.schema)().to_value();
        let whole = (kind.rewrite)(&sample(&schema, &schema, Fill::Most)).unwrap();
        for needed in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let mut data = whole.clone();
            data.as_object_mut().unwrap().remove(needed);
            assert!(!validator.is_valid(&line(kind.name, data)), "{} without `{needed}`", kind.name);
            lacking += 1;
        }
        for (name, shape) in schema["properties"].as_object().into_iter().flatten() {
            if shape["type"] == "string" {
                let mut data = whole.clone();
                data[name] = json!(7);
                assert!(
                    !validator.is_valid(&line(kind.name, data)),
                    "{} with a number as `{name}`",
                    kind.name
                );
                wrong += 1;
            }
        }
    }
    assert!(lacking > 50 && wrong > 30, "{lacking} and {wrong}");
}
