//! A session as a document: Markdown, JSON, or one HTML page that needs nothing else. The conversation as it is now: turns
//! that are no part of it any more are left out, and named. Secrets are taken out; where the document goes is the caller's
//! business.

use std::io::Write;

use amplifier_core::redact::{redact_text, redacted};
use amplifier_protocol::event::OriginKind;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::time::Timestamp;
use serde_json::{Value, json};

use super::list::look_around;
use super::reading::{self, Damaged};
use super::story::{self, Happening, Moment};
use super::turns::{Turn, turns_around};
use super::{SessionError, damaged_json, mark};
use crate::store::{Metadata, SessionStore};

mod html;
mod markdown;

/// The version of the JSON form.
const VERSION: u32 = 1;

/// How a session is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Markdown,
    Json,
    Html,
}

/// Writes a session to `out` and tells what of it is damaged: that is marked in its place. It may be in use: what is complete
/// is written.
pub fn export(
    store: &SessionStore,
    id: &SessionId,
    format: Format,
    out: &mut dyn Write,
) -> Result<Vec<Damaged>, SessionError> {
    let folder = store.open(id)?;
    let (listed, _) = look_around(store, id)?;
    let (turns, mut damaged) = turns_around(&folder)?;
    let document = Document { metadata: listed.metadata, turns, damaged: damaged_json(&damaged) };
    match format {
        Format::Markdown => markdown::begin(out, &document),
        Format::Html => html::begin(out, &document),
        Format::Json => write!(out, "{}", document.opening()),
    }
    .map_err(SessionError::Write)?;
    let mut turn = 0;
    let more = story::tell(&folder, 1, |moment| {
        if !document.tells(&moment) {
            return Ok(());
        }
        let begins = moment.turn != turn;
        let first = std::mem::replace(&mut turn, moment.turn) == 0;
        let begun = begins.then(|| document.turn(moment.turn)).flatten();
        match format {
            Format::Markdown => markdown::moment(out, begun, &moment),
            Format::Html => html::moment(out, begun, &moment),
            Format::Json => json_moment(out, begun, &moment, if first { Place::First } else { Place::Later }),
        }
        .map_err(SessionError::Write)
    })?;
    match format {
        Format::Markdown => Ok(()),
        Format::Html => html::end(out),
        Format::Json => writeln!(out, "{}", if turn == 0 { "]}" } else { "]}]}" }),
    }
    .and_then(|()| out.flush())
    .map_err(SessionError::Write)?;
    reading::join(&mut damaged, more);
    mark::note(&folder, &damaged);
    Ok(damaged)
}

/// What a document is made of beside its story.
struct Document {
    metadata: Metadata,
    turns: Vec<Turn>,
    /// What is wrong with it, as far as that is known before its messages are read.
    damaged: Value,
}

impl Document {
    fn turn(&self, number: u64) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.number == number)
    }

    /// Whether a moment belongs to the conversation as it is now.
    fn tells(&self, moment: &Moment) -> bool {
        let kept = !matches!(
            moment.what,
            Happening::Replaced { .. } | Happening::Rewound { .. } | Happening::Ended { .. }
        );
        kept && self.turn(moment.turn).is_some_and(|turn| turn.counts)
    }

    fn title(&self) -> String {
        redact_text(self.metadata.label()).into_owned()
    }

    /// What is worth knowing about the session, a line each.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let Metadata { session_id, parent_id, created, updated, model, .. } = &self.metadata;
        let mut facts = vec![("session", session_id.to_string())];
        let mut add = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
        add("part of", parent_id.as_ref().map(ToString::to_string));
        let forked = self.metadata.forked_from.as_ref();
        add("forked from", forked.map(|point| format!("{}, turn {}", point.session, point.turn)));
        add("begun", Some(second(*created)));
        add("last used", Some(second(*updated)));
        let origin = self.metadata.bundle.as_ref();
        add("started from", origin.map(|origin| format!("{} {}", kind(origin.kind), origin.reference)));
        add("model", model.clone());
        let left: Vec<_> =
            self.turns.iter().filter(|turn| !turn.counts).map(|turn| turn.number.to_string()).collect();
        add("turns that are no part of it now", (!left.is_empty()).then(|| left.join(", ")));
        let damaged = self.damaged.as_array().map_or(0, Vec::len);
        let words = || format!("{damaged} of its journal; what is missing is marked where it was");
        add("damaged places", (damaged > 0).then(words));
        facts
    }

    fn opening(&self) -> String {
        let mut about = json!({ "version": VERSION, "session": redacted(self.metadata.told()) });
        if let (Value::Object(about), false) = (&mut about, self.damaged == json!([])) {
            about.insert("damaged".to_owned(), self.damaged.clone());
        }
        let about = about.to_string();
        format!("{},\"turns\":[", about.strip_suffix('}').unwrap_or(&about))
    }
}

#[derive(PartialEq, Eq)]
enum Place {
    First,
    Later,
}

fn json_moment(
    out: &mut dyn Write,
    begun: Option<&Turn>,
    moment: &Moment,
    place: Place,
) -> std::io::Result<()> {
    if let Some(turn) = begun {
        let closing = if place == Place::First { "" } else { "]}," };
        let turn = redacted(serde_json::to_value(turn).unwrap_or_default()).to_string();
        write!(out, "{closing}\n{},\"moments\":[", turn.strip_suffix('}').unwrap_or(&turn))?;
    } else {
        write!(out, ",")?;
    }
    let moment = serde_json::to_value(moment).unwrap_or(Value::Null);
    write!(out, "\n  {moment}")
}

/// The word for what a session was started from.
pub fn kind(kind: OriginKind) -> &'static str {
    match kind {
        OriginKind::Bundle => "bundle",
        OriginKind::Profile => "profile",
        OriginKind::Plan => "plan",
    }
}

/// A time to the second.
pub fn second(time: Timestamp) -> String {
    let text = time.to_string();
    text.chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).chain("Z".chars()).collect()
}

/// A value as people read it.
fn pretty(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => format!("{value:#}"),
    }
}
