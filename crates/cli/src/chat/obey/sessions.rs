//! Commands about sessions: this one, its copies, and the others.

use amplifier_app::CancelToken;
use amplifier_app::output::{Existing, Output};
use amplifier_app::sessions::export::{Format, export};
use amplifier_app::sessions::{self, ForkRequest, Scope, Turn};
use amplifier_app::store::SessionStore;
use amplifier_protocol::event::SessionDescribed;

use crate::chat::calls::one_line;
use crate::chat::paint::Style;
use crate::chat::seat::short;
use crate::chat::{Chat, Next, Past};
use crate::render::typed;

/// What replaces a file that is there already.
const FORCE: &str = "--force";
/// How many sessions are listed.
const LISTED: usize = 15;
/// How many turns are listed.
const TURNS: u64 = 30;

impl Chat {
    fn store(&self) -> SessionStore {
        SessionStore::new(self.seat.home().clone())
    }

    /// The conversation as the model knows it, as JSON.
    pub(super) async fn save(&mut self, file: &str) {
        let Some(output) = self.place(file, "json") else { return };
        match self.seat.opened.save(&output).await {
            Ok(count) => self.done(&format!("{count} messages are in `{}`", output.path().display())),
            Err(error) => self.fault(&error, error.hint().map(str::to_owned)),
        }
    }

    /// A file in the working folder that can be written, with a usual name where none was given. One that is there already
    /// is only replaced by who says so; nothing is the answer where it was refused.
    fn place(&mut self, argument: &str, ending: &str) -> Option<Output> {
        let forced = argument.strip_suffix(FORCE).filter(|file| file.is_empty() || file.ends_with(' '));
        let file = forced.unwrap_or(argument).trim();
        let usual = || format!("session-{}.{ending}", short(self.seat.opened.session.id()));
        let path = self.seat.folder().join(if file.is_empty() { usual() } else { file.to_owned() });
        let existing = if forced.is_some() { Existing::Replaced } else { Existing::Kept };
        match Output::at(&path, existing) {
            Ok(output) => Some(output),
            Err(error) => {
                self.refuse(&format!("{error}; {}", error.hint()));
                None
            }
        }
    }

    pub(super) fn export(&mut self, file: &str) {
        let Some(output) = self.place(file, "md") else { return };
        let format = match output.path().extension().and_then(|ending| ending.to_str()) {
            Some("md" | "markdown") => Format::Markdown,
            Some("json") => Format::Json,
            Some("html" | "htm") => Format::Html,
            _ => return self.refuse("the name must end with .md, .json or .html"),
        };
        let id = self.seat.opened.session.id().clone();
        let store = self.store();
        let mut document = Vec::new();
        let damaged = match export(&store, &id, format, &mut document) {
            Ok(damaged) => damaged,
            Err(error) => return self.fault(&error, error.hint()),
        };
        match output.write(&document) {
            Ok(()) => {
                self.done(&format!("the session is in `{}`", output.path().display()));
                if let Some(first) = damaged.first() {
                    self.fault(&first.error, first.error.hint());
                }
            }
            Err(error) => self.fault(&error, Some(error.hint().to_owned())),
        }
    }

    pub(super) async fn fork(&mut self, turn: &str) -> Next {
        let Some(at) = self.turn_of(turn) else { return Next::Prompt };
        if let Err(error) = self.seat.opened.session.coordinator().sync_journal().await {
            self.fault(&error, None);
            return Next::Prompt;
        }
        let id = self.seat.opened.session.id().clone();
        match sessions::fork(&self.store(), &id, &ForkRequest { at, name: None }) {
            Ok(forked) => {
                let (turn, this, other) = (forked.turn, short(&forked.id), short(&id));
                let told =
                    format!("this is a copy up to turn {turn}: session {this}; the other one is {other}");
                Next::Go(Box::new(self.seat.copy(forked.id, told)), Past::Hidden)
            }
            Err(error) => {
                self.fault(&error, error.hint());
                Next::Prompt
            }
        }
    }

    pub(super) async fn rewind(&mut self, turn: &str) {
        if turn.is_empty() {
            return self.turns();
        }
        let Some(Some(to)) = self.turn_of(turn) else { return };
        match self.seat.opened.rewind(to).await {
            Ok(rewound) => {
                let told = format!(
                    "the conversation ends with turn {} and has {} messages; `/rewind {}` undoes this. Files are as they are",
                    rewound.to, rewound.messages, rewound.from
                );
                self.done(&told);
            }
            Err(error) => self.fault(&error, error.hint()),
        }
    }

