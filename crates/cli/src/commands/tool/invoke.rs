//! `amplifier tool invoke`: one call of one tool, in a session of the plan that is removed afterwards.

use std::sync::{Arc, OnceLock};

use amplifier_app::approval::{Asker, Places};
use amplifier_app::invoke::{self, InvokeError};
use amplifier_app::library::Access;
use amplifier_app::open::{OpenSession, Which};
use amplifier_app::start::{Ports, Start};
use amplifier_app::{CancelLevel, Strictness};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::tool::ToolResult;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::args::{Form, ToolInvokeArgs};
use crate::ask::Terminal;
use crate::attend::{Attendant, attend};
use crate::commands::{load, start};
use crate::exit::Exit;
use crate::input;
use crate::render::{self, Remark, Weight};
use crate::stop::Stop;

/// The most that an input may have, in bytes. No model writes more.
const LONGEST_INPUT: u64 = 8 * 1024 * 1024;

/// `amplifier tool invoke NAME …`.
pub fn invoke(args: &ToolInvokeArgs, access: Access) -> Exit {
    let args = Arc::new(args.clone());
    attend(None, tell_stop, async |attendant| {
        let done = match json_input(&args, attendant).await {
            Ok(json) => call(&args, json, access, attendant).await,
            Err(exit) => Err(exit),
        };
        done.unwrap_or_else(|exit| exit)
    })
}

fn tell_stop(stop: Stop) {
    // Who left needs no word.
    if stop != Stop::Unread {
        Remark::error(stop.reason()).tell();
    }
}

async fn json_input(args: &ToolInvokeArgs, attendant: &mut Attendant) -> Result<Option<String>, Exit> {
    if args.json.as_deref() != Some("-") {
        return Ok(args.json.clone());
    }
    if load::choice(&args.choice).takes_standard_input() {
        Remark::error("the plan is read from standard input, and so would be the input of the tool")
            .hint("give the input as an argument, or the plan as a file")
            .tell();
        return Err(Exit::Usage);
    }
    let read = async { tokio::task::spawn_blocking(|| input::read_text(LONGEST_INPUT)).await };
    match attendant.unless_stopped(read).await? {
        Ok(Ok(text)) => Ok(Some(text)),
        Ok(Err(error)) => {
            render::error(&error, Some("pipe in one JSON object, the input of the tool"));
            Err(Exit::Usage)
        }
        Err(error) => {
            render::error(&error, None);
            Err(Exit::Failure)
        }
    }
}

/// A call that came to its end, one way or another.
struct Called {
    opened: Arc<OpenSession>,
    result: Result<ToolResult, InvokeError>,
}

/// Opens the session, calls the tool and closes, whatever asks to stop.
async fn call(
    args: &Arc<ToolInvokeArgs>,
    json: Option<String>,
    access: Access,
    attendant: &mut Attendant,
) -> Result<Exit, Exit> {
    let (cancel, leave) = (access.cancel.clone(), Arc::new(Notify::new()));
    let place = Arc::new(OnceLock::<Arc<OpenSession>>::new());
    let work = {
        let (args, place, leave) = (Arc::clone(args), Arc::clone(&place), Arc::clone(&leave));
        async move {
            tokio::select! {
                called = called(&args, json, access, &place) => Some(called),
                () = leave.notified() => None,
            }
        }
    };
    let raise = |level: CancelLevel| {
        cancel.request_immediate();
        let opened = place.get().cloned();
        async move {
            if let Some(opened) = opened {
                opened.session.cancel(level).await;
            }
        }
    };
    let first = || {
        render::note("stopping; waiting for what runs now to end, interrupt again to stop at once");
        CancelLevel::Graceful
    };
    let (called, stopped) = attendant.supervise(work, &leave, raise, first).await?;
    match (called, stopped) {
        (Some(Ok(called)), stopped) => Ok(tell(args, &called, stopped)),
        (Some(Err(exit)), None) => Err(exit),
        (_, stopped) => {
            let stop = stopped.unwrap_or(Stop::Interrupt);
            if let Some(opened) = place.get() {
                close(args, opened).await;
            }
            tell_stop(stop);
            Err(stop.exit())
        }
    }
}

