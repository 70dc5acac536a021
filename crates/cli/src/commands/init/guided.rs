//! The questions of `amplifier init`, and of `amplifier provider add` where no provider is named. Nothing is written before
//! the last one is answered.

use std::io;

use amplifier_app::chain;
use amplifier_app::connect::{Connection, KeyChoice, fit, key_variable};
use amplifier_app::detect::{self, Places, Standing, Standings, Variable};
use amplifier_app::inquire::{self, Asker, Inquiry};
use amplifier_app::keys::{KeyPlace, Keys};
use amplifier_app::lack::{self, Lack};
use amplifier_app::library::Access;
use amplifier_app::settings::{Layer, Scope};

use super::{Trial, finish, try_out};
use crate::commands::provider::connect;
use crate::exit::Exit;
use crate::question::{self, Usual};
use crate::render;

/// Asks everything that is needed.
pub async fn guided(scope: Scope, trial: Trial, access: &Access) -> Exit {
    let environment = &access.environment;
    let looked = match trial {
        Trial::Once => detect::standings(environment, &Places::of(environment)).await,
        Trial::Never => detect::standings_unasked(environment).await,
    };
    let standings = match looked {
        Ok(standings) => standings,
        Err(error) => return connect::refuse_detect(&error),
    };
    match converse(&standings, scope, trial, access).await {
        Ok(exit) => exit,
        Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::Interrupted) => {
            render::note("\nnothing was written");
            Exit::Interrupted
        }
        Err(error) => {
            render::error(&error, None);
            Exit::Failure
        }
    }
}

async fn converse(standings: &Standings, scope: Scope, trial: Trial, access: &Access) -> io::Result<Exit> {
    let standing = choose_provider(standings)?;
    let mut connection = match Connection::to(standing.module.as_str()) {
        Ok(connection) => connection,
        Err(error) => {
            render::error(&error, None);
            return Ok(Exit::Failure);
        }
    };
    let replaced = match ask_name(&mut connection, standing, access).await? {
        Ok(replaced) => replaced,
        Err(exit) => return Ok(exit),
    };
    // A service without a usual place is asked for; a server that was found says where it is, and so does an entry.
    let says =
        |key: &str| connection.over.as_ref().and_then(|old| old.config.get(key)?.as_str().map(str::to_owned));
    let model = says("default_model").or(says("model")).or(standing.model.clone());
    let misses = connection.over.as_ref().and_then(|old| lack::unset(old, &access.environment));
    connection.base_url = match (&standing.base_url, standing.usable) {
        _ if matches!(&misses, Some(Lack::Unset { pointer, .. }) if pointer == "/base_url") => {
            Some(question::fitting("Where is the service? (URL)", None, fit::address)?)
        }
        _ if says("base_url").is_some() => None,
        (Some(place), true) if standing.variables.iter().all(|variable| !variable.set) => Some(place.clone()),
        (_, false) => place_of(standing)?,
        _ => None,
    };
    let place = match ask_key(&mut connection, standing, access).await? {
        Ok(place) => place,
        Err(exit) => return Ok(exit),
    };
    connection.model = match trial {
        Trial::Once => ask_model(&connection, model.as_deref(), access).await?,
        Trial::Never => type_model(model.as_deref())?,
    };
    if trial == Trial::Once {
        question::say("Asking it for one word …")?;
        if try_out(&connection, access).await.is_err()
            && !question::agree("Keep it all the same?", Usual::No)?
        {
            render::note("nothing was written");
            return Ok(Exit::Failure);
        }
    }
    if let (None, KeyChoice::Given { variable, .. }) = (place, &connection.key) {
        connection.key = KeyChoice::Variable(variable.clone());
    }
    // An entry that is there is changed where it stands.
    Ok(finish(&connection, place, replaced.unwrap_or(scope), access))
}

/// Where a provider of this name is in the settings: the file in which it is mended, when it is of no use as it is, else a
/// name of its own for the new one.
async fn ask_name(
    connection: &mut Connection,
    standing: &Standing,
    access: &Access,
) -> io::Result<Result<Option<Scope>, Exit>> {
    let configured = access.settings.providers();
    let Some(entry) = configured.iter().find(|entry| entry.name() == standing.name) else {
        return Ok(Ok(None));
    };
    let lack = match lack::of_configured(entry, &access.settings, &access.environment).await {
        Ok(lack) => lack,
        Err(error) => return Ok(Err(connect::refuse_detect(&error))),
    };
    if let (Some(lack), Layer::File(old)) = (lack, entry.layer) {
        question::say(&format!("`{}` is in the settings and cannot be used: {lack}.", standing.name))?;
        if question::agree("Mend it? What else it says stays.", Usual::Yes)? {
            connection.over = Some(entry.spec.clone());
            return Ok(Ok(Some(old)));
        }
    } else {
        question::say(&format!("`{}` is in the settings already.", standing.name))?;
    }
    question::say("This one needs a name of its own.")?;
    let is_taken = |name: &str| configured.iter().any(|entry| entry.name() == name);
    let usual = (2..).map(|number| format!("{}-{number}", standing.name)).find(|name| !is_taken(name));
    connection.id = Some(question::fitting("Name", usual.as_deref(), fit::name)?);
    Ok(Ok(None))
}

