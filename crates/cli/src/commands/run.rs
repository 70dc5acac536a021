//! `amplifier run`: one prompt, one answer.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_app::approval::Asker;
use amplifier_app::env;
use amplifier_app::failure::{self, Doors};
use amplifier_app::library::Access;
use amplifier_app::open::{AppError, OpenSession, RecordTap, Which};
use amplifier_app::store::SessionStore;
use amplifier_app::turns::{self, Taps, TurnWatch};
use amplifier_app::{
    CancelLevel, CancelToken, DisplaySystem, ExecuteError, Prompt, Session, Speaker, prompt,
};
use amplifier_protocol::ids::SessionId;
use tokio::sync::Notify;
use tokio::time::Instant;

mod follow;
mod report;

use super::load;
use super::start::{self, Ports, Start};
use crate::args::{AskArgs, Output, RunArgs};
use crate::ask::Terminal;
use crate::chat::{Onlooker, Shown, Wire};
use crate::exit::Exit;
use crate::input::{self, Asked};
use crate::render::{self, Tone};
use crate::stop::{GRACE, Stop, Stops};

/// `amplifier run`.
pub fn run(args: &RunArgs, home: Option<PathBuf>) -> Exit {
    answer_with(&args.ask, args.resume.as_deref(), load::access(home))
}

/// The same with settings that were read already, or with why they cannot be used.
pub fn answer_with(args: &AskArgs, resume: Option<&str>, access: Result<Access, Exit>) -> Exit {
    load::block_on(async {
        let unread = Arc::new(Notify::new());
        let mut stops = match Stops::listen(args.timeout, Arc::clone(&unread)) {
            Ok(stops) => stops,
            Err(error) => {
                render::error(&error, None);
                return Exit::Failure;
            }
        };
        let begun = match access {
            Ok(access) => begin(args, resume, access, &mut stops).await,
            Err(exit) => Err(exit),
        };
        let exit = match begun {
            Ok(Begun { what: What::Nothing(id), .. }) => {
                report::nothing_to_finish(args.output, id);
                return Exit::Success;
            }
            Ok(Begun { what: What::Turn(asked), start }) => {
                answer(args, asked, start, &mut stops, unread).await
            }
            Err(exit) => Err(exit),
        };
        exit.unwrap_or_else(|exit| {
            report::without_session(args.output, exit);
            exit
        })
    })
}

/// What is known before there is a session.
struct Begun {
    what: What,
    start: Start,
}

/// What there is to do.
enum What {
    /// To answer this; nothing asked means to finish what was begun.
    Turn(Option<Asked>),
    /// The last turn of this session is finished.
    Nothing(SessionId),
}

/// Reads what is asked and finds out with what it is answered.
async fn begin(
    args: &AskArgs,
    resume: Option<&str>,
    access: Access,
    stops: &mut Stops,
) -> Result<Begun, Exit> {
    let resumed = resume.map(str::parse::<SessionId>).transpose();
    let resumed = resumed.map_err(|error| {
        render::error(&error, Some("it is the name of a folder in `state/sessions` of the home"));
        Exit::Usage
    })?;
    if let Some(time) = access.settings.limits().timeout {
        stops.allow(time);
    }
    let asked = match args.go_on {
        true => None,
        false => Some(read_input(args, stops).await?),
    };
    let (cancel, store) = (access.cancel.clone(), SessionStore::new(access.home.clone()));
    let found = start::find(&args.start, resumed, access);
    let start = unless_stopped(found, &cancel, args, stops).await??;
    let what = match (asked, &start.which) {
        (None, Which::Resume(id, _)) if is_finished(&store, id)? => What::Nothing(id.clone()),
        (asked, _) => What::Turn(asked),
    };
    Ok(Begun { what, start })
}

/// What is asked. Who waits for the end of standard input is not kept waiting when the time is up.
async fn read_input(args: &AskArgs, stops: &mut Stops) -> Result<Asked, Exit> {
    tokio::select! {
        read = input::read(args.prompt.clone()) => read.map_err(|error| {
            render::error(&error, error.hint());
            Exit::Usage
        }),
        stop = stops.next() => {
            tell_stop(stop, args);
            Err(stop.exit())
        }
    }
}