async fn called(
    args: &ToolInvokeArgs,
    json: Option<String>,
    access: Access,
    place: &OnceLock<Arc<OpenSession>>,
) -> Result<Called, Exit> {
    let cancel = access.cancel.clone();
    let opened = Arc::new(opened(args, access).await?);
    let opened = place.get_or_init(|| opened);
    tell_missing(opened);
    let result = match invoke::find(opened, &args.name)
        .and_then(|tool| invoke::read_input(&tool, json.as_deref(), &args.input))
    {
        // What asks to stop while the session opens finds nobody yet who could be told.
        Ok(_) if cancel.is_cancelled() => Err(InvokeError::Cancelled { name: args.name.clone() }),
        Ok(input) => invoke::invoke(opened, &args.name, input).await,
        Err(error) => Err(error),
    };
    for failed in &opened.session.cleanup().await.failed {
        Remark::warning(format!("cleanup of {failed}")).tell();
    }
    close(args, opened).await;
    Ok(Called { opened: Arc::clone(opened), result })
}

async fn opened(args: &ToolInvokeArgs, access: Access) -> Result<OpenSession, Exit> {
    let (chosen, plan) = super::plan(&args.choice, &access).await?;
    let parts = chosen.parts(&plan, &access).map_err(|error| load::refuse_choice(&error))?;
    let display = Arc::new(render::Stderr);
    let person = || Terminal::find(Places::of(&access)).map(|terminal| Arc::new(terminal) as Arc<dyn Asker>);
    let person = if args.approve.is_none() { person() } else { None };
    // The end of the call tells that a policy refused it.
    let approval = start::approvals(args.approve, &access, person, display.clone()).silent();
    let ports = Ports { approval: Some(Arc::new(approval)), display: Some(display), tap: None };
    let which = Which::New(Box::new(plan));
    let start = Start { access, which, parts, before: None, strictness: Strictness::Lenient };
    start.open(ports).await.map_err(|error| start::refuse_to_open(&error))
}

/// What is not there may be what was wanted; that a provider is not, is no news: no model is asked.
fn tell_missing(opened: &OpenSession) {
    let entries = opened.session.report().failed().filter(|entry| entry.kind != ModuleKind::Provider);
    entries.for_each(|entry| Remark::warning(entry.to_string()).tell());
}

async fn close(args: &ToolInvokeArgs, opened: &OpenSession) {
    if args.keep {
        if let Err(error) = opened.update_views().await {
            render::error(&error, Some("the journal is complete; the views are rebuilt from it"));
        }
        Remark::note(format!("the call is kept in session `{}`", opened.session.id())).tell();
    } else if let Err(error) = invoke::forget(opened) {
        render::error(&error, None);
    }
}

fn tell(args: &ToolInvokeArgs, called: &Called, stopped: Option<Stop>) -> Exit {
    if args.output == Form::Json {
        render::json(&summary(args, called));
    }
    match (&called.result, stopped) {
        (Ok(result), stopped) => {
            if args.output == Form::Text {
                print(result);
            }
            exit(result, stopped)
        }
        (Err(InvokeError::Cancelled { .. }), Some(stop)) => {
            tell_stop(stop);
            stop.exit()
        }
        (Err(error), _) => {
            render::error(error, error.hint().as_deref());
            match error {
                InvokeError::Unknown { .. } | InvokeError::Input { .. } => Exit::Usage,
                InvokeError::Denied { .. } | InvokeError::Limit(_) => Exit::Refused,
                InvokeError::Cancelled { .. } => Exit::Interrupted,
                _ => Exit::Failure,
            }
        }
    }
}

/// What it means for a script how a tool says that it ended. A failure of a kind that nobody agreed on is one like others.
fn exit(result: &ToolResult, stopped: Option<Stop>) -> Exit {
    let kind = result.error.as_ref().and_then(|error| error.get("type")).and_then(Value::as_str);
    match (result.success, kind) {
        (true, _) => Exit::Success,
        (false, Some("Denied" | "AccessDenied" | "ApprovalRequired" | "LimitReached")) => Exit::Refused,
        (false, Some("Timeout")) => Exit::TimedOut,
        (false, Some("Cancelled")) => stopped.map_or(Exit::Interrupted, Stop::exit),
        (false, _) => Exit::Failure,
    }
}

/// What the tool gave goes to standard output, and why it failed to standard error.
fn print(result: &ToolResult) {
    let why = result.error_message().filter(|_| !result.success);
    let is_said = why.is_some_and(|why| result.output.as_str() == Some(why));
    let text = match &result.output {
        Value::Object(_) | Value::Array(_) => format!("{:#}", result.output),
        _ => result.to_model_text(),
    };
    match (result.success, why) {
        (false, None) => Remark::quoting(Weight::Error, text).tell(),
        (_, why) => {
            if !is_said {
                render::out(&text);
            }
            why.into_iter().for_each(|why| Remark::quoting(Weight::Error, why).tell());
        }
    }
}

fn summary(args: &ToolInvokeArgs, called: &Called) -> Value {
    let session = args.keep.then(|| called.opened.session.id());
    match &called.result {
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
