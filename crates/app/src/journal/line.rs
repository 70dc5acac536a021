//! One line of `events.jsonl`: the frame around a record's body and its checksum. It knows nothing of files or blobs.
//!
//! `{"v":1,"seq":7,"ts":"…","turn":1,"body":{…},"crc":"0a1b2c3d"}`, the checksum being CRC-32 of all bytes before
//! `,"crc":`.

use std::fmt::Write as _;
use std::ops::Range;

use amplifier_protocol::record::{RECORD_VERSION, Record, RecordBody};
use amplifier_protocol::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::Damage;

const CRC_KEY: &str = ",\"crc\":\"";
const CRC_TAIL_BYTES: usize = CRC_KEY.len() + 8 + 2;
/// The least number of levels that is looked at more closely; parsers stop at 128 and a record adds a few.
const DEEP: usize = 100;
/// The most levels a body may have. Twice what a parser lets in, and harmless for a thread's stack.
const MAX_DEPTH: usize = 192;

/// An intact line: the frame, and where in its bytes the body stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) seq: u64,
    pub(super) ts: Timestamp,
    pub(super) turn: u64,
    pub(super) body: Range<usize>,
}

/// Why a line is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Not what was written. `intact` tells whether the checksum held, so that it is no torn write.
    Damage { damage: Damage, intact: bool },
    /// Intact, but for a carriage return at its end.
    Converted(Frame),
    /// Written by a newer version.
    Newer(u32),
}

/// A body's JSON text. Refuses what could not be read back.
pub(super) fn body_text(body: &RecordBody) -> Result<String, BodyError> {
    let text = serde_json::to_string(body)?;
    let opened = text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if opened > DEEP {
        let depth = depth(&text);
        // Blocks of a message are read on their own, with the parser's usual limit, so only reading tells.
        if depth > MAX_DEPTH || (depth > DEEP && read_body(&text).is_err()) {
            return Err(BodyError::TooDeep { depth });
        }
    }
    Ok(text)
}

/// A record that cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the record is nested {depth} levels deep and could not be read back")]
    TooDeep { depth: usize },
    #[error("the record cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// The whole line, with its line feed.
pub(super) fn write(record: &Record, body: &str) -> String {
    let mut line = String::with_capacity(body.len() + 128);
    let Record { seq, ts, turn, .. } = record;
    // Writing to a string cannot fail.
    write!(line, r#"{{"v":{RECORD_VERSION},"seq":{seq},"ts":"{ts}","turn":{turn},"body":{body}"#).ok();
    let crc = crc32fast::hash(line.as_bytes());
    write!(line, "{CRC_KEY}{crc:08x}\"}}").ok();
    line.push('\n');
    line
}

/// Checks a line without its line feed and finds its parts.
pub(super) fn read(line: &[u8]) -> Result<Frame, Refused> {
    match line.strip_suffix(b"\r") {
        Some(line) => Err(read_whole(line).map_or_else(|refused| refused, Refused::Converted)),
        None => read_whole(line),
    }
}

fn read_whole(line: &[u8]) -> Result<Frame, Refused> {
    let torn = |damage| Refused::Damage { damage, intact: false };
    let (framed, tail) = line.split_at(line.len().saturating_sub(CRC_TAIL_BYTES));
    let written = std::str::from_utf8(tail)
        .ok()
        .and_then(|tail| tail.strip_prefix(CRC_KEY)?.strip_suffix("\"}"))
        .ok_or_else(|| torn(Damage::Unfinished))?;
    let found = format!("{:08x}", crc32fast::hash(framed));
    if written != found {
        return Err(torn(Damage::Checksum { expected: written.to_owned(), found }));
    }
    parse(line, framed.len())
}

fn parse(line: &[u8], framed: usize) -> Result<Frame, Refused> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    #[derive(Deserialize)]
    struct Parts<'a> {
        v: u32,
        seq: u64,
        ts: Timestamp,
        turn: u64,
        #[serde(borrow)]
        body: &'a RawValue,
    }
    match serde_json::from_slice::<Parts<'_>>(line) {
        Ok(parts) if parts.v <= RECORD_VERSION => {
            // The body is the last part, so it ends where the checksum's part begins.
            let body = framed.saturating_sub(parts.body.get().len())..framed;
            Ok(Frame { seq: parts.seq, ts: parts.ts, turn: parts.turn, body })
        }
        _ => match serde_json::from_slice::<Version>(line) {
            Ok(Version { v }) if v > RECORD_VERSION => Err(Refused::Newer(v)),
            _ => Err(Refused::Damage { damage: Damage::Shape, intact: true }),
        },
    }
}

/// Reads a body whose large values are back in place.
pub(super) fn read_body(text: &str) -> Result<RecordBody, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    if depth(text) <= MAX_DEPTH {
        reader.disable_recursion_limit();
    }
    let body = RecordBody::deserialize(&mut reader)?;
    reader.end()?;
    Ok(body)
}

/// How many levels of objects and lists a JSON text has.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn record(data: Value) -> Record {
        Record {
            seq: 3,
            ts: Timestamp::from_micros(1_763_245_489_123_456),
            turn: 2,
            body: RecordBody::Event { name: "x:y".parse().unwrap(), data },
        }
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(0), |inner, _| json!([inner]))
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let record = record(json!({"a": "b"}));
        let line = write(&record, &body_text(&record.body).unwrap());
        assert_eq!(
            line,
            concat!(
                r#"{"v":1,"seq":3,"ts":"2025-11-15T22:24:49.123456+00:00","turn":2,"#,
                r#""body":{"event":{"name":"x:y","data":{"a":"b"}}},"crc":"4cdbcb17"}"#,
                "\n"
            )
        );
        let frame = read(line.trim_end().as_bytes()).unwrap();
        assert_eq!((frame.seq, frame.ts, frame.turn), (3, record.ts, 2));
        assert_eq!(read_body(&line[frame.body]).unwrap(), record.body);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let record = record(json!("text"));
        let line = write(&record, &body_text(&record.body).unwrap()).into_bytes();
        let line = line.strip_suffix(b"\n").unwrap();
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut bad = line.to_vec();
                bad[at] ^= 1 << bit;
                assert!(read(&bad).is_err(), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let framed = r#"{"v":9,"seq":1,"shape":"new""#;
        let line = format!("{framed},\"crc\":\"{:08x}\"}}", crc32fast::hash(framed.as_bytes()));
        assert_eq!(read(line.as_bytes()), Err(Refused::Newer(9)));
    }

    #[test]
    fn what_a_parser_lets_in_comes_back_and_what_could_not_come_back_is_refused() {
        let body = record(nested(127)).body;
        assert_eq!(read_body(&body_text(&body).unwrap()).unwrap(), body);
        let error = body_text(&record(nested(300)).body).unwrap_err();
        assert_eq!(error.to_string(), "the record is nested 302 levels deep and could not be read back");
    }
}
