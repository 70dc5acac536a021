//! Questions of the session to the person: what is asked, what may be answered, and what was answered for longer.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use amplifier_app::ApprovalError;
use amplifier_app::approval::{Answer, Asker, Preview, changes, lasting, wording};
use amplifier_protocol::hook::{ApprovalDefault, Question};
use async_trait::async_trait;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::calls::{diff_lines, seconds};
use super::markdown::literal;
use super::paint::{Hue, Line, Margin, Span, Style, exact, wrap};

/// How many lines of a question are shown without being asked for.
pub const LINES: usize = 60;

/// A question on its way to the person.
pub struct Asked {
    pub question: Question,
    /// What the call would change in files, as far as it tells.
    pub changes: Vec<Preview>,
    pub answer: oneshot::Sender<Answer>,
}

/// Puts questions to whoever sits at the terminal.
pub struct Approver {
    pub questions: UnboundedSender<Asked>,
    /// What relative paths of calls are relative to.
    pub folder: PathBuf,
}

#[async_trait]
impl Asker for Approver {
    async fn ask(&self, question: &Question) -> Result<Answer, ApprovalError> {
        let gone = || ApprovalError::Unavailable { message: "nobody is there any more".to_owned() };
        let (call, folder) = (question.call.clone(), self.folder.clone());
        let looked =
            tokio::task::spawn_blocking(move || call.map(|call| changes(&call, &folder)).unwrap_or_default());
        let changes = looked.await.map_err(|_| gone())?;
        let (answer, answered) = oneshot::channel();
        self.questions.send(Asked { question: question.clone(), changes, answer }).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }
}

/// A question that waits for its answer.
pub struct Open {
    pub asked: Asked,
    until: Instant,
    /// How many lines of it were not shown.
    pub hidden: usize,
}

impl Open {
    pub fn new(asked: Asked, hidden: usize) -> Self {
        let patience =
            Duration::try_from_secs_f64(asked.question.timeout).unwrap_or(Duration::from_secs(300));
        Self { asked, until: Instant::now() + patience, hidden }
    }

    /// What a typed answer means; nothing where it means nothing here. An empty line is a no.
    pub fn read(&self, answer: &str) -> Option<Answer> {
        let holds_longer = lasting(&self.asked.question).is_some();
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" | "once" => Some(Answer::Once),
            "s" | "session" if holds_longer => Some(Answer::Session),
            "a" | "always" if holds_longer => Some(Answer::Always),
            "" | "n" | "no" => Some(Answer::No),
            _ => None,
        }
    }

    /// Whether the person wants to see what was left out.
    pub fn wants_all(&self, answer: &str) -> bool {
        self.hidden > 0 && matches!(answer.trim().to_lowercase().as_str(), "v" | "view")
    }

    /// What may be answered, in words.
    pub fn keys(&self) -> &'static str {
        match lasting(&self.asked.question) {
            Some(_) => "please answer with y, s, a or n",
            None => "please answer with y or n",
        }
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
        if lasting(&self.asked.question).is_some() {
            line.extend([key("s"), Span::plain(" session  "), key("a"), Span::plain(" always  ")]);
        }
        line.extend([key("n"), Span::plain(" no")]);
        if self.hidden > 0 {
            line.extend([Span::plain("  "), key("v"), Span::plain(" view all")]);
        }
        line.push(Span::new(format!("  · in {left}: {silence}"), Style::DIM));
        line
    }
}

/// The question as it is shown: what would be done, exactly, all of it.
pub fn shown(asked: &Asked, room: usize) -> Vec<Line> {
    let mark = Style::of(Hue::Yellow).bold();
    let Some(call) = asked.question.call.as_ref().filter(|_| !asked.changes.is_empty()) else {
        let margin = Margin { first: vec![Span::new("? ", mark)], rest: vec![Span::plain("  ")] };
        return exact(&literal(wording(&asked.question)), Style::PLAIN, room, &margin);
    };
    let files: Vec<_> = asked.changes.iter().map(|change| named(&change.path)).collect();
    let head = format!("{} {}", literal(&call.tool_name), files.join(", "));
    let margin = Margin { first: vec![Span::new("? ", mark)], rest: vec![Span::plain("  ")] };
    let mut lines = exact(&head, Style::BOLD, room, &margin);
    let many = asked.changes.len() > 1;
    for change in &asked.changes {
        let note = Some(&change.note).filter(|note| !note.is_empty());
        let told = match (many, note) {
            (true, Some(note)) => format!("  {}: {note}", named(&change.path)),
            (true, None) => format!("  {}", named(&change.path)),
            (false, Some(note)) => format!("  {note}"),
            (false, None) => String::new(),
        };
        if !told.is_empty() {
            lines.extend(exact(&literal(&told), Style::BOLD, room, &Margin::default()));
        }
        // The head names the file, which was named already; a name with a line end must not look like more of the change.
        let head = format!("--- {0}\n+++ {0}\n", change.path);
        let diff = change.diff.strip_prefix(&head).unwrap_or(&change.diff);
        lines.extend(diff_lines(diff).iter().flat_map(|line| unfolded(line, room)));
    }
    lines
}

/// The name of a file, in one line.
fn named(path: &str) -> String {
    literal(path).replace('\n', "^J")
}

/// A line of a diff; what is longer than the room goes on below it, for nothing may be left out here.
fn unfolded(line: &[Span], room: usize) -> Vec<Line> {
    let style = line.first().map_or(Style::PLAIN, |span| span.style);
    let text: String = line.iter().map(|span| span.text.as_str()).collect();
    let margin = Margin { first: Line::new(), rest: vec![Span::plain("   ")] };
    exact(&text, style, room, &margin)
}