    /// The number of a turn, if one was given.
    fn turn_of(&mut self, text: &str) -> Option<Option<u64>> {
        if text.is_empty() {
            return Some(None);
        }
        let number = text.parse().ok();
        if number.is_none() {
            self.refuse(&format!("`{text}` is no number of a turn; `/rewind` lists them"));
        }
        number.map(Some)
    }

    /// What was asked last.
    fn turns(&mut self) {
        let session = &self.seat.opened.session;
        let (id, taken) = (session.id().clone(), session.coordinator().turn());
        match sessions::last_turns(&self.seat.opened.folder, taken, TURNS) {
            Ok(turns) if turns.is_empty() => self.say("nothing was asked yet", Style::DIM),
            Ok(turns) => {
                let row = |turn: &Turn| {
                    let prompt =
                        turn.prompt.as_deref().map(one_line).unwrap_or_else(|| "(continued)".to_owned());
                    let gone = if turn.counts { "" } else { " (not part of the conversation now)" };
                    (turn.number.to_string(), format!("{prompt}{gone}"))
                };
                let rows: Vec<_> = turns.iter().map(row).collect();
                self.table(&rows);
                if taken > TURNS {
                    let all = format!("  `amplifier session show {id}` lists all");
                    self.say(&typed(&all), Style::DIM);
                }
                self.say("  `/rewind TURN` goes back to its end, 0 to the very beginning", Style::DIM);
            }
            Err(error) => self.fault(&error, error.hint()),
        }
    }

    pub(super) fn sessions(&mut self) {
        let scope = Scope { limit: Some(LISTED), ..self.seat.scope() };
        let store = self.store();
        match sessions::list(&store, &scope).map(|listing| listing.marked(&store)) {
            Ok(listing) => {
                let current = self.seat.opened.session.id().clone();
                let rows: Vec<_> = listing
                    .sessions
                    .iter()
                    .map(|listed| {
                        let about = &listed.metadata;
                        let title = about.name.clone().or_else(|| about.title.clone()).unwrap_or_default();
                        let here = if about.session_id == current { " (this one)" } else { "" };
                        let damaged = if listed.damaged.is_empty() { "" } else { "damaged: " };
                        (
                            short(&about.session_id),
                            format!("{}  {damaged}{}{here}", turns_of(about.turns), one_line(&title)),
                        )
                    })
                    .collect();
                match rows.is_empty() {
                    true => self.say("there are no sessions of this project yet", Style::DIM),
                    false => self.table(&rows),
                }
            }
            Err(error) => self.fault(&error, error.hint()),
        }
    }

    pub(super) async fn resume(&mut self, text: &str) -> Next {
        if text.is_empty() {
            self.say("which one? `/resume SESSION`", Style::DIM);
            self.sessions();
            return Next::Prompt;
        }
        match sessions::resolve(&self.store(), text) {
            Ok(id) if id == *self.seat.opened.session.id() => self.say("this is it", Style::DIM),
            Ok(id) => {
                let cancel = CancelToken::new();
                let changes = self.seat.tell_changes(&id, cancel.clone());
                if let Err(stop) = self.stops.unless_stopped(changes, &cancel).await {
                    return self.stopped(stop);
                }
                let told = format!("this is session {} now", short(&id));
                return Next::Go(Box::new(self.seat.other(id, told)), Past::Shown);
            }
            Err(error) => self.fault(&error, error.hint()),
        }
        Next::Prompt
    }

    pub(super) async fn rename(&mut self, title: &str) {
        match sessions::checked_name(title) {
            Ok(name) => {
                let told = format!("the session is called `{name}`");
                let described = SessionDescribed { name: Some(name), ..SessionDescribed::default() };
                self.seat.opened.session.coordinator().emit(described).await;
                if let Err(error) = self.seat.opened.update_views().await {
                    return self.fault(&error, None);
                }
                self.done(&told);
            }
            Err(error) => self.fault(&error, error.hint()),
        }
    }
}

fn turns_of(count: u64) -> String {
    if count == 1 { "1 turn".to_owned() } else { format!("{count} turns") }
}