fn is_finished(store: &SessionStore, id: &SessionId) -> Result<bool, Exit> {
    let finished = store.open(id).and_then(|folder| turns::is_finished(&folder));
    finished.map_err(|error| start::refuse_to_open(&AppError::from(error)))
}

/// Does something that ends soon once it is cancelled, unless something asks to stop first.
async fn unless_stopped<T>(
    work: impl Future<Output = T>,
    cancel: &CancelToken,
    args: &AskArgs,
    stops: &mut Stops,
) -> Result<T, Exit> {
    stops.unless_stopped(work, cancel).await.map_err(|stop| {
        tell_stop(stop, args);
        stop.exit()
    })
}

fn tell_stop(stop: Stop, args: &AskArgs) {
    match (stop, args.timeout) {
        (Stop::TimeUp, Some(time)) => {
            render::note(&format!(
                "error: not done in {}, the time that `--timeout` gives",
                report::time(time)
            ));
        }
        (Stop::TimeUp, None) => {
            render::note(&format!("error: {}", stop.reason()));
            render::note(
                "  hint: `amplifier config get limits.timeout_seconds --output json` says where; `--timeout` goes before it",
            );
        }
        (Stop::Interrupt | Stop::Terminate | Stop::HangUp, _) => {
            render::note(&format!("error: {}", stop.reason()));
        }
        (Stop::Unread, _) => {}
    }
}

/// Opens the session and answers. An error is an exit without a session.
async fn answer(
    args: &AskArgs,
    asked: Option<Asked>,
    start: Start,
    stops: &mut Stops,
    unread: Arc<Notify>,
) -> Result<Exit, Exit> {
    let began = Instant::now();
    let watch = Arc::new(TurnWatch::default());
    let (looks_on, aside) = onlooker(args, &start.access, &unread);
    let display = aside.display();
    let person = || Terminal::find(start.access.base.clone()).map(|terminal| aside.asker(Arc::new(terminal)));
    let person = if args.start.approve.is_none() { person() } else { None };
    let approval = start::approvals(&args.start, &start.access, person, display.clone());
    let tap = taps(args, &aside, Arc::clone(&watch), unread);
    let ports = Ports { approval: Some(approval), display: Some(display), tap: Some(Arc::new(tap)) };
    let cancel = start.access.cancel.clone();
    let (settings, before) = (Arc::clone(&start.access.settings), start.before.clone());
    let opened = match unless_stopped(start.open(ports), &cancel, args, stops).await? {
        Ok(opened) => opened,
        Err(error) => return Err(start::refuse_to_open(&error)),
    };
    start::tell_about(&opened, before.as_ref());
    let doors = Doors::of(&opened, &settings);
    let turn = converse(&opened, asked, stops, &aside);
    let is_shown = looks_on.is_some();
    let (result, stopped) = match looks_on {
        Some(looks_on) => looks_on.along(turn, |(result, _)| turns::answer(result.as_ref()?, &watch)).await,
        None => turn.await,
    };
    let (result, watch) = (result.as_ref(), watch.as_ref());
    let ended = report::Ended { opened: &opened, watch, doors: &doors, result, stopped, is_shown };
    let exit = ended.exit();
    if let Some(stop) = stopped.filter(|stop| stop.exit() == exit) {
        tell_stop(stop, args);
        if stop != Stop::Unread {
            render::note(&format!("  hint: {}", failure::after_stop(opened.session.id())));
        }
    }
    ended.print(args.output, exit);
    ended.tell_costs(&args.start, began.elapsed());
    Ok(exit)
}

/// Somebody who looks on while the answer forms, where a person reads it; and the way for what is said beside it. Who wants
/// nothing but the answer gets it when it is whole, for only then it is known which text it is.
fn onlooker(args: &AskArgs, access: &Access, unread: &Arc<Notify>) -> (Option<Onlooker>, Aside) {
    let shown = match render::tone() {
        _ if args.output != Output::Text => None,
        Tone::Quiet => None,
        Tone::Usual => Some(Shown::Everything),
        Tone::Verbose => Some(Shown::Answer),
    };
    let term = access.environment.get(env::TERM);
    let found = shown.and_then(|shown| {
        Onlooker::find(term.as_deref(), shown, access.settings.thinking(), Arc::clone(unread))
    });
    match found {
        Some((looks_on, wire)) => (Some(looks_on), Aside::Wire(wire)),
        None => (None, Aside::Lines),
    }
}

