//! The tool calls of a chat: one line each, and everything about them for whoever asks.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amplifier_app::telling;
use serde_json::Value;

use super::markdown::{literal, safe};
use super::paint::{Hue, Line, Margin, Span, Style, cut, width, wrap};
use crate::render;

mod agents;

pub use agents::Agents;

/// How many calls are remembered.
const KEPT: usize = 200;
/// How much of a result is remembered, in bytes; the journal has all of it.
const KEPT_BYTES: usize = 256 * 1024;
/// Lines of a diff that are shown without being asked for.
const DIFF_LINES: usize = 16;
/// How much is told of why a call failed, in columns.
const REASON: usize = 240;

/// One call.
pub struct Call {
    pub number: usize,
    pub id: String,
    pub tool: String,
    pub input: Value,
    /// Since when it runs; not while somebody is asked about it.
    began: Option<Instant>,
    /// What it told of files it changed: the path and the diff.
    changed: Vec<(String, String)>,
    agents: Agents,
    pub end: Option<End>,
}

/// How a call ended.
pub struct End {
    /// How long it ran; nothing when it was never begun.
    took: Option<Duration>,
    well: Well,
    bytes: usize,
    text: String,
    diff: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Well {
    Done,
    Failed,
}

/// The calls, the last ones at the end.
#[derive(Default)]
pub struct Calls {
    list: VecDeque<Call>,
    made: usize,
}

impl Calls {
    /// None yet, after so many that are not remembered.
    pub fn after(made: usize) -> Self {
        Self { list: VecDeque::new(), made }
    }

    pub fn begin(&mut self, id: String, tool: String, input: Value) {
        self.made += 1;
        if self.list.len() >= KEPT {
            self.list.pop_front();
        }
        let (number, changed, agents) = (self.made, Vec::new(), Agents::default());
        self.list.push_back(Call { number, id, tool, input, began: None, changed, agents, end: None });
    }

    fn open(&mut self, id: &str) -> Option<&mut Call> {
        self.list.iter_mut().rev().find(|call| call.id == id && call.end.is_none())
    }

    /// The call runs from now on.
    pub fn start(&mut self, id: &str) {
        if let Some(call) = self.open(id) {
            call.began = Some(Instant::now());
        }
    }

    /// The call changed a file.
    pub fn change(&mut self, id: &str, path: String, diff: String) {
        if let Some(call) = self.open(id) {
            call.changed.push((path, diff));
        }
    }

    /// The call started an agent, which works in this session.
    pub fn hand_out(&mut self, id: &str, session: String) {
        if let Some(call) = self.open(id) {
            call.agents.sessions.push(session);
        }
    }

    /// The agents of the call that has this one: the call that said so, else the one that goes on with it, else the last
    /// that runs, since somebody must have started it.
    pub fn agents_with(&mut self, session: &str) -> Option<&mut Agents> {
        let is_its = |call: &Call| call.agents.sessions.iter().any(|known| known == session);
        let goes_on = |call: &Call| call.input.get("session_id").and_then(Value::as_str) == Some(session);
        let runs = |call: &Call| call.end.is_none();
        let at = self
            .list
            .iter()
            .rposition(|call| runs(call) && is_its(call))
            .or_else(|| self.list.iter().rposition(|call| runs(call) && goes_on(call)))
            .or_else(|| self.list.iter().rposition(|call| runs(call) && call.began.is_some()))?;
        self.list.get_mut(at).map(|call| &mut call.agents)
    }

    /// Ends a call that runs; nothing when none of that id does.
    pub fn end(&mut self, id: &str, well: Well, text: String, diff: Option<String>) -> Option<&Call> {
        let took = self.open(id)?.began.map(|began| began.elapsed());
        self.ended(id, took, well, text, diff)
    }

    /// The same of a call that took so long; nothing where it was never begun.
    pub fn ended(
        &mut self,
        id: &str,
        took: Option<Duration>,
        well: Well,
        text: String,
        diff: Option<String>,
    ) -> Option<&Call> {
        let call = self.open(id)?;
        let bytes = text.len();
        let text = text.get(..text.floor_char_boundary(KEPT_BYTES)).unwrap_or_default().to_owned();
        call.end = Some(End { took, well, bytes, text, diff });
        Some(call)
    }

