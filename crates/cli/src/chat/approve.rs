//! Questions of the session to the person: what is asked, what may be answered, and what was answered for longer.

use std::ops::Range;
use std::time::{Duration, Instant};

use amplifier_app::ApprovalError;
use amplifier_app::approval::{Answer, Asker, Danger, Places, Preview, changes, dangers, lasting, wording};
use amplifier_protocol::hook::{ApprovalDefault, Question};
use amplifier_protocol::text::shorten;
use async_trait::async_trait;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::calls::{diff_lines, seconds};
use super::markdown::literal;
use super::paint::{Hue, Line, Margin, Span, Style, exact, packed, wrap};

/// How many lines of a question are shown without being asked for, and how few on the lowest screen.
const LINES: usize = 60;
const FEWEST: usize = 3;
/// How many dangers are named below a question.
const DANGERS: usize = 4;
/// How long a question stands there before something typed can be its answer: what comes sooner was not meant for it.
const READING: Duration = Duration::from_millis(500);

/// A question on its way to the person.
pub struct Asked {
    pub question: Question,
    /// What the call would change in files, as far as it tells.
    pub changes: Vec<Preview>,
    /// What is dangerous in its command.
    pub dangers: Vec<Danger>,
    pub answer: oneshot::Sender<Answer>,
}

/// Puts questions to whoever sits at the terminal.
pub struct Approver {
    pub questions: UnboundedSender<Asked>,
    /// What paths of calls are relative to.
    pub places: Places,
}

#[async_trait]
impl Asker for Approver {
    async fn ask(&self, question: &Question) -> Result<Answer, ApprovalError> {
        let gone = || ApprovalError::Unavailable { message: "nobody is there any more".to_owned() };
        let (call, places) = (question.call.clone(), self.places.clone());
        let looked = tokio::task::spawn_blocking(move || {
            call.map(|call| (changes(&call, &places), dangers(&call, &places))).unwrap_or_default()
        });
        let (changes, dangers) = looked.await.map_err(|_| gone())?;
        let (answer, answered) = oneshot::channel();
        let asked = Asked { question: question.clone(), changes, dangers, answer };
        self.questions.send(asked).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }
}

/// A question that waits for its answer.
pub struct Open {
    pub asked: Asked,
    until: Instant,
    /// How many lines of it were left out at first.
    hidden: usize,
    /// Whether all of it was shown: before that it cannot be allowed.
    seen: bool,
    hears: Hears,
}

/// What a question takes keys for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hears {
    /// For nothing of its own: it has only just come, and whoever types does not know it yet.
    TooSoon { since: Instant },
    /// For more of what was being typed when it came.
    Draft,
    /// For its answer.
    Answer,
}

/// What a line means while a question is open.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    Answer(Answer),
    /// The person wants to see what was left out.
    View,
    /// It was to be allowed before all of it was shown.
    Unseen,
    /// It was begun before the question could be read: a word to the turn.
    Message(String),
    /// The same, but it looks like an answer, and is none.
    TooSoon,
    Nothing,
    /// It means nothing here.
    Unclear,
}

impl Open {
    /// A question that comes now, while this was being typed.
    pub fn new(asked: Asked, draft: &str, now: Instant) -> Self {
        let until = now.checked_add(asked.question.patience()).unwrap_or(now);
        let hears = if draft.is_empty() { Hears::TooSoon { since: now } } else { Hears::Draft };
        Self { asked, until, hidden: 0, seen: true, hears }
    }

