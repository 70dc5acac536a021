//! `amplifier provider add` and `amplifier provider remove`, and what `amplifier init` shares with them.

use std::io;
use std::path::PathBuf;

use amplifier_app::connect::{Connection, KeyChoice, key_variable, provider, short, variable_of};
use amplifier_app::detect::{DetectError, variables_of};
use amplifier_app::env::Environment;
use amplifier_app::keys::{KeyPlace, Keys, KeysError};
use amplifier_app::lack::{self, Lack};
use amplifier_app::library::Access;
use amplifier_app::settings::{Layer, Scope, SettingsError};
use amplifier_protocol::mount_plan::ModuleSpec;

use crate::args::{ProviderAddArgs, ProviderRemoveArgs, ProviderSetArgs, Store};
use crate::commands::config::{editor, shown};
use crate::commands::{init, load};
use crate::exit::Exit;
use crate::input;
use crate::question;
use crate::render::{self, Remark};

/// The longest key, in bytes: a token of a sign-on has a few thousand.
const LONGEST_KEY: u64 = 64 * 1024;

/// `amplifier provider add`.
pub async fn add(args: &ProviderAddArgs, access: &Access) -> Exit {
    let Some(name) = &args.name else {
        if question::is_somebody_there() {
            return init::guided(args.scope.scope(), init::Trial::Once, access).await;
        }
        Remark::error("no provider is named, and nobody is there to be asked")
            .hint("`amplifier provider list` shows the types")
            .tell();
        return Exit::Usage;
    };
    let mut connection = match Connection::to(name) {
        Ok(connection) => connection,
        Err(error) => {
            render::error(&error, Some("`amplifier provider list` shows the types"));
            return Exit::Usage;
        }
    };
    connection.id.clone_from(&args.id);
    connection.model.clone_from(&args.model);
    connection.base_url.clone_from(&args.base_url);
    connection.key = match key(args, &connection, access).await {
        Ok(key) => key,
        Err(exit) => return exit,
    };
    let exit = keep(&connection, args.key.store.map(key_place), args.scope.scope(), access);
    if exit == Exit::Success {
        tell_lack(&connection, access).await;
    }
    exit
}

fn key_place(store: Store) -> KeyPlace {
    match store {
        Store::Keyring => KeyPlace::Keyring,
        Store::File => KeyPlace::File,
    }
}

/// `amplifier provider set`.
pub async fn set(args: &ProviderSetArgs, access: &Access) -> Exit {
    let configured = access.settings.providers();
    let Some(entry) = super::find(&configured, &args.name) else {
        return load::refuse_settings(&SettingsError::NoProvider { name: args.name.clone() });
    };
    let Layer::File(stands) = entry.layer else {
        return load::refuse_settings(&SettingsError::NoProvider { name: args.name.clone() });
    };
    let mut connection = match Connection::over(&entry.spec) {
        Ok(connection) => connection,
        Err(error) => {
            render::error(&error, Some("`amplifier provider list` shows the types"));
            return Exit::Usage;
        }
    };
    if args.model.is_none()
        && args.base_url.is_none()
        && args.key.key_from_env.is_none()
        && !args.key.key_stdin
    {
        Remark::error("nothing is to be changed")
            .hint("`--model`, `--base-url`, `--key-from-env` or `--key-stdin` says what")
            .tell();
        return Exit::Usage;
    }
    connection.model.clone_from(&args.model);
    connection.base_url.clone_from(&args.base_url);
    connection.key = match (&args.key.key_from_env, args.key.key_stdin) {
        (Some(variable), _) => KeyChoice::Variable(variable.clone()),
        (None, true) => {
            let usual = match variables_of(connection.info.id.clone(), &access.environment).await {
                Ok(variables) => variables.into_iter().next().map(|variable| variable.name),
                Err(error) => return refuse_detect(&error),
            };
            match key_from_input("set") {
                Ok(value) => KeyChoice::Given { variable: connection.variable(usual.as_deref()), value },
                Err(exit) => return exit,
            }
        }
        (None, false) => KeyChoice::None,
    };
    let scope = args.scope.named().unwrap_or(stands);
    let exit = keep(&connection, args.key.store.map(key_place), scope, access);
    if exit == Exit::Success {
        tell_lack(&connection, access).await;
    }
    exit
}

/// A key that is piped in.
fn key_from_input(command: &str) -> Result<String, Exit> {
    let value = input::read_text(LONGEST_KEY).map_err(|error| {
        render::error(&error, Some("pipe in the key and nothing else"));
        Exit::Usage
    })?;
    if value.trim().is_empty() {
        let hint = format!("pipe it in, as in `cat key.txt | amplifier provider {command} … --key-stdin`");
        render::error(&KeysError::Empty, Some(&hint));
        return Err(Exit::Usage);
    }
    Ok(value)
}