    /// How many were made.
    pub fn made(&self) -> usize {
        self.made
    }

    /// Puts earlier ones before those that were made after the first `known`, and numbers them up to there. What has no
    /// number left is forgotten: calls that never ran were not counted by whoever gave the number.
    pub fn put_before(&mut self, mut earlier: Self, known: usize) {
        self.list.retain(|call| call.number > known);
        for (call, number) in earlier.list.iter_mut().rev().zip((0..=known).rev()) {
            call.number = number;
        }
        let numbered = earlier.list.len().min(known);
        earlier.list.drain(..earlier.list.len() - numbered);
        earlier.drop_open();
        earlier.list.append(&mut self.list);
        self.list = earlier.list;
        self.list.drain(..self.list.len().saturating_sub(KEPT));
    }

    /// Forgets those that never ended.
    pub fn drop_open(&mut self) {
        self.list.retain(|call| call.end.is_some());
    }

    pub fn running(&self) -> impl Iterator<Item = &Call> {
        self.list.iter().filter(|call| call.end.is_none())
    }

    /// The call of that number, else the last one.
    pub fn find(&self, number: Option<usize>) -> Option<&Call> {
        match number {
            Some(number) => self.list.iter().find(|call| call.number == number),
            None => self.list.back(),
        }
    }

    pub fn last(&self, many: usize) -> impl Iterator<Item = &Call> {
        self.list.iter().skip(self.list.len().saturating_sub(many))
    }
}

impl Call {
    /// The call in one line that fits.
    pub fn line(&self, room: usize, spinner: &str) -> Line {
        let (mark, facts) = match &self.end {
            None => (
                Mark::Running(spinner),
                self.began.map_or("waiting".to_owned(), |began| seconds(began.elapsed())),
            ),
            Some(end) => {
                let size = render::bytes(end.bytes as u64);
                let facts = match (end.took, end.well) {
                    (Some(took), _) => format!("{} · {size}", seconds(took)),
                    (None, Well::Done) => size,
                    (None, Well::Failed) => "not run".to_owned(),
                };
                (Mark::Ended(end.well), facts)
            }
        };
        row(mark, &self.tool, &argument(&self.input), &format!("{facts} #{}", self.number), room)
    }

    /// What its agents do right now, in a few lines.
    pub fn live_below(&self, room: usize, spinner: &str) -> Vec<Line> {
        self.agents.last_lines(room, spinner)
    }

    /// What its agents did, why it failed, in one line, and what it changed.
    pub fn below(&self, room: usize) -> Vec<Line> {
        let Some(end) = &self.end else { return Vec::new() };
        let mut shown = self.agents.lines(room, self.number);
        if end.well == Well::Failed {
            let first = plainly(&safe(&end.text)).lines().next().unwrap_or_default().to_owned();
            let indent = Margin { first: vec![Span::plain("  ")], rest: vec![Span::plain("  ")] };
            shown.extend(wrap(&[Span::new(shortened(&first, REASON), Style::of(Hue::Red))], room, &indent));
            return shown;
        }
        let lines = self.diffs(end);
        let more = lines.len().saturating_sub(DIFF_LINES);
        shown.extend(lines.iter().take(DIFF_LINES).map(|line| cut(line, room)));
        if more > 0 {
            let told = format!("  … {more} more lines, `/expand {}` shows them", self.number);
            shown.push(vec![Span::new(told, Style::DIM)]);
        }
        shown
    }

    /// What it changed: what its result says, else what it told file by file.
    fn diffs(&self, end: &End) -> Vec<Line> {
        if let Some(diff) = &end.diff {
            return diff_lines(diff);
        }
        let many = self.changed.len() > 1;
        let mut lines = Vec::new();
        for (path, diff) in &self.changed {
            if many {
                lines.push(vec![Span::new(format!("  {}", safe(path)), Style::BOLD)]);
            }
            lines.extend(diff_lines(diff));
        }
        lines
    }

