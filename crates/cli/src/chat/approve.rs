//! Questions of the session to the person: what is asked, what may be answered, and what was answered for longer.

use std::time::{Duration, Instant};

use amplifier_app::ApprovalError;
use amplifier_app::approval::{Answer, Asker};
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
    pub answer: oneshot::Sender<Answer>,
}

/// Puts questions to whoever sits at the terminal.
pub struct Approver(pub UnboundedSender<Asked>);

#[async_trait]
impl Asker for Approver {
    async fn ask(&self, question: &Question) -> Result<Answer, ApprovalError> {
        let gone = || ApprovalError::Unavailable { message: "nobody is there any more".to_owned() };
        let (answer, answered) = oneshot::channel();
        self.0.send(Asked { question: question.clone(), answer }).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }
}

/// What a typed answer means; nothing where it means nothing. An empty line is a no.
pub fn read(answer: &str) -> Option<Answer> {
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" | "once" => Some(Answer::Once),
        "s" | "session" => Some(Answer::Session),
        "a" | "always" => Some(Answer::Always),
        "" | "n" | "no" => Some(Answer::No),
        _ => None,
    }
}

/// A question that waits for its answer.
pub struct Open {
    pub asked: Asked,
    until: Instant,
}

impl Open {
    pub fn new(asked: Asked) -> Self {
        let patience =
            Duration::try_from_secs_f64(asked.question.timeout).unwrap_or(Duration::from_secs(300));
        Self { asked, until: Instant::now() + patience }
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
        if self.asked.question.call.is_some() {
            line.extend([key("s"), Span::plain(" session  "), key("a"), Span::plain(" always  ")]);
        }
        line.extend([key("n"), Span::plain(" no")]);
        line.push(Span::new(format!("  · in {left}: {silence}"), Style::DIM));
        line
    }
}

/// The question as it is shown: what would be done, exactly.
pub fn shown(question: &Question, room: usize) -> Vec<Line> {
    let call = question.call.as_ref();
    let mark = Style::of(Hue::Yellow).bold();
    let mut lines = Vec::new();
    match call.and_then(|call| change(&call.tool_name, &call.tool_input).map(|diff| (call, diff))) {
        Some((call, diff)) => {
            let path = call.tool_input.get("file_path").and_then(Value::as_str).unwrap_or_default();
            lines.push(vec![
                Span::new("? ", mark),
                Span::new(format!("{} {}", safe(&call.tool_name), safe(path)), Style::BOLD),
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
    let there = small_text(text("file_path")?);
    let (old, new) = match tool {
        "edit_file" => {
            let (old, new) = (text("old_string")?, text("new_string")?);
            let everywhere = input.get("replace_all").and_then(Value::as_bool) == Some(true);
            match there.filter(|there| !old.is_empty() && there.contains(old)) {
                Some(there) => {
                    let changed =
                        if everywhere { there.replace(old, new) } else { there.replacen(old, new, 1) };
                    (there, changed)
                }
                // The tool will say what is wrong with it; the person sees what was meant.
                None => (old.to_owned(), new.to_owned()),
            }
        }
        "write_file" => (there.unwrap_or_default(), text("content")?.to_owned()),
        _ => return None,
    };
    let diff = TextDiff::from_lines(&old, &new);
    Some(diff.unified_diff().context_radius(3).missing_newline_hint(false).to_string())
}

/// A file that is text and not too large to be compared.
fn small_text(path: &str) -> Option<String> {
    let path = std::path::Path::new(path);
    let is_small = std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= COMPARED);
    is_small.then(|| std::fs::read_to_string(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::paint::{Colour, written};
    use amplifier_protocol::hook::AskedCall;
    use serde_json::json;

    #[test]
    fn an_empty_line_is_a_no_and_what_is_not_clear_is_nothing() {
        assert_eq!(read(""), Some(Answer::No));
        assert_eq!(read(" Y "), Some(Answer::Once));
        assert_eq!(read("stop that"), None);
    }

    #[test]
    fn an_edit_is_asked_about_with_its_diff() {
        let input = json!({"file_path": "a.txt", "old_string": "one\ntwo\n", "new_string": "one\n2\n"});
        let effects = amplifier_protocol::tool::Effects::WRITES;
        let call = AskedCall { tool_name: "edit_file".to_owned(), tool_input: input, effects };
        let lines = shown(&Question { call: Some(call), ..Question::default() }, 80);
        let text: Vec<_> = lines.iter().map(|line| written(line, Colour::Off)).collect();
        assert_eq!(text, ["? edit_file a.txt", "  @@ -1,2 +1,2 @@", "   one", "  -two", "  +2"]);
    }
}
