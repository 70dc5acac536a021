//! `amplifier provider …`: which providers can be used, which models they have, and whether they answer.

use amplifier_app::detect::{Places, Standing, Standings, standings};
use amplifier_app::env::Environment;
use amplifier_app::inquire::{self, Answered, Inquiry, InquiryError, Models};
use amplifier_protocol::provider::ModelInfo;
use serde_json::{Value, json};

use crate::args::{Form, ProviderAskArgs, ProviderCommand, ProviderListArgs};
use crate::exit::Exit;
use crate::render;

/// Where the column of reasons begins: behind the longest name.
const REASONS: usize = 22;
/// Where the column of what a model can do begins.
const ABILITIES: usize = 38;
/// Where the column of what was measured begins.
const MEASURED: usize = 17;

/// `amplifier provider …`.
pub fn run(command: &ProviderCommand) -> Exit {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            render::error(&error, None);
            return Exit::Failure;
        }
    };
    runtime.block_on(async {
        match command {
            ProviderCommand::List(args) => list(args).await,
            ProviderCommand::Models(args) => models(args).await,
            ProviderCommand::Test(args) => test(args).await,
        }
    })
}

async fn list(args: &ProviderListArgs) -> Exit {
    let environment = Environment::Process;
    let standings = match standings(&environment, &Places::of(&environment)).await {
        Ok(standings) => standings,
        Err(error) => {
            render::error(&error, error.hint());
            return Exit::Failure;
        }
    };
    match args.output {
        Form::Json => render::json(&json!(standings)),
        Form::Text => render::out(&table(&standings)),
    }
    Exit::Success
}

fn table(standings: &Standings) -> String {
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
    parts.push(match detected {
        Some(row) => format!("Asked when no provider is named: {}", row.name),
        None => "When no provider is named, there is none to ask.".to_owned(),
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

fn inquiry(args: &ProviderAskArgs) -> Inquiry {
    Inquiry {
        provider: args.name.clone(),
        model: args.model.clone(),
        base_url: args.base_url.clone(),
        timeout: args.timeout,
    }
}

async fn models(args: &ProviderAskArgs) -> Exit {
    let environment = Environment::Process;
    let found = match inquire::models(&inquiry(args), &environment, &Places::of(&environment)).await {
        Ok(found) => found,
        Err(error) => return refuse(&error, args.output),
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

async fn test(args: &ProviderAskArgs) -> Exit {
    let environment = Environment::Process;
    let answered = match inquire::test(&inquiry(args), &environment, &Places::of(&environment)).await {
        Ok(answered) => answered,
        Err(error) => return refuse(&error, args.output),
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
fn refuse(error: &InquiryError, form: Form) -> Exit {
    let hint = error.hint();
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
        _ => Exit::Failure,
    }
}
