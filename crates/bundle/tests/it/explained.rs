//! `explain`: for every value of a plan the place that set it, and what it overrode.

use amplifier_bundle::explain::{Setting, replay};
use amplifier_bundle::load::LoadedBundle;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::memory::Memory;

fn setting(loaded: &LoadedBundle, pointer: &str) -> Setting {
    let settings = loaded.plan.explain();
    settings
        .into_iter()
        .find(|setting| setting.pointer() == pointer)
        .unwrap_or_else(|| panic!("no {pointer}"))
}

#[tokio::test]
async fn a_value_names_its_place_and_everything_it_overrode() {
    let world = Memory::new(&[
        (
            "/b/bundle.md",
            "---\nincludes: [./mid.yaml]\nproviders:\n  - module: p\n    config:\n      model: top\n---\n",
        ),
        ("/b/mid.yaml", "includes: [./base.yaml]\nproviders:\n- {module: p, config: {model: mid}}\n"),
        (
            "/b/base.yaml",
            "providers:\n- module: p\n  config: {model: base, kept: 1}\nagents: {a: {description: old}}\n",
        ),
    ]);
    let loaded = world.load("/b").await.unwrap();
    let model = setting(&loaded, "/providers/0/config/model");
    assert_eq!(
        model.to_json(),
        json!({
            "pointer": "/providers/0/config/model", "value": "top", "at": "/b/bundle.md:6:14",
            "overrode": [
                {"at": "/b/base.yaml:3:19", "value": "base"},
                {"at": "/b/mid.yaml:3:31", "value": "mid"},
            ],
        })
    );
    assert_eq!(
        model.to_string(),
        "/providers/0/config/model = \"top\"  /b/bundle.md:6:14\n  overrode \"mid\"  /b/mid.yaml:3:31\n  \
         overrode \"base\"  /b/base.yaml:3:19"
    );
    assert_eq!(setting(&loaded, "/providers/0/config/kept").overrode, []);
    assert_eq!(loaded.plan.place_of("/providers/0/config/kept").unwrap().to_string(), "/b/base.yaml:3:31");
    assert_eq!(
        loaded.plan.place_of("/providers/0/config/nothing/here").unwrap().to_string(),
        "/b/base.yaml:3:11"
    );
    assert_eq!(loaded.plan.place_of("/nowhere"), None);
}

#[tokio::test]
async fn replaced_wholes_are_remembered_in_their_parts() {
    let world = Memory::new(&[
        (
            "/b/bundle.yaml",
            "includes: [./base.yaml]\nsession: {metadata: !replace {x: 2}}\nagents: {a: {description: new}}\n",
        ),
        (
            "/b/base.yaml",
            "session: {orchestrator: loop-a, context: c, metadata: {x: 1, y: 1}}\nagents: {a: {description: old}}\n",
        ),
    ]);
    let loaded = world.load("/b").await.unwrap();
    for (pointer, lost, at) in [
        ("/session/metadata/x", json!(1), "/b/base.yaml:1:59"),
        ("/agents/a/description", json!("old"), "/b/base.yaml:2:27"),
    ] {
        let overrode = setting(&loaded, pointer).overrode;
        assert_eq!(overrode.len(), 1, "{pointer}");
        assert_eq!((&overrode[0].value, overrode[0].place.to_string().as_str()), (&lost, at));
    }
    assert_eq!(setting(&loaded, "/session/orchestrator/module").place.to_string(), "/b/base.yaml:1:25");
}

/// Values of a config: small, so that layers collide.
fn config() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    let inner = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec(("[x-z]", inner), 0..3)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    });
    proptest::collection::vec(("[x-z]", inner), 0..4)
        .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>()))
}

