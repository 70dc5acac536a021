//! One turn of the chat: the session works, and meanwhile everything it tells is shown and everything that is typed is heard.

use std::time::Duration;

use amplifier_app::approval::Answer;
use amplifier_app::{CancelLevel, ExecuteError, Prompt, Session, Speaker, TurnError, prompt};
use amplifier_protocol::status::{SessionState, SessionStatus};
use amplifier_protocol::usage::Usd;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::calls::one_line;
use super::draft::Meant;
use super::input::Typed;
use super::paint::{Hue, Line, Style};
use super::screen::Face;
use super::tap::Seen;
use super::view::{Stopping, View};
use super::{Chat, Next};
use crate::exit::Exit;
use crate::stop::Stop;

/// How often the changing lines are drawn.
const FRAME: Duration = Duration::from_millis(50);
/// The capability that takes words to a running turn.
const STEER: &str = "session.steer";

/// What the person wants of a running turn.
enum Wish {
    Nothing,
    Stop,
    /// Stop, and leave.
    Leave(Exit),
    /// A line: an answer, a word to the turn, or a command for afterwards.
    Line(String),
}

impl Chat {
    /// Asks the model and shows what comes of it.
    pub(super) async fn turn(&mut self, text: String) -> Next {
        let session = self.seat.opened.session.clone();
        let before = (session.status(), self.seat.opened.cost());
        let (text, failed) = self.seat.opened.expand(text, Speaker::Person).await;
        for failed in failed.iter().filter(|failed| prompt::is_worth_telling(failed)) {
            self.say(&format!("warning: {}", prompt::describe(failed)), Style::of(Hue::Yellow));
        }
        session.reset_cancel();
        let work = tokio::spawn(async move { session.execute(Prompt::Text(text)).await });
        let (result, next) = self.watch(work).await;
        let broken = || Err(TurnError::Broken { message: "the turn broke off".to_owned() }.into());
        self.conclude(&result.unwrap_or_else(broken), before);
        if let Err(error) = self.seat.opened.update_views().await {
            self.say(&format!("warning: {error}; the journal is complete"), Style::of(Hue::Yellow));
        }
        if let Next::Leave(exit) = next {
            self.exit = exit;
        }
        next
    }

    /// Looks on until the work is over; nothing comes of work that broke off.
    pub(super) async fn watch<E>(
        &mut self,
        mut work: JoinHandle<Result<String, E>>,
    ) -> (Option<Result<String, E>>, Next) {
        let mut listening = self.screen.face() != Face::Pipe;
        if listening {
            self.input.watch();
        }
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let view = View::new(&mut self.screen, &mut self.memory, &mut self.draft);
        let session = self.seat.opened.session.clone();
        let before = (session.status(), self.seat.opened.cost());
        let mut running = Running { view, session, later: Vec::new(), stops: 0, leaves: None };
        let result = loop {
            let view = &mut running.view;
            let mut wish = Wish::Nothing;
            tokio::select! {
                biased;
                stop = self.stops.next() => wish = match stop {
                    Stop::Interrupt => Wish::Stop,
                    stop => Wish::Leave(stop.exit()),
                },
                typed = self.input.next(), if listening => {
                    listening = !matches!(typed, Typed::End | Typed::Broken(_));
                    wish = heard(view, typed);
                    view.draw();
                }
                Some(asked) = self.seat.asked.recv(), if view.question.is_none() => {
                    view.take_all(&mut self.seat.seen);
                    view.ask(asked);
                    view.draw();
                }
                Some(seen) = self.seat.seen.recv() => {
                    view.take(seen);
                    view.take_all(&mut self.seat.seen);
                }
                _ = frames.tick() => {
                    view.drop_stale_question();
                    view.spent = so_far(&before, &(self.seat.status(), self.seat.opened.cost()));
                    view.draw();
                }
                done = &mut work => break done.ok(),
            }
            if let Wish::Line(line) = &wish
                && running.view.question.is_none()
            {
                self.input.remember(line);
            }
            running.grant(wish).await;
        };
        running.view.take_all(&mut self.seat.seen);
        if let (Some(Ok(answer)), false) = (&result, running.view.answered) {
            running.view.take(Seen::TextEnd(answer.clone()));
        }
        let (later, next) = running.end();
        self.waiting.extend(later);
        (result, next)
    }

