//! The chat: a prompt, an answer, a prompt. It renders and asks; what a session is and does is `app`'s.
//!
//! `chat/input.rs` reads, `chat/screen.rs` writes, `chat/turn.rs` runs one turn between them, `chat/obey.rs` does what begins
//! with a slash.

use std::collections::VecDeque;
use std::sync::Arc;

use amplifier_app::failure::Failure;
use amplifier_app::library::Access;
use amplifier_protocol::ids::SessionId;
use tokio::sync::Notify;

use crate::commands::start::Terms;
use crate::exit::Exit;
use crate::render;
use crate::stop::{Stop, Stops};

mod ahead;
mod approve;
mod calls;
mod complete;
mod discreet;
mod draft;
mod editor;
mod highlight;
mod hush;
mod input;
mod job;
mod markdown;
mod obey;
mod onlook;
mod paint;
mod past;
mod screen;
mod seat;
mod slash;
mod tap;
mod turn;
mod view;

pub use approve::dangers_named;
use complete::{Completion, Shared};
use discreet::Unsaid;
use draft::{Draft, Meant};
use editor::{Break, Setup};
use input::{Input, Typed};
use job::Job;
pub use onlook::{Onlooker, Shown, Wire};
pub use paint::Colour;
use paint::{Hue, Line, Margin, Span, Style, wrap};
pub use past::Past;
pub use screen::terminal_size;
use screen::{Face, Screen};
use seat::{Arrival, Farewell, Move, Seat};
use slash::Said;
use view::{Memory, Thinking};

/// How the chat goes on.
enum Next {
    Prompt,
    /// With another session, of which the past is shown or not, or with this one in another form.
    Go(Box<Move>, Past),
    Leave(Exit),
}

/// What becomes of lines that were typed ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// They are prompts of their own.
    Waiting,
    /// They were typed behind Ctrl-Z, perhaps for the shell: somebody has to send them.
    Begun,
}

struct Chat {
    screen: Screen,
    input: Input,
    stops: Stops,
    job: Job,
    seat: Seat,
    memory: Memory,
    draft: Draft,
    known: Shared,
    /// What the history may not hold.
    unsaid: Unsaid,
    /// Lines that were typed while something ran and are prompts of their own.
    waiting: VecDeque<String>,
    /// A prompt for which the session is opened anew first.
    unasked: Option<String>,
    /// What it ends with when it is left.
    exit: Exit,
}

/// Opens a session, new or again, and talks until the person leaves.
pub async fn run(terms: &Terms, resumed: Option<SessionId>, access: Access, past: Past) -> Exit {
    let face = Face::find(access.environment.get("TERM").as_deref());
    let colour = colour(face);
    let thinking = match access.settings.thinking() {
        "shown" => Thinking::Shown,
        _ => Thinking::Folded,
    };
    let past = resumed.as_ref().map(|_| past);
    let unread = Arc::new(Notify::new());
    let listening = Stops::listen(None, Arc::clone(&unread)).and_then(|stops| Ok((stops, Job::listen()?)));
    let (mut stops, job) = match listening {
        Ok(listening) => listening,
        Err(error) => {
            render::error(&error, None);
            return Exit::Failure;
        }
    };
    let seat = match Seat::take(terms, resumed, access, face, &mut stops).await {
        Ok(seat) => seat,
        Err(exit) => return exit,
    };
    let mut screen = Screen::new(face, colour, unread);
    let session = Some(seat.opened.session.id().clone());
    let (known, unsaid) = (Shared::default(), Unsaid::default());
    unsaid.add(seat.opened.secrets());
    let input = match Input::open(face, setup(&seat, &known, &unsaid, &mut screen)) {
        Ok(input) => input,
        Err(error) => return leave_unread(seat, &error).await,
    };
    let mut chat = Chat {
        screen,
        input,
        stops,
        job,
        seat,
        memory: Memory { thinking, session, ..Memory::default() },
        draft: Draft::default(),
        known,
        unsaid,
        waiting: VecDeque::new(),
        unasked: None,
        exit: Exit::Success,
    };
    if past.is_some_and(|past| chat.recall(past) == Past::Shown) {
        chat.show(&[Line::new()]);
    }
    chat.greet();
    chat.talk().await
}

