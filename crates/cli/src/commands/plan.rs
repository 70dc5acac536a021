//! `amplifier plan …`.

use std::path::{Path, PathBuf};

use amplifier_app::choice::{Choice, Chosen};
use amplifier_app::diff::{Difference, differences};
use amplifier_app::library::Access;
use amplifier_app::prepare::{PlanFile, PrepareError, PrepareOptions};
use amplifier_app::{BundleStrictness, plan_hash};
use amplifier_protocol::locate::join;
use amplifier_protocol::mount_plan::{MountPlan, PlanForm};
use serde_json::{Value, json};

use super::{load, profile};
use crate::args::{DiffArgs, ExplainArgs, Form, HashArgs, PlanChoice, PlanFormat, ShowArgs, ValidateArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

/// `amplifier plan validate FILE`.
pub fn validate(args: &ValidateArgs) -> Exit {
    let file = match PlanFile::read(&args.file) {
        Ok(file) => file.with_modules_looked_for(),
        // A file that can be read and is not JSON is an invalid plan; a file that cannot be read is a wrong call.
        Err(error @ (PrepareError::Json { .. } | PrepareError::Empty { .. }))
            if args.form() == Form::Json =>
        {
            let check = json!({"name": "json", "passed": false, "message": error.to_string(), "severity": "error", "pointer": ""});
            let summary = "FAILED: 0/1 checks passed (1 error, 0 warnings)";
            render::json(
                &json!({"passed": false, "summary": summary, "errors": [check], "warnings": [], "checks": [check]}),
            );
            return Exit::Failure;
        }
        Err(error) => {
            let usage = load::refuse_plan(&error);
            let is_read = matches!(error, PrepareError::Json { .. } | PrepareError::Empty { .. });
            return if is_read { Exit::Failure } else { usage };
        }
    };
    let validation = &file.validation;
    if args.form() == Form::Json {
        render::json(&placed(&file));
    } else {
        for check in validation.errors().chain(validation.warnings()) {
            render::out(&file.describe(check));
        }
        render::out(&validation.summary());
        for check in file.not_looked_at() {
            render::note(&format!("note: {check}"));
        }
    }
    if validation.passed() { Exit::Success } else { Exit::Failure }
}

/// The report for programs, each failed check with its line and column.
fn placed(file: &PlanFile) -> Value {
    let mut report = file.validation.to_json();
    let sections = [
        ("errors", file.validation.errors().collect::<Vec<_>>()),
        ("warnings", file.validation.warnings().collect()),
        ("checks", file.validation.checks.iter().collect()),
    ];
    for (section, checks) in sections {
        let Some(entries) = report.get_mut(section).and_then(Value::as_array_mut) else { continue };
        for (entry, check) in entries.iter_mut().zip(checks) {
            if let (Value::Object(entry), Some(position)) = (entry, file.position(check)) {
                entry.insert("line".to_owned(), Value::from(position.line));
                entry.insert("column".to_owned(), Value::from(position.column));
            }
        }
    }
    report
}

/// Finds the plan that was chosen and does something with it.
fn with_plan(
    choice: &PlanChoice,
    home: Option<PathBuf>,
    options: PrepareOptions,
    work: impl FnOnce(&Chosen) -> Result<Exit, Exit>,
) -> Exit {
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    load::block_on(async {
        match load::chosen(&load::choice(choice), &access, options).await {
            Ok(chosen) => work(&chosen).unwrap_or_else(|exit| exit),
            Err(exit) => exit,
        }
    })
}

/// `amplifier plan show`.
pub fn show(args: &ShowArgs, home: Option<PathBuf>) -> Exit {
    let strictness = if args.strict { BundleStrictness::Strict } else { BundleStrictness::Lenient };
    let options = PrepareOptions { strictness, ..PrepareOptions::default() };
    with_plan(&args.choice, home, options, |chosen| {
        let form = match args.format {
            PlanFormat::Nested => PlanForm::Nested,
            PlanFormat::String => PlanForm::Strings,
        };
        let plan = load::plan(chosen)?;
        // A plan is JSON; there is no other form for people.
        let print = |plan: &Value| match args.output {
            Form::Text | Form::Json => render::json(plan),
        };
        match chosen {
            // The seeds say how the plan of a profile is written, empty lists and sources included.
            Chosen::Profile(profile) => match profile.written(form) {
                Ok(json) => print(&json),
                Err(fault) => return Err(profile::refuse(&fault)),
            },
            _ => print(&plan.write(form)),
        }
        Ok(Exit::Success)
    })
}

/// `amplifier plan hash`.
pub fn hash(args: &HashArgs, home: Option<PathBuf>) -> Exit {
    with_plan(&args.choice, home, PrepareOptions::default(), |chosen| match plan_hash(&load::plan(chosen)?) {
        Ok(hash) => {
            match args.output {
                Form::Text => render::out(hash.as_str()),
                Form::Json => render::json(&json!({ "hash": hash.as_str() })),
            }
            Ok(Exit::Success)
        }
        Err(error) => {
            render::error(&error, None);
            Err(Exit::Failure)
        }
    })
}

/// `amplifier plan explain [POINTER]`.
pub fn explain(args: &ExplainArgs, home: Option<PathBuf>) -> Exit {
    with_plan(&args.choice, home, PrepareOptions::default(), |chosen| {
        let mut settings = match chosen {
            Chosen::Bundle(bundle) => {
                load::tell(bundle);
                bundle
                    .loaded
                    .plan
                    .explain()
                    .iter()
                    .map(|setting| (setting.to_json(), setting.to_string()))
                    .collect()
            }
            Chosen::Profile(profile) => profile
                .draft()
                .explain()
                .iter()
                .map(|setting| (setting.to_json(), setting.to_string()))
                .collect(),
            Chosen::File(file) => {
                let mut leaves = Vec::new();
                leaves_of(file, file.value(), "", &mut leaves);
                leaves
            }
        };
        let below = format!("{}/", args.pointer);
        settings.retain(|(setting, _)| {
            let pointer = setting.get("pointer").and_then(Value::as_str).unwrap_or_default();
            args.pointer.is_empty() || pointer == args.pointer || pointer.starts_with(&below)
        });
        if settings.is_empty() {
            Remark::error(format!("the plan has nothing at `{}`", args.pointer))
                .hint("`amplifier plan show`, with the same `--bundle`, `--profile` or `--plan`, prints the plan; pointers look like `/tools/0/module`")
                .tell();
            return Err(Exit::Usage);
        }
        match args.output {
            Form::Json => {
                let settings: Vec<_> = settings.into_iter().map(|(setting, _)| setting).collect();
                render::json(&json!({ "settings": settings }));
            }
            Form::Text => settings.iter().for_each(|(_, text)| render::out(text)),
        }
        Ok(Exit::Success)
    })
}

/// The values of a plan file with the places they stand at.
fn leaves_of(file: &PlanFile, value: &Value, pointer: &str, leaves: &mut Vec<(Value, String)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| leaves_of(file, value, &join(pointer, key), leaves));
        }
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().enumerate();
            items.for_each(|(at, item)| leaves_of(file, item, &join(pointer, &at.to_string()), leaves));
        }
        leaf => {
            let place = file.path.display();
            let at = match file.position_of(pointer) {
                Some(position) => format!("{place}:{}:{}", position.line, position.column),
                None => place.to_string(),
            };
            let setting = json!({"pointer": pointer, "value": leaf, "at": at, "overrode": []});
            leaves.push((setting, format!("{pointer} = {leaf}  {at}")));
        }
    }
}