/// Where everything goes that is said beside the answer.
enum Aside {
    /// To standard error, line by line.
    Lines,
    /// To who looks on.
    Wire(Wire),
}

impl Aside {
    fn note(&self, line: &str) {
        match self {
            Self::Lines => render::note(line),
            Self::Wire(wire) => wire.note(line),
        }
    }

    fn display(&self) -> Arc<dyn DisplaySystem> {
        match self {
            Self::Lines => Arc::new(render::Stderr),
            Self::Wire(wire) => wire.display(),
        }
    }

    fn asker(&self, person: Arc<dyn Asker>) -> Arc<dyn Asker> {
        match self {
            Self::Lines => person,
            Self::Wire(wire) => wire.asker(person),
        }
    }
}

fn taps(args: &AskArgs, aside: &Aside, watch: Arc<TurnWatch>, unread: Arc<Notify>) -> Taps {
    let mut taps: Vec<Arc<dyn RecordTap>> = vec![watch];
    if let Aside::Wire(wire) = aside {
        taps.push(wire.tap());
    }
    if args.output == Output::Jsonl {
        taps.push(Arc::new(follow::Lines::new(unread)));
    }
    if render::tone() == Tone::Verbose {
        taps.push(Arc::new(follow::Steps::default()));
    }
    Taps(taps)
}

/// Runs the turn to its end and closes the session, whatever asks to stop. Without a result when the turn had to be left.
async fn converse(
    opened: &OpenSession,
    asked: Option<Asked>,
    stops: &mut Stops,
    aside: &Aside,
) -> (Option<Result<String, ExecuteError>>, Option<Stop>) {
    let work = async {
        let result = opened.session.execute(prompt_of(opened, asked, aside).await).await;
        for failed in &opened.session.cleanup().await.failed {
            aside.note(&format!("warning: cleanup of {failed}"));
        }
        if let Err(error) = opened.update_views().await {
            aside.note(&format!(
                "warning: {error}; the journal is complete, and the views are rebuilt from it"
            ));
        }
        result
    };
    supervise(work, &opened.session, stops, aside).await
}

async fn prompt_of(opened: &OpenSession, asked: Option<Asked>, aside: &Aside) -> Prompt {
    let Some(Asked { prompt, piped }) = asked else { return Prompt::Continue };
    // Mentions count where the person wrote them, not in what a program printed.
    let (text, failed) = opened.expand(prompt, Speaker::Person).await;
    for failed in failed.iter().filter(|failed| prompt::is_worth_telling(failed)) {
        aside.note(&format!("warning: {}", prompt::describe(failed)));
    }
    Prompt::Text(Asked::joined(text, piped.as_deref()))
}

/// Does the work while listening for what asks to stop: politely first, then at once, then without waiting.
async fn supervise<T>(
    work: impl Future<Output = T>,
    session: &Session,
    stops: &mut Stops,
    aside: &Aside,
) -> (Option<T>, Option<Stop>) {
    tokio::pin!(work);
    let (mut stopped, mut level) = (None, CancelLevel::None);
    let mut patience: Option<Instant> = None;
    loop {
        let impatient = async {
            match patience {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let stop = tokio::select! {
            done = &mut work => return (Some(done), stopped),
            stop = stops.next() => Some(stop),
            () = impatient => None,
        };
        patience = None;
        level = match (stop, level) {
            (Some(Stop::Interrupt), CancelLevel::None) => {
                aside.note("stopping after what runs now; interrupt again to stop at once");
                CancelLevel::Graceful
            }
            (Some(Stop::TimeUp), CancelLevel::None) => {
                patience = Some(Instant::now() + GRACE);
                CancelLevel::Graceful
            }
            (Some(_), CancelLevel::Immediate) => return (None, stopped.or(stop)),
            _ => CancelLevel::Immediate,
        };
        stopped = stopped.or(stop);
        session.cancel(level).await;
    }
}
