//! `amplifier collection …`: where profiles come from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_app::Freshness;
use amplifier_app::library::Access;
use amplifier_app::profiles::{self, Compilation, ProfileError, ShareName, SyncReport, SyncStatus, TextLeft};
use amplifier_app::spelling;
use serde_json::{Value, json};

use super::load;
use super::profile::{StepLines, refuse_error};
use crate::args::{CollectionCommand, Form, ListArgs, MountArgs, NameArgs, SyncArgs};
use crate::exit::Exit;
use crate::render;

/// `amplifier collection …`.
pub fn run(command: &CollectionCommand, home: Option<PathBuf>) -> Exit {
    let mut access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    load::block_on(async {
        let done = match command {
            CollectionCommand::Add(args) => add(args, &access).await,
            CollectionCommand::List(args) => list(args, &access),
            CollectionCommand::Remove(args) => remove(args, &access).await,
            CollectionCommand::Sync(args) => {
                if args.refresh {
                    access.freshness = Freshness::Refresh;
                }
                sync(args, &access).await
            }
        };
        done.unwrap_or_else(|error| refuse_error(&error))
    })
}

async fn add(args: &MountArgs, access: &Access) -> Result<Exit, ProfileError> {
    let profiles = profiles::profiles(access);
    let cx = profiles::context(access, Arc::new(StepLines));
    let name: ShareName = args.name.parse()?;
    // A path means the same in every folder once it is whole.
    let path = access.base.join(&args.source);
    let source = match path.canonicalize() {
        Ok(path) => path.display().to_string(),
        Err(_) => args.source.clone(),
    };
    let compilation = if args.no_compile { Compilation::Leave } else { Compilation::Compile };
    profiles.add_collection(&name, &source, &cx).await?;
    let report = profiles.sync_one(&name, compilation, &cx).await?;
    if matches!(report.status, SyncStatus::Error(_)) {
        // A name that leads nowhere helps nobody.
        profiles.remove_collection(&name, &cx).await?;
    }
    Ok(told(&[report]))
}

fn list(args: &ListArgs, access: &Access) -> Result<Exit, ProfileError> {
    let found = profiles::profiles(access).collections()?;
    if args.output == Form::Json {
        let rows = found.iter().map(|found| {
            let profiles: Vec<_> = found.profiles.iter().map(ShareName::as_str).collect();
            json!({"name": found.name.as_str(), "source": profiles::shown_source(&found.source), "installed_at": found.installed_at, "profiles": profiles})
        });
        render::json(&json!({ "collections": rows.collect::<Vec<_>>() }));
        return Ok(Exit::Success);
    }
    if found.is_empty() {
        render::say("there are no collections; `amplifier collection add NAME SOURCE` adds one");
    }
    for found in found {
        let profiles: Vec<_> = found.profiles.iter().map(ShareName::as_str).collect();
        let profiles = if profiles.is_empty() { "no profiles".to_owned() } else { profiles.join(", ") };
        render::out(&render::entry(
            found.name.as_str(),
            &format!("{} ({profiles})", profiles::shown_source(&found.source)),
            22,
        ));
    }
    Ok(Exit::Success)
}

async fn remove(args: &NameArgs, access: &Access) -> Result<Exit, ProfileError> {
    let cx = profiles::context(access, Arc::new(StepLines));
    profiles::profiles(access).remove_collection(&args.name.parse()?, &cx).await?;
    render::out(&format!("`{}` is forgotten, and its profiles are removed from here", args.name));
    Ok(Exit::Success)
}

async fn sync(args: &SyncArgs, access: &Access) -> Result<Exit, ProfileError> {
    let profiles = profiles::profiles(access);
    let cx = profiles::context(access, Arc::new(StepLines));
    let compilation = if args.no_compile { Compilation::Leave } else { Compilation::Compile };
    let reports = match &args.name {
        Some(name) => vec![profiles.sync_one(&name.parse()?, compilation, &cx).await?],
        None => profiles.sync(compilation, &cx).await?,
    };
    if args.output == Form::Json {
        render::json(&json!({ "collections": reports.iter().map(row).collect::<Vec<_>>() }));
        return Ok(exit_of(&reports));
    }
    if reports.is_empty() {
        render::say("there are no collections; `amplifier collection add NAME SOURCE` adds one");
    }
    Ok(told(&reports))
}

fn told(reports: &[SyncReport]) -> Exit {
    for report in reports {
        let profiles: Vec<_> = report.profiles.iter().map(|id| id.profile.as_str()).collect();
        let profiles = if profiles.is_empty() { String::new() } else { format!(": {}", profiles.join(", ")) };
        render::out(&format!("{} {}{profiles}", report.collection, report.status.as_str()));
        if let SyncStatus::Error(error) = &report.status {
            refuse_error(error);
        }
        for skipped in &report.skipped {
            match &skipped.kept {
                Some(id) => {
                    refuse_error(&skipped.reason);
                    render::note(&format!("note: `{id}` stays as it was before"));
                }
                None => render::note(&format!(
                    "warning: `{}` is left out: {}",
                    name_of(&skipped.path),
                    skipped.reason.chain()
                )),
            }
        }
        for id in &report.removed {
            render::note(&format!("note: `{id}` is no longer in its collection and was removed"));
        }
        if let Some(warning) = report.warning() {
            render::note(&format!("warning: {warning}"));
        }
        for failed in &report.failed {
            refuse_error(&failed.error);
            if failed.text == TextLeft::Kept {
                render::note(&format!("note: `{}` stays as it was before", failed.id));
            }
        }
    }
    exit_of(reports)
}

fn name_of(path: &Path) -> String {
    let parts: Vec<_> = path.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

fn exit_of(reports: &[SyncReport]) -> Exit {
    let is_well = |report: &SyncReport| {
        let stays = report.skipped.iter().any(|skipped| skipped.kept.is_some());
        !matches!(report.status, SyncStatus::Error(_)) && report.failed.is_empty() && !stays
    };
    if reports.iter().all(is_well) { Exit::Success } else { Exit::Failure }
}

fn row(report: &SyncReport) -> Value {
    let error = match &report.status {
        SyncStatus::Error(error) => Some(error.chain()),
        _ => None,
    };
    let ids = |ids: &[profiles::ProfileId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    let failed = report.failed.iter().map(|failed| {
        let kept = (failed.text == TextLeft::Kept).then(|| failed.id.to_string());
        json!({"profile": failed.id.to_string(), "error": failed.error.chain(), "kept": kept})
    });
    let skipped = report.skipped.iter().map(|found| {
        let kept = found.kept.as_ref().map(ToString::to_string);
        json!({"file": spelling::told(&found.path), "reason": found.reason.chain(), "kept": kept})
    });
    json!({
        "name": report.collection.as_str(),
        "status": report.status.as_str(),
        "error": error,
        "profiles": ids(&report.profiles),
        "removed": ids(&report.removed),
        "skipped": skipped.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
        "warning": report.warning(),
    })
}
