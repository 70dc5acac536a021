//! Commands that only look.

use amplifier_app::sessions::{self, Tally};
use amplifier_protocol::status::SessionStatus;
use serde_json::Value;

use crate::chat::calls::one_line;
use crate::chat::paint::{Line, Margin, Span, Style, width, wrap};
use crate::chat::turn::{dollars, tokens};
use crate::chat::view::{self, Thinking, thought_lines};
use crate::chat::{Chat, markdown, slash};

/// What a second column needs beside the first.
const NARROW: usize = 24;
/// How many of the last calls are listed.
pub const LAST_CALLS: usize = 20;

impl Chat {
    pub(super) fn help(&mut self, argument: &str) {
        let row = |command: &slash::Command| (command.form(), command.about.to_owned());
        match slash::find(argument.trim_start_matches('/')) {
            Some(command) => self.table(&[row(command)]),
            None if argument.is_empty() => {
                let rows: Vec<_> = slash::COMMANDS.iter().map(row).collect();
                self.table(&rows);
                self.say(slash::HELP, Style::DIM);
            }
            None => self.refuse(&format!("there is no command `{argument}`; `/help` lists them")),
        }
    }

    pub(super) fn status(&mut self) {
        let session = &self.seat.opened.session;
        let status = session.status();
        let spent = session.coordinator().ledger().statement().total;
        let (provider, model) = self.seat.model();
        let mut rows = vec![
            ("session", session.id().to_string()),
            ("made of", self.seat.made_of.clone()),
            ("model", model.map_or(provider.clone(), |model| format!("{model} of {provider}"))),
            ("folder", self.seat.folder().display().to_string()),
            ("mode", self.seat.modes.mode().as_str().to_owned()),
            // The kernel counts calls from the opening on; the ledger knows what was before it.
            ("turns", self.turns_of(session.coordinator().turn())),
            ("tool calls", calls_of(&status, spent.tool_calls)),
            ("tokens", format!("{} in, {} out", tokens(spent.input_tokens), tokens(spent.output_tokens))),
        ];
        rows.extend(self.seat.opened.cost().map(|cost| ("cost", dollars(cost.as_nanos()))));
        let failed: Vec<String> = session.report().failed().map(ToString::to_string).collect();
        rows.extend(failed.into_iter().map(|entry| ("not loaded", entry)));
        self.table(&rows);
    }

    /// The turns of the conversation, and how many there were where some are no part of it any more.
    fn turns_of(&self, taken: u64) -> String {
        match sessions::tally(&self.seat.opened.folder, taken) {
            Ok(Tally { counted, gone: 1 }) => {
                format!("{counted} (1 more is no part of the conversation now)")
            }
            Ok(Tally { counted, gone: gone @ 2.. }) => {
                format!("{counted} ({gone} more are no part of the conversation now)")
            }
            // A journal that cannot be read is told by what needs it.
            Ok(_) | Err(_) => taken.to_string(),
        }
    }

    /// Two columns, the second one wrapped; below each other where there is no room for two.
    pub(super) fn table(&mut self, rows: &[(impl AsRef<str>, String)]) {
        let widest = rows.iter().map(|(name, _)| width(name.as_ref())).max().unwrap_or(0).min(24);
        let room = view::room(&self.screen);
        let lines: Vec<Line> =
            rows.iter().flat_map(|(name, text)| row(name.as_ref(), text, widest, room)).collect();
        self.show(&lines);
    }

    pub(super) fn tools(&mut self, argument: &str) {
        let specs = self.seat.opened.session.coordinator().tool_specs();
        match argument {
            "" if specs.is_empty() => self.say("the session has no tools", Style::DIM),
            "" => {
                let about =
                    |description: &Option<String>| first_sentence(description.as_deref().unwrap_or_default());
                let rows: Vec<_> =
                    specs.iter().map(|spec| (spec.name.clone(), about(&spec.description))).collect();
                self.table(&rows);
            }
            "last" => {
                self.recall_earlier();
                let room = view::room(&self.screen);
                let lines: Vec<Line> =
                    self.memory.calls.last(LAST_CALLS).map(|call| call.line(room, "…")).collect();
                match lines.is_empty() {
                    true => self.say("no tool was called yet", Style::DIM),
                    false => self.show(&lines),
                }
            }
            name => match specs.iter().find(|spec| spec.name == name) {
                Some(spec) => {
                    let parameters = serde_json::to_string_pretty(&spec.parameters).unwrap_or_default();
                    let about = spec.description.clone().unwrap_or_default();
                    self.say(&format!("{name}\n\n{about}\n\n{parameters}"), Style::PLAIN);
                }
                None => self.refuse(&format!("there is no tool `{name}`; `/tools` lists them")),
            },
        }
    }

