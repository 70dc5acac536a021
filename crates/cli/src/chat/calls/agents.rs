//! What the agents of a call do: a line for each tool they call, below the line of the call that started them.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Mark, Well, argument, row, seconds};
use crate::chat::paint::{Line, Span, Style};

/// How many calls are remembered of the agents of one call.
const KEPT: usize = 1_000;
/// How many of them are shown while the call runs.
const LIVE: usize = 5;
/// How many are shown when it is done, without being asked for.
const SHOWN: usize = 12;

/// The agents of one call.
#[derive(Default)]
pub struct Agents {
    /// The sessions they work in.
    pub sessions: Vec<String>,
    calls: Vec<Below>,
    /// How many calls were forgotten.
    forgotten: usize,
}

/// One call of an agent.
struct Below {
    agent: String,
    id: String,
    depth: usize,
    tool: String,
    argument: String,
    began: Instant,
    end: Option<(Duration, Well)>,
}

impl Agents {
    pub fn begin(&mut self, agent: &str, depth: usize, id: String, tool: String, input: &Value) {
        if self.calls.len() >= KEPT {
            self.calls.remove(0);
            self.forgotten += 1;
        }
        let (agent, argument, began) = (agent.to_owned(), argument(input), Instant::now());
        self.calls.push(Below { agent, id, depth, tool, argument, began, end: None });
    }

    pub fn end(&mut self, agent: &str, id: &str, well: Well) {
        let runs = |call: &&mut Below| call.agent == agent && call.id == id && call.end.is_none();
        if let Some(call) = self.calls.iter_mut().rev().find(runs) {
            call.end = Some((call.began.elapsed(), well));
        }
    }

    /// The last of them, those that run among them.
    pub(super) fn last_lines(&self, room: usize, spinner: &str) -> Vec<Line> {
        let from = self.calls.len().saturating_sub(LIVE);
        let late = self.calls.iter().enumerate().filter(|(at, call)| *at >= from || call.end.is_none());
        let late: Vec<_> = late.map(|(_, call)| call).collect();
        let more = late.len().saturating_sub(LIVE);
        late.into_iter().skip(more).map(|call| call.line(room, spinner)).collect()
    }

    /// Those that are shown when the call is done: the last ones, and how many came before.
    pub(super) fn lines(&self, room: usize, number: usize) -> Vec<Line> {
        let more = self.calls.len().saturating_sub(SHOWN);
        let mut lines = Vec::new();
        if more > 0 {
            let told =
                format!("  … {} more calls before, `/expand {number}` shows them", more + self.forgotten);
            lines.push(vec![Span::new(told, Style::DIM)]);
        }
        lines.extend(self.calls.iter().skip(more).map(|call| call.line(room, "…")));
        lines
    }

    pub(super) fn all_lines(&self, room: usize) -> Vec<Line> {
        self.calls.iter().map(|call| call.line(room, "…")).collect()
    }
}

impl Below {
    fn line(&self, room: usize, spinner: &str) -> Line {
        let indent = "  ".repeat(self.depth.min(8));
        let (mark, time) = match self.end {
            None => (Mark::Running(spinner), self.began.elapsed()),
            Some((took, well)) => (Mark::Ended(well), took),
        };
        let room = room.saturating_sub(indent.len());
        let mut line = vec![Span::plain(indent)];
        line.extend(row(mark, &self.tool, &self.argument, &seconds(time), room));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::calls::Calls;
    use crate::chat::paint::{Colour, written};
    use serde_json::json;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| written(line, Colour::Off)).collect()
    }

    #[test]
    fn what_agents_do_stands_below_the_call_that_started_them() {
        let mut calls = Calls::default();
        for (id, agent) in [("one", "s-1"), ("two", "s-2")] {
            calls.begin(id.to_owned(), "task".to_owned(), json!({"agent": id, "instruction": "look"}));
            calls.start(id);
            calls.hand_out(id, agent.to_owned());
        }
        let input = json!({"file_path": "a.txt"});
        calls.agents_with("s-1").unwrap().begin("s-1", 1, "c".to_owned(), "read_file".to_owned(), &input);
        calls.agents_with("s-1").unwrap().begin(
            "s-1",
            2,
            "d".to_owned(),
            "bash".to_owned(),
            &json!({"command": "ls"}),
        );
        calls.agents_with("s-1").unwrap().end("s-1", "c", Well::Done);
        let live = calls.running().next().unwrap().live_below(60, "*");
        assert_eq!(texts(&live), ["  ✓ read_file  a.txt  0.0s", "    * bash  ls  0.0s"]);
        assert!(calls.running().nth(1).unwrap().live_below(60, "*").is_empty());
        let done = calls.end("one", Well::Done, "found".to_owned(), None).unwrap();
        assert_eq!(texts(&done.below(60)), ["  ✓ read_file  a.txt  0.0s", "    … bash  ls  0.0s"]);
    }

    #[test]
    fn a_long_list_is_cut_at_its_beginning() {
        let mut agents = Agents::default();
        for at in 0..20 {
            agents.begin("s", 1, at.to_string(), format!("tool-{at}"), &json!({}));
        }
        assert_eq!(agents.last_lines(60, "*").len(), LIVE);
        let lines = texts(&agents.lines(60, 3));
        assert_eq!(lines.len(), SHOWN + 1);
        assert_eq!(lines[0], "  … 8 more calls before, `/expand 3` shows them");
        assert!(lines[SHOWN].contains("tool-19"), "{lines:?}");
    }
}
