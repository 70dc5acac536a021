//! `amplifier provider …`: which providers can be used, which models they have, and whether they answer. Putting them into
//! the settings is in `provider/connect.rs`.

use std::path::PathBuf;

use amplifier_app::detect::{Places, Standing, Standings, standings};
use amplifier_app::inquire::{self, Answered, Asker, Inquiry, InquiryError, Models};
use amplifier_app::lack::{self, Lack};
use amplifier_app::library::Access;
use amplifier_app::settings::Configured;
use amplifier_protocol::provider::ModelInfo;
use serde_json::{Value, json};

use super::load;
use crate::args::{Form, ProviderAskArgs, ProviderCommand, ProviderListArgs};
use crate::exit::Exit;
use crate::render;

pub mod connect;

/// Where the column of reasons begins: behind the longest name.
const REASONS: usize = 22;
/// Who is asked where there is no model.
const NO_MODEL: &str =
    "When no provider is named, the built-in demo answers, which is no model. `amplifier init` connects one.";
/// Where the column of what a model can do begins.
const ABILITIES: usize = 38;
/// Where the column of what was measured begins.
const MEASURED: usize = 17;

/// `amplifier provider …`.
pub fn run(command: &ProviderCommand, home: Option<PathBuf>) -> Exit {
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    load::block_on(async {
        let exit = match command {
            ProviderCommand::List(args) => list(args, &access).await,
            ProviderCommand::Models(args) => models(args, &access).await,
            ProviderCommand::Test(args) => test(args, &access).await,
            ProviderCommand::Add(args) => connect::add(args, &access).await,
            ProviderCommand::Set(args) => connect::set(args, &access).await,
            ProviderCommand::Remove(args) => connect::remove(args, &access).await,
        };
        load::tell_key_problems(&access);
        exit
    })
}

async fn list(args: &ProviderListArgs, access: &Access) -> Exit {
    let environment = &access.environment;
    let standings = match standings(environment, &Places::of(environment)).await {
        Ok(standings) => standings,
        Err(error) => {
            render::error(&error, error.hint());
            return Exit::Failure;
        }
    };
    let mut configured = Vec::new();
    for entry in access.settings.providers() {
        match lack::of_configured(&entry, &access.settings, &access.environment).await {
            Ok(lack) => configured.push((entry, lack)),
            Err(error) => return connect::refuse_detect(&error),
        }
    }
    match args.output {
        Form::Json => {
            let mut told = json!(standings);
            if let Value::Object(told) = &mut told {
                let rows = configured.iter().map(|(entry, lack)| entry_json(entry, lack.as_ref()));
                told.insert("configured".to_owned(), rows.collect());
            }
            render::json(&told);
        }
        Form::Text => {
            tell_configured(&configured);
            render::say(&table(&standings, &configured));
        }
    }
    Exit::Success
}

fn entry_json(entry: &Configured, lack: Option<&Lack>) -> Value {
    let text = |key: &str| entry.spec.config.get(key).and_then(Value::as_str);
    json!({
        "name": entry.name(),
        "module": entry.spec.module,
        "model": text("default_model").or(text("model")),
        "base_url": text("base_url"),
        "usable": lack.is_none(),
        "reason": lack.map(ToString::to_string),
        "layer": entry.layer.name(),
        "at": entry.place.to_string(),
    })
}

fn tell_configured(configured: &[(Configured, Option<Lack>)]) {
    if configured.is_empty() {
        return;
    }
    render::out("In the settings");
    for (entry, lack) in configured {
        let told = entry_json(entry, lack.as_ref());
        let text = |key: &str| told.get(key).and_then(Value::as_str);
        let model = text("model").map(|model| format!(" asks `{model}`")).unwrap_or_default();
        let place = text("base_url").map(|place| format!(" at {place}")).unwrap_or_default();
        // A path is not torn, so it has its own line.
        let line = format!("`{}`{model}{place}", entry.spec.module);
        render::out(&render::entry(entry.name(), &line, REASONS));
        render::out(&render::below(&entry.place.to_string(), REASONS));
        if let Some(lack) = lack {
            render::out(&render::below(&format!("cannot be used: {lack}"), REASONS));
            render::out(&render::below(&render::typed(&format!("cure: {}", lack.cure())), REASONS));
        }
    }
    render::out("");
}

fn table(standings: &Standings, configured: &[(Configured, Option<Lack>)]) -> String {
    let mut parts = Vec::new();
    let (usable, others): (Vec<_>, Vec<_>) = standings.providers.iter().partition(|row| row.usable);
    for (heading, rows) in [("Can be used here", usable), ("Cannot be used here", others)] {
        if rows.is_empty() {
            continue;
        }
        parts.push(heading.to_owned());
        parts.extend(rows.into_iter().map(row));
        parts.push(String::new());
    }
    let detected = standings.detected.as_ref();
    let detected = standings.providers.iter().find(|row| Some(&row.module) == detected);
    // Of those in the settings, the first that can be asked is.
    let asked = configured.iter().find(|(_, lack)| lack.is_none()).or(configured.first());
    parts.push(match (asked, detected) {
        (Some((entry, None)), _) => format!("Asked when no provider is named: {}", entry.name()),
        (Some((entry, Some(_))), _) => {
            format!("Asked when no provider is named: {}, which cannot be used now", entry.name())
        }
        (None, Some(row)) => format!("Asked when no provider is named: {}", row.name),
        (None, None) => render::wrapped(NO_MODEL, 0),
    });
    parts.join("\n")
}