fn choose_provider(standings: &Standings) -> io::Result<&Standing> {
    // What plays a part is no model to connect.
    let is_model = |row: &&Standing| !["mock", "demo"].contains(&row.name.as_str());
    let mut rows: Vec<_> = standings.providers.iter().filter(is_model).collect();
    rows.sort_by_key(|row| !row.usable);
    let usual = rows.iter().position(|row| Some(&row.module) == standings.detected.as_ref()).unwrap_or(0);
    let choices: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = if row.usable { format!("ready: {}", row.reason) } else { wants(row) };
            (row.name.clone(), text)
        })
        .collect();
    let at = question::choose("Which provider?", &choices, usual)?;
    rows.get(at).copied().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// What a provider that cannot be used yet needs, in a few words.
fn wants(row: &Standing) -> String {
    match (row.name.as_str(), row.variables.first()) {
        ("ollama" | "vllm" | "chat-completions", _) | (_, None) => "needs the address of a server".to_owned(),
        (_, Some(variable)) => format!("needs a key ({})", variable.name),
    }
}

/// Where a service is that has no place of its own.
fn place_of(standing: &Standing) -> io::Result<Option<String>> {
    let own = ["azure-openai", "chat-completions", "vllm", "ollama"];
    if !own.contains(&standing.name.as_str()) {
        return Ok(None);
    }
    question::fitting("Where is the service? (URL)", standing.base_url.as_deref(), fit::address).map(Some)
}

/// The key, and where it will be kept.
async fn ask_key(
    connection: &mut Connection,
    standing: &Standing,
    access: &Access,
) -> io::Result<Result<Option<KeyPlace>, Exit>> {
    if !connection.takes_key() || standing.variables.is_empty() {
        return Ok(Ok(None));
    }
    // An entry that names a variable of its own does not get the key of another service.
    let own = connection.over.as_ref().and_then(key_variable);
    let is_offered = |variable: &&Variable| own.as_ref().is_none_or(|own| *own == variable.name);
    if let Some(set) = standing.variables.iter().filter(is_offered).find(|variable| variable.set)
        && question::agree(&format!("`{}` is set. Use it?", set.name), Usual::Yes)?
    {
        connection.key = KeyChoice::Variable(set.name.clone());
        return Ok(Ok(None));
    }
    // The module knows whether it can be without.
    let value = match detect::why_not(&connection.entry(), &access.environment).await {
        Ok(Some(_)) => connect::asked("The key (not shown)")?,
        Ok(None) => question::secret("The key (not shown; empty when none is needed)")?,
        Err(error) => return Ok(Err(connect::refuse_detect(&error))),
    };
    if value.trim().is_empty() {
        return Ok(Ok(None));
    }
    let usual = standing.variables.first().map(|variable| variable.name.as_str());
    let variable = connection.variable(usual);
    keep_key(connection, variable, value, access).map(Ok)
}

fn keep_key(
    connection: &mut Connection,
    variable: String,
    value: String,
    access: &Access,
) -> io::Result<Option<KeyPlace>> {
    let keys = Keys::new(&access.home, &access.environment);
    let mut places = Vec::new();
    if keys.keyring().is_ok() {
        places.push((Some(KeyPlace::Keyring), "keyring", "the keyring of the system".to_owned()));
    }
    let file = format!("{}, in plain text, readable by you alone", keys.file().display());
    places.push((Some(KeyPlace::File), "file", file));
    places.push((None, "nowhere", format!("you set `{variable}` yourself")));
    let choices: Vec<_> = places.iter().map(|(_, name, text)| ((*name).to_owned(), text.clone())).collect();
    let at = question::choose("Where shall the key be kept?", &choices, 0)?;
    let place = places.get(at).and_then(|(place, ..)| *place);
    connection.key = KeyChoice::Given { variable, value };
    if place.is_none() {
        question::say("The key is not kept: it is forgotten when this ends.")?;
    }
    Ok(place)
}

/// The model, from the list that the service gives where it gives one.
async fn ask_model(
    connection: &Connection,
    usual: Option<&str>,
    access: &Access,
) -> io::Result<Option<String>> {
    let environment = &access.environment;
    question::say("Asking it for its models …")?;
    let inquiry = Inquiry { entry: Some(connection.trial()), ..Inquiry::default() };
    let models = match inquire::models(&inquiry, environment, &Places::of(environment)).await {
        Ok(listed) if listed.models.is_empty() => {
            question::say("It lists no models.")?;
            return type_model(usual);
        }
        Ok(listed) => listed.models,
        Err(error) => {
            question::say(&format!("Its models cannot be listed: {}.", chain(&error)))?;
            if let Some(hint) = error.hint(Asker::Init) {
                question::say(&format!("  hint: {hint}"))?;
            }
            return type_model(usual);
        }
    };
    let usual = models.iter().position(|model| Some(model.id.as_str()) == usual).unwrap_or(0);
    let choices: Vec<_> = models.iter().map(|model| (model.id.clone(), String::new())).collect();
    let at = question::choose("Which model?", &choices, usual)?;
    Ok(models.get(at).map(|model| model.id.clone()))
}

/// The model as the person types it; where the provider has a usual one without telling it, nothing is written down.
fn type_model(usual: Option<&str>) -> io::Result<Option<String>> {
    let usual = usual.unwrap_or("the usual one");
    let model = question::text("Model", Some(usual))?;
    Ok((model != "the usual one").then_some(model))
}
