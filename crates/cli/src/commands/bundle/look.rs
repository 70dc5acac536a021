//! Looking into a bundle: what it is, its tree of includes, and what is wrong with it.

use amplifier_app::library::Access;
use amplifier_app::prepare::{self, BundleFault, PrepareOptions, PreparedBundle};
use amplifier_app::spelling::told;
use amplifier_app::{BundleStrictness, Notice, Severity, Tree, TreeOutcome, causes, tree as tree_of};
use serde_json::{Value, json};

use crate::args::{BundleArgs, Form, TreeArgs, ValidateBundleArgs};
use crate::commands::load;
use crate::exit::Exit;
use crate::render;

/// The lists of a plan that are shown.
const LISTS: [&str; 3] = ["providers", "tools", "hooks"];

/// `amplifier bundle show [REF]`.
pub async fn show(args: &BundleArgs, access: &Access) -> Exit {
    let bundle = load::bundle(args.reference.as_deref(), access, PrepareOptions::default()).await;
    let bundle = match bundle {
        Ok(bundle) => bundle,
        Err(exit) => return exit,
    };
    let about = about(&bundle);
    if args.output == Form::Json {
        render::json(&about);
        return Exit::Success;
    }
    load::tell(&bundle);
    let text = |key: &str| about.get(key).and_then(Value::as_str).map(str::to_owned);
    let version = text("version").map(|version| format!(" {version}")).unwrap_or_default();
    render::out(&format!("{}{version}", bundle.name()));
    if let Some(description) = text("description") {
        render::out(&render::wrapped(&description, 0));
    }
    for (label, key) in [("file", "file"), ("source", "source"), ("lock", "lock")] {
        if let Some(value) = text(key) {
            render::out(&format!("  {label:12}  {value}"));
        }
    }
    for key in ["session", "providers", "tools", "hooks", "agents", "context"] {
        let names: Vec<_> = about.get(key).and_then(Value::as_array).into_iter().flatten().collect();
        let names: Vec<_> = names.into_iter().filter_map(Value::as_str).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        render::out(&render::entry(key, &names, 16));
    }
    if let Some(characters) = about.get("instruction_characters").and_then(Value::as_u64) {
        render::out(&format!("  {:12}  {characters} characters", "instruction"));
    }
    Exit::Success
}

fn about(bundle: &PreparedBundle) -> Value {
    let (head, plan) = (bundle.head(), bundle.loaded.plan.to_json());
    let file = bundle.loaded.graph.files.first();
    let tree = tree_of(&bundle.loaded.graph);
    let ids = |list: &Value| -> Vec<Value> {
        list.as_array().into_iter().flatten().filter_map(|entry| entry.get("module").cloned()).collect()
    };
    let slot = |name: &str| plan.pointer(&format!("/session/{name}/module")).cloned();
    let session: Vec<_> = ["orchestrator", "context"].into_iter().filter_map(slot).collect();
    let agents = plan.get("agents").and_then(Value::as_object);
    let mut about = json!({
        "name": bundle.name(),
        "version": head.version.as_ref().map(|version| &version.text),
        "description": head.description.as_ref().map(|description| &description.text),
        "reference": bundle.reference,
        "file": file.map(|file| told(&file.bundle.home.file)),
        "source": tree.files.first().and_then(|file| file.pinned.as_ref().or(file.source.as_ref())),
        "lock": bundle.locked.as_deref().map(told),
        "session": session,
        "agents": agents.map(|agents| agents.keys().cloned().collect::<Vec<_>>()).unwrap_or_default(),
        "context": bundle.loaded.context.iter().map(|file| file.key.clone()).collect::<Vec<_>>(),
        "instruction_characters": bundle.loaded.composed.instruction.as_ref().map(|text| text.text.text.chars().count()),
        "files": tree.files.len(),
        "notices": bundle.notices().iter().map(as_json).collect::<Vec<_>>(),
    });
    if let Value::Object(about) = &mut about {
        for list in LISTS {
            about.insert(list.to_owned(), plan.get(list).map(ids).unwrap_or_default().into());
        }
    }
    about
}

fn as_json(notice: &Notice) -> Value {
    json!({
        "severity": load::weight(notice.severity).label(),
        "at": notice.place.as_ref().map(ToString::to_string),
        "message": notice.message,
        "hint": notice.hint,
    })
}

