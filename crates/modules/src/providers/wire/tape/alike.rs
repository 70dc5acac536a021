//! What of a request belongs to the run and not to what is asked: two requests that differ in nothing else are the same to a
//! recording. Pure.

use amplifier_protocol::text::shorten;
use serde_json::Value;

/// What `hooks-status-context` tells is where and when a run is, all of it.
const STATUS: &str = "<system-reminder source=\"hooks-status-context\">";
const STATUS_END: &str = "</system-reminder>";
const UUID: &str = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
/// How much of a text is shown before and behind the first difference.
const BEFORE: usize = 24;
const BEHIND: usize = 72;

/// Whether dates and times count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Kept,
    Settled,
}

/// A text without what belongs to the run: where it works, its ids, its dates and times where they do not count.
pub(super) fn settled(text: &str, folder: Option<&str>, times: Times) -> String {
    let text = without_status(text);
    // The root of everything stands at the beginning of every path.
    match folder.filter(|folder| folder.len() > 1) {
        Some(folder) => without_stamps(&text.replace(folder, "<folder>"), times),
        None => without_stamps(&text, times),
    }
}

fn without_status(text: &str) -> String {
    let mut parts = text.split(STATUS);
    let mut settled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        settled.push_str(STATUS);
        settled.push_str(part.find(STATUS_END).and_then(|end| part.get(end..)).unwrap_or(part));
    }
    settled
}

fn without_stamps(text: &str, times: Times) -> String {
    let mut settled = String::with_capacity(text.len());
    let (mut rest, mut inside) = (text, false);
    while let Some(first) = rest.chars().next() {
        let stamp = if inside || !first.is_ascii_hexdigit() { None } else { stamp(rest, times) };
        let (word, length) = stamp.unwrap_or(("", first.len_utf8()));
        let (taken, behind) = rest.split_at(length);
        settled.push_str(if word.is_empty() { taken } else { word });
        inside = first.is_alphanumeric();
        rest = behind;
    }
    settled
}

/// What stands at the beginning of a text, if that belongs to the run, and how long it is.
fn stamp(text: &str, times: Times) -> Option<(&'static str, usize)> {
    if begins(text, UUID) {
        // The ids of agents go on behind their parent's.
        let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        return Some(("<id>", text.find(|c| !goes_on(c)).unwrap_or(text.len())));
    }
    if times == Times::Kept {
        return None;
    }
    if begins(text, "dddd-dd-dd") {
        let time = text.get(11..).filter(|_| text.get(10..11).is_some_and(|between| "T ".contains(between)));
        return Some(("<time>", time.and_then(clock).map_or(10, |length| 11 + length)));
    }
    begins(text, "dd:dd:dd").then(|| ("<time>", clock(text).unwrap_or(8)))
}

/// How long a time of the day is, with its seconds, its fraction and its zone where they are there.
fn clock(text: &str) -> Option<usize> {
    let mut length = if begins(text, "dd:dd") { 5 } else { return None };
    let rest = |length: usize| text.get(length..).unwrap_or_default();
    if begins(rest(length), ":dd") {
        length += 3;
        if begins(rest(length), ".d") {
            let digits = rest(length + 1);
            length += 1 + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        }
    }
    let zones = ["Z", "+dd:dd", "-dd:dd", "+dddd", "-dddd"];
    Some(length + zones.iter().find(|zone| begins(rest(length), zone)).map_or(0, |zone| zone.len()))
}

/// Whether a text begins like this: `h` is a hexadecimal digit, `d` a decimal one, the rest stands for itself.
fn begins(text: &str, like: &str) -> bool {
    let fits = |(found, like): (u8, u8)| match like {
        b'h' => found.is_ascii_hexdigit(),
        b'd' => found.is_ascii_digit(),
        like => found == like,
    };
    text.len() >= like.len() && text.bytes().zip(like.bytes()).all(fits)
}

/// Where two values differ first.
pub(super) struct Difference {
    /// A JSON pointer.
    pub(super) at: String,
    pub(super) recorded: String,
    pub(super) sent: String,
}

pub(super) fn first_difference(recorded: &Value, sent: &Value) -> Option<Difference> {
    find(recorded, sent, String::new())
}

