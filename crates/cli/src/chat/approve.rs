//! Questions of the session to the person: what is asked, what may be answered, and what was answered for longer.

use std::time::{Duration, Instant};

use amplifier_app::{ApprovalError, ApprovalSystem};
use amplifier_protocol::hook::{ApprovalDefault, Question};
use async_trait::async_trait;
use serde_json::Value;
use similar::TextDiff;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::calls::{diff_lines, seconds};
use super::markdown::safe;
use super::paint::{Hue, Line, Margin, Span, Style, wrap};

/// The most lines of a question that are shown.
const LINES: usize = 60;
/// The largest file that a change is compared with.
const COMPARED: u64 = 512 * 1024;

/// A question on its way to the person.
pub struct Asked {
    pub question: Question,
    pub answer: oneshot::Sender<String>,
}

/// The call that a question is about.
#[derive(Debug, Clone)]
pub struct AskedCall {
    pub tool: String,
    pub input: Value,
}

/// Puts questions to whoever sits at the terminal.
pub struct Approver(pub UnboundedSender<Asked>);

#[async_trait]
impl ApprovalSystem for Approver {
    async fn request_approval(&self, question: Question) -> Result<String, ApprovalError> {
        let gone = || ApprovalError::Unavailable { message: "nobody is there any more".to_owned() };
        let (answer, answered) = oneshot::channel();
        self.0.send(Asked { question, answer }).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }
}

/// How long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Once,
    Session,
    Always,
    No,
}

impl Reach {
    /// What a typed answer means; nothing where it means nothing.
    pub fn read(answer: &str) -> Option<Self> {
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" | "once" => Some(Self::Once),
            "s" | "session" => Some(Self::Session),
            "a" | "always" => Some(Self::Always),
            "" | "n" | "no" => Some(Self::No),
            _ => None,
        }
    }
}

/// The option that says it, among those on offer.
pub fn option(question: &Question, reach: Reach) -> String {
    let offered =
        |wanted: &str| question.options.iter().find(|option| option.eq_ignore_ascii_case(wanted)).cloned();
    let found = match reach {
        Reach::Once => offered("Allow once").or_else(|| offered("Allow")),
        Reach::Session | Reach::Always => {
            offered("Allow always").or_else(|| offered("Allow once")).or_else(|| offered("Allow"))
        }
        Reach::No => offered("Deny"),
    };
    found.unwrap_or_else(|| "Deny".to_owned())
}

/// A question that waits for its answer.
pub struct Open {
    pub asked: Asked,
    /// What it is about, where that is known.
    pub call: Option<AskedCall>,
    until: Instant,
}

impl Open {
    pub fn new(asked: Asked, call: Option<AskedCall>) -> Self {
        let patience =
            Duration::try_from_secs_f64(asked.question.timeout).unwrap_or(Duration::from_secs(300));
        Self { asked, call, until: Instant::now() + patience }
    }

    /// What can be answered, and until when.
    pub fn line(&self) -> Line {
        let left = seconds(self.until.saturating_duration_since(Instant::now()));
        let silence = match self.asked.question.default {
            ApprovalDefault::Allow => "yes",
            ApprovalDefault::Deny => "no",
        };
        let key = |key: &str| Span::new(key.to_owned(), Style::BOLD);
        let mut line = vec![key("y"), Span::plain(" once  ")];
        if self.call.is_some() {
            line.extend([key("s"), Span::plain(" session  "), key("a"), Span::plain(" always  ")]);
        }
        line.extend([key("n"), Span::plain(" no")]);
        line.push(Span::new(format!("  · in {left}: {silence}"), Style::DIM));
        line
    }
}

/// The question as it is shown: what would be done, exactly.
pub fn shown(question: &Question, call: Option<&AskedCall>, room: usize) -> Vec<Line> {
    let mark = Style::of(Hue::Yellow).bold();
    let mut lines = Vec::new();
    match call.and_then(|call| change(&call.tool, &call.input).map(|diff| (call, diff))) {
        Some((call, diff)) => {
            let path = call.input.get("file_path").and_then(Value::as_str).unwrap_or_default();
            lines.push(vec![
                Span::new("? ", mark),
                Span::new(format!("{} {}", safe(&call.tool), safe(path)), Style::BOLD),
            ]);
            lines.extend(diff_lines(&diff));
        }
        None => {
            let margin = Margin { first: vec![Span::new("? ", mark)], rest: vec![Span::plain("  ")] };
            lines.extend(wrap(&[Span::plain(safe(question.prompt.trim()))], room, &margin));
        }
    }
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    if more > 0 {
        lines.push(vec![Span::new(format!("  … {more} more lines"), Style::DIM)]);
    }
    lines
}

/// What a call would change in a file, where its input tells.
fn change(tool: &str, input: &Value) -> Option<String> {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let (old, new) = match tool {
        "edit_file" => (text("old_string")?.to_owned(), text("new_string")?.to_owned()),
        "write_file" => {
            let path = std::path::Path::new(text("file_path")?);
            let small = std::fs::metadata(path).is_ok_and(|about| about.len() <= COMPARED);
            let old = if small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
            (old, text("content")?.to_owned())
        }
        _ => return None,
    };
    let diff = TextDiff::from_lines(&old, &new);
    Some(diff.unified_diff().context_radius(3).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::paint::{Colour, written};
    use serde_json::json;

    #[test]
    fn silence_and_an_empty_line_are_a_no() {
        assert_eq!(Reach::read(""), Some(Reach::No));
        assert_eq!(Reach::read(" Y "), Some(Reach::Once));
        assert_eq!(Reach::read("stop that"), None);
    }

    #[test]
    fn an_answer_is_one_of_those_on_offer() {
        let asked = |options: &[&str]| Question {
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            ..Question::default()
        };
        let three = asked(&["Allow once", "Allow always", "Deny"]);
        assert_eq!(option(&three, Reach::Once), "Allow once");
        assert_eq!(option(&three, Reach::Always), "Allow always");
        let two = asked(&["Allow", "Deny"]);
        assert_eq!([option(&two, Reach::Session), option(&two, Reach::No)], ["Allow", "Deny"]);
        assert_eq!(option(&asked(&["Proceed"]), Reach::Once), "Deny");
    }

    #[test]
    fn an_edit_is_asked_about_with_its_diff() {
        let input = json!({"file_path": "a.txt", "old_string": "one\ntwo\n", "new_string": "one\n2\n"});
        let call = AskedCall { tool: "edit_file".to_owned(), input };
        let lines = shown(&Question::default(), Some(&call), 80);
        let text: Vec<_> = lines.iter().map(|line| written(line, Colour::Off)).collect();
        assert_eq!(text, ["? edit_file a.txt", "  @@ -1,2 +1,2 @@", "   one", "  -two", "  +2"]);
    }
}