/// What the line editor works with. A history that cannot be kept is told.
fn setup(seat: &Seat, known: &Shared, unsaid: &Unsaid, screen: &mut Screen) -> Setup {
    let history = match seat.history() {
        Ok(history) => Some(history),
        Err(error) => {
            let told = format!("warning: what is typed is not kept: {error}");
            screen.note(&[vec![Span::plain(told)]]);
            None
        }
    };
    let completion = Completion {
        known: known.clone(),
        folder: seat.folder().to_owned(),
        home: seat.home().clone(),
        scope: seat.scope(),
    };
    Setup { history, unsaid: unsaid.clone(), completion, colour: colour(screen.face()) }
}

/// Leaves a session whose person cannot be heard.
async fn leave_unread(seat: Seat, error: &std::io::Error) -> Exit {
    render::note(&format!("error: nothing can be read: there is no thread for it: {error}"));
    render::note("  hint: `ulimit -u` says how many there may be; end something else first");
    let problems = seat.close().await.problems;
    problems.iter().for_each(|problem| render::note(&format!("warning: {problem}")));
    Exit::Failure
}

/// Colours where somebody sees them and nobody objects.
fn colour(face: Face) -> Colour {
    if face == Face::Full && render::has_colors(&std::io::stdout()) { Colour::On } else { Colour::Off }
}

impl Chat {
    async fn talk(mut self) -> Exit {
        let exit = loop {
            match self.round().await {
                Next::Prompt => {}
                Next::Leave(exit) => break exit,
                Next::Go(to, past) => match self.seat.go(*to, &mut self.stops).await {
                    Ok((seat, arrival)) => {
                        self.seat = seat;
                        self.arrive(arrival, past);
                    }
                    Err(lost) => {
                        self.screen.clear();
                        self.input.close();
                        if let Some(error) = &lost.error {
                            render::error(error, error.hint().as_deref());
                        }
                        tell(&mut self.screen, lost.farewell);
                        return lost.exit;
                    }
                },
            }
        };
        self.leave().await;
        exit
    }

    /// Reads one line and does what it says.
    async fn round(&mut self) -> Next {
        let mut interrupts = 0;
        loop {
            let line = match self.next_line().await {
                Typed::Line(line) => line,
                typed @ (Typed::Interrupt | Typed::InterruptAnew) => {
                    let before = if matches!(typed, Typed::Interrupt) { interrupts } else { 0 };
                    interrupts = before + 1;
                    if interrupts > 1 || self.screen.face() == Face::Pipe {
                        return Next::Leave(Exit::Interrupted);
                    }
                    self.say("Ctrl-C again or Ctrl-D leaves", Style::DIM);
                    continue;
                }
                Typed::End => return Next::Leave(self.exit),
                Typed::Broken(error) => {
                    self.say(&format!("error: {error}"), Style::of(Hue::Red));
                    return Next::Leave(Exit::Failure);
                }
                Typed::Refused(why) => {
                    self.say(&format!("error: {why}"), Style::of(Hue::Red));
                    self.ended(Exit::Usage);
                    return Next::Prompt;
                }
                Typed::Emptied => {
                    interrupts = 0;
                    continue;
                }
                // Only while a turn runs, or done already.
                Typed::Key(_) | Typed::Paste(_) | Typed::Rested | Typed::Suspend => continue,
            };
            return match slash::read(&line) {
                Said::Nothing => Next::Prompt,
                Said::Prompt(prompt) => match self.seat.anew().await {
                    Some(to) => {
                        self.unasked = Some(prompt.to_owned());
                        Next::Go(Box::new(to), Past::Hidden)
                    }
                    None => self.turn(prompt.to_owned()).await,
                },
                Said::Command(word, argument) => self.obey(word, argument).await,
                Said::Unknown { name, nearest } => {
                    let perhaps = nearest.map(|name| format!("did you mean `/{name}`? ")).unwrap_or_default();
                    let told = format!("there is no command `/{name}`; {perhaps}`/help` lists them");
                    self.say(&told, Style::of(Hue::Yellow));
                    self.ended(Exit::Usage);
                    Next::Prompt
                }
            };
        }
    }