    /// How the turn ended, and what it took.
    fn conclude(&mut self, result: &Result<String, ExecuteError>, before: (SessionStatus, Option<Usd>)) {
        let status = self.seat.status();
        self.exit = match (status.status, result) {
            (SessionState::Cancelled, _) => Exit::Interrupted,
            (_, Err(ExecuteError::Turn(TurnError::Limit(_)))) => Exit::Refused,
            (_, Err(_)) => Exit::Failure,
            (_, Ok(_)) => Exit::Success,
        };
        if self.exit != Exit::Success && self.screen.face() == Face::Full {
            self.screen.note(&[Line::new()]);
        }
        match (status.status, result) {
            (SessionState::Cancelled, _) => self.say("stopped", Style::of(Hue::Yellow)),
            (_, Err(error)) => {
                let told = self.seat.failure(error);
                self.say(&format!("error: {}", told.message), Style::of(Hue::Red));
                if let Some(hint) = told.hint {
                    self.say(&format!("  hint: {hint}"), Style::DIM);
                }
            }
            (_, Ok(_)) => {}
        }
        if self.screen.face() == Face::Pipe {
            return self.screen.end_raw();
        }
        // What was stopped before it began took nothing.
        let now = (status, self.seat.opened.cost());
        if let Some(line) = so_far(&before, &now) {
            self.screen.note(&[Line::new()]);
            self.say(&line, Style::DIM);
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
    leaves: Option<Exit>,
}

impl Running<'_> {
    async fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Nothing => {}
            Wish::Stop => {
                self.stops += 1;
                self.stop().await;
            }
            Wish::Leave(exit) => {
                self.leaves = Some(exit);
                self.session.cancel(CancelLevel::Immediate).await;
            }
            Wish::Line(line) if self.view.question.is_some() => {
                if let Some((open, answer)) = self.view.answer_with(&line) {
                    self.view.note(told(answer), Style::DIM);
                    // Whoever asked may have gone meanwhile; then nothing depends on the answer.
                    open.asked.answer.send(answer).ok();
                }
            }
            Wish::Line(line) if line.trim().is_empty() => {}
            Wish::Line(line) => self.send(line).await,
        }
    }

    /// A line for the running turn, or for afterwards where the turn does not take it.
    async fn send(&mut self, line: String) {
        let for_us = line.starts_with('/') || matches!(line.trim(), "exit" | "quit");
        let message = json!({"message": line});
        let taken = !for_us && self.session.coordinator().call_capability(STEER, message).await.is_ok();
        if taken {
            self.view.queued.push(line);
        } else {
            self.view.note(&format!("after this turn: {}", one_line(&line)), Style::DIM);
            self.later.push(line);
        }
    }

    /// Stops a turn: what runs may end first, a second wish ends it at once. Where no tool runs there is nothing to wait for.
    async fn stop(&mut self) {
        let running = self.session.coordinator().cancel().running_tools();
        let running: Vec<String> = running.into_iter().map(|(_, tool)| tool).collect();
        let level =
            if self.stops > 1 || running.is_empty() { CancelLevel::Immediate } else { CancelLevel::Graceful };
        if level == CancelLevel::Graceful {
            let told = format!("stopping when {} is done; Ctrl-C again stops at once", running.join(", "));
            self.view.note(&told, Style::of(Hue::Yellow));
        }
        self.view.stopping = if level == CancelLevel::Graceful { Stopping::Soon } else { Stopping::Now };
        self.session.cancel(level).await;
    }

    /// What came too late for this turn is the next one; after a stop the person may want to change it first.
    fn end(mut self) -> (Vec<String>, Next) {
        self.view.leave_question();
        let mut late = std::mem::take(&mut self.view.queued);
        late.append(&mut self.later);
        if self.stops > 0 && !late.is_empty() {
            late.extend(Some(self.view.draft.take()).filter(|draft| !draft.is_empty()));
            self.view.draft.put(late.join("\n"));
            late.clear();
        }
        self.view.finish();
        (late, self.leaves.map_or(Next::Prompt, Next::Leave))
    }
}

/// What something typed means while a turn runs.
fn heard(view: &mut View<'_>, typed: Typed) -> Wish {
    match typed {
        Typed::Key(key) => match view.draft.key(key) {
            Meant::Nothing => Wish::Nothing,
            Meant::Line(line) => Wish::Line(line),
            Meant::Interrupt => Wish::Stop,
            Meant::End => Wish::Leave(Exit::Success),
        },
        Typed::Paste(text) => {
            view.draft.paste(&text);
            Wish::Nothing
        }
        Typed::Line(line) => Wish::Line(line),
        Typed::Interrupt | Typed::InterruptAnew => Wish::Stop,
        // The end of what is typed is not the end of the turn.
        Typed::End | Typed::Broken(_) | Typed::Rested => Wish::Nothing,
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

/// What a turn took up to now; nothing before the first answer of the model.
fn so_far(before: &(SessionStatus, Option<Usd>), now: &(SessionStatus, Option<Usd>)) -> Option<String> {
    let told = now.0.total_input_tokens > before.0.total_input_tokens
        || now.0.total_output_tokens > before.0.total_output_tokens
        || now.1 > before.1;
    told.then(|| usage(&before.0, &now.0, before.1, now.1))
}

/// What a turn took, in one line.
fn usage(
    before: &SessionStatus,
    after: &SessionStatus,
    cost_before: Option<Usd>,
    cost: Option<Usd>,
) -> String {
    let sent = after.total_input_tokens.saturating_sub(before.total_input_tokens);
    let received = after.total_output_tokens.saturating_sub(before.total_output_tokens);
    let mut parts = vec![format!("{} in", tokens(sent)), format!("{} out", tokens(received))];
    if let Some(cost) = cost {
        let nanos = cost.as_nanos().saturating_sub(cost_before.map(Usd::as_nanos).unwrap_or_default());
        parts.push(dollars(nanos));
        if nanos != cost.as_nanos() {
            parts.push(format!("{} in all", dollars(cost.as_nanos())));
        }
    }
    parts.join(" · ")
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