fn layer() -> impl Strategy<Value = Value> {
    let entries = || {
        proptest::collection::vec(("[p-r]", config()), 0..3).prop_map(|entries| {
            let mut seen = Map::new();
            for (id, config) in entries {
                seen.insert(id.clone(), json!({"module": id, "config": config}));
            }
            Value::Array(seen.into_iter().map(|(_, entry)| entry).collect())
        })
    };
    (config(), entries(), entries(), config()).prop_map(|(metadata, tools, hooks, spawn)| {
        json!({"session": {"orchestrator": "loop", "context": "ctx", "metadata": metadata},
               "tools": tools, "hooks": hooks, "spawn": spawn})
    })
}

/// The rules again, written the short way: the judge of the real thing.
fn merged(base: Value, over: Value) -> Value {
    match (base, over) {
        (Value::Object(mut base), Value::Object(over)) => {
            for (key, value) in over {
                let value = match base.get(&key) {
                    Some(below) => merged(below.clone(), value),
                    None => value,
                };
                base.insert(key, value);
            }
            Value::Object(base)
        }
        (Value::Array(base), Value::Array(over)) => {
            let mut joined: Vec<Value> = Vec::new();
            for item in base.into_iter().chain(over) {
                if !joined.contains(&item) {
                    joined.push(item);
                }
            }
            Value::Array(joined)
        }
        (_, over) => over,
    }
}

fn merged_lists(base: &Value, over: &Value) -> Value {
    let mut result = base.as_array().cloned().unwrap_or_default();
    for entry in over.as_array().into_iter().flatten() {
        match result.iter_mut().find(|known| known["module"] == entry["module"]) {
            Some(known) => *known = merged(known.clone(), entry.clone()),
            None => result.push(entry.clone()),
        }
    }
    Value::Array(result)
}

/// Leaves out what a plan leaves out.
fn written(mut layer: Value) -> Value {
    let session = layer["session"].as_object_mut().unwrap();
    if session["metadata"] == json!({}) {
        session.remove("metadata");
    }
    session["orchestrator"] = json!({"module": "loop"});
    session["context"] = json!({"module": "ctx"});
    for section in ["tools", "hooks"] {
        for entry in layer[section].as_array_mut().unwrap() {
            if entry["config"] == json!({}) {
                entry.as_object_mut().unwrap().remove("config");
            }
        }
    }
    let plan = layer.as_object_mut().unwrap();
    plan.retain(|_, value| *value != json!([]) && *value != json!({}));
    layer
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn three_layers_merge_by_the_rules_and_every_leaf_is_explained(layers in [layer(), layer(), layer()]) {
        let [base, mid, top] = layers.clone();
        let text = |layer: &Value, include: &str| {
            let mut layer = layer.clone();
            if !include.is_empty() {
                layer["includes"] = json!([include]);
            }
            serde_json::to_string_pretty(&layer).unwrap()
        };
        let world = Memory::new(&[
            ("/b/top.yaml", &text(&top, "./mid.yaml")),
            ("/b/mid.yaml", &text(&mid, "./base.yaml")),
            ("/b/base.yaml", &text(&base, "")),
        ]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let loaded = runtime.block_on(world.load("/b/top.yaml")).unwrap();
        let plan = loaded.plan.to_json();

        let mut expected = base;
        for layer in [mid, top] {
            for section in ["session", "spawn"] {
                expected[section] = merged(expected[section].clone(), layer[section].clone());
            }
            for section in ["tools", "hooks"] {
                expected[section] = merged_lists(&expected[section], &layer[section]);
            }
        }
        prop_assert_eq!(&plan, &written(expected));

        let settings = loaded.plan.explain();
        prop_assert_eq!(replay(&settings).to_string(), plan.to_string());
        for setting in &settings {
            prop_assert_eq!(plan.pointer(&setting.pointer()), Some(&setting.value));
            // What stands at the place it names is the value itself.
            let line = setting.place.file.line(setting.place.line).unwrap();
            let at: String = line.chars().skip(setting.place.column as usize - 1).collect();
            prop_assert_eq!(at.trim_end_matches(','), setting.value.to_string());
            for lost in &setting.overrode {
                prop_assert_ne!(&lost.place, &setting.place);
            }
        }
    }
}