    /// Keeps how a line ended. A person has seen it; a script must learn that something went wrong, whatever came after.
    fn ended(&mut self, exit: Exit) {
        if exit != Exit::Success && self.screen.face() == Face::Pipe {
            self.exit = exit;
        }
    }

    /// Says what came of going elsewhere.
    fn arrive(&mut self, arrival: Arrival, past: Past) {
        self.unsaid.add(self.seat.opened.secrets());
        for problem in arrival.problems {
            self.say(&format!("warning: {problem}"), Style::of(Hue::Yellow));
        }
        let unasked = self.unasked.take();
        match arrival.outcome {
            Ok(told) => {
                unasked.into_iter().for_each(|prompt| self.waiting.push_front(prompt));
                self.known.set(self.seat.known());
                self.say(&told, Style::of(Hue::Green));
                if self.memory.session.as_ref() != Some(self.seat.opened.session.id()) {
                    self.recall(past);
                }
            }
            Err(failure) => {
                unasked.into_iter().for_each(|prompt| self.draft.put(prompt));
                self.ended(arrival.exit);
                self.say_failure(&failure);
                self.say("the session goes on as it was", Style::DIM);
            }
        }
    }

    /// What comes of a stop outside a turn: where somebody can go on, an interrupt ends only what was being done.
    fn stopped(&mut self, stop: Stop) -> Next {
        self.ended(stop.exit());
        if stop != Stop::Interrupt || self.screen.face() == Face::Pipe {
            return Next::Leave(stop.exit());
        }
        self.say(stop.reason(), Style::of(Hue::Yellow));
        Next::Prompt
    }

    /// The next line: one that waits, else one from the person.
    async fn next_line(&mut self) -> Typed {
        if let Some(typed) = self.settle(Lines::Waiting).await {
            return typed;
        }
        if let Some(line) = self.waiting.pop_front() {
            let mark = vec![Span::new("> ", Style::of(Hue::Green)), Span::plain(calls::one_line(&line))];
            self.screen.note(&[Line::new(), mark]);
            return Typed::Line(line);
        }
        if self.screen.face() == Face::Full {
            self.screen.note(&[Line::new()]);
            self.screen.clear();
        }
        let mark = self.seat.mark();
        if self.screen.face() == Face::Dumb {
            self.screen.mark(&format!("{mark}> "));
        }
        self.input.ask(&mark, std::mem::take(&mut self.draft));
        loop {
            tokio::select! {
                // What asks to stop comes first: a line that waits already must not begin another turn.
                biased;
                stop = self.stops.next() => match self.asked_to(stop) {
                    // The line says what came of it, as if Ctrl-C had been typed there.
                    Typed::Interrupt if self.input.interrupt(Break::Interrupt) => {}
                    typed => return typed,
                },
                () = self.job.continued() => self.input.take_back(),
                typed = self.input.next() => match typed {
                    Typed::Key(_) | Typed::Paste(_) | Typed::Rested => {}
                    Typed::Suspend => {
                        self.job.suspend(&self.input).await;
                        if let Some(typed) = self.settle(Lines::Begun).await {
                            return typed;
                        }
                        self.input.ask(&mark, std::mem::take(&mut self.draft));
                    }
                    Typed::Line(line) if self.input.was_too_late() => {
                        self.draft.put(line);
                        return Typed::Interrupt;
                    }
                    typed => return typed,
                },
            }
        }
    }

    /// What something that asks to stop means at the prompt.
    fn asked_to(&mut self, stop: Stop) -> Typed {
        if stop == Stop::Interrupt {
            return Typed::Interrupt;
        }
        self.exit = stop.exit();
        Typed::End
    }

