//! `amplifier provider add` and `amplifier provider remove`, and what `amplifier init` shares with them.

use std::io;

use amplifier_app::connect::{Connection, KeyChoice, short};
use amplifier_app::detect::{DetectError, variables_of};
use amplifier_app::keys::{KeyPlace, Keys, KeysError};
use amplifier_app::lack::{self, Lack};
use amplifier_app::library::Access;
use amplifier_app::settings::{Scope, SettingsError};

use crate::args::{ProviderAddArgs, ProviderRemoveArgs, Store};
use crate::commands::config::{editor, shown};
use crate::commands::{init, load};
use crate::exit::Exit;
use crate::input;
use crate::question;
use crate::render;

/// The longest key, in bytes: a token of a sign-on has a few thousand.
const LONGEST_KEY: u64 = 64 * 1024;

/// `amplifier provider add`.
pub async fn add(args: &ProviderAddArgs, access: &Access) -> Exit {
    let Some(name) = &args.name else {
        if question::is_somebody_there() {
            return init::guided(args.scope.scope(), init::Trial::Once, access).await;
        }
        render::note("error: no provider is named, and nobody is there to be asked");
        render::note("  hint: `amplifier provider list` shows the types");
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
    let place = args.store.map(|store| match store {
        Store::Keyring => KeyPlace::Keyring,
        Store::File => KeyPlace::File,
    });
    let exit = keep(&connection, place, args.scope.scope(), access);
    if exit == Exit::Success {
        tell_lack(&connection, access).await;
    }
    exit
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
    if let Some(variable) = &args.key_from_env {
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
    if args.key_stdin {
        let value = input::read_text(LONGEST_KEY).map_err(|error| {
            render::error(&error, Some("pipe in the key and nothing else"));
            Exit::Usage
        })?;
        if value.trim().is_empty() {
            render::error(
                &KeysError::Empty,
                Some("pipe it in, as in `cat key.txt | amplifier provider add … --key-stdin`"),
            );
            return Err(Exit::Usage);
        }
        return Ok(KeyChoice::Given { variable, value });
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
    render::note(&format!("error: `{}` needs a key, and none was given", connection.info.id));
    render::note(&format!(
        "  hint: set `{variable}`, name another variable with `--key-from-env`, or pipe the key in with `--key-stdin`"
    ));
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
    let keys = Keys::new(&access.home, &access.environment);
    let name = connection.id.clone().unwrap_or_else(|| short(&connection.info.id).to_owned());
    // The entry first: a key that nothing refers to would be forgotten in the store.
    let edited = match editor(access, scope).and_then(|editor| editor.add_provider(&connection.entry())) {
        Ok(edited) => edited,
        Err(error) => return load::refuse_settings(&error),
    };
    if let KeyChoice::Given { variable, value } = &connection.key {
        if let Err(error) = store(&keys, variable, value, place) {
            // Without its key the entry is of no use.
            if let Err(error) = editor(access, scope).and_then(|editor| editor.remove_provider(&name)) {
                load::refuse_settings(&error);
            }
            render::error(&error, error.hint());
            return if matches!(error, KeysError::Settings(_)) { Exit::Failure } else { Exit::Usage };
        }
    } else if let KeyChoice::Variable(variable) = &connection.key {
        if is_unset(variable, access) {
            // One note, so that what is left out is left out with its hint.
            render::note(&format!(
                "warning: `{variable}` is not set now; it must be when the provider is used\n  hint: export {variable}=…"
            ));
        } else {
            render::note(&format!("note: the key stays in `{variable}`; nothing of it is stored"));
        }
    }
    render::out(&format!("`{name}` is in `{}`", shown(&edited.file, access)));
    Exit::Success
}

/// Stores a key in the keyring when there is one, else in the file; that it lies there in plain text is said.
fn store(keys: &Keys, variable: &str, value: &str, place: Option<KeyPlace>) -> Result<(), KeysError> {
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
    keys.store(variable, value, place)?;
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
pub fn remove(args: &ProviderRemoveArgs, access: &Access) -> Exit {
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
    if removed.is_empty() {
        return load::refuse_settings(&SettingsError::NoProvider { name: args.name.clone() });
    }
    removed.iter().for_each(|file| render::out(&format!("`{}` is no longer in `{file}`", args.name)));
    let reference = known.and_then(|entry| entry.spec.config.get("api_key")?.as_str().map(str::to_owned));
    let variable = reference.as_deref().and_then(|text| text.strip_prefix("${")?.strip_suffix('}'));
    variable.map_or(Exit::Success, |variable| forget(variable, args, access))
}

fn forget(variable: &str, args: &ProviderRemoveArgs, access: &Access) -> Exit {
    let keys = Keys::new(&access.home, &access.environment);
    let Some((_, place)) = keys.names().into_iter().find(|(name, _)| name == variable) else {
        return Exit::Success;
    };
    if !args.forget_key {
        let place = place.name();
        render::note(&format!(
            "note: its key stays stored as `{variable}` ({place}); `--forget-key` takes it too"
        ));
        return Exit::Success;
    }
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