fn find(recorded: &Value, sent: &Value, at: String) -> Option<Difference> {
    if recorded == sent {
        return None;
    }
    let below = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match (recorded, sent) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let added = theirs.keys().filter(|key| !ours.contains_key(*key));
            ours.keys().chain(added).find_map(|key| differ(ours.get(key), theirs.get(key), below(key)))
        }
        (Value::Array(ours), Value::Array(theirs)) => (0..ours.len().max(theirs.len()))
            .find_map(|index| differ(ours.get(index), theirs.get(index), below(&index.to_string()))),
        (Value::String(ours), Value::String(theirs)) => {
            let same = ours.chars().zip(theirs.chars()).take_while(|(our, their)| our == their).count();
            Some(Difference { at, recorded: excerpt(ours, same), sent: excerpt(theirs, same) })
        }
        _ => Some(Difference { at, recorded: short(recorded), sent: short(sent) }),
    }
}

fn differ(recorded: Option<&Value>, sent: Option<&Value>, at: String) -> Option<Difference> {
    match (recorded, sent) {
        (Some(recorded), Some(sent)) => find(recorded, sent, at),
        (recorded, sent) => {
            let told = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), short);
            Some(Difference { at, recorded: told(recorded), sent: told(sent) })
        }
    }
}

fn short(value: &Value) -> String {
    shorten(&value.to_string(), BEHIND).into_owned()
}

/// What stands around a place of a text, counted in characters.
fn excerpt(text: &str, at: usize) -> String {
    let from = at.saturating_sub(BEFORE);
    let shown: String = text.chars().skip(from).take(at - from + BEHIND).collect();
    let begins = if from > 0 { "…" } else { "" };
    let ends = if text.chars().nth(at + BEHIND).is_some() { "…" } else { "" };
    format!("{begins}{shown}{ends}").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_belongs_to_the_run_is_settled_and_nothing_else() {
        let id = "01a1ecfe-5237-79ff-88ba-66056ee99424";
        let settle = |text: &str| settled(text, Some("/home/me/work"), Times::Settled);
        assert_eq!(settle(&format!("in {id}, from {id}-0123abcd_scout.")), "in <id>, from <id>.");
        assert_eq!(
            settle("read /home/me/work/a.txt, not /home/me/other"),
            "read <folder>/a.txt, not /home/me/other"
        );
        for time in [
            "2026-11-18",
            "2026-11-18 04:50",
            "2026-11-18T04:50:01.25Z",
            "2026-11-18T04:50:01+01:00",
            "04:50:01",
        ] {
            assert_eq!(settle(&format!("at {time}, ä")), "at <time>, ä", "{time}");
        }
        for kept in ["v12026-11-18", "1.2.3", "10:30", "2026-1-1", "cafebabe", "ein Satz über 12 Äpfel"] {
            assert_eq!(settle(kept), kept);
        }
        let dated = format!("{id} at 2026-11-18");
        assert_eq!(settled(&dated, None, Times::Kept), "<id> at 2026-11-18");
        let told = |inside: &str| format!("hi\n\n{STATUS}\n{inside}\n{STATUS_END} and more");
        assert_eq!(settle(&told("a")), settle(&told("Git:\nCurrent branch: other")));
        assert_ne!(settle(&told("a")), settle(&told("a").replace("more", "less")));
    }

    #[test]
    fn the_first_difference_has_a_place_and_both_sides() {
        let told = |recorded: Value, sent: Value| {
            let found = first_difference(&recorded, &sent).unwrap();
            (found.at, found.recorded, found.sent)
        };
        let text = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        let asks = |of: &str| json!({"model": "m", "messages": [{"content": format!("What is the capital of {of}?")}]});
        assert_eq!(
            told(asks("France"), asks("Spain")),
            text("/messages/0/content", "What is the capital of France?", "What is the capital of Spain?")
        );
        assert_eq!(told(json!({"a": [1, 2]}), json!({"a": [1]})), text("/a/1", "2", "nothing"));
        assert_eq!(told(json!({}), json!({"b/c": true})), text("/b~1c", "nothing", "true"));
        assert!(first_difference(&json!(1), &json!(1)).is_none());
    }
}
