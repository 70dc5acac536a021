//! `amplifier run`: one prompt, one answer.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_app::approval::{Asker, Places};
use amplifier_app::ended::Ended;
use amplifier_app::env;
use amplifier_app::failure::{self, Doors, Front};
use amplifier_app::library::Access;
use amplifier_app::open::{self, AppError, OpenSession, RecordTap, Which};
use amplifier_app::paths::Home;
use amplifier_app::start::{Ports, Start, Wish};
use amplifier_app::store::SessionStore;
use amplifier_app::turns::{self, Taps, TurnWatch};
use amplifier_app::{CancelLevel, DisplaySystem, ExecuteError, Prompt, Speaker, prompt, telling};
use amplifier_protocol::ids::SessionId;
use tokio::sync::Notify;
use tokio::time::Instant;

mod follow;
mod report;

use super::load;
use super::start;
use crate::args::{AskArgs, Output, RunArgs};
use crate::ask::Terminal;
use crate::attend::{Attendant, attend};
use crate::chat::{Onlooker, Shown, Wire};
use crate::exit::Exit;
use crate::input::{self, Asked, StandardInput};
use crate::render::{self, Remark, Tone};
use crate::stop::Stop;

/// `amplifier run`.
pub fn run(args: &RunArgs, home: Option<PathBuf>) -> Exit {
    let access = load::session_access(home, start::mode(&args.ask.start));
    answer_with(&args.ask, start::wish(&args.ask.start), args.resume.as_deref(), access)
}

/// The same with settings that were read already, or with why they cannot be used.
pub fn answer_with(args: &AskArgs, wish: Wish, resume: Option<&str>, access: Result<Access, Exit>) -> Exit {
    let args = Arc::new(args.clone());
    let told = Arc::clone(&args);
    attend(
        args.timeout,
        move |stop| tell_stop(stop, &told, Left::Nothing),
        async |attendant| {
            let begun = match access {
                Ok(access) => begin(&args, wish, resume, access, attendant).await,
                Err(exit) => Err(exit),
            };
            let exit = match begun {
                Ok(Begun { what: What::Nothing(id), .. }) => {
                    report::nothing_to_finish(args.output, id);
                    return Exit::Success;
                }
                Ok(Begun { what: What::Turn(asked), start }) => answer(&args, asked, start, attendant).await,
                Err(exit) => Err(exit),
            };
            exit.unwrap_or_else(|exit| {
                report::without_session(args.output, exit);
                exit
            })
        },
    )
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
    wish: Wish,
    resume: Option<&str>,
    access: Access,
    attendant: &mut Attendant,
) -> Result<Begun, Exit> {
    let resumed = resume.map(str::parse::<SessionId>).transpose();
    let resumed = resumed.map_err(|error| {
        render::error(&error, Some("it is the name of a folder in `state/sessions` of the home"));
        Exit::Usage
    })?;
    if let Some(time) = access.settings.limits().timeout {
        attendant.allow(time);
    }
    let asked = match args.go_on {
        true => None,
        false => Some(read_input(args, &wish, attendant).await?),
    };
    let (cancel, store) = (access.cancel.clone(), SessionStore::new(access.home.clone()));
    let found = async move { start::find(&wish, resumed, access).await };
    let start = attendant.unless_cancelled(found, &cancel, drop).await??;
    let what = match (asked, &start.which) {
        (None, Which::Resume(id, _)) if is_finished(&store, id)? => What::Nothing(id.clone()),
        (asked, _) => What::Turn(asked),
    };
    Ok(Begun { what, start })
}

/// What is asked. Who waits for the end of standard input is not kept waiting when the time is up.
async fn read_input(args: &AskArgs, wish: &Wish, attendant: &mut Attendant) -> Result<Asked, Exit> {
    let owner = match wish.choice.takes_standard_input() {
        true => StandardInput::Other,
        false => StandardInput::Asker,
    };
    let read = input::read(args.prompt.clone(), owner);
    attendant.unless_stopped(read).await?.map_err(|error| {
        render::error(&error, error.hint());
        Exit::Usage
    })
}

fn is_finished(store: &SessionStore, id: &SessionId) -> Result<bool, Exit> {
    let finished = store.open(id).and_then(|folder| turns::is_finished(&folder));
    finished.map_err(|error| start::refuse_to_open(&AppError::from(error)))
}

