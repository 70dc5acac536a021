//! `amplifier bundle …`: names of bundles. Which one is in use is in `bundle/choose.rs`, looking into one in `bundle/look.rs`,
//! bringing one up to date in `bundle/update.rs`.

use std::path::PathBuf;

use amplifier_app::bundles;
use amplifier_app::library::Access;
use amplifier_app::prepare;
use amplifier_app::registry::{Registry, RegistryError};
use amplifier_app::shelf;
use serde_json::json;

use super::load;
use crate::args::{AddArgs, BundleCommand, Form, ListArgs, NameArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

mod choose;
mod look;
mod update;

/// Where the column of descriptions begins.
const DESCRIPTIONS: usize = 22;

/// `amplifier bundle …`.
pub fn run(command: &BundleCommand, home: Option<PathBuf>) -> Exit {
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    match command {
        BundleCommand::Add(args) => load::block_on(add(args, &access)),
        BundleCommand::List(args) => list(args, &access),
        BundleCommand::Remove(args) => remove(args, &access),
        BundleCommand::Use(args) => choose::activate(args, &access),
        BundleCommand::Clear(args) => choose::clear(args, &access),
        BundleCommand::Current(args) => current(args, &access),
        BundleCommand::Show(args) => load::block_on(look::show(args, &access)),
        BundleCommand::Tree(args) => load::block_on(look::tree(args, &access)),
        BundleCommand::Validate(args) => load::block_on(look::validate(args, &access)),
        BundleCommand::Update(args) => load::block_on(update::update(args, &access)),
        BundleCommand::Lock(args) => load::block_on(update::lock(args, &access)),
    }
}

async fn add(args: &AddArgs, access: &Access) -> Exit {
    match bundles::add(&args.source, args.name.as_deref(), access).await {
        Ok((name, bundle)) => {
            load::tell(&bundle);
            let is_in_use = prepare::current(access).is_ok_and(|current| current == name);
            render::say(&match is_in_use {
                true => format!("`{name}` is registered and in use"),
                false => format!("`{name}` is registered; `amplifier bundle use {name}` puts it in use"),
            });
            if shelf::has(&name) {
                Remark::warning(format!("`{name}` is also built in; from now on the name means this one"))
                    .hint(format!("`amplifier bundle remove {name}` brings the built-in one back"))
                    .tell();
            }
            Exit::Success
        }
        Err(fault) => load::refuse(&fault),
    }
}

fn list(args: &ListArgs, access: &Access) -> Exit {
    let registered = match Registry::new(&access.home).read() {
        Ok(registered) => registered,
        Err(error) => return refuse(&error),
    };
    let active = match prepare::current(access) {
        Ok(active) => active,
        Err(fault) => return load::refuse(&fault),
    };
    let active = active.as_str();
    let built_in = shelf::BUNDLES.iter().filter(|(name, _)| !registered.bundles.contains_key(*name));
    if args.output == Form::Json {
        let built_in = built_in.map(|(name, description)| {
            json!({"name": name, "source": format!("{}{name}", shelf::SCHEME), "description": description, "active": *name == active})
        });
        let named = registered.bundles.iter().map(|(name, entry)| {
            json!({"name": name, "source": entry.uri, "version": entry.version, "description": entry.description, "active": name == active})
        });
        render::json(&json!({ "bundles": named.chain(built_in).collect::<Vec<_>>() }));
        return Exit::Success;
    }
    let row = |name: &str, source: &str, description: &str| {
        let mark = if name == active { " (in use)" } else { "" };
        let text = if description.is_empty() { source.to_owned() } else { format!("{description} {source}") };
        render::out(&render::entry(name, &format!("{text}{mark}"), DESCRIPTIONS));
    };
    for (name, entry) in &registered.bundles {
        row(name, &entry.uri, entry.description.as_deref().unwrap_or_default());
    }
    for (name, description) in built_in {
        row(name, "(built in)", description);
    }
    Exit::Success
}

fn remove(args: &NameArgs, access: &Access) -> Exit {
    match Registry::new(&access.home).remove(&args.name) {
        Ok(entry) => {
            render::out(&format!("`{}` is forgotten; it stood for `{}`", args.name, entry.uri));
            choose::forget(&args.name, access);
            Exit::Success
        }
        Err(RegistryError::Unknown { name }) if shelf::has(&name) => {
            Remark::error(format!("`{name}` is built in and cannot be removed"))
                .hint("`amplifier bundle use NAME` puts another one in use")
                .tell();
            Exit::Usage
        }
        Err(error) => refuse(&error),
    }
}

fn current(args: &ListArgs, access: &Access) -> Exit {
    match prepare::current(access) {
        Ok(name) => {
            match args.output {
                Form::Json => render::json(&json!({ "name": name })),
                Form::Text => render::out(&name),
            }
            Exit::Success
        }
        Err(fault) => load::refuse(&fault),
    }
}

fn refuse(error: &RegistryError) -> Exit {
    render::error(error, error.hint());
    if error.is_failure() { Exit::Failure } else { Exit::Usage }
}
