//! The published schemas: what we read and write fits them, and mistakes do not. `House` asks for every profile that
//! compiles and for every plan that is made.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_bundle::front_matter;
use amplifier_bundle::origin::SourceFile;
use amplifier_bundle::yaml::{self, YamlLimits};
use serde_json::{Value, json};

use crate::house::profile;
use crate::texts::SEED;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What of a value does not fit a schema.
pub fn misfits(schema: &str, value: &Value) -> Vec<String> {
    let text = fs::read_to_string(root().join(format!("schemas/{schema}.schema.json"))).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The head of a Markdown file, or a whole YAML file, as JSON.
pub fn head(text: &str) -> Value {
    let text = front_matter::without_byte_order_mark(text);
    let yaml = front_matter::split(text).yaml.unwrap_or(text);
    let file = Arc::new(SourceFile::new("/x.yaml", yaml));
    let document = yaml::read(&file, &YamlLimits::default()).unwrap();
    document.node.map_or(Value::Null, |node| node.to_json())
}

#[test]
fn every_plan_of_the_specification_fits() {
    let mut plans = 0;
    for entry in fs::read_dir(root().join("crates/core/tests/plans")).unwrap() {
        let path = entry.unwrap().path();
        let plan = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(misfits("mount-plan", &plan), [""; 0], "{}", path.display());
        plans += 1;
    }
    for example in fs::read_dir(root().join("examples")).unwrap() {
        let path = example.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let plan = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(misfits("mount-plan", &plan), [""; 0], "{}", path.display());
        }
    }
    assert!(plans >= 9, "only {plans} plans");
}

#[test]
fn every_golden_plan_of_a_bundle_fits_and_so_does_the_bundle() {
    let (mut plans, mut bundles) = (0, 0);
    for case in fs::read_dir(root().join("crates/bundle/tests/cases")).unwrap() {
        let case = case.unwrap().path();
        let golden: Value =
            serde_json::from_str(&fs::read_to_string(case.join("plan.json")).unwrap()).unwrap();
        let plan = &golden["plan"];
        // A part of a bundle gives a part of a plan.
        if plan.pointer("/session/orchestrator").is_some() && plan.pointer("/session/context").is_some() {
            assert_eq!(misfits("mount-plan", plan), [""; 0], "{}", case.display());
            plans += 1;
        }
        // One that is read without a word is as it should be.
        let is_clean =
            golden.get("error").is_none() && golden["notices"].as_array().is_none_or(Vec::is_empty);
        let file =
            ["bundle.md", "bundle.yaml"].map(|name| case.join(name)).into_iter().find(|path| path.is_file());
        if let (true, Some(file)) = (is_clean, file) {
            let head = head(&fs::read_to_string(&file).unwrap());
            if head.get("bundle").is_some() {
                assert_eq!(misfits("bundle", &head), [""; 0], "{}", file.display());
                bundles += 1;
            }
        }
    }
    assert!(plans > 10 && bundles > 10, "{plans} plans, {bundles} bundles");
}

#[test]
fn the_profile_of_the_specification_fits_and_mistakes_do_not() {
    assert_eq!(misfits("profile", &head(SEED)), [""; 0]);
    let good = head(&profile("base", ""));
    assert_eq!(misfits("profile", &good), [""; 0]);
    let wrong = |pointer: &str, value: Value| {
        let mut profile = good.clone();
        *profile.pointer_mut(pointer).unwrap() = value;
        assert!(!misfits("profile", &profile).is_empty(), "{pointer} of {profile}");
    };
    wrong("/profile/schema_version", json!(3));
    wrong("/profile/name", json!(null));
    wrong("/profile", json!("base"));
    wrong("/session/orchestrator", json!(7));
    assert!(!misfits("profile", &json!({"session": {}})).is_empty());
}

#[test]
fn every_agent_fits_and_mistakes_do_not() {
    let mut agents = 0;
    let golden = fs::read_dir(root().join("crates/bundle/tests/cases")).unwrap();
    let folders = golden.map(|case| case.unwrap().path().join("agents"));
    for folder in folders.chain([root().join("crates/app/bundles/foundation/agents")]) {
        // What is meant to be wrong stands in a case whose name says so.
        let is_wrong = folder.parent().is_some_and(|case| case.ends_with("agents_access_misspelt"));
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let path = file.unwrap().path();
            let head = head(&fs::read_to_string(&path).unwrap());
            if is_wrong || head.get("meta").is_none() {
                continue;
            }
            assert_eq!(misfits("agent", &head), [""; 0], "{}", path.display());
            agents += 1;
        }
    }
    assert!(agents > 10, "only {agents} agents");
    let whole = "---\nmeta:\n  name: one\n  description: The one.\nmodel_role: [reasoning, general]\nprovider_preferences:\n\
                 - {provider: anthropic, model: m}\ntools:\n- {module: tool-x, source: ./x, config: {a: 1}}\nagents: [a, b]\n---\nBe.\n";
    let good = head(whole);
    assert_eq!(misfits("agent", &good), [""; 0]);
    let wrong = |pointer: &str, value: Value| {
        let mut agent = good.clone();
        *agent.pointer_mut(pointer).unwrap() = value;
        assert!(!misfits("agent", &agent).is_empty(), "{pointer} of {agent}");
    };
    wrong("/agents", json!(42));
    wrong("/agents", json!("nonr"));
    wrong("/tools", json!({"module": "tool-x"}));
    wrong("/tools/0", json!("tool-x"));
    wrong("/tools/0/module", json!(7));
    wrong("/meta", json!("one"));
    wrong("/provider_preferences", json!("anthropic"));
}

#[test]
fn mistakes_in_a_plan_do_not_fit() {
    for wrong in [
        json!({}),
        json!({"session": {"orchestrator": "loop-basic"}}),
        json!({"session": {"orchestrator": {"source": "x"}, "context": "context-simple"}}),
        json!({"session": {"orchestrator": "a", "context": "b"}, "tools": {"module": "tool-x"}}),
        json!({"session": {"orchestrator": "a", "context": "b"}, "tools": [{"module": 7}]}),
        json!({"session": {"orchestrator": "a", "context": "b"}, "providers": [{"module": "p", "config": []}]}),
        json!({"session": {"orchestrator": "a", "context": "b", "injection_size_limit": "many"}}),
    ] {
        assert!(!misfits("mount-plan", &wrong).is_empty(), "{wrong}");
    }
}