/// What else the new entry lacks, such as an address. That its variable is not set has been told.
async fn tell_lack(connection: &Connection, access: &Access) {
    match lack::of(&connection.trial(), &access.environment).await {
        Ok(Some(Lack::Declined { reason })) => {
            render::note(&format!("warning: it cannot be used yet: {reason}"));
        }
        Ok(_) => {}
        Err(error) => {
            refuse_detect(&error);
        }
    }
}

/// Where the key comes from: what the flags say, else a variable that is set, else the person.
async fn key(args: &ProviderAddArgs, connection: &Connection, access: &Access) -> Result<KeyChoice, Exit> {
    if let Some(variable) = &args.key.key_from_env {
        return Ok(KeyChoice::Variable(variable.clone()));
    }
    if !connection.takes_key() {
        return Ok(KeyChoice::None);
    }
    let variables = match variables_of(connection.info.id.clone(), &access.environment).await {
        Ok(variables) => variables,
        Err(error) => return Err(refuse_detect(&error)),
    };
    let usual = variables.first().map(|variable| variable.name.as_str());
    let variable = connection.variable(usual);
    if args.key.key_stdin {
        return Ok(KeyChoice::Given { variable, value: key_from_input("add")? });
    }
    if let Some(set) = variables.iter().find(|variable| variable.set) {
        return Ok(KeyChoice::Variable(set.name.clone()));
    }
    // A server that somebody names may want no key.
    if usual.is_none() || connection.base_url.is_some() {
        return Ok(KeyChoice::None);
    }
    if question::is_somebody_there() {
        return match asked(&format!("The key of {} (not shown)", short(&connection.info.id))) {
            Ok(value) => Ok(KeyChoice::Given { variable, value }),
            Err(error) => {
                render::error(&error, None);
                Err(Exit::Interrupted)
            }
        };
    }
    Remark::error(format!("`{}` needs a key, and none was given", connection.info.id))
        .hint(format!(
            "set `{variable}`, name another variable with `--key-from-env`, or pipe the key in with `--key-stdin`"
        ))
        .tell();
    Err(Exit::Usage)
}

/// A key that somebody types; nothing is no key.
pub fn asked(question: &str) -> io::Result<String> {
    loop {
        let value = question::secret(question)?;
        if !value.trim().is_empty() {
            return Ok(value);
        }
        question::say("A key is needed here. Ctrl-C leaves, and nothing is written.")?;
    }
}

/// Whether a variable has nothing in it now.
pub fn is_unset(variable: &str, access: &Access) -> bool {
    access.environment.get(variable).is_none_or(|value| value.trim().is_empty())
}

pub fn refuse_detect(error: &DetectError) -> Exit {
    render::error(error, error.hint());
    Exit::Failure
}

/// Writes the entry, stores the key, and tells both.
pub fn keep(connection: &Connection, place: Option<KeyPlace>, scope: Scope, access: &Access) -> Exit {
    let kept = match &connection.over {
        Some(old) => change(connection, old, place, scope, access),
        None => add_new(connection, place, scope, access),
    };
    let file = match kept {
        Ok(file) => file,
        Err(exit) => return exit,
    };
    if let KeyChoice::Variable(variable) = &connection.key {
        if is_unset(variable, access) {
            // One note, so that what is left out is left out with its hint.
            render::note(&format!(
                "warning: `{variable}` is not set now; it must be when the provider is used\n  hint: export {variable}=…"
            ));
        } else {
            render::note(&format!("note: the key stays in `{variable}`; nothing of it is stored"));
        }
    }
    render::out(&format!("`{}` is in `{}`", connection.name(), shown(&file, access)));
    Exit::Success
}

/// The entry first: a key that nothing refers to would be forgotten in the store.
fn add_new(
    connection: &Connection,
    place: Option<KeyPlace>,
    scope: Scope,
    access: &Access,
) -> Result<PathBuf, Exit> {
    let edited = editor(access, scope)
        .and_then(|editor| editor.add_provider(&connection.entry()))
        .map_err(|error| load::refuse_settings(&error))?;
    if let Err(exit) = store(connection, place, access) {
        // Without its key the entry is of no use.
        if let Err(error) = editor(access, scope).and_then(|editor| editor.remove_provider(connection.name()))
        {
            load::refuse_settings(&error);
        }
        return Err(exit);
    }
    Ok(edited.file)
}

/// The key first: the entry is there, and stays as it is where the key cannot be stored. Only what differs is written.
fn change(
    connection: &Connection,
    old: &ModuleSpec,
    place: Option<KeyPlace>,
    scope: Scope,
    access: &Access,
) -> Result<PathBuf, Exit> {
    let refuse = |error: SettingsError| load::refuse_settings(&error);
    let editor = editor(access, scope).map_err(refuse)?;
    store(connection, place, access)?;
    let mut config = connection.entry().config;
    config.retain(|key, value| old.config.get(key) != Some(value));
    // Both are names of one key; the one that is written stays.
    if old.config.contains_key("model")
        && let Some(model) = config.shift_remove("default_model")
    {
        config.insert("model".to_owned(), model);
    }
    if !config.is_empty() {
        let edited = editor.change_provider(connection.name(), &config).map_err(refuse)?;
        if edited.is_none() {
            return Err(refuse(missing(connection.name(), Some(scope), access)));
        }
    }
    Ok(editor.file().to_owned())
}

