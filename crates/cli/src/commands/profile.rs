//! `amplifier profile …`, and a profile as a plan for the other commands.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_app::Freshness;
use amplifier_app::library::Access;
use amplifier_app::profiles::{self, Check, Outcome, ProfileError, ProfileFault, State, Step, Steps};
use amplifier_app::spelling;
use amplifier_protocol::run::RunPlace;
use serde_json::{Value, json};

use super::load;
use crate::args::{CompileArgs, Form, ProfileArgs, ProfileCommand, ProfileListArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

/// Tells steps on standard error.
pub struct StepLines;

impl Steps for StepLines {
    fn step(&self, step: &Step) {
        if let Step::Resolving { id, reference, number, of } = step {
            render::note(&format!("{id}: {number} of {of}: `{reference}`"));
        }
    }
}

/// `amplifier profile …`.
pub fn run(command: &ProfileCommand, home: Option<PathBuf>) -> Exit {
    let mut access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    let done = match command {
        ProfileCommand::List(args) => list(args, &access),
        ProfileCommand::Show(args) => show(args, &access),
        ProfileCommand::Check(args) => check(args, &access),
        ProfileCommand::Compile(args) => {
            if args.refresh {
                access.freshness = Freshness::Refresh;
            } else if args.offline {
                access.freshness = Freshness::Offline;
            }
            return load::block_on(async {
                compile(args, &access).await.unwrap_or_else(|error| refuse_error(&error))
            });
        }
    };
    done.unwrap_or_else(|error| refuse_error(&error))
}

/// Tells why there is no plan.
pub fn refuse(fault: &ProfileFault) -> Exit {
    match fault {
        ProfileFault::Profile(error) => refuse_error(error),
        fault => {
            render::error(fault, fault.hint().as_deref());
            Exit::Usage
        }
    }
}

/// Tells why a profile or collection cannot be had, with the line it speaks of.
pub fn refuse_error(error: &ProfileError) -> Exit {
    Remark::of(error).maybe_hint(error.hint()).at(error.place().map(RunPlace::from)).tell();
    if let Some(excerpt) = error.place().and_then(|place| place.excerpt()) {
        excerpt.lines().for_each(|line| render::note(&format!("  {line}")));
    }
    match error {
        ProfileError::Collection { .. }
        | ProfileError::Reference { .. }
        | ProfileError::Io { .. }
        | ProfileError::Guard(_)
        | ProfileError::Copy { .. } => Exit::Failure,
        ProfileError::Cancelled { .. } => Exit::Interrupted,
        _ => Exit::Usage,
    }
}

fn list(args: &ProfileListArgs, access: &Access) -> Result<Exit, ProfileError> {
    let shelf = profiles::profiles(access);
    let mut found = shelf.list()?;
    if found.is_empty() {
        // Nothing is there because nothing was added, or because what was added cannot be read.
        shelf.collections()?;
    }
    if let Some(collection) = &args.collection {
        found.retain(|found| found.id.collection.as_str() == collection);
    }
    if args.output == Form::Json {
        let rows = found.iter().map(|found| {
            json!({
                "id": found.id.to_string(),
                "version": found.version,
                "description": found.description,
                "extends": found.extends,
                "compiled": found.is_compiled,
                "problem": found.problem,
            })
        });
        render::json(&json!({ "profiles": rows.collect::<Vec<_>>() }));
        return Ok(Exit::Success);
    }
    if found.is_empty() {
        render::say("there are no profiles; `amplifier collection add NAME SOURCE` brings some");
    }
    for found in found {
        let state = match (&found.problem, found.is_compiled) {
            (Some(problem), _) => format!("(broken: {problem})"),
            (None, true) => format!("(version {})", found.version),
            (None, false) => format!("(version {}, not compiled)", found.version),
        };
        let text = format!("{} {state}", found.description);
        render::out(&render::entry(&found.id.to_string(), text.trim(), 26));
    }
    Ok(Exit::Success)
}

fn show(args: &ProfileArgs, access: &Access) -> Result<Exit, ProfileError> {
    let check = profiles::profiles(access).check(&args.id.parse()?)?;
    let head = check.profile.head();
    let text =
        |text: Option<&amplifier_app::profiles::Text>| text.map(|text| text.text.clone()).unwrap_or_default();
    let version = text(head.and_then(|head| head.version.as_ref()));
    let description = text(head.and_then(|head| head.description.as_ref()));
    let chain: Vec<_> = check.profile.layers.iter().rev().skip(1).map(|(id, _)| id.to_string()).collect();
    if args.output == Form::Json {
        let mut report = report(&check);
        if let Value::Object(report) = &mut report {
            report.insert("version".to_owned(), json!(version));
            report.insert("description".to_owned(), json!(description));
            report.insert("extends".to_owned(), json!(chain));
            report.insert("folder".to_owned(), json!(spelling::told(&check.profile.dir)));
        }
        render::json(&report);
        return Ok(Exit::Success);
    }
    render::out(&format!("{} {version}", check.profile.id));
    if !description.is_empty() {
        render::out(&render::wrapped(&description, 2));
    }
    for base in chain {
        render::out(&format!("  extends {base}"));
    }
    for found in &check.references {
        render::out(&render::entry(&format!("{}/{}", found.slot.folder(), found.name), &found.shown, 30));
    }
    said(&check.state).iter().for_each(|line| render::out(line));
    Ok(Exit::Success)
}

fn check(args: &ProfileArgs, access: &Access) -> Result<Exit, ProfileError> {
    let check = profiles::profiles(access).check(&args.id.parse()?)?;
    let is_current = check.state == State::Current;
    let compiled = is_current.then(|| profiles::compiled_profile(&check.profile.id, access)).transpose();
    let unknown = match compiled {
        Ok(compiled) => compiled.map(|compiled| compiled.unknown_modules()).unwrap_or_default(),
        Err(fault) => return Ok(refuse(&fault)),
    };
    if args.output == Form::Json {
        let mut report = report(&check);
        if let Value::Object(report) = &mut report {
            report.insert("unknown_modules".to_owned(), json!(unknown));
        }
        render::json(&report);
    } else {
        check.notices().iter().for_each(|notice| render::out(&load::line(notice)));
        said(&check.state).iter().for_each(|line| render::out(line));
        unknown.iter().for_each(|told| render::out(&format!("error: {told}")));
    }
    Ok(if is_current && unknown.is_empty() { Exit::Success } else { Exit::Failure })
}

fn said(state: &State) -> Vec<String> {
    match state {
        State::Current => vec!["compiled, and everything is as the lock says".to_owned()],
        State::NotCompiled => vec!["not compiled".to_owned()],
        State::Stale(why) => {
            let mut lines = vec!["compiled from something else than what is there now:".to_owned()];
            lines.extend(why.iter().map(|line| format!("  {line}")));
            lines
        }
    }
}

fn report(check: &Check) -> Value {
    let (state, differences) = match &check.state {
        State::Current => ("current", &[][..]),
        State::NotCompiled => ("not_compiled", &[][..]),
        State::Stale(why) => ("stale", why.as_slice()),
    };
    let references = check.references.iter().map(|found| {
        json!({"slot": found.slot.folder(), "name": found.name, "ref": found.shown, "at": found.place.to_string()})
    });
    let notices = check.notices().iter().map(|notice| {
        let at = notice.place.as_ref().map(ToString::to_string);
        json!({"severity": load::weight(notice.severity).label(), "message": notice.message, "at": at, "hint": notice.hint})
    });
    json!({
        "id": check.profile.id.to_string(),
        "state": state,
        "differences": differences,
        "references": references.collect::<Vec<_>>(),
        "notices": notices.collect::<Vec<_>>(),
    })
}

async fn compile(args: &CompileArgs, access: &Access) -> Result<Exit, ProfileError> {
    let profiles = profiles::profiles(access);
    let cx = profiles::context(access, Arc::new(StepLines));
    let ids = match &args.id {
        Some(id) => vec![id.parse()?],
        None => profiles.list()?.into_iter().map(|found| found.id).collect(),
    };
    let mut rows = Vec::new();
    let mut exit = Exit::Success;
    for id in ids {
        match profiles.compile(&id, &cx).await {
            Ok(compiled) => {
                compiled.notices.iter().for_each(load::tell_notice);
                let (word, resolved) = match &compiled.outcome {
                    Outcome::Unchanged => ("unchanged", &[][..]),
                    Outcome::Built { resolved } => ("compiled", resolved.as_slice()),
                };
                if args.output == Form::Text {
                    render::out(&format!("{id} {word}"));
                }
                rows.push(json!({"id": id.to_string(), "outcome": word, "resolved": resolved, "lock": compiled.lock}));
            }
            // One profile is asked for: its failure is the answer. Of many, the others go on.
            Err(error) if args.id.is_some() => return Err(error),
            Err(error) => {
                exit = Exit::Failure;
                refuse_error(&error);
                rows.push(json!({"id": id.to_string(), "outcome": "failed", "error": error.chain()}));
            }
        }
    }
    if args.output == Form::Json {
        render::json(&json!({ "profiles": rows }));
    }
    Ok(exit)
}
