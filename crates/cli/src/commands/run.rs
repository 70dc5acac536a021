//! `amplifier run`: one prompt, one answer.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use amplifier_app::detect::Places;
use amplifier_app::env::Environment;
use amplifier_app::library::Access;
use amplifier_app::open::{AppError, OpenRequest, OpenSession, RecordTap, Which, open};
use amplifier_app::prepare::PrepareOptions;
use amplifier_app::prompt::{self, PromptParts};
use amplifier_app::{
    BundleStrictness, CancelLevel, ExecuteError, Freshness, ModuleSourceResolver, Prompt, Session, Speaker,
    Strictness, TurnError, detect, inquire, providers,
};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::record::Record;
use amplifier_protocol::status::SessionState;
use serde_json::{Value, json};

use super::load::{self, Chosen};
use crate::args::{Output, RunArgs};
use crate::exit::Exit;
use crate::render;

/// `amplifier run`.
pub fn run(args: &RunArgs, home: Option<PathBuf>) -> Exit {
    let prompt = match prompt(args) {
        Ok(prompt) => prompt,
        Err(problem) => {
            render::note(&format!("error: {problem}"));
            return Exit::Usage;
        }
    };
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    load::block_on(async {
        match what(args, access).await {
            Ok(what) => answer(args, what, prompt).await,
            Err(exit) => exit,
        }
    })
}

/// What is run.
struct What {
    access: Access,
    which: Which,
    prompt: Option<PromptParts>,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
}

async fn what(args: &RunArgs, mut access: Access) -> Result<What, Exit> {
    let resumed = match args.resume.as_ref().map(|id| id.parse::<SessionId>()).transpose() {
        Ok(resumed) => resumed,
        Err(error) => {
            render::error(&error, None);
            return Err(Exit::Usage);
        }
    };
    let choice = &args.choice;
    let named = choice.bundle.is_some() || choice.profile.is_some() || choice.plan.is_some();
    if let (Some(id), false) = (&resumed, named) {
        return Ok(What { access, which: Which::Resume(id.clone(), None), prompt: None, resolver: None });
    }
    if args.offline {
        access.freshness = Freshness::Offline;
    }
    let strictness = if args.strict { BundleStrictness::Strict } else { BundleStrictness::Lenient };
    let options = PrepareOptions { strictness, ..PrepareOptions::default() };
    let chosen = Chosen::find(&args.choice, &access, options).await?;
    let mut plan = chosen.plan()?;
    choose_provider(args, &mut plan, &access.environment).await?;
    let (prompt, resolver) = match &chosen {
        Chosen::File(_) => (None, None),
        Chosen::Bundle(bundle) => (Some(bundle.prompt()), bundle.resolver(&plan)),
        Chosen::Profile(profile) => {
            (Some(profile.prompt().map_err(|fault| super::profile::refuse(&fault))?), profile.resolver(&plan))
        }
    };
    let plan = Box::new(plan);
    let which = match resumed {
        Some(id) => Which::Resume(id, Some(plan)),
        None => Which::New(plan),
    };
    Ok(What { access, which, prompt, resolver })
}

/// The provider and the model that the person names, else the provider of the plan, else one that is found here.
async fn choose_provider(
    args: &RunArgs,
    plan: &mut MountPlan,
    environment: &Environment,
) -> Result<(), Exit> {
    if let Some(provider) = &args.provider
        && let Err(error) = providers::prefer(plan, provider)
    {
        render::error(&error, Some("`amplifier provider list` shows the providers that are built in"));
        return Err(Exit::Usage);
    }
    match detect::fill(plan, environment, &Places::of(environment)).await {
        Ok(None) => {}
        Ok(Some(found)) => {
            let (module, reason) = (found.spec.module, found.reason);
            render::note(&format!("note: no provider is named; `{module}` is used: {reason}"));
        }
        Err(error) => {
            render::error(&error, error.hint());
            return Err(Exit::Usage);
        }
    }
    if let Some(model) = &args.model {
        inquire::prefer_model(plan, model);
    }
    Ok(())
}

/// The prompt of the command line, else standard input when somebody piped something in.
fn prompt(args: &RunArgs) -> Result<Prompt, String> {
    if args.go_on {
        return Ok(Prompt::Continue);
    }
    if let Some(prompt) = &args.prompt {
        return Ok(Prompt::Text(prompt.clone()));
    }
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err("nothing was asked: give a prompt, or pipe one in".to_owned());
    }
    let mut text = String::new();
    stdin
        .read_to_string(&mut text)
        .map_err(|error| format!("standard input cannot be read as text: {error}"))?;
    if text.trim().is_empty() {
        return Err("the prompt on standard input is empty".to_owned());
    }
    Ok(Prompt::Text(text))
}