/// Why there is nothing to change or to take out.
fn missing(name: &str, scope: Option<Scope>, access: &Access) -> SettingsError {
    let configured = access.settings.providers();
    match (scope, super::find(&configured, name)) {
        (Some(scope), Some(entry)) => {
            SettingsError::OtherFile { name: name.to_owned(), scope, place: entry.place.clone() }
        }
        _ => SettingsError::NoProvider { name: name.to_owned() },
    }
}

/// Stores the key that was given, if one was, in the keyring when there is one, else in the file; that it lies there in
/// plain text is said.
fn store(connection: &Connection, place: Option<KeyPlace>, access: &Access) -> Result<(), Exit> {
    let KeyChoice::Given { variable, value } = &connection.key else { return Ok(()) };
    let keys = Keys::new(&access.home, &access.environment);
    // A stored key is looked for where the variable is not set.
    let own = Environment::Process.get(variable).filter(|own| !own.is_empty());
    write(&keys, variable, value, place).map_err(|error| {
        render::error(&error, error.hint());
        if matches!(error, KeysError::Settings(_)) { Exit::Failure } else { Exit::Usage }
    })?;
    if own.is_some_and(|own| own.trim() != value.trim()) {
        render::note(&format!(
            "warning: `{variable}` is set here to another key, which goes before the stored one\n  hint: unset {variable}"
        ));
    }
    Ok(())
}

fn write(keys: &Keys, variable: &str, value: &str, place: Option<KeyPlace>) -> Result<(), KeysError> {
    let place = match place {
        Some(place) => place,
        None => match keys.keyring() {
            Ok(()) => KeyPlace::Keyring,
            Err(error) => {
                render::note(&format!("note: {error}"));
                KeyPlace::File
            }
        },
    };
    let problem = keys.store(variable, value, place)?;
    problem.iter().for_each(|problem| render::note(&format!("warning: {problem}")));
    match place {
        KeyPlace::Keyring => {
            render::note(&format!("note: the key is in the keyring of the system as `{variable}`"))
        }
        KeyPlace::File => render::note(&format!(
            "warning: the key is in `{}` as `{variable}`, in plain text; only you can read the file",
            keys.file().display()
        )),
    }
    Ok(())
}

/// `amplifier provider remove`.
pub async fn remove(args: &ProviderRemoveArgs, access: &Access) -> Exit {
    let scopes = args.scope.named().map_or_else(|| Scope::ALL.to_vec(), |scope| vec![scope]);
    let configured = access.settings.providers();
    let known = super::find(&configured, &args.name).cloned();
    let mut removed = Vec::new();
    for scope in scopes {
        // A folder that cannot have such settings has no provider in them.
        let Ok(editor) = editor(access, scope) else { continue };
        match editor.remove_provider(&args.name) {
            Ok(Some(edited)) => removed.push(shown(&edited.file, access)),
            Ok(None) => {}
            Err(error) => return load::refuse_settings(&error),
        }
    }
    let keys = Keys::new(&access.home, &access.environment);
    let usual = usual_variables(&args.name, access).await;
    if removed.is_empty() {
        let stored = keys.names().into_iter().map(|(name, _)| name).find(|name| usual.contains(name));
        return match stored.filter(|_| args.forget_key && known.is_none()) {
            Some(variable) => forget(&keys, &variable),
            None => load::refuse_settings(&missing(&args.name, args.scope.named(), access)),
        };
    }
    removed.iter().for_each(|file| render::out(&format!("`{}` is no longer in `{file}`", args.name)));
    let variable = known.as_ref().and_then(|entry| key_variable(&entry.spec));
    let Some((variable, place)) = keys.names().into_iter().find(|(name, _)| Some(name) == variable.as_ref())
    else {
        return Exit::Success;
    };
    if args.forget_key {
        return forget(&keys, &variable);
    }
    // What the name does not lead to is named itself.
    let name = if usual.contains(&variable) { &args.name } else { &variable };
    let place = place.name();
    Remark::note(format!(
        "its key stays stored as `{variable}` ({place}); `amplifier provider remove {name} --forget-key` takes it too"
    ))
    .tell();
    Exit::Success
}

/// The variables that a key of this name may be stored under.
async fn usual_variables(name: &str, access: &Access) -> Vec<String> {
    let mut usual = vec![variable_of(name), name.to_owned()];
    if let Ok(info) = provider(name)
        && let Ok(variables) = variables_of(info.id, &access.environment).await
    {
        usual.extend(variables.into_iter().map(|variable| variable.name));
    }
    usual
}

fn forget(keys: &Keys, variable: &str) -> Exit {
    match keys.forget(variable) {
        Ok(_) => {
            render::out(&format!("the key `{variable}` is forgotten"));
            Exit::Success
        }
        Err(error) => {
            render::error(&error, error.hint());
            Exit::Failure
        }
    }
}
