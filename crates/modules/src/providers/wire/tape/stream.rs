//! The texts of a streamed answer, put together: what must not be written down may come in pieces, each harmless.

use std::collections::BTreeMap;

use serde_json::Value;

/// A text that came in pieces.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) text: String,
    /// The lines that it came with.
    lines: Vec<usize>,
}

/// The texts of a stream by their place in each event, those that came in more than one piece.
pub(super) fn joined(body: &str) -> BTreeMap<String, Joined> {
    let mut all = BTreeMap::<String, Joined>::new();
    for (number, line) in body.lines().enumerate() {
        let Some((_, event)) = event(line) else { continue };
        each_text(&event, String::new(), &mut |place, text| {
            let joined = all.entry(place).or_default();
            joined.text.push_str(text);
            joined.lines.push(number);
        });
    }
    all.retain(|_, joined| joined.lines.len() > 1);
    all
}

/// The same stream with other texts: each whole in the first of its pieces.
pub(super) fn rewritten(
    body: &str,
    joined: &BTreeMap<String, Joined>,
    texts: &BTreeMap<String, String>,
) -> String {
    let lines = body.split_inclusive('\n').enumerate().map(|(number, line)| {
        let bare = line.trim_end_matches(['\r', '\n']);
        let Some((before, mut event)) = event(bare) else { return line.to_owned() };
        let mut changed = false;
        for (place, text) in texts {
            let Some(at) = joined.get(place).map(|joined| &joined.lines) else { continue };
            if let Some(found) = event.pointer_mut(place).filter(|_| at.contains(&number)) {
                *found = Value::from(if at.first() == Some(&number) { text.as_str() } else { "" });
                changed = true;
            }
        }
        let end = line.get(bare.len()..).unwrap_or_default();
        if changed { format!("{before}{event}{end}") } else { line.to_owned() }
    });
    lines.collect()
}

/// The event of a line, and what stands before it.
fn event(line: &str) -> Option<(&str, Value)> {
    let at = line.find('{').filter(|at| matches!(line.get(..*at).map(str::trim_end), Some("" | "data:")))?;
    let (before, text) = line.split_at(at);
    Some((before, serde_json::from_str(text).ok()?))
}

fn each_text(value: &Value, place: String, found: &mut impl FnMut(String, &str)) {
    match value {
        Value::String(text) => found(place, text),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| each_text(item, format!("{place}/{at}"), found));
        }
        Value::Object(map) => {
            for (key, item) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                each_text(item, format!("{place}/{key}"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_pieces_is_joined_and_put_back_whole() {
        let body = "data: {\"d\":{\"t\":\"my ke\"}}\n\ndata: {\"d\":{\"t\":\"y-1 it is\"}}\r\ndata: [DONE]\n{\"once\":\"x\"}";
        let joined = joined(body);
        let texts: Vec<_> =
            joined.iter().map(|(place, joined)| (place.as_str(), joined.text.as_str())).collect();
        assert_eq!(texts, [("/d/t", "my key-1 it is")]);
        let hidden = BTreeMap::from([("/d/t".to_owned(), "my [X] it is".to_owned())]);
        let expected = "data: {\"d\":{\"t\":\"my [X] it is\"}}\n\ndata: {\"d\":{\"t\":\"\"}}\r\ndata: [DONE]\n{\"once\":\"x\"}";
        assert_eq!(rewritten(body, &joined, &hidden), expected);
        assert_eq!(rewritten(body, &joined, &BTreeMap::new()), body);
    }
}