/// `amplifier plan diff A B`.
pub fn diff(args: &DiffArgs, home: Option<PathBuf>) -> Exit {
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    load::block_on(async {
        let (a, b) = match (side(&args.a, &access).await, side(&args.b, &access).await) {
            (Ok(a), Ok(b)) => (a.write(PlanForm::Nested), b.write(PlanForm::Nested)),
            (Err(exit), _) | (_, Err(exit)) => return exit,
        };
        let found = differences(&a, &b);
        match args.output {
            Form::Json => render::json(&json!({ "differences": found })),
            Form::Text => found.iter().for_each(|difference| render::out(&told(difference))),
        }
        if found.is_empty() { Exit::Success } else { Exit::Failure }
    })
}

/// A plan file by its ending, a profile by its prefix, else a bundle.
async fn side(reference: &str, access: &Access) -> Result<MountPlan, Exit> {
    let is_file = Path::new(reference).extension().is_some_and(|extension| extension == "json");
    let choice = match (is_file, reference.strip_prefix("profile:")) {
        (_, Some(id)) => Choice::Profile(id.to_owned()),
        (true, None) => Choice::Plan(reference.into()),
        (false, None) => Choice::Bundle(reference.to_owned()),
    };
    load::plan(&load::chosen(&choice, access, PrepareOptions::default()).await?)
}

fn told(difference: &Difference) -> String {
    match difference {
        Difference::Added { path, value } => format!("+ {path} = {value}"),
        Difference::Removed { path, value } => format!("- {path} = {value}"),
        Difference::Changed { path, from, to } => format!("~ {path}: {from} -> {to}"),
    }
}
