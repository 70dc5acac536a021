//! `amplifier config …`: what is set, where, and changing it. Opening an editor is in `config/edit.rs`.

use std::path::{Path, PathBuf};

use amplifier_app::library::Access;
use amplifier_app::redact;
use amplifier_app::settings::{
    Edited, Editor, KEYS, Layer, Origin, Row, Scope, Settings, SettingsError, schema,
};
use amplifier_app::spelling;
use serde_json::{Value, json};

use super::load;
use crate::args::{
    ConfigCommand, ConfigGetArgs, ConfigPathArgs, ConfigSetArgs, ConfigShowArgs, ConfigUnsetArgs, Form,
    ListArgs,
};
use crate::exit::Exit;
use crate::render::{self, Remark};

mod edit;

/// Where the column of what a key is for begins.
const ABOUT: usize = 26;
/// Where the column of paths begins.
const PATHS: usize = 11;

/// `amplifier config …`.
pub fn run(command: &ConfigCommand, home: Option<PathBuf>) -> Exit {
    let access = match command {
        // What repairs settings works while they are broken.
        ConfigCommand::Show(_) | ConfigCommand::Get(_) => load::access(home),
        _ => load::access_without_settings(home),
    };
    let access = match access {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    let done = match command {
        ConfigCommand::Show(args) => Ok(show(args, &access.settings)),
        ConfigCommand::Get(args) => Ok(get(args, &access.settings)),
        ConfigCommand::Set(args) => set(args, &access),
        ConfigCommand::Unset(args) => unset(args, &access),
        ConfigCommand::Edit(args) => edit::edit(args, &access),
        ConfigCommand::Path(args) => path(args, &access),
        ConfigCommand::Keys(args) => Ok(keys(args)),
        ConfigCommand::Schema => {
            render::json(&schema());
            Ok(Exit::Success)
        }
    };
    done.unwrap_or_else(|error| load::refuse_settings(&error))
}

fn show(args: &ConfigShowArgs, settings: &Settings) -> Exit {
    let rows = settings.rows();
    match (args.output, args.origin) {
        (Form::Json, false) => render::json(&redact(&settings.to_json())),
        (Form::Json, true) => {
            render::json(&json!({ "settings": rows.iter().map(Row::to_json).collect::<Vec<_>>() }));
        }
        (Form::Text, false) => {
            rows.iter().for_each(|row| render::out(&format!("{} = {}", row.path, row.value)))
        }
        (Form::Text, true) => rows.iter().for_each(|row| render::out(&with_origin(row))),
    }
    Exit::Success
}

fn with_origin(row: &Row) -> String {
    let mut text = format!("{} = {}\n  {}", row.path, row.value, told(&row.from));
    for (value, from) in &row.overrode {
        text.push_str(&format!("\n  overrode {value} of {}", told(from)));
    }
    text
}

fn told(from: &Origin) -> String {
    match from.layer {
        Layer::BuiltIn => from.layer.name().to_owned(),
        layer => format!("{} ({})", from.place, layer.name()),
    }
}

fn get(args: &ConfigGetArgs, settings: &Settings) -> Exit {
    let rows = settings.rows();
    let below = format!("{}.", args.path);
    let rows: Vec<_> =
        rows.into_iter().filter(|row| row.path == args.path || row.path.starts_with(&below)).collect();
    let Some(node) = settings.at(&args.path).filter(|_| !rows.is_empty()) else {
        if !KEYS.iter().any(|known| known.path == args.path || known.path.starts_with(&below))
            && !KEYS.iter().any(|known| args.path.starts_with(&format!("{}.", known.path)))
        {
            let near = Editor::new("").set(&args.path, "").err();
            return near.map_or(Exit::Usage, |error| load::refuse_settings(&error));
        }
        Remark::error(format!("`{}` is not set", args.path))
            .hint(format!(
                "`amplifier config set {} VALUE` sets it; `amplifier config keys` says what it takes",
                args.path
            ))
            .tell();
        return Exit::Failure;
    };
    // One value is told as it is, a mapping or a list as JSON.
    let value = match rows.as_slice() {
        [row] if row.path == args.path => row.value.clone(),
        _ => redact(&node.to_json()),
    };
    match args.output {
        Form::Json => {
            let rows: Vec<_> = rows.iter().map(Row::to_json).collect();
            render::json(&json!({ "path": args.path, "value": value, "settings": rows }));
        }
        Form::Text => render::out(&plain(&value)),
    }
    Exit::Success
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned)
}