/// `amplifier bundle tree [REF]`.
pub async fn tree(args: &TreeArgs, access: &Access) -> Exit {
    let reference = args.bundle.reference.as_deref();
    let bundle = match load::bundle(reference, access, PrepareOptions::default()).await {
        Ok(bundle) => bundle,
        Err(exit) => return exit,
    };
    let tree = tree_of(&bundle.loaded.graph);
    if args.dot {
        render::out(tree.to_dot().trim_end());
    } else if args.bundle.output == Form::Json {
        render::json(&json!(tree));
    } else {
        load::tell(&bundle);
        let mut seen = vec![false; tree.files.len()];
        branch(&tree, 0, &mut String::new(), "", &mut seen);
    }
    Exit::Success
}

/// One file and everything below it. A file that was shown before is named and not shown again.
fn branch(tree: &Tree, at: usize, margin: &mut String, joint: &str, seen: &mut [bool]) {
    let Some(file) = tree.files.get(at) else { return };
    let name = file.name.as_deref().unwrap_or(&file.reference);
    let version = file.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let place = file.pinned.as_ref().or(file.source.as_ref()).unwrap_or(&file.path);
    let hash: String = file.hash.chars().take(12).collect();
    let before = seen.get_mut(at).is_some_and(|seen| std::mem::replace(seen, true));
    if before {
        render::out(&format!("{margin}{joint}{name}{version} (shown above)"));
        return;
    }
    render::out(&format!("{margin}{joint}{name}{version}  {place}  sha256:{hash}"));
    let length = margin.len();
    margin.push_str(match joint {
        "" => "",
        "└── " => "    ",
        _ => "│   ",
    });
    let rail = if file.includes.is_empty() { "    " } else { "│   " };
    for (section, names) in &file.contributes {
        render::out(&format!("{margin}{rail}{section}: {}", names.join(", ")));
    }
    let last = file.includes.len().saturating_sub(1);
    for (index, include) in file.includes.iter().enumerate() {
        let joint = if index == last { "└── " } else { "├── " };
        match include.outcome {
            TreeOutcome::File(to) => branch(tree, to, margin, joint, seen),
            TreeOutcome::Cycle(_) => {
                render::out(&format!("{margin}{joint}{} (circle, skipped)", include.reference))
            }
            TreeOutcome::Failed => {
                render::out(&format!("{margin}{joint}{} (not to be had)", include.reference))
            }
        }
    }
    margin.truncate(length);
}

/// `amplifier bundle validate REF`.
pub async fn validate(args: &ValidateBundleArgs, access: &Access) -> Exit {
    let strictness = if args.strict { BundleStrictness::Strict } else { BundleStrictness::Lenient };
    let options = PrepareOptions { strictness, ..PrepareOptions::default() };
    let (mut notices, mut problems) = (Vec::new(), Vec::new());
    let mut told = Vec::new();
    match prepare::prepare_bundle(&args.reference, access, options).await {
        Ok(bundle) => {
            notices.extend(bundle.notices().iter().map(as_json));
            told.extend(bundle.notices().iter().map(|notice| (notice.severity, notice.render())));
            told.extend(bundle.missing.iter().map(|problem| (Severity::Warning, problem.clone())));
            let warning =
                |problem| json!({"severity": "warning", "at": null, "message": problem, "hint": null});
            notices.extend(bundle.missing.iter().map(warning));
            // A part that others include needs no session of its own.
            let is_part = bundle.loaded.plan.to_json().get("session").is_none();
            if let Err(fault) = bundle.plan()
                && !is_part
            {
                problems.push(fault.to_string());
            }
            // A part may name what the bundle that includes it brings.
            match is_part {
                true => {
                    told.extend(bundle.unknown_modules().into_iter().map(|told| (Severity::Warning, told)))
                }
                false => problems.extend(bundle.unknown_modules()),
            }
        }
        Err(BundleFault::Load(error)) if !prepare::rendered(&error).is_empty() => {
            let said = causes(&*error);
            let complaints = prepare::complaints(&error);
            if complaints.is_empty() {
                let lines = said.iter().cloned().chain(prepare::rendered(&error)).collect::<Vec<_>>();
                told.push((Severity::Error, lines.join("\n")));
            }
            told.extend(complaints.iter().map(|notice| (Severity::Error, notice.render())));
            problems.push(said.join(": "));
        }
        Err(fault) => return load::refuse(&fault),
    }
    let passed = problems.is_empty();
    if args.output == Form::Json {
        render::json(&json!({"passed": passed, "problems": problems, "notices": notices}));
    } else {
        for (severity, text) in &told {
            render::out(&format!("{}: {text}", load::weight(*severity).label()));
        }
        if told.iter().all(|(severity, _)| *severity != Severity::Error) {
            problems.iter().for_each(|problem| render::out(&format!("error: {problem}")));
        }
        render::out(if passed { "PASSED" } else { "FAILED" });
    }
    if passed { Exit::Success } else { Exit::Failure }
}