    /// Takes the keys that were on their way when a turn ended: they belong to the next prompt. What is no key is given back.
    async fn settle(&mut self, mut lines: Lines) -> Option<Typed> {
        let (mut interrupted, mut suspends, mut begun) = (None, false, Vec::new());
        let mut resting = self.input.rest();
        while resting {
            tokio::select! {
                biased;
                stop = self.stops.next() => match self.asked_to(stop) {
                    Typed::Interrupt => interrupted = Some(Typed::Interrupt),
                    typed => return Some(typed),
                },
                typed = self.input.next() => match typed {
                    Typed::Key(key) => match self.draft.key(key) {
                        Meant::Line(line) if lines == Lines::Begun => begun.push(line),
                        Meant::Line(line) => {
                            self.input.remember(&line);
                            self.waiting.push_back(line);
                        }
                        Meant::Interrupt => interrupted = Some(Typed::Interrupt),
                        Meant::End => interrupted = Some(Typed::End),
                        Meant::Suspend => (suspends, lines) = (true, Lines::Begun),
                        Meant::Nothing => {}
                    },
                    Typed::Paste(text) => self.draft.paste(&text),
                    Typed::Rested => resting = false,
                    typed => return Some(typed),
                },
            }
        }
        self.draft.put_before(begun);
        if suspends {
            self.job.suspend(&self.input).await;
        }
        interrupted
    }

    /// One line about where we are.
    fn greet(&mut self) {
        self.known.set(self.seat.known());
        if self.screen.face() == Face::Pipe {
            return;
        }
        let line = self.seat.greeting();
        self.say(&line, Style::DIM);
    }

    /// What went wrong, and what can be done about it.
    fn say_failure(&mut self, failure: &Failure) {
        self.say(&format!("error: {}", failure.message), Style::of(Hue::Red));
        if let Some(hint) = &failure.hint {
            self.say(&format!("  hint: {}", render::typed(hint)), Style::DIM);
        }
    }

    /// Something that is not an answer.
    fn say(&mut self, text: &str, style: Style) {
        let room = view::room(&self.screen);
        let text = markdown::safe(text);
        let wrapped = |line: &str| {
            let words = line.trim_start_matches(' ');
            // What goes on in the next line stands below its beginning.
            let indent = vec![Span::plain(" ".repeat(line.len() - words.len()))];
            wrap(&[Span::new(words, style)], room, &Margin { first: indent.clone(), rest: indent })
        };
        let lines: Vec<Line> = text.lines().flat_map(wrapped).collect();
        self.show(&lines);
    }

    fn show(&mut self, lines: &[Line]) {
        self.screen.note(lines);
        self.screen.clear();
    }

    /// Ends the session and says how to come back. Who interrupts that does not wait for it.
    async fn leave(mut self) {
        self.screen.clear();
        self.input.settle().await;
        self.input.close();
        let id = self.seat.opened.session.id().clone();
        let impatient = async { while self.stops.next().await != Stop::Interrupt {} };
        let farewell = tokio::select! {
            farewell = self.seat.close() => farewell,
            () = impatient => Farewell::in_haste(&id),
        };
        tell(&mut self.screen, farewell);
    }
}

/// The last words.
fn tell(screen: &mut Screen, farewell: Farewell) {
    let problems = farewell.problems.into_iter().map(|problem| (format!("warning: {problem}"), Hue::Yellow));
    let mut lines: Vec<Line> = problems.map(|(text, hue)| vec![Span::new(text, Style::of(hue))]).collect();
    if screen.face() != Face::Pipe {
        lines.extend(farewell.hint.map(|hint| vec![Span::new(hint, Style::DIM)]));
    }
    screen.note(&lines);
    screen.clear();
}

/// An answer as the chat shows it, for a command that prints one on a terminal.
pub fn rendered(answer: &str, colour: Colour) -> String {
    let mut stream = markdown::Stream::new(screen::terminal_size().0.saturating_sub(1));
    let mut lines = stream.push(answer);
    lines.extend(stream.finish());
    lines.iter().map(|line| paint::written(line, colour)).collect::<Vec<_>>().join("\n")
}