/// What is left of a turn that was stopped.
enum Left<'a> {
    Nothing,
    /// It can be finished.
    Turn(&'a SessionId),
    /// The same, and something was said that is in the session alone.
    Words(&'a SessionId),
    /// The turn is complete; its answer was not read to the end.
    Answer(&'a SessionId),
}

/// Says why it was stopped, and how the session goes on where there is one.
fn tell_stop(stop: Stop, args: &AskArgs, left: Left<'_>) {
    let told = match (stop, args.timeout) {
        (Stop::TimeUp, Some(time)) => {
            format!("not done in {}, the time that `--timeout` gives", telling::time(time))
        }
        // Who left needs no word.
        (Stop::Unread, _) => return,
        _ => stop.reason().to_owned(),
    };
    let limit = (stop == Stop::TimeUp && args.timeout.is_none()).then(|| {
        "`amplifier config get limits.timeout_seconds --output json` says where; `--timeout` goes before it"
            .to_owned()
    });
    let kept = match left {
        Left::Nothing => None,
        Left::Turn(id) => Some(failure::after_stop(id)),
        Left::Words(id) => Some(format!(
            "`amplifier session show {id} --transcript` shows what was said so far; {}",
            failure::after_stop(id)
        )),
        Left::Answer(id) => Some(format!(
            "the answer was not read to its end; `amplifier session show {id} --transcript` shows it"
        )),
    };
    let hints: Vec<_> = limit.into_iter().chain(kept).collect();
    Remark::error(told).maybe_hint((!hints.is_empty()).then(|| hints.join("; "))).tell();
}

/// Opens the session and answers. An error is an exit without a session.
async fn answer(
    args: &AskArgs,
    asked: Option<Asked>,
    start: Start,
    attendant: &mut Attendant,
) -> Result<Exit, Exit> {
    let began = Instant::now();
    let watch = Arc::new(TurnWatch::default());
    let (looks_on, aside) = onlooker(args, &start.access, attendant.unread());
    let display = aside.display();
    let person = || Terminal::find(Places::of(&start.access)).map(|terminal| aside.asker(Arc::new(terminal)));
    let person = if args.start.approve.is_none() { person() } else { None };
    let approval = Arc::new(start::approvals(args.start.approve, &start.access, person, display.clone()));
    let tap = taps(args, &aside, Arc::clone(&watch));
    let ports = Ports { approval: Some(approval), display: Some(display), tap: Some(Arc::new(tap)) };
    let cancel = start.access.cancel.clone();
    let (settings, before) = (Arc::clone(&start.access.settings), start.before.clone());
    let (home, is_new) = (start.access.home.clone(), matches!(start.which, Which::New(_)));
    let too_late = |opened: Result<OpenSession, AppError>| {
        if let (Ok(opened), true) = (opened, is_new) {
            forget(Arc::new(opened), home.clone());
        }
    };
    let opened = match attendant.unless_cancelled(start.open(ports), &cancel, too_late).await? {
        Ok(opened) => Arc::new(opened),
        Err(error) => return Err(start::refuse_to_open(&error)),
    };
    start::tell_about(&opened, before.as_ref());
    let doors = Doors::of(&opened, &settings);
    let is_shown = looks_on.is_some();
    let turn = Turn { opened: &opened, asked, looks_on, aside: &aside, watch: &watch };
    let (result, stopped) = turn.take(attendant).await?;
    let (result, watch) = (result.as_ref(), watch.as_ref());
    // A turn that could not begin leaves nothing to go on with.
    let is_silent = is_new && opened.is_silent();
    let kept = Some(opened.session.id()).filter(|_| !is_silent);
    let (doors, front, cause) = (&doors, Front::Shell, stopped.map(Stop::cause));
    let ended = Ended { opened: &opened, watch, doors, front, result, stopped: cause, kept };
    let report = report::Report { ended, stopped, is_shown };
    let exit = report.exit();
    if let Some(stop) = stopped.filter(|stop| stop.exit() == exit) {
        let left = match kept {
            Some(id) if report.is_withheld(args.output) => Left::Words(id),
            Some(id) => Left::Turn(id),
            None => Left::Nothing,
        };
        tell_stop(stop, args, left);
    }
    report.print(args.output, exit);
    if let (Exit::Success, Some(id)) = (exit, kept) {
        let (args, id) = (args.clone(), id.clone());
        attendant.tell_with(move |stop| tell_stop(stop, &args, Left::Answer(&id)));
    }
    report.tell_costs(&args.start, began.elapsed());
    if is_silent {
        forget(opened, home);
    }
    Ok(exit)
}

/// Removes a session in which nothing was said.
fn forget(opened: Arc<OpenSession>, home: Home) {
    let id = opened.session.id().clone();
    // The lease goes with it.
    drop(opened);
    open::forget(home, &id).into_iter().for_each(|problem| Remark::warning(problem).tell());
}

/// A turn that is to be taken.
struct Turn<'a> {
    opened: &'a Arc<OpenSession>,
    asked: Option<Asked>,
    looks_on: Option<Onlooker>,
    aside: &'a Aside,
    watch: &'a Arc<TurnWatch>,
}

/// What a turn gave, unless it had to be left, and what stopped it.
type Taken = (Option<Result<String, ExecuteError>>, Option<Stop>);

impl Turn<'_> {
    /// Takes it while somebody listens for what asks to stop.
    async fn take(self, attendant: &mut Attendant) -> Result<Taken, Exit> {
        let Self { opened, asked, looks_on, aside, watch } = self;
        let leave = Arc::new(Notify::new());
        let turn = {
            let (turn, leave) = (converse(Arc::clone(opened), asked, aside.clone()), Arc::clone(&leave));
            let turn = async move {
                tokio::select! {
                    result = turn => Some(result),
                    () = leave.notified() => None,
                }
            };
            let watch = Arc::clone(watch);
            async move {
                match looks_on {
                    Some(looks_on) => {
                        looks_on.along(turn, |result| turns::answer(result.as_ref()?, &watch)).await
                    }
                    None => turn.await,
                }
            }
        };
        let first = || {
            // Where no tool runs there is nothing to wait for.
            if opened.session.coordinator().cancel().running_tools().is_empty() {
                return CancelLevel::Immediate;
            }
            aside.note("stopping; waiting for what runs now to end, interrupt again to stop at once");
            CancelLevel::Graceful
        };
        let raise = |level| {
            let session = opened.session.clone();
            async move {
                session.cancel(level).await;
            }
        };
        attendant.supervise(turn, &leave, raise, first).await
    }
}

