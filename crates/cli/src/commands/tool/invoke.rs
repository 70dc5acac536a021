//! `amplifier tool invoke`: one call of one tool, in a session of the plan that is removed afterwards.

use std::io::Read;
use std::sync::Arc;

use amplifier_app::approval::Asker;
use amplifier_app::invoke::{self, InvokeError};
use amplifier_app::library::Access;
use amplifier_app::open::{OpenRequest, OpenSession, Which, open};
use amplifier_app::{CancelLevel, Session, Strictness};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::tool::ToolResult;
use serde_json::{Value, json};

use crate::args::{Form, ToolInvokeArgs};
use crate::ask::Terminal;
use crate::commands::load::Chosen;
use crate::commands::{profile, start};
use crate::exit::Exit;
use crate::render;

/// `amplifier tool invoke NAME …`.
pub async fn invoke(args: &ToolInvokeArgs, access: Access) -> Result<Exit, Exit> {
    let json = json_input(args)?;
    let opened = opened(args, access).await?;
    tell_missing(&opened);
    let watch = tokio::spawn(cancel_on_interrupt(opened.session.clone()));
    let result = match invoke::find(&opened, &args.name)
        .and_then(|tool| Ok(invoke::read_input(&tool, json.as_deref(), &args.input)?))
    {
        Ok(input) => invoke::invoke(&opened, &args.name, input).await,
        Err(error) => Err(error),
    };
    watch.abort();
    for failed in &opened.session.cleanup().await.failed {
        render::note(&format!("warning: cleanup of {failed}"));
    }
    close(args, &opened).await;
    Ok(tell(args, &opened, &result))
}

fn json_input(args: &ToolInvokeArgs) -> Result<Option<String>, Exit> {
    match args.json.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| {
                render::note(&format!("error: standard input cannot be read as text: {error}"));
                Exit::Usage
            })?;
            Ok(Some(text))
        }
        json => Ok(json.map(str::to_owned)),
    }
}

async fn opened(args: &ToolInvokeArgs, access: Access) -> Result<OpenSession, Exit> {
    let (chosen, plan, resolver) = super::plan(&args.choice, &access).await?;
    let prompt = match &chosen {
        Chosen::File(_) => None,
        Chosen::Bundle(bundle) => Some(bundle.prompt()),
        Chosen::Profile(prepared) => Some(prepared.prompt().map_err(|fault| profile::refuse(&fault))?),
    };
    let display = Arc::new(render::Stderr);
    let person = || Terminal::find(access.base.clone()).map(|terminal| Arc::new(terminal) as Arc<dyn Asker>);
    let person = if args.approve.is_none() { person() } else { None };
    let approval = start::answering(args.approve, &access, person, display.clone());
    let request = OpenRequest {
        home: access.home,
        which: Which::New(Box::new(plan)),
        working_dir: access.base,
        strictness: Strictness::Lenient,
        environment: access.environment,
        approval: Some(approval),
        display: Some(display),
        tap: None,
        prompt,
        resolver,
        lock: chosen.lock(),
        origin: None,
        cancel: access.cancel,
    };
    open(request).await.map_err(|error| start::refuse_to_open(&error))
}

/// What is not there may be what was wanted; that a provider is not, is no news: no model is asked.
fn tell_missing(opened: &OpenSession) {
    let entries = opened.session.report().failed().filter(|entry| entry.kind != ModuleKind::Provider);
    entries.for_each(|entry| render::note(&format!("warning: {entry}")));
}

async fn close(args: &ToolInvokeArgs, opened: &OpenSession) {
    if args.keep {
        if let Err(error) = opened.update_views().await {
            render::error(&error, Some("the journal is complete; the views are rebuilt from it"));
        }
        render::note(&format!("note: the call is kept in session `{}`", opened.session.id()));
    } else if let Err(error) = invoke::forget(opened) {
        render::error(&error, None);
    }
}

/// The first interrupt lets the tool finish, the second stops it.
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

fn tell(args: &ToolInvokeArgs, opened: &OpenSession, result: &Result<ToolResult, InvokeError>) -> Exit {
    if args.output == Form::Json {
        render::json(&summary(args, opened, result));
    }
    match result {
        Ok(result) => {
            if args.output == Form::Text {
                print(result);
            }
            if result.success { Exit::Success } else { Exit::Failure }
        }
        Err(error) => {
            render::error(error, error.hint());
            match error {
                InvokeError::Unknown { .. } | InvokeError::Input(_) => Exit::Usage,
                InvokeError::Denied { .. } | InvokeError::Limit(_) => Exit::Refused,
                InvokeError::Cancelled { .. } => Exit::Interrupted,
                _ => Exit::Failure,
            }
        }
    }
}

/// What the tool said: an answer to standard output, a failure to standard error.
fn print(result: &ToolResult) {
    let text = match &result.output {
        Value::Object(_) | Value::Array(_) => format!("{:#}", result.output),
        _ => result.to_model_text(),
    };
    match result.success {
        true => render::out(&text),
        false => render::note(&format!("error: {text}")),
    }
}

fn summary(args: &ToolInvokeArgs, opened: &OpenSession, result: &Result<ToolResult, InvokeError>) -> Value {
    let session = args.keep.then(|| opened.session.id());
    match result {
        Ok(result) => json!({
            "tool": args.name,
            "success": result.success,
            "output": result.output,
            "error": result.error,
            "session_id": session,
        }),
        Err(error) => json!({
            "tool": args.name,
            "success": false,
            "output": null,
            "error": {"message": error.to_string()},
            "session_id": session,
        }),
    }
}
