//! One turn of the chat: the session works, and meanwhile everything it tells is shown and everything that is typed is heard.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_app::approval::Answer;
use amplifier_app::failure::Failure;
use amplifier_app::open::{AppError, OpenSession};
use amplifier_app::turns::{self, Outcome};
use amplifier_app::{CancelLevel, CancelToken, ExecuteError, Prompt, Session, Speaker, TurnError, prompt};
use amplifier_protocol::spend::Amounts;
use amplifier_protocol::usage::Usd;
use serde_json::json;
use tokio::time::{Interval, MissedTickBehavior};

use super::approve::Open;
use super::calls::one_line;
use super::draft::Meant;
use super::input::Typed;
use super::paint::{Hue, Line, Style};
use super::screen::Face;
use super::slash::{self, Said};
use super::tap::Seen;
use super::view::{Heard, Stopping, View};
use super::{Chat, Next};
use crate::exit::Exit;
use crate::render;
use crate::stop::{GRACE, Stop};

/// How often the changing lines are drawn.
const FRAME: Duration = Duration::from_millis(50);
/// What is said of a turn that was stopped.
pub(super) const STOPPED: &str = "stopped";
/// The capability that takes words to a running turn.
const STEER: &str = "session.steer";

/// What the person wants of a running turn.
enum Wish {
    Nothing,
    Stop,
    /// Stop: the time of the turn is up.
    TimeUp,
    /// Stop, and leave.
    Leave(Exit),
    /// The shell shall have the terminal.
    Suspend,
    /// A line: an answer, a word to the turn, or a command for afterwards.
    Line(String),
}

impl Wish {
    fn of(stop: Stop) -> Self {
        match stop {
            Stop::Interrupt => Self::Stop,
            Stop::TimeUp => Self::TimeUp,
            stop => Self::Leave(stop.exit()),
        }
    }
}

/// Work that was looked on at.
pub(super) struct Over<E> {
    /// Nothing came of work that broke off.
    pub(super) result: Option<Result<String, E>>,
    pub(super) next: Next,
    /// What stopped it, where that was not the person at the terminal.
    stopped: Option<Stop>,
}

impl Chat {
    /// Asks the model and shows what comes of it.
    pub(super) async fn turn(&mut self, text: String) -> Next {
        let session = self.seat.opened.session.clone();
        let before = Spent::by(&self.seat.opened);
        let (expanding, cancel) =
            (self.seat.opened.expand(text.clone(), Speaker::Person), CancelToken::new());
        let (text, failed) = match self.stops.unless_stopped(expanding, &cancel).await {
            Ok(expanded) => expanded,
            Err(stop) => {
                self.draft.put(text);
                return self.stopped(stop);
            }
        };
        for failed in failed.iter().filter(|failed| prompt::is_worth_telling(failed)) {
            self.say(&format!("warning: {}", prompt::describe(failed)), Style::of(Hue::Yellow));
        }
        session.reset_cancel();
        let work = async move { session.execute(Prompt::Text(text)).await };
        let turns = Arc::clone(&self.seat.turns);
        let over = self.watch(work, |result| turns::answer(result, &turns)).await;
        let broken = || Err(TurnError::Broken { message: "the turn broke off".to_owned() }.into());
        self.conclude(&over.result.unwrap_or_else(broken), over.stopped, before);
        self.keep_views().await;
        if let Next::Leave(exit) = over.next {
            self.exit = exit;
        }
        over.next
    }

    /// Brings what is read of the session up to its journal.
    pub(super) async fn keep_views(&mut self) {
        if let Err(error) = self.seat.opened.update_views().await {
            self.tell_stale(&error);
        }
    }

    /// Tells why what is read of the session is behind its journal.
    pub(super) fn tell_stale(&mut self, error: &AppError) {
        self.say(&format!("warning: {error}; the journal is complete"), Style::of(Hue::Yellow));
    }

