//! How sessions, turns and moments read in a terminal.

use std::path::Path;
use std::time::Duration;

use amplifier_app::sessions::export::{kind, second};
use amplifier_app::sessions::story::{Happening, Moment, lost_words};
use amplifier_app::sessions::{Listed, Turn};
use amplifier_protocol::event::TurnStatus;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::status::SessionState;
use amplifier_protocol::time::Timestamp;

use crate::page;
use crate::render;

/// How much of an id is shown: the part that tells when it was made.
const SHORT: usize = 13;
/// How much of what a tool got or gave is shown, in characters.
const GLANCE: usize = 100;
/// The least that is shown of a prompt beside the rest of its row, and where it stands below it.
const PROMPT: usize = 20;
const BELOW: usize = 7;
/// How wide a time is to the minute, and what stands there where nobody knows it.
const MINUTE: usize = 17;
const UNDATED: &str = "date unknown";
/// The longest wait of a replay, whatever happened then.
const LONGEST: Duration = Duration::from_secs(10);

/// As much of an id as tells it from the others.
pub fn short(id: &SessionId, others: &[&SessionId]) -> String {
    let text = id.as_str();
    let lengths = std::iter::once(SHORT).chain(SHORT + 1..text.len());
    let prefixes = lengths.filter_map(|length| text.get(..length));
    let unique =
        |prefix: &&str| !others.iter().any(|other| *other != id && other.as_str().starts_with(prefix));
    prefixes.into_iter().find(unique).unwrap_or(text).to_owned()
}

/// A number of things.
pub fn count(number: impl Into<u64>, thing: &str) -> String {
    match number.into() {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// A time to the minute.
pub fn minute(time: Timestamp) -> String {
    second(time).chars().take(16).chain("Z".chars()).collect()
}

/// When a session was last used, to the minute; as wide where the clock was wrong then.
pub fn last_use(listed: &Listed) -> String {
    match listed.is_dated() {
        true => minute(listed.used),
        false => format!("{UNDATED:<MINUTE$}"),
    }
}

/// What is worth knowing about a session, a line each.
pub fn facts(listed: &Listed, folder: &Path, bytes: u64) -> Vec<String> {
    let metadata = &listed.metadata;
    let mut facts = vec![("session", metadata.session_id.to_string())];
    let mut add = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    add("name", metadata.name.clone());
    add("title", metadata.title.clone());
    add("in use by", listed.owner.as_ref().map(ToString::to_string));
    add("begun", Some(second(metadata.created)));
    add("last used", Some(second(metadata.updated)));
    add("last turn", Some(last_turn(listed).to_owned()));
    add("folder", metadata.working_dir.as_ref().map(|dir| dir.display().to_string()));
    let origin = metadata.bundle.as_ref();
    add("started from", origin.map(|origin| format!("{} {}", kind(origin.kind), origin.reference)));
    add("model", metadata.model.clone());
    let tokens = metadata.usage();
    let cost = metadata.cost().map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost}"));
    add("used", Some(format!("{} tokens in, {} out, {cost}", tokens.input_tokens, tokens.output_tokens)));
    add("part of", metadata.parent_id.as_ref().map(ToString::to_string));
    let forked = metadata.forked_from.as_ref();
    add("forked from", forked.map(|point| format!("{}, turn {}", point.session, point.turn)));
    add("plan", Some(metadata.plan_hash.clone()));
    add("kept in", Some(format!("{} ({})", folder.display(), render::bytes(bytes))));
    facts.into_iter().map(|(name, value)| format!("{name:<12}  {value}")).collect()
}

/// A line as it is; on a terminal as much of it as fits.
pub fn fitting(line: &str) -> String {
    match render::columns() {
        Some(columns) => page::shortened(line, columns),
        None => line.to_owned(),
    }
}

/// How the last turn stands. One that runs needs somebody who runs it.
fn last_turn(listed: &Listed) -> &'static str {
    match (listed.metadata.status, &listed.owner, listed.metadata.turns) {
        (SessionState::Running, _, 0) => "none yet",
        (SessionState::Running, None, _) => "did not end",
        (status, _, _) => status.as_str(),
    }
}

