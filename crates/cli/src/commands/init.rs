//! `amplifier init`: connects a provider, with questions at a terminal, without any where nobody can answer.

use std::path::PathBuf;

use amplifier_app::connect::{Connection, KeyChoice, short};
use amplifier_app::detect::{self, DetectError, Places};
use amplifier_app::inquire::{self, Asker, Inquiry};
use amplifier_app::keys::KeyPlace;
use amplifier_app::lack;
use amplifier_app::library::Access;
use amplifier_app::settings::Scope;
use serde_json::Value;

mod guided;

pub use guided::guided;

use super::load;
use super::provider::{self, connect};
use crate::args::{Form, InitArgs};
use crate::exit::Exit;
use crate::question;
use crate::render::{self, Remark};

/// What works where nothing was found; `init` itself takes no name.
const NOTHING_FOUND: &str = "set one of these variables or start a server, then try again; `amplifier init` without `--yes` asks, \
     `amplifier provider add NAME` takes a provider by name";

/// Whether the service is asked before anything is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// For its models and for one word.
    Once,
    /// For nothing at all.
    Never,
}

/// `amplifier init`.
pub fn run(args: &InitArgs, home: Option<PathBuf>) -> Exit {
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    if !args.yes && !question::is_somebody_there() {
        Remark::error("`amplifier init` asks questions, and nobody is there to answer")
            .hint("`amplifier init --yes` takes the provider that is found here")
            .tell();
        return Exit::Usage;
    }
    let trial = if args.no_test { Trial::Never } else { Trial::Once };
    load::block_on(async {
        let exit = match args.yes {
            true => unasked(args.scope.scope(), trial, &access).await,
            false => guided(args.scope.scope(), trial, &access).await,
        };
        load::tell_key_problems(&access);
        exit
    })
}

/// Takes what is found.
async fn unasked(scope: Scope, trial: Trial, access: &Access) -> Exit {
    if let Some(exit) = told_of_old(access).await {
        return exit;
    }
    let environment = &access.environment;
    let found = match detect::detect(environment, &Places::of(environment)).await {
        Ok(found) => found,
        Err(error) => {
            let nothing = matches!(error, DetectError::Nothing(_)).then_some(NOTHING_FOUND);
            render::error(&error, nothing.or(error.hint()));
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
    if trial == Trial::Once
        && let Err(exit) = try_out(&connection, access).await
    {
        render::note("nothing was written");
        return exit;
    }
    finish(&connection, None, scope, access)
}

/// What to say where the settings name a provider already: that there is nothing to do, unless none of them can be used.
async fn told_of_old(access: &Access) -> Option<Exit> {
    let mut lacking = None;
    for entry in access.settings.providers() {
        match lack::of_configured(&entry, &access.settings, &access.environment).await {
            Ok(None) => {
                render::out(&format!("`{}` is in the settings already: {}", entry.name(), entry.place));
                return Some(Exit::Success);
            }
            Ok(Some(lack)) => lacking = lacking.or(Some((entry, lack))),
            Err(error) => return Some(connect::refuse_detect(&error)),
        }
    }
    let (entry, lack) = lacking?;
    let (name, place) = (entry.name(), &entry.place);
    let set = lack.variable().map(|variable| format!("set `{variable}`; ")).unwrap_or_default();
    Remark::error(format!("`{name}` is in the settings already and cannot be used: {lack} ({place})"))
        .hint(format!(
            "{set}`amplifier init` without `--yes` asks for what is missing; `amplifier provider remove {name}` takes it out"
        ))
        .tell();
    Some(Exit::Usage)
}

fn finish(connection: &Connection, place: Option<KeyPlace>, scope: Scope, access: &Access) -> Exit {
    let exit = connect::keep(connection, place, scope, access);
    if exit == Exit::Success {
        render::say_aside("try it: `amplifier run \"What is in this folder?\"`");
    }
    exit
}

/// One small call.
async fn try_out(connection: &Connection, access: &Access) -> Result<(), Exit> {
    let environment = &access.environment;
    let inquiry = Inquiry { entry: Some(connection.trial()), ..Inquiry::default() };
    let answered = inquire::test(&inquiry, environment, &Places::of(environment)).await;
    let answered = answered.map_err(|error| provider::refuse(&error, Asker::Init, Form::Text))?;
    let model = answered.model.map(|model| format!(" (`{model}`)")).unwrap_or_default();
    render::note(&format!("`{}` answers{model}, {:.0} ms", short(&answered.module), answered.total_ms));
    Ok(())
}