    /// Begins the work and looks on until it is over, as long as one prompt may take. `answer` gives the answer that it came
    /// to; it is shown unless it was.
    pub(super) async fn watch<E: Send + 'static>(
        &mut self,
        work: impl Future<Output = Result<String, E>> + Send + 'static,
        answer: impl FnOnce(&Result<String, E>) -> Option<String>,
    ) -> Over<E> {
        // Before the work can spend anything.
        let before = Spent::by(&self.seat.opened);
        let mut work = tokio::spawn(work);
        let (mut frames, mut listening) = self.begin_watch();
        let view = View::new(&mut self.screen, &mut self.memory, &mut self.draft);
        let mut running = Running::new(view, self.seat.opened.session.clone());
        let result = loop {
            let view = &mut running.view;
            let mut wish = Wish::Nothing;
            tokio::select! {
                biased;
                stop = self.stops.next() => wish = Wish::of(stop),
                () = self.job.continued() => {
                    self.input.take_back();
                    view.draw();
                }
                typed = self.input.next(), if listening => {
                    listening = !matches!(typed, Typed::End | Typed::Broken(_));
                    wish = heard(view, typed);
                    view.draw();
                }
                Some(asked) = self.seat.asked.recv(), if view.question.is_none() => {
                    view.take_all(&mut self.seat.seen);
                    view.ask(asked, Instant::now());
                    view.draw();
                }
                // Before what happened: however much that is, it is drawn.
                _ = frames.tick() => {
                    view.spent = so_far(&before, &Spent::by(&self.seat.opened));
                    wish = running.tick(Instant::now());
                }
                Some(seen) = self.seat.seen.recv() => view.take(seen),
                done = &mut work => break done.ok(),
            }
            let answers = running.view.question.as_ref().is_some_and(Open::takes_answers);
            if let Wish::Line(line) = &wish
                && !answers
            {
                self.input.remember(line);
            }
            if let Wish::Suspend = wish {
                running.view.hide();
                self.job.suspend(&self.input).await;
                running.come_back(self.input.rest_of_keys().await).await;
                self.input.watch();
            }
            running.grant(wish).await;
        };
        self.stops.lift();
        running.view.take_all(&mut self.seat.seen);
        if let Some(answer) = result.as_ref().and_then(answer).filter(|_| !running.view.answered) {
            running.view.take(Seen::TextEnd(answer));
        }
        let stopped = running.stopped;
        let (later, next) = running.end();
        match next {
            Next::Leave(_) => self.tell_unsent(later),
            _ => self.waiting.extend(later),
        }
        Over { result, next, stopped }
    }

    /// From now on time counts and keys are heard. Gives when to draw, and whether somebody types.
    fn begin_watch(&mut self) -> (Interval, bool) {
        if let Some(time) = self.seat.time() {
            self.stops.allow(time);
        }
        let listening = self.screen.face() != Face::Pipe;
        if listening {
            self.input.watch();
        }
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        (frames, listening)
    }

    /// Says what is not sent because the chat is left, and keeps it in the history.
    fn tell_unsent(&mut self, lines: Vec<String>) {
        let draft = Some(self.draft.take()).filter(|draft| !draft.trim().is_empty());
        draft.iter().for_each(|draft| self.input.remember(draft));
        for line in lines.into_iter().chain(draft) {
            self.say(&format!("not sent, but in the history: {}", one_line(&line)), Style::of(Hue::Yellow));
        }
    }

    /// How the turn ended, and what it took.
    fn conclude(&mut self, result: &Result<String, ExecuteError>, stopped: Option<Stop>, before: Spent) {
        let outcome = Outcome::of(Some(result), &self.seat.opened.session, &self.seat.turns);
        let exit = Exit::of(outcome, stopped);
        self.ended(exit);
        if exit != Exit::Success && self.screen.face() == Face::Full {
            self.screen.note(&[Line::new()]);
        }
        let told = match (outcome, result) {
            (Outcome::Stopped, _) => {
                self.say_stopped(stopped);
                None
            }
            (Outcome::Denied, Ok(denial)) => Some(Failure { message: denial.clone(), hint: None }),
            (_, Err(error)) => Some(self.seat.failure(error)),
            (_, Ok(_)) => None,
        };
        if let Some(told) = told {
            self.say_failure(&told);
        }
        if self.screen.face() == Face::Pipe {
            return self.screen.end_raw();
        }
        // What was stopped before it began took nothing.
        let now = Spent::by(&self.seat.opened);
        if let Some(line) = so_far(&before, &now) {
            self.screen.note(&[Line::new()]);
            self.say(&line, Style::DIM);
        }
    }

    fn say_stopped(&mut self, stopped: Option<Stop>) {
        let why = stopped.filter(|stop| *stop == Stop::TimeUp);
        let told = why.map_or_else(|| STOPPED.to_owned(), |stop| format!("{STOPPED}: {}", stop.reason()));
        self.say(&told, Style::of(Hue::Yellow));
        if why.is_some() {
            let hint =
                "  hint: `amplifier config get limits.timeout_seconds --output json` says which, and where";
            self.say(&render::typed(hint), Style::DIM);
        }
    }
}