/// Somebody who looks on while the answer forms, where a person reads it; and the way for what is said beside it. Who wants
/// nothing but the answer gets it when it is whole, for only then it is known which text it is.
fn onlooker(args: &AskArgs, access: &Access, unread: Arc<Notify>) -> (Option<Onlooker>, Aside) {
    let shown = match render::tone() {
        _ if args.output != Output::Text => None,
        Tone::Quiet => None,
        Tone::Usual => Some(Shown::Everything),
        Tone::Verbose => Some(Shown::Answer),
    };
    let term = access.environment.get(env::TERM);
    let thinking = access.settings.thinking();
    let found = shown.and_then(|shown| Onlooker::find(term.as_deref(), shown, thinking, unread));
    match found {
        Some((looks_on, wire)) => (Some(looks_on), Aside::Wire(wire)),
        None => (None, Aside::Lines),
    }
}

/// Where everything goes that is said beside the answer.
#[derive(Clone)]
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

    fn tell(&self, remark: Remark) {
        match self {
            Self::Lines => remark.tell(),
            Self::Wire(wire) => wire.tell(remark),
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

fn taps(args: &AskArgs, aside: &Aside, watch: Arc<TurnWatch>) -> Taps {
    let mut taps: Vec<Arc<dyn RecordTap>> = vec![watch];
    match aside {
        Aside::Wire(wire) => taps.push(wire.tap()),
        Aside::Lines => taps.push(Arc::new(follow::Notices)),
    }
    // Who looks on sees what became of every call, unless it is the answer alone that is shown.
    if matches!(aside, Aside::Lines) || render::tone() == Tone::Verbose {
        taps.push(Arc::new(follow::Refusals));
    }
    if args.output == Output::Jsonl {
        taps.push(Arc::new(follow::Lines));
    }
    if render::tone() == Tone::Verbose {
        taps.push(Arc::new(follow::Steps::default()));
    }
    taps.push(Arc::new(follow::Pace));
    Taps(taps)
}

/// Runs the turn to its end and closes the session.
async fn converse(
    opened: Arc<OpenSession>,
    asked: Option<Asked>,
    aside: Aside,
) -> Result<String, ExecuteError> {
    let result = opened.session.execute(prompt_of(&opened, asked, &aside).await).await;
    opened.finish().await.into_iter().for_each(|problem| aside.tell(Remark::warning(problem)));
    result
}

async fn prompt_of(opened: &OpenSession, asked: Option<Asked>, aside: &Aside) -> Prompt {
    let Some(Asked { prompt, piped }) = asked else { return Prompt::Continue };
    // Mentions count where the person wrote them, not in what a program printed.
    let (text, failed) = opened.expand(prompt, Speaker::Person).await;
    for failed in failed.iter().filter(|failed| prompt::is_worth_telling(failed)) {
        aside.tell(Remark::warning(prompt::describe(failed)));
    }
    Prompt::Text(Asked::joined(text, piped.as_deref()))
}