fn row(standing: &Standing) -> String {
    let mut text = standing.reason.clone();
    // A server that was found is described with its model and place already.
    if let (true, Some(model), Some(place)) = (standing.usable, &standing.model, &standing.base_url)
        && !text.contains(place.as_str())
    {
        text.push_str(&format!("; asks `{model}` at {place}"));
    }
    render::entry(&standing.name, &text, REASONS)
}

/// Whom to ask: one of the settings by its name, the first of them when none is named, else whoever is found.
fn inquiry(args: &ProviderAskArgs, access: &Access) -> Inquiry {
    let configured = access.settings.providers();
    let found = match &args.name {
        Some(name) => find(&configured, name),
        None if args.base_url.is_none() => configured.first(),
        None => None,
    };
    Inquiry {
        provider: args.name.clone(),
        entry: found.map(|entry| entry.spec.clone()),
        model: args.model.clone(),
        base_url: args.base_url.clone(),
        timeout: args.timeout,
    }
}

/// An entry by its id, its module or its module's short name.
pub fn find<'c>(configured: &'c [Configured], name: &str) -> Option<&'c Configured> {
    let by_name = configured.iter().find(|entry| entry.name() == name);
    let of_module = |entry: &&Configured| {
        let module = entry.spec.module.as_str();
        module == name || module.strip_prefix("provider-") == Some(name)
    };
    by_name.or_else(|| configured.iter().find(of_module))
}

async fn models(args: &ProviderAskArgs, access: &Access) -> Exit {
    let environment = &access.environment;
    let found = match inquire::models(&inquiry(args, access), environment, &Places::of(environment)).await {
        Ok(found) => found,
        Err(error) => return refuse(&error, Asker::Command, args.output),
    };
    match args.output {
        Form::Json => render::json(&json!(found)),
        Form::Text => tell_models(&found),
    }
    Exit::Success
}

fn tell_models(found: &Models) {
    if found.models.is_empty() {
        render::note(&format!("note: `{}` lists no models", found.module));
    }
    for model in &found.models {
        render::out(render::entry(&model.id, &abilities(model), ABILITIES).trim_end());
    }
}

fn abilities(model: &ModelInfo) -> String {
    let window = (model.context_window > 0).then(|| format!("{} tokens", model.context_window));
    window.into_iter().chain(model.capabilities.iter().cloned()).collect::<Vec<_>>().join(", ")
}

async fn test(args: &ProviderAskArgs, access: &Access) -> Exit {
    let environment = &access.environment;
    let answered = match inquire::test(&inquiry(args, access), environment, &Places::of(environment)).await {
        Ok(answered) => answered,
        Err(error) => return refuse(&error, Asker::Command, args.output),
    };
    match args.output {
        Form::Json => {
            let mut told = json!({"ok": true});
            if let (Value::Object(told), Value::Object(rest)) = (&mut told, json!(answered)) {
                told.extend(rest);
            }
            render::json(&told);
        }
        Form::Text => tell_answer(&answered),
    }
    Exit::Success
}

fn tell_answer(answered: &Answered) {
    let time = |milliseconds: Option<f64>| {
        milliseconds.map_or_else(|| "not measured".to_owned(), |time| format!("{time:.1} ms"))
    };
    let tokens = answered.usage.as_ref().map_or_else(
        || "not told".to_owned(),
        |usage| format!("{} in, {} out", usage.input_tokens, usage.output_tokens),
    );
    render::out(&format!("`{}` answers", answered.module));
    let rows = [
        ("model", answered.model.clone().unwrap_or_else(|| "not told".to_owned())),
        ("place", answered.base_url.clone().unwrap_or_else(|| "this process".to_owned())),
        ("connect", time(answered.connect_ms)),
        ("first token", time(answered.first_token_ms)),
        ("total", time(Some(answered.total_ms))),
        ("tokens", tokens),
        ("cost", answered.cost_usd.map_or_else(|| "not known".to_owned(), |cost| format!("${cost}"))),
    ];
    rows.iter().for_each(|(name, text)| render::out(&render::entry(name, text, MEASURED)));
}

/// Says why not; to programs on standard output too.
pub fn refuse(error: &InquiryError, asker: Asker, form: Form) -> Exit {
    let hint = error.hint(asker);
    if form == Form::Json {
        let mut told = json!({"ok": false, "error": {"message": error.to_string()}, "hint": hint});
        if let (InquiryError::Call(failed), Some(place)) = (error, told.get_mut("error")) {
            *place = json!(failed.error);
        }
        render::json(&told);
    }
    render::error(error, hint.as_deref());
    match error {
        InquiryError::Unknown(_) | InquiryError::Detect(_) | InquiryError::NotUsable { .. } => Exit::Usage,
        error if error.is_timeout() => Exit::TimedOut,
        _ => Exit::Failure,
    }
}
