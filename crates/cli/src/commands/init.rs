//! `amplifier init`: connects a provider, with questions at a terminal, without any where nobody can answer.

use std::io;
use std::path::PathBuf;

use amplifier_app::connect::{Connection, KeyChoice, short};
use amplifier_app::detect::{self, Places, Standing, Standings};
use amplifier_app::inquire::{self, Inquiry};
use amplifier_app::keys::{KeyPlace, Keys};
use amplifier_app::library::Access;
use amplifier_app::settings::Scope;
use serde_json::Value;

use super::load;
use super::provider::{self, connect};
use crate::args::{Form, InitArgs};
use crate::exit::Exit;
use crate::question::{self, Usual};
use crate::render;

/// `amplifier init`.
pub fn run(args: &InitArgs, home: Option<PathBuf>) -> Exit {
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    if !args.yes && !question::is_somebody_there() {
        render::note("error: `amplifier init` asks questions, and nobody is there to answer");
        render::note("  hint: `amplifier init --yes` takes the provider that is found here");
        return Exit::Usage;
    }
    load::block_on(async {
        let exit = match args.yes {
            true => unasked(args, &access).await,
            false => guided(args.scope.scope(), &access).await,
        };
        load::tell_key_problems(&access);
        exit
    })
}

/// Takes what is found.
async fn unasked(args: &InitArgs, access: &Access) -> Exit {
    if let Some(entry) = access.settings.providers().first() {
        render::out(&format!("`{}` is in the settings already: {}", entry.name(), entry.place));
        return Exit::Success;
    }
    let environment = &access.environment;
    let found = match detect::detect(environment, &Places::of(environment)).await {
        Ok(found) => found,
        Err(error) => {
            render::error(&error, error.hint());
            return Exit::Usage;
        }
    };
    render::note(&format!("note: `{}`: {}", found.spec.module, found.reason));
    let mut connection = match Connection::to(found.spec.module.as_str()) {
        Ok(connection) => connection,
        Err(error) => {
            render::error(&error, None);
            return Exit::Failure;
        }
    };
    let text = |key: &str| found.spec.config.get(key).and_then(Value::as_str).map(str::to_owned);
    (connection.base_url, connection.model) = (text("base_url"), text("default_model"));
    let variables = match detect::variables_of(found.spec.module.clone(), environment).await {
        Ok(variables) => variables,
        Err(error) => return connect::refuse_detect(&error),
    };
    if let Some(set) = variables.into_iter().find(|variable| variable.set) {
        connection.key = KeyChoice::Variable(set.name);
    }
    if !args.no_test
        && let Err(exit) = try_out(&connection, access).await
    {
        render::note("nothing was written");
        return exit;
    }
    finish(&connection, None, args.scope.scope(), access)
}

fn finish(connection: &Connection, place: Option<KeyPlace>, scope: Scope, access: &Access) -> Exit {
    let exit = connect::keep(connection, place, scope, access);
    if exit == Exit::Success {
        render::note("try it: amplifier run \"What is in this folder?\"");
    }
    exit
}

/// One small call.
async fn try_out(connection: &Connection, access: &Access) -> Result<(), Exit> {
    let environment = &access.environment;
    let inquiry = Inquiry { entry: Some(connection.trial()), ..Inquiry::default() };
    let answered = inquire::test(&inquiry, environment, &Places::of(environment)).await;
    let answered = answered.map_err(|error| match provider::refuse(&error, Form::Text) {
        Exit::Usage => Exit::Usage,
        _ => Exit::Failure,
    })?;
    let model = answered.model.map(|model| format!(" (`{model}`)")).unwrap_or_default();
    render::note(&format!("`{}` answers{model}, {:.0} ms", short(&answered.module), answered.total_ms));
    Ok(())
}

/// Asks everything that is needed.
pub async fn guided(scope: Scope, access: &Access) -> Exit {
    let environment = &access.environment;
    let standings = match detect::standings(environment, &Places::of(environment)).await {
        Ok(standings) => standings,
        Err(error) => return connect::refuse_detect(&error),
    };
    match converse(&standings, scope, access).await {
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

async fn converse(standings: &Standings, scope: Scope, access: &Access) -> io::Result<Exit> {
    let standing = choose_provider(standings)?;
    let mut connection = match Connection::to(standing.module.as_str()) {
        Ok(connection) => connection,
        Err(error) => {
            render::error(&error, None);
            return Ok(Exit::Failure);
        }
    };
    if access.settings.providers().iter().any(|entry| entry.name() == standing.name) {
        question::say(&format!(
            "`{}` is in the settings already; this one needs a name of its own.",
            standing.name
        ))?;
        connection.id = Some(question::text("Name", Some(&format!("{}-2", standing.name)))?);
    }
    // A service without a usual place is asked for; a server that was found says where it is.
    connection.base_url = match (&standing.base_url, standing.usable) {
        (Some(place), true) if standing.variables.iter().all(|variable| !variable.set) => Some(place.clone()),
        (_, false) => place_of(standing)?,
        _ => None,
    };
    let place = ask_key(&mut connection, standing, access)?;
    connection.model = ask_model(&connection, standing, access).await?;
    question::say("Asking it for one word …")?;
    if try_out(&connection, access).await.is_err() && !question::agree("Keep it all the same?", Usual::No)? {
        render::note("nothing was written");
        return Ok(Exit::Failure);
    }
    if let (None, KeyChoice::Given { variable, .. }) = (place, &connection.key) {
        connection.key = KeyChoice::Variable(variable.clone());
    }
    Ok(finish(&connection, place, scope, access))
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
    question::text("Where is the service? (URL)", None).map(Some)
}

/// The key, and where it will be kept.
fn ask_key(
    connection: &mut Connection,
    standing: &Standing,
    access: &Access,
) -> io::Result<Option<KeyPlace>> {
    if !connection.takes_key() || standing.variables.is_empty() {
        return Ok(None);
    }
    if let Some(set) = standing.variables.iter().find(|variable| variable.set)
        && question::agree(&format!("`{}` is set. Use it?", set.name), Usual::Yes)?
    {
        connection.key = KeyChoice::Variable(set.name.clone());
        return Ok(None);
    }
    let usual = standing.variables.first().map(|variable| variable.name.as_str());
    let variable = connection.variable(usual);
    let value = question::secret("The key (not shown; empty when none is needed)")?;
    if value.trim().is_empty() {
        return Ok(None);
    }
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
        question::say("The key is used for the test now and forgotten.")?;
    }
    Ok(place)
}

/// The model, from the list that the service gives where it gives one.
async fn ask_model(
    connection: &Connection,
    standing: &Standing,
    access: &Access,
) -> io::Result<Option<String>> {
    let environment = &access.environment;
    let inquiry = Inquiry { entry: Some(connection.trial()), ..Inquiry::default() };
    let listed = inquire::models(&inquiry, environment, &Places::of(environment)).await;
    let models = listed.map(|listed| listed.models).unwrap_or_default();
    if models.is_empty() {
        question::say("It lists no models.")?;
        let usual = standing.model.as_deref().unwrap_or("the usual one");
        let model = question::text("Model", Some(usual))?;
        return Ok((model != "the usual one").then_some(model));
    }
    let usual = models.iter().position(|model| Some(&model.id) == standing.model.as_ref()).unwrap_or(0);
    let choices: Vec<_> = models.iter().map(|model| (model.id.clone(), String::new())).collect();
    let at = question::choose("Which model?", &choices, usual)?;
    Ok(models.get(at).map(|model| model.id.clone()))
}