    /// Everything about it.
    pub fn whole(&self, room: usize) -> Vec<Line> {
        let mut lines = vec![self.line(room, "…")];
        let input = serde_json::to_string_pretty(&self.input).unwrap_or_default();
        lines.extend(safe(&input).lines().map(|line| vec![Span::new(format!("  {line}"), Style::DIM)]));
        lines.extend(self.agents.all_lines(room));
        let Some(end) = &self.end else { return lines };
        match self.diffs(end) {
            diffs if diffs.is_empty() => {
                lines.extend(safe(&end.text).lines().map(|line| vec![Span::plain(format!("  {line}"))]));
            }
            diffs => lines.extend(diffs),
        }
        if end.text.len() < end.bytes {
            let left = render::bytes((end.bytes - end.text.len()) as u64);
            lines.push(vec![Span::new(format!("  … {left} more are in the session's journal"), Style::DIM)]);
        }
        lines
    }
}

/// What stands before a call.
#[derive(Clone, Copy)]
enum Mark<'a> {
    Running(&'a str),
    Ended(Well),
}

/// A call in one line that fits: a mark, the tool, what says the most, and what is known about it.
fn row(mark: Mark<'_>, tool: &str, argument: &str, facts: &str, room: usize) -> Line {
    let (mark, style) = match mark {
        Mark::Running(spinner) => (spinner, Style::of(Hue::Yellow)),
        Mark::Ended(Well::Done) => ("✓", Style::of(Hue::Green)),
        Mark::Ended(Well::Failed) => ("✗", Style::of(Hue::Red)),
    };
    let fixed = width(mark) + 1 + width(tool) + 4 + width(facts);
    let argument = shortened(argument, room.saturating_sub(fixed));
    let mut line = vec![Span::new(mark, style), Span::plain(" "), Span::new(safe(tool), Style::BOLD)];
    if !argument.is_empty() {
        line.push(Span::plain(format!("  {argument}")));
    }
    line.push(Span::new(format!("  {facts}"), Style::DIM));
    line
}

/// What says the most about an input, in one line.
fn argument(input: &Value) -> String {
    let Value::Object(fields) = input else { return one_line(&input.to_string()) };
    let any = || fields.values().find_map(Value::as_str).map(str::to_owned);
    telling::argument(input).or_else(any).as_deref().map(one_line).unwrap_or_default()
}

/// Why a call was not made, for the person: what stands in the conversation is said to the model.
fn plainly(text: &str) -> String {
    let cancelled =
        || serde_json::from_str::<Value>(text).is_ok_and(|told| told.get("cancelled") == Some(&true.into()));
    match text.strip_prefix("Denied by hook: ") {
        Some(why) if why.starts_with("User denied") => "you did not allow it".to_owned(),
        Some(why) if why.starts_with("Approval timeout") => {
            "nobody answered in time, so it was not allowed".to_owned()
        }
        Some(why) => format!("not allowed: {}", why.strip_prefix("no approval: ").unwrap_or(why)),
        None if text.starts_with('{') && cancelled() => "stopped".to_owned(),
        None => text.to_owned(),
    }
}

/// A unified diff in colours, without its head.
pub fn diff_lines(diff: &str) -> Vec<Line> {
    // What is or would be written, so every character of it.
    let body = literal(diff);
    let head = usize::from(body.starts_with("--- ")) * 2;
    let lines = body.lines().skip(head);
    let styled = |line: &str| {
        let style = match line.chars().next() {
            Some('+') => Style::of(Hue::Green),
            Some('-') => Style::of(Hue::Red),
            Some('@') => Style::of(Hue::Cyan),
            _ => Style::DIM,
        };
        vec![Span::new(format!("  {line}"), style)]
    };
    lines.map(styled).collect()
}

/// A time in the fewest words.
pub fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    match whole {
        0..10 => format!("{:.1}s", time.as_secs_f64()),
        10..60 => format!("{whole}s"),
        60..3600 => format!("{}m {:02}s", whole / 60, whole % 60),
        _ => format!("{}h {:02}m", whole / 3600, whole / 60 % 60),
    }
}

