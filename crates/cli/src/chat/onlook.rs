//! A turn that somebody watches without typing: `amplifier run` on a terminal. The answer comes as it forms, with the chat's
//! lines for tools and its spinner.
//!
//! Questions are asked by whoever asks them in `run`, in plain lines; nothing is drawn meanwhile.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use amplifier_app::approval::{Answer, Asker};
use amplifier_app::open::RecordTap;
use amplifier_app::{ApprovalError, DisplaySystem};
use amplifier_protocol::hook::Question;
use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot};
use tokio::time::MissedTickBehavior;

use super::draft::Draft;
use super::paint::Colour;
use super::screen::{Face, Screen};
use super::seat::Notices;
use super::tap::{Seen, Tap};
use super::view::{Memory, Thinking, View};
use crate::render::{self, Remark, Weight};

/// How often the changing lines are drawn.
const FRAME: Duration = Duration::from_millis(50);

/// What is shown of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The answer as it forms, a line for each call, and what is going on.
    Everything,
    /// The answer, line by line; what else happens is told by somebody else.
    Answer,
}

/// Looks at a turn.
pub struct Onlooker {
    screen: Screen,
    memory: Memory,
    shown: Shown,
    seen: UnboundedReceiver<Seen>,
    pauses: UnboundedReceiver<Pause>,
    /// The last text of the model that was shown.
    said: Said,
}

#[derive(Default)]
struct Said {
    text: String,
    is_over: bool,
}

/// What ties a session to who looks at it.
#[derive(Clone)]
pub struct Wire {
    seen: UnboundedSender<Seen>,
    pauses: UnboundedSender<Pause>,
}

/// A time in which nothing is drawn: from when it is `ready` until the other side of `over` is gone.
struct Pause {
    ready: oneshot::Sender<()>,
    over: oneshot::Receiver<()>,
}

impl Onlooker {
    /// Somebody who looks on, if standard output is a terminal; `term` is its name as the environment tells it.
    pub fn find(
        term: Option<&str>,
        shown: Shown,
        thinking: &str,
        unread: Arc<Notify>,
    ) -> Option<(Self, Wire)> {
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        if !stdout.is_terminal() {
            return None;
        }
        let face = match term {
            None | Some("" | "dumb") => Face::Dumb,
            // What is drawn again needs the whole terminal for itself.
            Some(_) if shown == Shown::Everything && stderr.is_terminal() => Face::Full,
            Some(_) => Face::Dumb,
        };
        let colour = |has_colors| if has_colors { Colour::On } else { Colour::Off };
        let screen = Screen::new(face, colour(render::has_colors(&stdout)), unread)
            .asides(colour(render::has_colors(&stderr)));
        let thinking = if thinking == "shown" { Thinking::Shown } else { Thinking::Folded };
        let memory = Memory { thinking, ..Memory::default() };
        let (seen_by, seen) = unbounded_channel();
        let (paused_by, pauses) = unbounded_channel();
        let wire = Wire { seen: seen_by, pauses: paused_by };
        Some((Self { screen, memory, shown, seen, pauses, said: Said::default() }, wire))
    }

    /// Shows what happens while something is done. `answer` gives the answer that it came to; it is shown unless it was.
    pub async fn along<T>(
        mut self,
        work: impl Future<Output = T>,
        answer: impl FnOnce(&T) -> Option<String>,
    ) -> T {
        tokio::pin!(work);
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut draft = Draft::default();
        let mut view = View::new(&mut self.screen, &mut self.memory, &mut draft).at_the_top();
        let mut held: Option<oneshot::Receiver<()>> = None;
        let done = loop {
            let is_free = held.is_none();
            let over = async {
                match &mut held {
                    // That the other side is gone is the sign, not an error.
                    Some(over) => over.await.unwrap_or(()),
                    None => std::future::pending().await,
                }
            };
            let pause = tokio::select! {
                biased;
                Some(pause) = self.pauses.recv(), if is_free => Some(pause),
                // Before what happened: however much that is, it is drawn.
                _ = frames.tick(), if is_free => {
                    // A terminal that is held up sees the next picture.
                    if render::has_room() {
                        view.draw();
                    }
                    continue;
                }
                Some(seen) = self.seen.recv(), if is_free => {
                    self.said.hear(&seen);
                    show(&mut view, seen, self.shown);
                    continue;
                }
                () = over => None,
                done = &mut work => break done,
            };
            held = pause.map(|pause| {
                while let Ok(seen) = self.seen.try_recv() {
                    self.said.hear(&seen);
                    show(&mut view, seen, self.shown);
                }
                view.finish();
                // Whoever wanted to ask may have gone; then the pause is over at once.
                pause.ready.send(()).ok();
                pause.over
            });
        };
        while let Ok(seen) = self.seen.try_recv() {
            self.said.hear(&seen);
            show(&mut view, seen, self.shown);
        }
        if let Some(answer) = answer(&done).filter(|answer| answer.trim() != self.said.text.trim()) {
            view.take(Seen::TextEnd(answer));
        }
        view.finish();
        done
    }
}

fn show(view: &mut View<'_>, seen: Seen, shown: Shown) {
    let is_call = matches!(seen, Seen::CallBegan { .. } | Seen::CallEnded { .. });
    if shown == Shown::Everything || !is_call {
        view.take(seen);
    }
}

impl Said {
    fn hear(&mut self, seen: &Seen) {
        match seen {
            Seen::Text(piece) => {
                if std::mem::take(&mut self.is_over) {
                    self.text.clear();
                }
                self.text.push_str(piece);
            }
            Seen::TextEnd(text) => (self.text, self.is_over) = (text.clone(), true),
            Seen::CallBegan { .. } => (self.text, self.is_over) = (String::new(), true),
            _ => {}
        }
    }
}

impl Wire {
    /// Sees every record.
    pub fn tap(&self) -> Arc<dyn RecordTap> {
        Arc::new(Tap(self.seen.clone()))
    }

    /// Takes messages of hooks.
    pub fn display(&self) -> Arc<dyn DisplaySystem> {
        Arc::new(Notices(self.seen.clone()))
    }

    /// The person, asked while nothing is drawn.
    pub fn asker(&self, person: Arc<dyn Asker>) -> Arc<dyn Asker> {
        Arc::new(Paused { person, pauses: self.pauses.clone() })
    }

    /// Something the person should know.
    pub fn note(&self, line: &str) {
        // Nobody looks on any more when the turn is over.
        self.seen.send(Seen::Notice { text: line.to_owned(), level: None }).ok();
    }

    /// The same with its weight.
    pub fn tell(&self, remark: Remark) {
        let level = match remark.weight {
            Weight::Note => None,
            Weight::Warning | Weight::Error => Some(remark.weight.label().to_owned()),
        };
        self.seen.send(Seen::Notice { text: remark.text, level }).ok();
    }
}

struct Paused {
    person: Arc<dyn Asker>,
    pauses: UnboundedSender<Pause>,
}

#[async_trait]
impl Asker for Paused {
    async fn ask(&self, question: &Question) -> Result<Answer, ApprovalError> {
        let (ready, is_ready) = oneshot::channel();
        // Dropped with the answer, and also when nobody waits for one any more.
        let (asking, over) = oneshot::channel();
        if self.pauses.send(Pause { ready, over }).is_ok() {
            is_ready.await.ok();
        }
        let answer = self.person.ask(question).await;
        drop(asking);
        answer
    }
}
