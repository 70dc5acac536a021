//! Golden cases: each folder below `tests/cases` holds a bundle and what becomes of it.
//!
//! A case is loaded from its `bundle.md` or `bundle.yaml` (or the file that `case.txt` names, with `strict` on a line of
//! its own for strict mode). `plan.json` is who the bundle is, its plan, the namespaces it knows, its context files,
//! instruction and modes, or the error; `UPDATE=1` rewrites it. `tests/README.md` says which case is which.

use std::fs;
use std::path::{Path, PathBuf};

use amplifier_bundle::bundle::Head;
use amplifier_bundle::disk::Disk;
use amplifier_bundle::error::BundleError;
use amplifier_bundle::explain::replay;
use amplifier_bundle::include::LoadOptions;
use amplifier_bundle::load::{LoadedBundle, load_bundle};
use amplifier_bundle::mode::Mode;
use amplifier_bundle::node::mapping_to_json;
use amplifier_bundle::notice::{Notice, Strictness};
use amplifier_protocol::mount_plan::PlanForm;
use serde_json::{Map, Value, json};

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

#[tokio::test]
async fn every_case_gives_what_its_folder_says() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the person at the keyboard asks for new golden files this way"
    )]
    let update = std::env::var_os("UPDATE").is_some();
    let mut names: Vec<_> = fs::read_dir(cases()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() > 20, "the cases are gone");
    let mut wrong = Vec::new();
    for case in names {
        let found = format!("{}\n", serde_json::to_string_pretty(&run(&case).await).unwrap());
        let expected = fs::read_to_string(case.join("plan.json")).unwrap_or_default();
        if found == expected {
            continue;
        }
        if update {
            fs::write(case.join("plan.json"), found).unwrap();
        } else {
            wrong.push(format!("{}: found\n{found}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn run(case: &Path) -> Value {
    let words = fs::read_to_string(case.join("case.txt")).unwrap_or_default();
    let mut strictness = Strictness::Lenient;
    let mut reference = ".".to_owned();
    for word in words.split_whitespace() {
        match word {
            "strict" => strictness = Strictness::Strict,
            other => reference = other.to_owned(),
        }
    }
    if reference == "." {
        reference = "./".into();
    }
    let options = LoadOptions { strictness, ..LoadOptions::default() };
    let loaded = load_bundle(&Disk::default(), &reference, case, &options).await;
    let answer = match loaded {
        Ok(loaded) => success(&loaded),
        Err(error) => json!({"error": chain(&error), "notices": error_notices(&error)}),
    };
    hide(answer, &case.display().to_string())
}

fn success(loaded: &LoadedBundle) -> Value {
    let plan = loaded.plan.to_json();
    assert_eq!(replay(&loaded.plan.explain()), plan, "the settings alone rebuild the plan");
    if let Ok(typed) = loaded.plan.mount_plan() {
        assert_eq!(
            typed.write(PlanForm::Nested).to_string(),
            plan.to_string(),
            "the plan is in its written form"
        );
    }
    let mut answer = json!({ "head": head(&loaded.composed.head), "plan": plan });
    let namespaces = loaded.composed.namespaces.iter();
    let namespaces: Map<_, _> = namespaces.map(|own| (own.name.clone(), json!(own.dir))).collect();
    if !namespaces.is_empty() {
        answer["namespaces"] = Value::Object(namespaces);
    }
    if !loaded.context.is_empty() {
        let context = loaded.context.iter().map(|file| (file.key.clone(), json!(file.path)));
        answer["context"] = Value::Object(context.collect());
    }
    if let Some(instruction) = &loaded.composed.instruction {
        answer["instruction"] = json!(instruction.text.text);
    }
    if !loaded.modes.is_empty() {
        answer["modes"] = loaded.modes.iter().map(mode).collect();
    }
    if !loaded.notices().is_empty() {
        answer["notices"] = loaded.notices().iter().map(notice).collect();
    }
    answer
}

/// What a file says about itself, as it is spelled.
fn head(head: &Head) -> Value {
    let said = [("name", &head.name), ("version", &head.version), ("description", &head.description)];
    let said = said.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text.as_ref()?.text))));
    Value::Object(said.collect())
}

fn mode(mode: &Mode) -> Value {
    json!({
        "name": mode.name,
        "description": mode.description,
        "advertised": mode.is_advertised,
        "contributes": mapping_to_json(&mode.contributes),
        "extra": mapping_to_json(&mode.extra),
        "instruction": mode.instruction.as_ref().map(|text| text.text.clone()),
    })
}

fn notice(notice: &Notice) -> Value {
    let place = notice.place.as_ref().map(ToString::to_string);
    json!({"code": format!("{:?}", notice.code), "at": place, "message": notice.message, "hint": notice.hint})
}

fn error_notices(error: &BundleError) -> Value {
    match error {
        BundleError::Invalid(notices) => notices.iter().map(notice).collect(),
        BundleError::Include { source, .. } => error_notices(source),
        _ => Value::Null,
    }
}

fn chain(error: &dyn std::error::Error) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(found) = cause {
        texts.push(found.to_string());
        cause = found.source();
    }
    texts
}

/// Replaces the folder of the case, which is another on every machine.
fn hide(value: Value, folder: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(folder, "<case>")),
        Value::Array(items) => items.into_iter().map(|item| hide(item, folder)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, item)| (key, hide(item, folder))).collect(),
        other => other,
    }
}