/// Text without line ends and doubled blanks.
pub fn one_line(text: &str) -> String {
    safe(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As much of a line as fits, with a mark where something is missing.
pub fn shortened(text: &str, room: usize) -> String {
    let line = cut(&[Span::plain(text)], room);
    if room == 0 { String::new() } else { line.into_iter().map(|span| span.text).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::paint::{Colour, line_width, written};
    use serde_json::json;

    fn done(tool: &str, input: Value, text: &str) -> Calls {
        let mut calls = Calls::default();
        calls.begin("a".to_owned(), tool.to_owned(), input);
        calls.start("a");
        assert!(calls.end("a", Well::Done, text.to_owned(), None).is_some());
        calls
    }

    #[test]
    fn a_call_is_one_line_that_fits() {
        let calls =
            done("bash", json!({"timeout": 5, "command": "cargo test\n  --workspace --all-features"}), "ok");
        let line = calls.find(None).unwrap().line(60, "");
        assert_eq!(
            written(&line, Colour::Off),
            "✓ bash  cargo test --workspace --all-features  0.0s · 2 B #1"
        );
        for room in [20, 30, 40] {
            let line = calls.find(None).unwrap().line(room, "");
            assert!(line_width(&line) <= room.max(28), "{room}: {}", written(&line, Colour::Off));
        }
    }

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| written(line, Colour::Off)).collect()
    }

    #[test]
    fn a_patch_is_told_by_its_files_and_shows_what_it_changed() {
        let mut calls = Calls::default();
        let patch = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Delete File: b\n*** End Patch";
        calls.begin("p".to_owned(), "apply_patch".to_owned(), json!({ "patch": patch }));
        calls.start("p");
        calls.change("p", "a".to_owned(), "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n".to_owned());
        calls.change("p", "b".to_owned(), "--- b\n+++ b\n@@ -1 +0,0 @@\n--- z\n".to_owned());
        let call = calls.end("p", Well::Done, "M a\nD b".to_owned(), None).unwrap();
        assert_eq!(written(&call.line(60, ""), Colour::Off), "✓ apply_patch  a, b  0.0s · 7 B #1");
        let expected = ["  a", "  @@ -1 +1 @@", "  -x", "  +y", "  b", "  @@ -1 +0,0 @@", "  --- z"];
        assert_eq!(texts(&call.below(60)), expected);
    }

    #[test]
    fn what_was_not_run_has_no_time_and_is_told_in_plain_words() {
        let mut calls = Calls::default();
        calls.begin("a".to_owned(), "bash".to_owned(), json!({"command": "ls"}));
        assert_eq!(written(&calls.find(None).unwrap().line(60, "*"), Colour::Off), "* bash  ls  waiting #1");
        let told = "Denied by hook: User denied: Run with `bash`:\nls".to_owned();
        let call = calls.end("a", Well::Failed, told, None).unwrap();
        assert_eq!(written(&call.line(60, ""), Colour::Off), "✗ bash  ls  not run #1");
        assert_eq!(texts(&call.below(60)), ["  you did not allow it"]);
        let plain = |text: &str| plainly(text);
        assert_eq!(plain("Denied by hook: plan mode is on"), "not allowed: plan mode is on");
        assert_eq!(plain(r#"{"error": "x", "cancelled": true, "tool": "bash"}"#), "stopped");
        assert_eq!(plain("no such file"), "no such file");
    }

    #[test]
    fn a_call_ends_once() {
        let mut calls = done("bash", json!({}), "x");
        assert!(calls.end("a", Well::Failed, String::new(), None).is_none());
        assert!(calls.end("unknown", Well::Failed, String::new(), None).is_none());
        assert_eq!(calls.running().count(), 0);
    }

    #[test]
    fn times_are_said_in_a_unit_that_fits() {
        let said = |millis| seconds(Duration::from_millis(millis));
        assert_eq!(
            [said(50), said(12_345), said(61_000), said(3_660_000)],
            ["0.1s", "12s", "1m 01s", "1h 01m"]
        );
    }
}