async fn answer(args: &RunArgs, what: What, prompt: Prompt) -> Exit {
    let opened = match open_session(args, what).await {
        Ok(opened) => opened,
        Err(error) => return refuse_to_open(&error),
    };
    tell_about(&opened);
    let prompt = with_mentions(&opened, prompt).await;
    let watch = tokio::spawn(cancel_on_interrupt(opened.session.clone()));
    let result = opened.session.execute(prompt).await;
    watch.abort();
    let exit = exit_of(&opened.session, &result);
    for failed in &opened.session.cleanup().await.failed {
        render::note(&format!("warning: cleanup of {failed}"));
    }
    if let Err(error) = opened.update_views().await {
        render::error(&error, Some("the journal is complete; the views are rebuilt from it"));
    }
    match args.output {
        Output::Text => print_text(&result),
        Output::Json => render::json(&summary(&opened, &result)),
        Output::Jsonl => {
            let mut line = summary(&opened, &result);
            if let Value::Object(line) = &mut line {
                line.insert("type".to_owned(), Value::String("result".to_owned()));
            }
            render::json_line(&line);
        }
    }
    exit
}

async fn open_session(args: &RunArgs, what: What) -> Result<OpenSession, AppError> {
    let What { access, which, prompt, resolver } = what;
    let tap = (args.output == Output::Jsonl).then(|| Arc::new(Lines) as Arc<dyn RecordTap>);
    open(OpenRequest {
        home: access.home,
        which,
        working_dir: access.base,
        strictness: if args.strict { Strictness::Strict } else { Strictness::Lenient },
        environment: access.environment,
        approval: None,
        display: Some(Arc::new(render::Stderr)),
        tap,
        prompt,
        resolver,
    })
    .await
}

/// The prompt with the files it mentions. A name that nothing has may be a name of something else, and is left alone.
async fn with_mentions(opened: &OpenSession, prompt: Prompt) -> Prompt {
    let Prompt::Text(text) = prompt else { return prompt };
    let (text, failed) = opened.expand(text, Speaker::Person).await;
    for failed in failed.iter().filter(|failed| prompt::is_worth_telling(failed)) {
        render::note(&format!("warning: {}", prompt::describe(failed)));
    }
    Prompt::Text(text)
}

fn refuse_to_open(error: &AppError) -> Exit {
    render::error(error, error.hint());
    if let AppError::Open(open) = error {
        let said = open.to_string();
        let others = open.report.failed().map(ToString::to_string).filter(|entry| !said.contains(entry));
        others.for_each(|entry| render::note(&format!("  {entry}")));
    }
    Exit::Failure
}

/// What the person should know before the answer.
fn tell_about(opened: &OpenSession) {
    if let Some(repair) = &opened.repair {
        let (bytes, saved) = (repair.bytes, repair.saved.display());
        render::note(&format!(
            "note: the last {bytes} bytes of the journal were torn; they are kept in `{saved}`"
        ));
    }
    let session = &opened.session;
    if let Some(change) = session.plan_change() {
        render::note(&format!(
            "note: the plan changed since this session last ran ({} to {})",
            change.was, change.is
        ));
    }
    for call in session.interrupted() {
        let state = serde_json::to_value(call.state).unwrap_or_default();
        let state = state.as_str().unwrap_or_default().replace('_', " ");
        render::note(&format!("note: tool `{}` was interrupted: {state}", call.tool));
    }
    if !session.report().is_clean() {
        render::note("load report:");
        for entry in &session.report().modules {
            render::note(&format!("  {entry}"));
        }
    }
}

/// The first interrupt lets running tools finish, the second stops them.
async fn cancel_on_interrupt(session: Session) {
    for level in [CancelLevel::Graceful, CancelLevel::Immediate] {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        if level == CancelLevel::Graceful {
            render::note("stopping after what runs now; interrupt again to stop at once");
        }
        session.cancel(level).await;
    }
}

fn exit_of(session: &Session, result: &Result<String, ExecuteError>) -> Exit {
    match (session.status().status, result) {
        (SessionState::Cancelled, _) => Exit::Interrupted,
        (_, Err(ExecuteError::Turn(TurnError::Limit(_)))) => Exit::Refused,
        (_, Err(_)) => Exit::Failure,
        (_, Ok(_)) => Exit::Success,
    }
}

fn print_text(result: &Result<String, ExecuteError>) {
    match result {
        Ok(answer) => render::out(answer),
        Err(error) => render::error(error, None),
    }
}

fn summary(opened: &OpenSession, result: &Result<String, ExecuteError>) -> Value {
    let session = &opened.session;
    let status = session.status();
    json!({
        "answer": result.as_ref().ok(),
        "error": result.as_ref().err().map(ToString::to_string),
        "status": status.status,
        "session_id": session.id(),
        "turn": status.turns,
        "usage": {"input_tokens": status.total_input_tokens, "output_tokens": status.total_output_tokens},
        "cost_usd": opened.cost(),
        "tool_calls": status.tool_invocations,
        "plan_hash": session.plan_hash(),
        "load_report": session.report(),
    })
}

/// Prints every record as one line: its kind as `type`, and what happened under that name.
struct Lines;

impl RecordTap for Lines {
    fn record(&self, record: &Record) {
        let Ok(Value::Object(body)) = serde_json::to_value(&record.body) else { return };
        let mut line = json!({"type": null, "seq": record.seq, "ts": record.ts, "turn": record.turn});
        if let (Value::Object(line), Some((kind, value))) = (&mut line, body.into_iter().next()) {
            line.insert("type".to_owned(), Value::String(kind.clone()));
            line.insert(kind, value);
        }
        render::json_line(&line);
    }
}
