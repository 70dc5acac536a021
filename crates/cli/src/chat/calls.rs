//! The tool calls of a chat: one line each, and everything about them for whoever asks.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::markdown::safe;
use super::paint::{Hue, Line, Span, Style, width};
use crate::render;

/// How many calls are remembered.
const KEPT: usize = 200;
/// How much of a result is remembered, in bytes; the journal has all of it.
const KEPT_BYTES: usize = 256 * 1024;
/// Lines of a diff that are shown without being asked for.
const DIFF_LINES: usize = 16;
/// How much is told of why a call failed, in columns.
const REASON: usize = 240;
/// Keys of inputs that say the most, the first that is there counts.
const TELLING: [&str; 14] = [
    "command",
    "file_path",
    "path",
    "pattern",
    "query",
    "url",
    "agent",
    "agent_name",
    "skill_name",
    "name",
    "instruction",
    "prompt",
    "message",
    "text",
];

/// One call.
pub struct Call {
    pub number: usize,
    pub id: String,
    pub tool: String,
    pub input: Value,
    began: Instant,
    pub end: Option<End>,
}

/// How a call ended.
pub struct End {
    took: Duration,
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
    pub fn begin(&mut self, id: String, tool: String, input: Value) {
        self.made += 1;
        if self.list.len() >= KEPT {
            self.list.pop_front();
        }
        self.list.push_back(Call { number: self.made, id, tool, input, began: Instant::now(), end: None });
    }

    /// Ends a call that runs; nothing when none of that id does.
    pub fn end(&mut self, id: &str, well: Well, text: String, diff: Option<String>) -> Option<&Call> {
        let call = self.list.iter_mut().rev().find(|call| call.id == id && call.end.is_none())?;
        let bytes = text.len();
        let text = text.get(..text.floor_char_boundary(KEPT_BYTES)).unwrap_or_default().to_owned();
        call.end = Some(End { took: call.began.elapsed(), well, bytes, text, diff });
        Some(call)
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
        let (mark, style, facts) = match &self.end {
            None => (spinner, Style::of(Hue::Yellow), seconds(self.began.elapsed())),
            Some(end) => {
                let facts = format!("{} · {}", seconds(end.took), render::bytes(end.bytes as u64));
                match end.well {
                    Well::Done => ("✓", Style::of(Hue::Green), facts),
                    Well::Failed => ("✗", Style::of(Hue::Red), facts),
                }
            }
        };
        let number = format!(" #{}", self.number);
        let fixed = width(mark) + 1 + width(&self.tool) + 4 + width(&facts) + width(&number);
        let argument = shortened(&self.argument(), room.saturating_sub(fixed));
        let mut line =
            vec![Span::new(mark, style), Span::plain(" "), Span::new(safe(&self.tool), Style::BOLD)];
        if !argument.is_empty() {
            line.push(Span::plain(format!("  {argument}")));
        }
        line.push(Span::new(format!("  {facts}{number}"), Style::DIM));
        line
    }

    /// Why it failed, in one line, and what it changed.
    pub fn below(&self) -> Vec<Line> {
        let Some(end) = &self.end else { return Vec::new() };
        if end.well == Well::Failed {
            let first = safe(&end.text).lines().next().unwrap_or_default().to_owned();
            return vec![vec![Span::new(shortened(&first, REASON), Style::of(Hue::Red))]];
        }
        let Some(diff) = &end.diff else { return Vec::new() };
        let lines = diff_lines(diff);
        let more = lines.len().saturating_sub(DIFF_LINES);
        let mut shown: Vec<Line> = lines.into_iter().take(DIFF_LINES).collect();
        if more > 0 {
            let told = format!("  … {more} more lines, `/expand {}` shows them", self.number);
            shown.push(vec![Span::new(told, Style::DIM)]);
        }
        shown
    }

    /// Everything about it.
    pub fn whole(&self, room: usize) -> Vec<Line> {
        let mut lines = vec![self.line(room, "…")];
        let input = serde_json::to_string_pretty(&self.input).unwrap_or_default();
        lines.extend(safe(&input).lines().map(|line| vec![Span::new(format!("  {line}"), Style::DIM)]));
        let Some(end) = &self.end else { return lines };
        match &end.diff {
            Some(diff) => lines.extend(diff_lines(diff)),
            None => lines.extend(safe(&end.text).lines().map(|line| vec![Span::plain(format!("  {line}"))])),
        }
        if end.text.len() < end.bytes {
            let left = render::bytes((end.bytes - end.text.len()) as u64);
            lines.push(vec![Span::new(format!("  … {left} more are in the session's journal"), Style::DIM)]);
        }
        lines
    }

    /// What says the most about the call, in one line.
    fn argument(&self) -> String {
        match &self.input {
            Value::Object(_) => self.telling().map(one_line).unwrap_or_default(),
            other => one_line(&other.to_string()),
        }
    }

    /// The text of the input that says the most.
    pub fn telling(&self) -> Option<&str> {
        let input = self.input.as_object()?;
        let telling = TELLING.iter().find_map(|key| input.get(*key).and_then(Value::as_str));
        telling.or_else(|| input.values().find_map(Value::as_str))
    }
}

/// A unified diff in colours, without its head.
pub fn diff_lines(diff: &str) -> Vec<Line> {
    let body = safe(diff);
    let lines = body.lines().skip_while(|line| line.starts_with("---") || line.starts_with("+++"));
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
    let line = super::paint::cut(&[Span::plain(text)], room);
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