/// A turn that runs, and what the person wanted of it so far.
struct Running<'a> {
    view: View<'a>,
    session: Session,
    /// Lines for afterwards.
    later: Vec<String>,
    stops: u32,
    /// Until when what was asked to stop may still take.
    patience: Option<Instant>,
    /// What stopped it, beside the person.
    stopped: Option<Stop>,
    leaves: Option<Exit>,
}

impl<'a> Running<'a> {
    fn new(view: View<'a>, session: Session) -> Self {
        Self { view, session, later: Vec::new(), stops: 0, patience: None, stopped: None, leaves: None }
    }

    /// Time goes by.
    fn tick(&mut self, now: Instant) -> Wish {
        self.view.wait(now);
        self.view.draw();
        let is_over = self.patience.take_if(|until| now >= *until).is_some();
        if is_over { Wish::Stop } else { Wish::Nothing }
    }

    /// Goes on where the shell had the terminal. What was typed behind Ctrl-Z was meant for the shell, perhaps: its lines are
    /// no words to the turn and no answers until they are sent from here.
    async fn come_back(&mut self, typed: Vec<Typed>) {
        let mut lines = Vec::new();
        for typed in typed {
            match heard(&mut self.view, typed) {
                Wish::Line(line) => lines.push(line),
                wish => self.grant(wish).await,
            }
        }
        self.view.put_before(lines, Instant::now());
        self.view.draw_anew();
    }

    async fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Nothing | Wish::Suspend => {}
            Wish::Stop => {
                self.stops += 1;
                self.stop().await;
            }
            Wish::TimeUp => {
                self.stopped = self.stopped.or(Some(Stop::TimeUp));
                self.patience = Some(Instant::now() + GRACE);
                self.stops += 1;
                self.stop().await;
            }
            Wish::Leave(exit) => {
                self.leaves = Some(exit);
                self.session.cancel(CancelLevel::Immediate).await;
            }
            Wish::Line(line) if self.view.question.is_some() => {
                match self.view.answer_with(&line, Instant::now()) {
                    Heard::Nothing => {}
                    Heard::Answer(open, answer) => {
                        self.view.note(told(answer), Style::DIM);
                        // Whoever asked may have gone meanwhile; then nothing depends on the answer.
                        open.asked.answer.send(answer).ok();
                    }
                    Heard::Message(line) => self.send(line).await,
                }
            }
            Wish::Line(line) if line.trim().is_empty() => {}
            Wish::Line(line) => self.send(line).await,
        }
    }

    /// A line for the running turn, or for afterwards where the turn does not take it.
    async fn send(&mut self, line: String) {
        let message = json!({"message": line});
        let taken =
            !is_for_us(&line) && self.session.coordinator().call_capability(STEER, message).await.is_ok();
        if taken {
            self.view.queued.push(line);
        } else {
            self.view.note(&format!("after this turn: {}", one_line(&line)), Style::DIM);
            self.later.push(line);
        }
    }

    /// Stops a turn: what runs ends in order first, a second wish ends it at once. Where no tool runs there is nothing to wait for.
    async fn stop(&mut self) {
        let running = self.session.coordinator().cancel().running_tools();
        let running: Vec<String> = running.into_iter().map(|(_, tool)| tool).collect();
        let level =
            if self.stops > 1 || running.is_empty() { CancelLevel::Immediate } else { CancelLevel::Graceful };
        if level == CancelLevel::Graceful {
            let why = self.stopped.map(|stop| format!("{}: ", stop.reason())).unwrap_or_default();
            let told =
                format!("{why}stopping; waiting for {}, Ctrl-C again stops at once", running.join(", "));
            self.view.note(&told, Style::of(Hue::Yellow));
        }
        self.view.stopping = if level == CancelLevel::Graceful { Stopping::Soon } else { Stopping::Now };
        self.session.cancel(level).await;
        // Nothing is begun any more, so nothing is asked.
        self.view.leave_question();
    }

    /// What came too late for this turn is the next one; after a stop the person may want to change it first. Commands are
    /// done as they were given.
    fn end(mut self) -> (Vec<String>, Next) {
        self.view.leave_question();
        let mut late = std::mem::take(&mut self.view.queued);
        late.append(&mut self.later);
        if self.stops > 0 && self.leaves.is_none() {
            let (commands, messages): (Vec<_>, Vec<_>) = late.into_iter().partition(|line| is_for_us(line));
            self.view.draft.put_before(messages);
            late = commands;
        }
        self.view.finish();
        (late, self.leaves.map_or(Next::Prompt, Next::Leave))
    }
}

