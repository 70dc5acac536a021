//! Locking bundles, and bringing them up to date.

use amplifier_app::bundles::{self, Update};
use amplifier_app::library::Access;
use amplifier_app::prepare::BundleFault;
use serde_json::json;

use crate::args::{Form, LockArgs, UpdateArgs};
use crate::commands::load;
use crate::exit::Exit;
use crate::render;

/// `amplifier bundle lock REF`.
pub async fn lock(args: &LockArgs, access: &Access) -> Exit {
    match bundles::lock(&args.reference, access).await {
        Ok((path, sources)) => {
            render::out(&format!("`{}` locks {sources} sources", path.display()));
            Exit::Success
        }
        Err(fault) => load::refuse(&fault),
    }
}

/// `amplifier bundle update [REF] [--check]`.
pub async fn update(args: &UpdateArgs, access: &Access) -> Exit {
    let references = match &args.reference {
        Some(reference) => vec![reference.clone()],
        None => match bundles::watched(access) {
            Ok(watched) => watched,
            Err(fault) => return load::refuse(&fault),
        },
    };
    let mut updates = Vec::new();
    let mut failed = None;
    for reference in &references {
        // One that cannot be had is told and costs nobody else.
        match one(args, reference, access).await {
            Ok(update) => updates.push(update),
            Err(fault) => failed = Some(load::refuse(&fault)),
        }
    }
    if args.output == Form::Json {
        render::json(&json!({ "updates": updates }));
    } else if references.is_empty() {
        render::out("no bundle is registered");
    }
    let news = updates.iter().any(|update| !update.changes.is_empty());
    match failed {
        Some(exit) => exit,
        None if args.check && news => Exit::News,
        None => Exit::Success,
    }
}

async fn one(args: &UpdateArgs, reference: &str, access: &Access) -> Result<Update, BundleFault> {
    if args.check {
        let update = bundles::check(reference, access).await?;
        tell(args, &update);
        return Ok(update);
    }
    let pending = bundles::update(reference, access).await?;
    // Shown before it is written, so that nobody is surprised by the lock.
    tell(args, &pending.update);
    pending.write(access)?;
    if args.output == Form::Text
        && let Some(lock) = pending.update.lock.as_ref().filter(|_| !pending.update.changes.is_empty())
    {
        render::out(&format!("`{}` is written", lock.display()));
    }
    Ok(pending.update)
}

fn tell(args: &UpdateArgs, update: &Update) {
    if args.output == Form::Json {
        return;
    }
    let word = if update.changes.is_empty() { ": nothing is new" } else { ":" };
    render::out(&format!("{}{word}", update.bundle));
    update.changes.iter().for_each(|change| render::out(&format!("  {change}")));
    for source in &update.unknown {
        render::out(&format!("  `{source}` tells nothing without being fetched"));
    }
}