    /// What is shown of it: all, or its beginning and its end as far as they leave room on the screen for what can be
    /// answered.
    pub fn shown(&mut self, room: usize, rows: usize) -> Vec<Line> {
        let mut lines = shown(&self.asked, room);
        let (dangers, scope) = (dangers_below(&self.asked, room), scope(&self.asked.question, room));
        // With the key that shows all; one row for what is typed, and one that parts it from what stands above.
        (self.hidden, self.seen) = (lines.len(), false);
        let beside = dangers.len() + scope.len() + self.answers(room).len() + 2;
        let fitting = rows.saturating_sub(beside).clamp(FEWEST, LINES);
        if lines.len() > fitting {
            // The room is for what is asked about, to its last word.
            let is_idle = |line: &Line| {
                let text: String = line.iter().map(|span| span.text.as_str()).collect();
                matches!(text.trim(), "" | "Allow it?")
            };
            while lines.last().is_some_and(is_idle) {
                lines.pop();
            }
        }
        let all = lines.len();
        let kept = if all > fitting { fitting - 1 } else { all };
        (self.hidden, self.seen) = (all - kept, all == kept);
        if self.hidden > 0 {
            let end = lines.split_off(all - kept / 2);
            lines.truncate(kept - kept / 2);
            let told = format!("  … {} of {all} lines left out; `v` shows all", self.hidden);
            lines.push(vec![Span::new(told, Style::of(Hue::Yellow))]);
            lines.extend(end);
        }
        lines.extend(dangers);
        lines.extend(scope);
        lines
    }

    /// All of it, because the person wants to see it.
    pub fn view(&mut self, room: usize) -> Vec<Line> {
        self.seen = true;
        let mut lines = shown(&self.asked, room);
        lines.extend(dangers_below(&self.asked, room));
        lines
    }

    /// Whether what is typed goes on with what was typed before.
    pub fn leaves_the_draft(&self) -> bool {
        self.hears == Hears::Draft
    }

    pub fn takes_answers(&self) -> bool {
        self.hears == Hears::Answer
    }

    /// Time goes by. Whether answers are taken from now on.
    pub fn wait(&mut self, now: Instant) -> bool {
        let is_read =
            matches!(self.hears, Hears::TooSoon { since } if now.saturating_duration_since(since) >= READING);
        if is_read {
            self.hears = Hears::Answer;
        }
        is_read
    }

    /// A key changed what stands on the line.
    pub fn typed(&mut self, line: &str, now: Instant) {
        match self.hears {
            Hears::TooSoon { .. } if !line.is_empty() => self.hears = Hears::Draft,
            Hears::Draft if line.is_empty() => self.begin(now),
            _ => {}
        }
    }

    /// What was being typed is out of the way: the question is there from now on.
    pub fn begin(&mut self, now: Instant) {
        self.hears = Hears::TooSoon { since: now };
    }

    /// What a line means that was ended now.
    pub fn line_ended(&mut self, line: &str, now: Instant) -> Meaning {
        let answer = self.read(line);
        let meaning = match (self.hears, answer) {
            (Hears::Answer, Some(answer)) if self.seen || answer == Answer::No => {
                return Meaning::Answer(answer);
            }
            (Hears::Answer, Some(_)) => return Meaning::Unseen,
            (Hears::Answer, None) if self.wants_all(line) => return Meaning::View,
            (Hears::Answer, None) => return Meaning::Unclear,
            (_, Some(_)) => Meaning::TooSoon,
            (_, None) if line.trim().is_empty() => Meaning::Nothing,
            (_, None) => Meaning::Message(line.to_owned()),
        };
        self.begin(now);
        meaning
    }

    /// What a typed answer means; nothing where it means nothing here.
    fn read(&self, answer: &str) -> Option<Answer> {
        Answer::read(answer, lasting(&self.asked.question).as_ref())
    }

    /// Whether the person wants to see what was left out.
    fn wants_all(&self, answer: &str) -> bool {
        self.hidden > 0 && matches!(answer.trim().to_lowercase().as_str(), "v" | "view")
    }

