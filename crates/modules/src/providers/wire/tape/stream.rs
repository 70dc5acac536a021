//! The texts of a streamed answer, put together: what must not be written down may come in pieces, each harmless.

use std::collections::BTreeMap;
use std::ops::Range;

use amplifier_core::redact::REDACTED;
use serde_json::{Map, Value};

/// What tells one part of an answer from the others, in whichever object of an event it stands.
const PART: [&str; 5] = ["index", "output_index", "content_index", "summary_index", "thought"];

/// A text that came in pieces.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) text: String,
    pieces: Vec<Piece>,
}

struct Piece {
    /// The line that it came with, and its place there.
    line: usize,
    pointer: String,
    /// Where it ends in the text; it begins where the one before ends.
    end: usize,
}

/// What of a text is gone, and what stands there instead.
type Change<'a> = (Range<usize>, &'a str);

/// The texts of a stream that came in more than one piece, each of one part of the answer.
pub(super) fn joined(body: &str) -> Vec<Joined> {
    let mut all = BTreeMap::<String, Joined>::new();
    for (line, text) in body.lines().enumerate() {
        let Some((_, event)) = event(text) else { continue };
        each_text(&event, &Place::default(), &mut |place, text| {
            let joined = all.entry(place.part.clone()).or_default();
            joined.text.push_str(text);
            joined.pieces.push(Piece { line, pointer: place.pointer.clone(), end: joined.text.len() });
        });
    }
    all.into_values().filter(|joined| joined.pieces.len() > 1).collect()
}

/// The same stream where these texts read otherwise: only the pieces change that what is gone was in.
pub(super) fn rewritten(body: &str, texts: &[(Joined, String)]) -> String {
    let mut edits = BTreeMap::<usize, Vec<(&str, String)>>::new();
    for (joined, hidden) in texts {
        let changes = changes(&joined.text, hidden);
        let mut from = 0;
        for piece in &joined.pieces {
            let range = std::mem::replace(&mut from, piece.end)..piece.end;
            if let Some(said) = changed(&joined.text, range, &changes) {
                edits.entry(piece.line).or_default().push((&piece.pointer, said));
            }
        }
    }
    let lines = body.split_inclusive('\n').enumerate().map(|(number, line)| {
        let bare = line.trim_end_matches(['\r', '\n']);
        let (Some(edits), Some((before, mut event))) = (edits.remove(&number), event(bare)) else {
            return line.to_owned();
        };
        for (pointer, said) in edits {
            if let Some(found) = event.pointer_mut(pointer) {
                *found = Value::from(said);
            }
        }
        let end = line.get(bare.len()..).unwrap_or_default();
        format!("{before}{event}{end}")
    });
    lines.collect()
}

/// What of a text is gone where another was made of it by hiding.
fn changes<'a>(text: &str, hidden: &'a str) -> Vec<Change<'a>> {
    marked(text, hidden).unwrap_or_else(|| {
        // Somebody hides in other words: all between what is the same at both ends.
        let same = |(one, other): &(char, char)| one == other;
        let length = |(c, _): (char, char)| c.len_utf8();
        let begin: usize = text.chars().zip(hidden.chars()).take_while(same).map(length).sum();
        let (rest, instead) =
            (text.get(begin..).unwrap_or_default(), hidden.get(begin..).unwrap_or_default());
        let end: usize = rest.chars().rev().zip(instead.chars().rev()).take_while(same).map(length).sum();
        let instead = instead.get(..instead.len() - end).unwrap_or_default();
        vec![(begin..text.len() - end, instead)]
    })
}

/// The same, where all that is gone has left the usual mark: what stands between the marks is found again in its order.
fn marked<'a>(text: &str, hidden: &'a str) -> Option<Vec<Change<'a>>> {
    let mut kept: Vec<_> = hidden.split(REDACTED).collect();
    let last = kept.pop().filter(|_| !kept.is_empty())?;
    let end = text.len().checked_sub(last.len()).filter(|_| text.ends_with(last))?;
    let (mut changes, mut at) = (Vec::new(), 0);
    for (number, kept) in kept.into_iter().enumerate() {
        let begin = at + text.get(at..end)?.find(kept).filter(|found| number > 0 || *found == 0)?;
        if number > 0 {
            changes.push((at..begin, REDACTED));
        }
        at = begin + kept.len();
    }
    changes.push((at..end, REDACTED));
    Some(changes)
}

/// What a piece of a text says now, if anything of it is gone. What stands instead stands in the first piece.
fn changed(text: &str, piece: Range<usize>, changes: &[Change<'_>]) -> Option<String> {
    let (mut said, mut at) = (String::new(), piece.start);
    let here = |(gone, _): &&Change<'_>| gone.start < piece.end && gone.end >= piece.start;
    for (gone, instead) in changes.iter().filter(here) {
        said.push_str(text.get(at..gone.start).unwrap_or_default());
        if gone.start >= piece.start {
            said.push_str(instead);
        }
        at = at.max(gone.end.min(piece.end));
    }
    said.push_str(text.get(at..piece.end).unwrap_or_default());
    text.get(piece).is_some_and(|before| before != said).then_some(said)
}

/// The event of a line, and what stands before it.
fn event(line: &str) -> Option<(&str, Value)> {
    let at = line.find('{').filter(|at| matches!(line.get(..*at).map(str::trim_end), Some("" | "data:")))?;
    let (before, text) = line.split_at(at);
    Some((before, serde_json::from_str(text).ok()?))
}

/// Where a text stands: in its event, and in which part of the answer.
#[derive(Default)]
struct Place {
    pointer: String,
    part: String,
}

impl Place {
    fn below(&self, key: &str, part: &str) -> Self {
        Self { pointer: format!("{}/{key}", self.pointer), part: format!("{}/{part}", self.part) }
    }
}

fn each_text(value: &Value, place: &Place, found: &mut impl FnMut(&Place, &str)) {
    match value {
        Value::String(text) => found(place, text),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let at = at.to_string();
                // What has a number of its own may stand elsewhere in the next event.
                let part = if item.get("index").is_some() { "" } else { at.as_str() };
                each_text(item, &place.below(&at, part), found);
            }
        }
        Value::Object(map) => {
            let part = part(map, place);
            for (key, item) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                each_text(item, &place.below(&key, &format!("{part}{key}")), found);
            }
        }
        _ => {}
    }
}