/// Whether a line is for the chat and not for the model.
fn is_for_us(line: &str) -> bool {
    !matches!(slash::read(line), Said::Prompt(_))
}

/// What something typed means while a turn runs.
fn heard(view: &mut View<'_>, typed: Typed) -> Wish {
    match typed {
        Typed::Key(key) => match view.key(key, Instant::now()) {
            Meant::Nothing => Wish::Nothing,
            Meant::Line(line) => Wish::Line(line),
            Meant::Interrupt => Wish::Stop,
            Meant::End => Wish::Leave(Exit::Success),
            Meant::Suspend => Wish::Suspend,
        },
        Typed::Paste(text) => {
            view.paste(&text, Instant::now());
            Wish::Nothing
        }
        Typed::Line(line) => Wish::Line(line),
        Typed::Interrupt | Typed::InterruptAnew => Wish::Stop,
        Typed::Refused(why) => {
            view.note(&format!("error: {why}"), Style::of(Hue::Red));
            Wish::Nothing
        }
        // The end of what is typed is not the end of the turn.
        Typed::End | Typed::Broken(_) | Typed::Rested | Typed::Emptied | Typed::Suspend => Wish::Nothing,
    }
}

fn told(answer: Answer) -> &'static str {
    match answer {
        Answer::Once => "allowed once",
        Answer::Session => "allowed for this session",
        Answer::Always => "allowed always in this folder",
        Answer::No => "not allowed",
    }
}

/// What a session and its agents have spent; no cost when nobody told a price.
#[derive(Clone, Copy)]
pub(super) struct Spent {
    amounts: Amounts,
    cost: Option<Usd>,
}

impl Spent {
    fn by(opened: &OpenSession) -> Self {
        Self { amounts: opened.spent(), cost: opened.cost() }
    }
}

/// What a turn took up to now, in one line; nothing before the first answer of the model.
fn so_far(before: &Spent, now: &Spent) -> Option<String> {
    let took = now.amounts.minus(&before.amounts);
    let (sent, received) = (took.input_tokens, took.output_tokens);
    if sent == 0 && received == 0 && now.cost <= before.cost {
        return None;
    }
    let mut parts = vec![format!("{} in", tokens(sent)), format!("{} out", tokens(received))];
    if let Some(cost) = now.cost {
        parts.push(dollars(took.cost_nanos));
        if took.cost_nanos != cost.as_nanos() {
            parts.push(format!("{} in all", dollars(cost.as_nanos())));
        }
    }
    Some(parts.join(" · "))
}

/// A number of tokens in the fewest words.
pub(super) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Money, rounded up: nothing is not the same as little. Of less than a dollar four digits are shown.
pub(super) fn dollars(nanos: u64) -> String {
    let (unit, whole, width) =
        if nanos >= 1_000_000_000 { (10_000_000, 100, 2) } else { (100_000, 10_000, 4) };
    let parts = nanos.div_ceil(unit);
    format!("${}.{:0width$}", parts / whole, parts % whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([tokens(0), tokens(999), tokens(1_234), tokens(2_500_000)], ["0", "999", "1.2k", "2.5M"]);
        assert_eq!(
            [dollars(0), dollars(1), dollars(12_345_678), dollars(3_000_000_000)],
            ["$0.0000", "$0.0001", "$0.0124", "$3.00"]
        );
    }
}