    pub(super) fn agents(&mut self, argument: &str) {
        let agents = amplifier_app::profiles::agents(self.seat.opened.session.coordinator().plan());
        if agents.is_empty() {
            return self.say("the session has no agents", Style::DIM);
        }
        match agents.get(argument) {
            Some(agent) => {
                let whole = serde_json::to_string_pretty(agent).unwrap_or_default();
                self.say(&whole, Style::PLAIN);
            }
            None if argument.is_empty() => {
                let about =
                    |agent: &Value| agent.get("description").and_then(Value::as_str).map(first_sentence);
                let rows: Vec<_> = agents
                    .iter()
                    .map(|(name, agent)| (name.clone(), about(agent).unwrap_or_default()))
                    .collect();
                self.table(&rows);
            }
            None => self.refuse(&format!("there is no agent `{argument}`; `/agents` lists them")),
        }
    }

    pub(super) fn config(&mut self) {
        let plan = self.seat.opened.session.coordinator().plan();
        let plan = serde_json::to_value(plan).unwrap_or_default();
        let text = serde_json::to_string_pretty(&amplifier_app::redact(&plan)).unwrap_or_default();
        self.say(&text, Style::PLAIN);
    }

    pub(super) fn cost(&mut self) {
        let statement = self.seat.opened.session.coordinator().ledger().statement();
        let mut rows: Vec<(String, String)> = statement
            .by_spender
            .iter()
            .map(|(name, spent)| {
                (name.clone(), amounts(spent.tokens, spent.cost_nanos, spent.steps, spent.tool_calls))
            })
            .collect();
        let total = &statement.total;
        rows.push((
            "total".to_owned(),
            amounts(total.tokens, total.cost_nanos, total.steps, total.tool_calls),
        ));
        self.table(&rows);
        if self.seat.opened.cost().is_none() {
            self.say("  nobody told a price; what it cost is not known", Style::DIM);
        }
    }

    pub(super) fn think(&mut self, argument: &str) {
        match argument {
            "on" => {
                self.memory.thinking = Thinking::Shown;
                self.done("thoughts are shown as they end");
            }
            "off" => {
                self.memory.thinking = Thinking::Folded;
                self.done("thoughts are folded to one line");
            }
            _ => {
                if self.memory.last_thought.is_none() {
                    self.recall_earlier();
                }
                match &self.memory.last_thought {
                    Some(thought) => {
                        let lines = thought_lines(thought, view::room(&self.screen));
                        self.show(&lines);
                    }
                    None => self.say("nothing was thought yet", Style::DIM),
                }
            }
        }
    }

    pub(super) fn expand(&mut self, argument: &str) {
        self.recall_earlier();
        let number = argument.trim_start_matches('#');
        let call = match (number, number.parse()) {
            ("", _) => self.memory.calls.find(None),
            (_, Ok(number)) => self.memory.calls.find(Some(number)),
            (_, Err(_)) => None,
        };
        match call {
            Some(call) => {
                let lines = call.whole(view::room(&self.screen));
                self.show(&lines);
            }
            None => self.refuse("there is no such tool call; `/tools last` lists them"),
        }
    }
}

fn row(name: &str, text: &str, widest: usize, room: usize) -> Vec<Line> {
    let text = [Span::plain(markdown::safe(text))];
    if room < widest + NARROW {
        let margin = vec![Span::plain("    ")];
        let mut lines = vec![vec![Span::new(format!("  {name}"), Style::BOLD)]];
        lines.extend(wrap(&text, room, &Margin { first: margin.clone(), rest: margin }));
        return lines;
    }
    let margin = Margin {
        first: vec![Span::new(
            format!("  {name}{}  ", " ".repeat(widest.saturating_sub(width(name)))),
            Style::BOLD,
        )],
        rest: vec![Span::plain(" ".repeat(widest + 4))],
    };
    wrap(&text, room, &margin)
}

fn amounts(used: u64, nanos: u64, steps: u64, calls: u64) -> String {
    let mut parts = Vec::new();
    if steps > 0 {
        parts.push(format!("{} tokens in {}", tokens(used), count(steps, "model call")));
    }
    if nanos > 0 {
        parts.push(dollars(nanos));
    }
    if calls > 0 {
        parts.push(count(calls, "tool call"));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// The tool calls of a session: those of its agents and those before it was opened again count, but how they ended is known
/// of its own ones only.
fn calls_of(status: &SessionStatus, all: u64) -> String {
    let own = status.tool_invocations;
    match (own, status.tool_failures) {
        (own, failed) if own == all => format!("{own} ({failed} failed)"),
        (0, _) => all.to_string(),
        (own, failed) => format!("{all}, {own} of them here since it was opened ({failed} failed)"),
    }
}

/// A number of things.
fn count(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

fn first_sentence(text: &str) -> String {
    let line = one_line(text);
    match line.find(". ") {
        Some(at) => line.get(..=at).unwrap_or(&line).to_owned(),
        None => line,
    }
}
