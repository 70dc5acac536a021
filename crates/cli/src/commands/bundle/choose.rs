//! `amplifier bundle use` and `amplifier bundle clear`: the bundle of the settings.

use std::path::{Path, PathBuf};

use amplifier_app::bundles;
use amplifier_app::library::Access;
use amplifier_app::registry::{Registry, RegistryError};
use amplifier_app::settings::{Layer, Scope, SettingsError};

use super::refuse;
use crate::args::{ClearArgs, UseArgs};
use crate::commands::config::{editor, shown, tell_winner};
use crate::commands::load;
use crate::exit::Exit;
use crate::render::{self, Remark};

/// The setting that says it.
const ACTIVE: &str = "bundle.active";

pub fn activate(args: &UseArgs, access: &Access) -> Exit {
    let registered = match Registry::new(&access.home).read() {
        Ok(registered) => registered,
        Err(error) => return refuse(&error),
    };
    let is_name = registered.knows(&args.name) || access.settings.bundle_names().contains_key(&args.name);
    let scope = args.scope.scope();
    let reference = if is_name { Some(args.name.clone()) } else { elsewhere(&args.name, scope, access) };
    let Some(reference) = reference else {
        let error = RegistryError::Unknown { name: args.name.clone() };
        let near = bundles::near(&args.name, access);
        if near.is_empty() {
            return refuse(&error);
        }
        let hint = format!("did you mean {}? `amplifier bundle list` shows all names", near.join(" or "));
        render::error(&error, Some(&hint));
        return Exit::Usage;
    };
    match editor(access, scope).and_then(|editor| editor.set(ACTIVE, &reference)) {
        Ok(edited) => {
            render::out(&format!("`{}` is in use", args.name));
            tell_winner(ACTIVE, &edited, access);
            Exit::Success
        }
        Err(error) => load::refuse_settings(&error),
    }
}

/// A bundle that has no name: a path that means the same for everybody who reads the file, or an address.
fn elsewhere(reference: &str, scope: Scope, access: &Access) -> Option<String> {
    let Ok(path) = access.base.join(reference).canonicalize() else {
        return reference.contains("://").then(|| reference.to_owned());
    };
    let project = match scope {
        Scope::User => None,
        Scope::Project | Scope::Local => project(scope, access),
    };
    match project.as_deref().and_then(|project| path.strip_prefix(project).ok()) {
        Some(below) => Some(Path::new(".").join(below).display().to_string()),
        None => Some(path.display().to_string()),
    }
}

/// The folder that relative paths of a project's settings start from.
fn project(scope: Scope, access: &Access) -> Option<PathBuf> {
    let file = access.settings_files().path(scope).ok()?;
    Some(file.parent()?.parent()?.to_path_buf())
}

pub fn clear(args: &ClearArgs, access: &Access) -> Exit {
    let scope = args.scope.scope();
    let unset = editor(access, scope).and_then(|editor| editor.unset(ACTIVE));
    // What older versions of the program have put in use stands in the registry.
    let registered = match scope {
        Scope::User => Registry::new(&access.home).deactivate(),
        Scope::Project | Scope::Local => Ok(None),
    };
    match (unset, registered) {
        (_, Err(error)) => return refuse(&error),
        (Ok(edited), _) => {
            let file = shown(&edited.file, access);
            render::out(&format!("no bundle is put in use by `{file}` any more"));
        }
        (Err(SettingsError::NotSet { .. }), Ok(Some(was))) => {
            render::out(&format!("`{was}` is no longer in use"));
        }
        (Err(SettingsError::NotSet { .. }), Ok(None)) => render::out("no bundle was in use"),
        (Err(error), _) => return load::refuse_settings(&error),
    }
    Exit::Success
}

/// What was just forgotten is no longer in use: by the person's own settings; those of a project are everybody's.
pub fn forget(name: &str, access: &Access) {
    let Some((_, place)) = access.settings.bundle().filter(|(active, _)| *active == name) else { return };
    if access.settings.layer_of(place) == Layer::File(Scope::User)
        && editor(access, Scope::User).and_then(|editor| editor.unset(ACTIVE)).is_ok()
    {
        render::note(&format!("note: `{name}` was in use and is no longer"));
        return;
    }
    Remark::warning(format!("{place} still puts `{name}` in use"))
        .hint("`amplifier bundle clear`, or `amplifier bundle use` another one")
        .tell();
}