fn set(args: &ConfigSetArgs, access: &Access) -> Result<Exit, SettingsError> {
    let scope = args.scope.scope();
    if args.path == "approve" {
        Settings::refuse_looser(&access.settings_files(), scope, &args.value)?;
    }
    let edited = editor(access, scope)?.set(&args.path, &args.value)?;
    let shown = shown(&edited.file, access);
    let after = edited.after.as_ref().map(Value::to_string).unwrap_or_default();
    match &edited.before {
        Some(before) if edited.before == edited.after => {
            render::out(&format!("`{}` is {before} in `{shown}` already", args.path));
        }
        Some(before) => {
            let before = redact(before);
            render::out(&format!("`{}` is {after} in `{shown}`; it was {before}", args.path));
        }
        None => render::out(&format!("`{}` is {after} in `{shown}`", args.path)),
    }
    tell_winner(&args.path, &edited, access);
    Ok(Exit::Success)
}

fn unset(args: &ConfigUnsetArgs, access: &Access) -> Result<Exit, SettingsError> {
    let edited = editor(access, args.scope.scope())?.unset(&args.path)?;
    render::out(&format!("`{}` is no longer set in `{}`", args.path, shown(&edited.file, access)));
    Ok(Exit::Success)
}

/// Another layer may go before the one that was written; a change without an effect is told.
pub fn tell_winner(path: &str, edited: &Edited, access: &Access) {
    let Ok(access) = access.clone().with_settings() else { return };
    let settings = access.settings;
    let Some(node) = settings.at(path) else { return };
    if settings.layer_of(&node.place) != Layer::BuiltIn && node.place.file.path != edited.file {
        render::note(&format!("note: {} sets `{path}` too and goes before", node.place));
    }
}

/// The file of a scope, to be changed.
pub fn editor(access: &Access, scope: Scope) -> Result<Editor, SettingsError> {
    Editor::of(&access.settings_files(), scope)
}

/// A file as people see it from where they are.
pub fn shown(file: &Path, access: &Access) -> String {
    let here = access.base.canonicalize().unwrap_or_else(|_| access.base.clone());
    file.strip_prefix(&here)
        .map_or_else(|_| spelling::told(file).into_owned(), |below| spelling::told(below).into_owned())
}

fn path(args: &ConfigPathArgs, access: &Access) -> Result<Exit, SettingsError> {
    let files = access.settings_files();
    if let Some(scope) = args.scope.named() {
        let path = files.path(scope)?;
        match args.output {
            Form::Json => render::json(
                &json!({"layer": scope.name(), "path": spelling::told(&path), "exists": path.exists()}),
            ),
            Form::Text => render::out(&spelling::told(&path)),
        }
        return Ok(Exit::Success);
    }
    let rows = Scope::ALL.into_iter().map(|scope| (scope, files.path(scope).ok()));
    match args.output {
        Form::Json => {
            let rows = rows.map(|(scope, path)| {
                let exists = path.as_ref().is_some_and(|path| path.exists());
                json!({"layer": scope.name(), "path": path.as_deref().map(spelling::told), "exists": exists})
            });
            render::json(&json!({ "files": rows.collect::<Vec<_>>() }));
        }
        Form::Text => rows.for_each(|(scope, path)| {
            let text = match path {
                Some(path) if path.exists() => spelling::told(&path).into_owned(),
                Some(path) => format!("{} (not there)", spelling::told(&path)),
                None => "none: this is your home folder".to_owned(),
            };
            let room = PATHS - 4;
            render::out(&format!("  {:room$}  {text}", scope.name()));
        }),
    }
    Ok(Exit::Success)
}

fn keys(args: &ListArgs) -> Exit {
    if args.output == Form::Json {
        let keys = KEYS.iter().map(|known| {
            json!({
                "path": known.path,
                "takes": known.shape.words(),
                "variable": known.variable,
                "usual": known.usual,
                "about": known.about,
            })
        });
        render::json(&json!({ "keys": keys.collect::<Vec<_>>() }));
        return Exit::Success;
    }
    for known in KEYS {
        let variable = known.variable.map(|name| format!(" Variable: {name}.")).unwrap_or_default();
        let usual = known.usual.map(|usual| format!(" Usually `{usual}`.")).unwrap_or_default();
        let text = format!("{} Takes {}.{usual}{variable}", known.about, known.shape.words());
        render::out(&render::entry(known.path, &text, ABOUT));
    }
    Exit::Success
}