    /// What may be answered, in words.
    pub fn keys(&self) -> &'static str {
        match lasting(&self.asked.question) {
            _ if !self.seen => "please answer with v or n",
            Some(_) => "please answer with y, s, a or n",
            None => "please answer with y or n",
        }
    }

    /// What can be answered, and until when; before that, what has to be done first.
    pub fn lines(&self, room: usize) -> Vec<Line> {
        let told = match self.hears {
            Hears::Answer => return self.answers(room),
            Hears::TooSoon { .. } => Span::new("answers are taken in a moment", Style::DIM),
            Hears::Draft => {
                let told = "a question: Enter first sends what you were typing, Esc sets it aside";
                Span::new(told, Style::of(Hue::Yellow))
            }
        };
        wrap(&[told], room, &Margin::default())
    }

    /// What can be answered, and until when.
    fn answers(&self, room: usize) -> Vec<Line> {
        let left = seconds(self.until.saturating_duration_since(Instant::now()));
        let silence = match self.asked.question.default {
            ApprovalDefault::Allow => "yes",
            ApprovalDefault::Deny => "no",
        };
        let key =
            |key: &str, means: &str| vec![Span::new(key, Style::BOLD), Span::plain(format!(" {means}"))];
        let mut keys = Vec::new();
        if self.seen {
            keys.push(key("y", "once"));
            if lasting(&self.asked.question).is_some() {
                keys.extend([key("s", "session"), key("a", "always")]);
            }
        }
        keys.push(key("n", "no"));
        if self.hidden > 0 {
            let means = if self.seen { "view all" } else { "view all first" };
            keys.push(key("v", means));
        }
        keys.push(vec![Span::new(format!("· in {left}: {silence}"), Style::DIM)]);
        packed(keys, room)
    }
}

