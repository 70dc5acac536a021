//! `amplifier run`: one prompt, one answer.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use amplifier_app::open::{OpenSession, RecordTap};
use amplifier_app::prompt;
use amplifier_app::{CancelLevel, ExecuteError, Prompt, Session, Speaker, TurnError};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::record::Record;
use amplifier_protocol::status::SessionState;
use serde_json::{Value, json};

use super::load;
use super::start::{self, Ports, Start};
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
    let resumed = match args.resume.as_ref().map(|id| id.parse::<SessionId>()).transpose() {
        Ok(resumed) => resumed,
        Err(error) => {
            render::error(&error, None);
            return Exit::Usage;
        }
    };
    load::block_on(async {
        match start::find(&args.start, resumed, access).await {
            Ok(start) => answer(args, start, prompt).await,
            Err(exit) => exit,
        }
    })
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

async fn answer(args: &RunArgs, start: Start, prompt: Prompt) -> Exit {
    let tap = (args.output == Output::Jsonl).then(|| Arc::new(Lines) as Arc<dyn RecordTap>);
    let ports = Ports { approval: None, display: Some(Arc::new(render::Stderr)), tap };
    let opened = match start.open(ports).await {
        Ok(opened) => opened,
        Err(error) => return start::refuse_to_open(&error),
    };
    start::tell_about(&opened);
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

/// The prompt with the files it mentions. A name that nothing has may be a name of something else, and is left alone.
async fn with_mentions(opened: &OpenSession, prompt: Prompt) -> Prompt {
    let Prompt::Text(text) = prompt else { return prompt };
    let (text, failed) = opened.expand(text, Speaker::Person).await;
    for failed in failed.iter().filter(|failed| prompt::is_worth_telling(failed)) {
        render::note(&format!("warning: {}", prompt::describe(failed)));
    }
    Prompt::Text(text)
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
