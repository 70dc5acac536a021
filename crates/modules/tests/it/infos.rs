//! What the modules of the table say about themselves is complete.

use std::collections::BTreeSet;

use amplifier_core::contracts::Capability;
use amplifier_modules::MODULES;
use amplifier_protocol::event::EVENTS;
use amplifier_testing::TestSession;
use serde_json::{Value, json};

use crate::stage::with;

/// The shapes of a schema that have fields: its own and those it refers to.
fn shapes(schema: &Value) -> impl Iterator<Item = &Value> {
    let referred = schema["$defs"].as_object().into_iter().flatten().map(|(_, shape)| shape);
    std::iter::once(schema).chain(referred)
}

fn fields(shape: &Value) -> impl Iterator<Item = (&String, &Value)> {
    shape["properties"].as_object().into_iter().flatten()
}

/// Where a field may be null, leaving it out is the same.
fn may_be_null(field: &Value) -> bool {
    let kinds = [&field["type"], &field["anyOf"]].into_iter().flat_map(|kinds| kinds.as_array());
    kinds.flatten().any(|kind| kind == "null" || kind["type"] == "null")
}

#[test]
fn every_module_has_a_summary_of_one_short_line() {
    for module in MODULES {
        let info = module.info();
        let length = info.description.chars().count();
        assert!((10..=100).contains(&length), "{}: {length} characters", info.id);
        assert!(info.description.ends_with('.') && !info.description.contains('\n'), "{}", info.id);
        assert_eq!((info.id, info.kind), (module.id(), module.kind()));
    }
}

#[test]
fn every_config_field_says_what_it_means_and_has_a_default_or_is_required() {
    let mut faults = Vec::new();
    for module in MODULES {
        let info = module.info();
        let schema = info.config_schema.unwrap_or_else(|| panic!("{} tells no config", info.id));
        for shape in shapes(&schema) {
            let required = |name: &str| {
                shape["required"].as_array().is_some_and(|names| names.iter().any(|found| found == name))
            };
            for (name, field) in fields(shape) {
                if field.get("description").and_then(Value::as_str).is_none_or(str::is_empty) {
                    faults.push(format!("{}: `{name}` has no description", info.id));
                }
                if field.get("default").is_none() && !required(name) && !may_be_null(field) {
                    faults.push(format!("{}: `{name}` has no default and is not required", info.id));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_event_is_an_agreed_one_or_says_what_it_carries() {
    for module in MODULES {
        let info = module.info();
        let mut seen = BTreeSet::new();
        for event in info.events {
            assert!(seen.insert(event.name.clone()), "{} names `{}` twice", info.id, event.name);
            assert!(!event.description.is_empty(), "{}: `{}` has no description", info.id, event.name);
            let agreed = EVENTS.iter().any(|kind| kind.name == event.name);
            let Some(schema) = event.schema else {
                assert!(agreed, "{}: `{}` is described nowhere", info.id, event.name);
                continue;
            };
            for (name, field) in shapes(&schema).flat_map(fields) {
                assert!(field["description"].is_string(), "{}: `{}.{name}`", info.id, event.name);
            }
        }
    }
}

#[test]
fn the_defaults_told_are_those_an_empty_config_gives() {
    let schema = |id: &str| {
        let module = MODULES.iter().find(|module| module.id().as_str() == id).unwrap();
        module.info().config_schema.unwrap()
    };
    assert_eq!(schema("tool-echo")["properties"]["max_bytes"]["default"], 100_000);
    assert_eq!(schema("tool-bash")["properties"]["require_approval"]["default"], "risky");
    // Flattened into another config, they are still the window's own.
    assert_eq!(schema("context-persistent")["properties"]["compact_threshold"]["default"], 0.92);
}

#[tokio::test]
async fn every_event_of_a_turn_was_told_by_a_module_that_is_mounted() {
    let folder = tempfile::tempdir().unwrap();
    let skill = folder.path().join(".amplifier/skills/greet");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: greet\ndescription: Says hello.\n---\nSay hello.\n")
        .unwrap();
    let write = json!({"file_path": "a.txt", "content": "text"});
    let calls = [
        ("write_file", write),
        ("read_file", json!({"file_path": "a.txt"})),
        ("load_skill", json!({"skill_name": "greet"})),
        ("no_such_tool", json!({})),
    ];
    let responses: Vec<_> = calls
        .iter()
        .map(|(name, input)| json!({"thinking": "so", "tool_calls": [{"name": name, "arguments": input}]}))
        .chain([json!({"text": "done", "chunks": 2})])
        .collect();
    let modules = [
        ("loop-events", json!({"min_delay_between_calls_ms": 1})),
        ("context-persistent", json!({})),
        ("provider-mock", json!({"responses": responses})),
        ("tool-filesystem", json!({})),
        ("tool-skills", json!({})),
    ];
    let path = folder.path().to_owned();
    let session = with(TestSession::builder(), &modules)
        .await
        .configure(move |builder| builder.capability("session.working_dir", Capability::Value(json!(path))))
        .open()
        .await
        .unwrap();
    session.execute("go").await.unwrap();
    let recorder = session.recorder().clone();
    session.cleanup().await;

    let mounted = |id: &str| modules.iter().any(|(other, _)| *other == id);
    let infos = MODULES.iter().map(|module| module.info()).filter(|info| mounted(info.id.as_str()));
    let told: BTreeSet<_> = infos.flat_map(|info| info.events).map(|event| event.name).collect();
    let of_others = |name: &str| {
        let emitter = EVENTS.iter().find(|kind| kind.name == name).map(|kind| kind.emitter);
        matches!(emitter, Some("kernel" | "application"))
    };
    let heard: BTreeSet<_> = recorder.names().into_iter().filter(|name| !of_others(name)).collect();
    let untold: Vec<_> = heard.difference(&told).collect();
    assert!(untold.is_empty(), "{untold:?}");
    assert!(heard.len() >= 20, "too little happened to mean anything: {heard:?}");
}