/// What would be covered by an answer for longer, in the words of the keys.
pub fn scope(question: &Question, room: usize) -> Vec<Line> {
    let Some(grant) = lasting(question) else { return Vec::new() };
    let told = format!("session, always (in this folder): {}", literal(&grant.scope()));
    let margin = Margin { first: vec![Span::plain("  ")], rest: vec![Span::plain("    ")] };
    wrap(&[Span::new(told, Style::DIM)], room, &margin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::paint::{Colour, written};
    use amplifier_protocol::hook::AskedCall;
    use amplifier_protocol::tool::Effects;
    use serde_json::{Value, json};

    fn asked(tool: &str, input: Value, prompt: &str, options: &[&str]) -> Asked {
        let effects = if tool == "bash" { Effects::UNKNOWN } else { Effects::WRITES };
        let call = AskedCall { tool_name: tool.to_owned(), tool_input: input, effects };
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let changes = changes(&call, std::path::Path::new("/nowhere"));
        let question =
            Question { prompt: prompt.to_owned(), options, call: Some(call), ..Question::default() };
        Asked { question, changes, answer: oneshot::channel().0 }
    }

    fn text(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| written(line, Colour::Off)).collect()
    }

    const ALL: [&str; 3] = ["Allow once", "Allow always", "Deny"];

    #[test]
    fn an_empty_line_is_a_no_and_what_is_not_clear_is_nothing() {
        let open = Open::new(asked("bash", json!({}), "x", &ALL), 0);
        assert_eq!(open.read(""), Some(Answer::No));
        assert_eq!(open.read(" Y "), Some(Answer::Once));
        assert_eq!(open.read("s"), Some(Answer::Session));
        assert_eq!(open.read("stop that"), None);
    }

    #[test]
    fn what_is_not_offered_is_no_answer() {
        let open = Open::new(asked("bash", json!({}), "x", &["Allow", "Deny"]), 0);
        assert_eq!([open.read("s"), open.read("always"), open.read("y")], [None, None, Some(Answer::Once)]);
        let line = written(&open.line(), Colour::Off);
        assert!(line.starts_with("y once  n no") && !line.contains("always"), "{line}");
        assert!(scope(&open.asked.question, 80).is_empty());
    }

    #[test]
    fn a_command_is_shown_with_every_blank() {
        let command = "python3 - <<'E'\nif x:\n    print(1)\n\n        deep  spaced\nE";
        let prompt = format!("Run with `bash`:\n{command}\nAllow it?\n\"Allow always\" covers exactly this.");
        let asked = asked("bash", json!({ "command": command }), &prompt, &ALL);
        let expected = [
            "? Run with `bash`:",
            "  python3 - <<'E'",
            "  if x:",
            "      print(1)",
            "",
            "          deep  spaced",
            "  E",
            "  Allow it?",
        ];
        assert_eq!(text(&shown(&asked, 80)), expected);
        // What is too long for a line goes on in the next, and nothing is lost.
        let narrow: String = text(&shown(&asked, 12)).iter().map(|line| line.trim_start()).collect();
        assert!(narrow.contains("deep  space") && narrow.ends_with("Allow it?"), "{narrow}");
        assert_eq!(
            text(&scope(&asked.question, 80)),
            ["  session, always (in this folder): exactly this call"]
        );
    }

    #[test]
    fn an_edit_is_asked_about_with_its_diff() {
        let input = json!({"file_path": "a.txt", "old_string": "one\ntwo\n", "new_string": "one\n2\n"});
        let asked = asked("edit_file", input, "Run it?", &ALL);
        let note = "  it does not fit the file; this is what is asked for";
        let expected = ["? edit_file a.txt", note, "  @@ -1,2 +1,2 @@", "   one", "  -two", "  +2"];
        assert_eq!(text(&shown(&asked, 80)), expected);
        assert_eq!(
            text(&scope(&asked.question, 80)),
            ["  session, always (in this folder): every call of `edit_file`"]
        );
    }

    #[test]
    fn nothing_of_a_change_is_hidden() {
        let content = "echo hi\n\u{1b}] ; curl evil ; echo \u{7}done\n\u{1b}Pq\u{1b}[8mx\u{202e}y\r\n";
        let input = json!({"file_path": "a\u{1b}[8m.sh\nb", "content": content});
        let expected = [
            "? write_file a^[[8m.sh^Jb",
            "  a new file",
            "  @@ -0,0 +1,3 @@",
            "  +echo hi",
            "  +^[] ; curl evil ; echo ^Gdone",
            "  +^[Pq^[[8mx\\u{202e}y",
        ];
        assert_eq!(text(&shown(&asked("write_file", input, "Run it?", &ALL), 80)), expected);
    }

    #[test]
    fn a_patch_is_asked_about_file_by_file() {
        let patch = "*** Begin Patch\n*** Add File: a\n+    x\n*** Update File: b\n@@ fn f\n     kept\n-old\n+new\n*** End Patch";
        let asked = asked("apply_patch", json!({ "patch": patch }), "Run it?", &ALL);
        let expected = [
            "? apply_patch a, b",
            "  a: a new file",
            "  @@ -0,0 +1 @@",
            "  +    x",
            "  b: it does not fit the file; this is what is asked for",
            "  @@ fn f",
            "       kept",
            "  -old",
            "  +new",
        ];
        assert_eq!(text(&shown(&asked, 80)), expected);
    }
}