/// The question as it is shown: what would be done, exactly, all of it.
pub fn shown(asked: &Asked, room: usize) -> Vec<Line> {
    let mark = Style::of(Hue::Yellow).bold();
    let Some(call) = asked.question.call.as_ref().filter(|_| !asked.changes.is_empty()) else {
        let margin = Margin { first: vec![Span::new("? ", mark)], rest: vec![Span::plain("  ")] };
        let text = literal(wording(&asked.question));
        return marked(exact(&text, Style::PLAIN, room, &margin), &text, &asked.dangers);
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

/// The rows of a text with what is dangerous in it marked, wherever it stands.
fn marked(rows: Vec<Line>, text: &str, dangers: &[Danger]) -> Vec<Line> {
    let places = |danger: &Danger| -> Vec<Range<usize>> {
        let command = literal(&danger.command).into_owned();
        text.match_indices(&command)
            .filter(|_| !command.is_empty())
            .map(|(at, _)| at..at + command.len())
            .collect()
    };
    let places: Vec<Range<usize>> = dangers.iter().flat_map(places).collect();
    if places.is_empty() {
        return rows;
    }
    let mut begin = 0;
    let mark = |mut row: Line| {
        let Some(span) = row.pop() else { return row };
        let end = begin + span.text.len();
        let mut cuts: Vec<usize> = places.iter().flat_map(|place| [place.start, place.end]).collect();
        cuts.retain(|cut| begin < *cut && *cut < end);
        cuts.extend([begin, end]);
        cuts.sort_unstable();
        for (from, to) in cuts.iter().zip(cuts.iter().skip(1)).filter(|(from, to)| from < to) {
            let is_marked = places.iter().any(|place| place.start <= *from && *to <= place.end);
            let style = if is_marked { Style::of(Hue::Red).bold() } else { span.style };
            let piece = span.text.get(from - begin..to - begin).unwrap_or_default();
            row.push(Span::new(piece, style));
        }
        // A row that ends its line is followed by a line end.
        begin = if text.get(end..).is_some_and(|rest| rest.starts_with('\n')) { end + 1 } else { end };
        row
    };
    rows.into_iter().map(mark).collect()
}

/// What is dangerous in a command, named where it is always seen.
fn dangers_below(asked: &Asked, room: usize) -> Vec<Line> {
    let named = dangers_named(&asked.dangers, &asked.question);
    let margin = Margin { first: vec![Span::plain("  ")], rest: vec![Span::plain("    ")] };
    named
        .iter()
        .flat_map(|line| wrap(&[Span::new(line.as_str(), Style::of(Hue::Red))], room, &margin))
        .collect()
}

/// The lines that name dangers: the worst, and how many more there are. Nothing where the question ends with the same.
pub fn dangers_named(dangers: &[Danger], question: &Question) -> Vec<String> {
    let named = |danger: &Danger| {
        let command = literal(&danger.command).replace('\n', " ");
        format!("{}: `{}`", danger.why, shorten(&command, 100))
    };
    let named: Vec<String> = dangers.iter().map(named).collect();
    let text = wording(question);
    if dangers.is_empty()
        || named
            .iter()
            .all(|line| text.lines().rev().take(dangers.len()).any(|told| told == format!("- {line}")))
    {
        return Vec::new();
    }
    let more = named.len().saturating_sub(DANGERS);
    let mut lines: Vec<String> = named.into_iter().take(DANGERS).map(|line| format!("! {line}")).collect();
    if more > 0 {
        lines.push(format!("! and {more} more"));
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
    use amplifier_protocol::hook::{ApprovalOption, AskedCall};
    use amplifier_protocol::tool::Effects;
    use serde_json::{Value, json};

    fn asked(tool: &str, input: Value, prompt: &str, options: &[&str]) -> Asked {
        let effects = if tool == "bash" { Effects::UNKNOWN } else { Effects::WRITES };
        let call = AskedCall { tool_name: tool.to_owned(), tool_input: input, effects, module: None };
        let options = options.iter().copied().map(ApprovalOption::from).collect();
        let places = Places { folder: "/nowhere".into(), home: None };
        let (changes, dangers) = (changes(&call, &places), dangers(&call, &places));
        let question =
            Question { prompt: prompt.to_owned(), options, call: Some(call), ..Question::default() };
        Asked { question, changes, dangers, answer: oneshot::channel().0 }
    }

    fn text(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| written(line, Colour::Off)).collect()
    }

    const ALL: [&str; 3] = ["Allow once", "Allow always", "Deny"];

    /// A question that was read.
    fn open(options: &[&str]) -> Open {
        let now = Instant::now();
        let mut open = Open::new(asked("bash", json!({}), "x", options), "", now);
        assert!(open.wait(now + READING));
        open
    }

    #[test]
    fn an_empty_line_and_what_is_not_clear_is_no_answer() {
        let mut open = open(&ALL);
        let mut means = |line: &str| open.line_ended(line, Instant::now());
        assert_eq!([means(""), means("stop that"), means("v")], [const { Meaning::Unclear }; 3]);
        assert_eq!(means(" Y "), Meaning::Answer(Answer::Once));
        assert_eq!(means("s"), Meaning::Answer(Answer::Session));
    }

    #[test]
    fn what_is_not_offered_is_no_answer() {
        let mut open = open(&["Allow", "Deny"]);
        let mut means = |line: &str| open.line_ended(line, Instant::now());
        assert_eq!([means("s"), means("always")], [const { Meaning::Unclear }; 2]);
        assert_eq!(means("y"), Meaning::Answer(Answer::Once));
        let line = text(&open.lines(80)).concat();
        assert!(line.starts_with("y once  n no") && !line.contains("always"), "{line}");
        assert!(scope(&open.asked.question, 80).is_empty());
    }

    #[test]
    fn what_was_being_typed_when_a_question_came_is_a_message_and_no_answer() {
        let now = Instant::now();
        let draft = "did you check if there are an";
        let mut open = Open::new(asked("bash", json!({}), "x", &ALL), draft, now);
        let later = now + READING * 10;
        assert!(!open.wait(later), "it waits until the line is done");
        let message = format!("{draft}y");
        open.typed(&message, later);
        assert_eq!(open.line_ended(&message, later), Meaning::Message(message));
        // Only now the question is read.
        assert_eq!(open.line_ended("y", later), Meaning::TooSoon);
        assert!(!open.wait(later + READING / 2) && open.wait(later + READING));
        assert_eq!(open.line_ended("y", later), Meaning::Answer(Answer::Once));
    }

    #[test]
    fn keys_that_come_with_the_question_are_not_meant_for_it() {
        let now = Instant::now();
        let mut open = Open::new(asked("bash", json!({}), "x", &ALL), "", now);
        assert_eq!(
            [open.line_ended("", now), open.line_ended("y", now)],
            [Meaning::Nothing, Meaning::TooSoon]
        );
        open.typed("a", now);
        assert!(open.leaves_the_draft() && !open.wait(now + READING));
        assert_eq!(open.line_ended("any", now + READING), Meaning::Message("any".to_owned()));
        // A line that is taken back is none.
        open.typed("b", now);
        open.typed("", now);
        assert!(open.wait(now + READING) && open.takes_answers());
    }

    #[test]
    fn what_can_be_answered_is_never_cut_and_stays_on_the_screen() {
        let prompt = format!("Run with `bash`:\n{}", "echo a line\n".repeat(30));
        let now = Instant::now();
        // So low that not even the keys fit beside what they are about.
        const LOW: usize = 6;
        for (room, rows) in [(79, 24), (39, 12), (19, LOW)] {
            let mut open = Open::new(asked("bash", json!({}), &prompt, &ALL), "", now);
            assert!(open.wait(now + READING));
            let shown = text(&open.shown(room, rows));
            let keys = text(&open.lines(room));
            let all = keys.join("  ");
            assert!(all.starts_with("n no  v view all first  · in "), "{all}");
            assert!(keys.iter().all(|line| crate::width::width(line) <= room), "{keys:?}");
            assert!(rows == LOW || shown.len() + keys.len() + 2 <= rows, "{room}: {shown:#?} {keys:#?}");
            assert!(shown.iter().any(|line| line.contains(" lines left out; `v`")), "{shown:#?}");
            open.view(room);
            let all = text(&open.lines(room)).join("  ");
            assert!(all.starts_with("y once  s session  a always  n no  v view all  · in "), "{all}");
        }
    }

    #[test]
    fn what_was_not_shown_whole_cannot_be_allowed() {
        let now = Instant::now();
        let end = "rm -rf ~/work";
        for command in [
            format!("{}{end}", "echo a line\n".repeat(40)),
            format!("echo {} ; {end}", "x".repeat(4_000)),
            format!("echo a{};{end}", " ".repeat(4_000)),
            format!("echo {};{end}", "\t".repeat(1_500)),
            format!("{}{end}", "\r\u{202e}".repeat(700)),
        ] {
            let prompt =
                format!("Run with `bash`:\n{}\nAllow it?", amplifier_protocol::text::visible(&command));
            let mut open = Open::new(asked("bash", json!({ "command": command }), &prompt, &ALL), "", now);
            assert!(open.wait(now + READING));
            let lines = text(&open.shown(79, 24));
            assert!(
                lines.len() < 24 && lines.iter().any(|line| line.contains("lines left out")),
                "{lines:#?}"
            );
            // Its end is seen at once, whatever pushes it away.
            assert!(lines.concat().contains("~/work"), "{lines:#?}");
            for answer in ["y", "s", "always"] {
                assert_eq!(open.line_ended(answer, now), Meaning::Unseen, "{answer}");
            }
            assert_eq!(open.line_ended("n", now), Meaning::Answer(Answer::No));
            assert_eq!(open.line_ended("v", now), Meaning::View);
            open.view(79);
            assert_eq!(open.line_ended("y", now), Meaning::Answer(Answer::Once));
        }
    }

    #[test]
    fn what_is_dangerous_is_marked_where_it_stands_and_named_below() {
        let command = "echo start\necho one; rm -rf ~/work; echo two";
        let prompt = format!("Run with `bash`:\n{command}\nAllow it?");
        let asked = asked("bash", json!({ "command": command }), &prompt, &ALL);
        let painted: Vec<_> = shown(&asked, 26).iter().map(|line| written(line, Colour::On)).collect();
        assert_eq!(painted[2], "  echo one; \u{1b}[1;31mrm -rf ~/work\u{1b}[0m;");
        let named = text(&dangers_below(&asked, 200));
        assert!(named.len() == 1 && named[0].ends_with(": `rm -rf ~/work`"), "{named:?}");
        let harmless = self::asked("bash", json!({"command": "ls"}), "Run with `bash`:\nls\nAllow it?", &ALL);
        assert!(dangers_below(&harmless, 80).is_empty());
    }

    #[test]
    fn no_time_that_a_hook_gives_breaks_a_question() {
        for timeout in [1e19, f64::MAX, f64::INFINITY, f64::NAN, -1.0] {
            let mut asked = asked("bash", json!({}), "x", &ALL);
            asked.question.timeout = timeout;
            let line = text(&Open::new(asked, "", Instant::now()).answers(80)).concat();
            assert!(line.contains("· in "), "{line}");
        }
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