/// The part of the answer that an object is about.
fn part(map: &Map<String, Value>, place: &Place) -> String {
    // Further inside, a type is told with the first piece only.
    let kind = Some("type").filter(|_| place.pointer.is_empty());
    // Some services give every piece an id of its own; the number is the same for all.
    let id = Some("item_id").filter(|_| !map.contains_key("output_index"));
    let told = PART.into_iter().chain(kind).chain(id);
    told.filter_map(|name| Some(format!("{name}={};", map.get(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The events of a stream in which `key-1` is hidden, wherever it is found in a text that is put together.
    fn hidden(events: &[Value]) -> Vec<Value> {
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let texts = joined(&body).into_iter().map(|joined| {
            let hidden = joined.text.replace("key-1", REDACTED);
            (joined, hidden)
        });
        let texts: Vec<_> = texts.filter(|(joined, hidden)| joined.text != *hidden).collect();
        let body = rewritten(&body, &texts);
        body.lines().filter_map(|line| Some(event(line)?.1)).collect()
    }

    #[test]
    fn only_the_pieces_change_that_a_secret_was_in() {
        let body = "data: {\"t\":\"so \"}\n\ndata: {\"t\":\"my ke\"}\r\ndata: {\"t\":\"y-1\"}\n{\"t\":\"\"}\n{\"t\":\"! key-1\"}\n[DONE]\n{\"once\":\"x\"}";
        let texts: Vec<_> = joined(body)
            .into_iter()
            .map(|joined| (joined, "so my [REDACTED]! [REDACTED]".to_owned()))
            .collect();
        assert_eq!(
            texts.iter().map(|(joined, _)| joined.text.as_str()).collect::<Vec<_>>(),
            ["so my key-1! key-1"]
        );
        let expected = "data: {\"t\":\"so \"}\n\ndata: {\"t\":\"my [REDACTED]\"}\r\ndata: {\"t\":\"\"}\n{\"t\":\"\"}\n{\"t\":\"! [REDACTED]\"}\n[DONE]\n{\"once\":\"x\"}";
        assert_eq!(rewritten(body, &texts), expected);
        assert_eq!(rewritten(body, &[]), body);
    }

    #[test]
    fn who_hides_in_other_words_changes_no_more_than_the_pieces_between() {
        let body = "{\"t\":\"über \"}\n{\"t\":\"ke\"}\n{\"t\":\"y-1 \"}\n{\"t\":\"älter\"}\n";
        let texts: Vec<_> =
            joined(body).into_iter().map(|joined| (joined, "über *** älter".to_owned())).collect();
        assert_eq!(
            rewritten(body, &texts),
            "{\"t\":\"über \"}\n{\"t\":\"***\"}\n{\"t\":\" \"}\n{\"t\":\"älter\"}\n"
        );
    }

    #[test]
    fn parts_of_an_answer_are_told_apart() {
        let block = |index: u8, json: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": json}});
        assert_eq!(
            hidden(&[block(0, "{\"a\":\"ke"), block(0, "\"}"), block(1, "{\"a\":\"ke"), block(1, "y-1\"}")]),
            [block(0, "{\"a\":\"ke"), block(0, "\"}"), block(1, "{\"a\":\"[REDACTED]"), block(1, "\"}")]
        );
        let item = |kind: &str, at: u8, id: &str, delta: &str| json!({"type": kind, "output_index": at, "item_id": id, "delta": delta});
        let (text, arguments) = ("response.output_text.delta", "response.function_call_arguments.delta");
        assert_eq!(
            hidden(&[
                item(text, 0, "a", "ke"),
                item(arguments, 0, "a", "y-1"),
                item(arguments, 1, "b", "ke"),
                item(arguments, 1, "c", "y-1")
            ]),
            [
                item(text, 0, "a", "ke"),
                item(arguments, 0, "a", "y-1"),
                item(arguments, 1, "b", "[REDACTED]"),
                item(arguments, 1, "c", "")
            ]
        );
    }

    #[test]
    fn calls_in_one_event_go_by_their_number_and_not_by_their_place() {
        let call = |index: u8, text: &str| json!({"index": index, "function": {"arguments": text}});
        let event = |calls: Value| json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]});
        let mut first = call(1, "ke");
        first["type"] = json!("function");
        let mut expected = first.clone();
        expected["function"]["arguments"] = json!("[REDACTED]");
        assert_eq!(
            hidden(&[
                event(json!([call(0, "ke"), first])),
                event(json!([call(1, "y-1")])),
                event(json!([call(0, "y")]))
            ]),
            [
                event(json!([call(0, "ke"), expected])),
                event(json!([call(1, "")])),
                event(json!([call(0, "y")]))
            ]
        );
    }
}