/// One line about a turn; two on a narrow terminal.
pub fn turn_row(turn: &Turn, listed: &Listed, columns: Option<usize>) -> String {
    let runs = listed.owner.is_some() && turn.number == listed.metadata.turns;
    let unknown = match (turn.damaged, runs) {
        (true, _) => "damaged",
        (false, true) => "running",
        (false, false) => "did not end",
    };
    let status = turn.status.map_or(unknown, status_word);
    let gone = match (turn.counts, turn.damaged) {
        (true, false) => "",
        (true, true) => "  (parts cannot be read)",
        (false, _) => "  (not part of the conversation now)",
    };
    let prompt = match (&turn.prompt, turn.damaged) {
        (None, true) => "(what was asked cannot be read)".to_owned(),
        (prompt, _) => format!("{}{gone}", prompt.as_deref().unwrap_or("(continued)")),
    };
    let head = format!("{:>5}  {}  {status:<11}", turn.number, minute(turn.begun));
    let beside = page::width(&head) + 2;
    match columns {
        None => format!("{head}  {prompt}"),
        Some(columns) if columns >= beside + PROMPT => {
            format!("{head}  {}", page::shortened(&prompt, columns - beside))
        }
        Some(columns) => {
            let below = page::shortened(&prompt, columns.saturating_sub(BELOW));
            format!("{}\n{:BELOW$}{below}", page::shortened(head.trim_end(), columns), "")
        }
    }
}

/// How a turn ended, in a word.
pub fn status_word(status: TurnStatus) -> &'static str {
    match status {
        TurnStatus::Success => "answered",
        TurnStatus::Incomplete => "no answer",
        TurnStatus::Denied => "denied",
        TurnStatus::Cancelled => "cancelled",
        TurnStatus::Error => "failed",
        TurnStatus::MaxIterations => "cut off",
        TurnStatus::LimitReached => "over limit",
    }
}

/// A moment as lines to read.
pub fn words(moment: &Moment) -> Vec<String> {
    lines(&moment.what)
}

/// What happened, as lines to read.
pub fn lines(what: &Happening) -> Vec<String> {
    match what {
        Happening::Prompt { text } => quoted("> ", text),
        Happening::Said { text } => text.trim_end().lines().map(str::to_owned).collect(),
        Happening::Thought { text } => quoted("~ ", text),
        Happening::Injected { by, text } => vec![format!("[{by} added: {}]", glance(text))],
        Happening::Called { tool, input, .. } => {
            vec![format!("[{tool} {}]", glance(&input.to_string()))]
        }
        Happening::Answered { tool, text, .. } => vec![format!("[{tool}: {}]", glance(text))],
        Happening::Shown { kind } => vec![format!("[{kind}]")],
        Happening::Replaced { messages } => {
            vec![format!("[the conversation has {} now]", count(*messages as u64, "message"))]
        }
        Happening::Rewound { to } => vec![format!("[back to the end of turn {to}]")],
        Happening::Lost { records, line, kept } => vec![format!("[{}]", lost_words(*records, *line, *kept))],
        Happening::Ended { status: TurnStatus::Success } => Vec::new(),
        Happening::Ended { status } => vec![format!("[the turn ended: {}]", status_word(*status))],
    }
}

fn quoted(mark: &str, text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| format!("{mark}{line}").trim_end().to_owned()).collect()
}

/// The beginning of a text, on one line, and how much there is.
fn glance(text: &str) -> String {
    let line: String = text.chars().take(GLANCE * 8).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(GLANCE) {
        None => line,
        Some((end, _)) => {
            format!("{}… ({})", line.get(..end).unwrap_or_default(), render::bytes(text.len() as u64))
        }
    }
}

/// Waits between moments as long as it took, divided by a speed.
pub struct Pace {
    speed: Option<f64>,
    last: Option<Timestamp>,
}

impl Pace {
    pub fn new(speed: Option<f64>) -> Self {
        Self { speed, last: None }
    }

    pub fn wait_until(&mut self, now: Timestamp) {
        let last = self.last.replace(now);
        if let (Some(last), Some(speed)) = (last, self.speed) {
            std::thread::sleep(now.since(last).min(LONGEST).div_f64(speed.max(0.001)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_id_is_as_long_as_it_must_be() {
        let ids: Vec<SessionId> = ["0199aaaa-0001-7000", "0199aaaa-0001-7111", "0199bbbb-0001-7000"]
            .map(|id| id.parse().unwrap())
            .to_vec();
        let all: Vec<_> = ids.iter().collect();
        let shown: Vec<_> = ids.iter().map(|id| short(id, &all)).collect();
        assert_eq!(shown, ["0199aaaa-0001-70", "0199aaaa-0001-71", "0199bbbb-0001"]);
    }
}
