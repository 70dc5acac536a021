//! Writes a conversation down, without its secrets.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use amplifier_core::contracts::EventStamp;
use amplifier_core::redact::redact;
use serde_json::{Value, json};

use super::Format;
use crate::hooks::place::{private_dir, write_atomic};

/// A conversation and why it is written.
pub(super) struct Record {
    pub(super) kind: &'static str,
    pub(super) stamp: EventStamp,
    pub(super) messages: Vec<Value>,
    pub(super) format: Format,
    pub(super) include_metadata: bool,
}

/// Writes a conversation into a folder and lets the oldest there go.
pub(super) fn write(folder: &Path, record: &Record, most: usize) -> io::Result<PathBuf> {
    private_dir(folder)?;
    let ending = match record.format {
        Format::Jsonl => "jsonl",
        Format::Json => "json",
    };
    // The sequence number keeps two of the same second apart.
    let (time, sequence) = (file_time(record), record.stamp.sequence);
    let path = folder.join(format!("transcript_{}_{time}_{sequence:08}.{ending}", record.kind));
    write_atomic(&path, text(record).as_bytes())?;
    forget_oldest(folder, most)?;
    Ok(path)
}

fn text(record: &Record) -> String {
    // One at a time: a long conversation is not held twice.
    let messages = record.messages.iter().map(redact);
    let metadata = json!({
        "type": "metadata", "reason": record.kind, "session_id": record.stamp.session_id,
        "timestamp": record.stamp.timestamp, "turn": record.stamp.turn, "message_count": messages.len(),
    });
    match (record.format, record.include_metadata) {
        (Format::Json, true) => {
            json!({"metadata": metadata, "messages": messages.collect::<Value>()}).to_string()
        }
        (Format::Json, false) => json!({"messages": messages.collect::<Value>()}).to_string(),
        (Format::Jsonl, with) => {
            let mut text = String::new();
            for line in with.then_some(metadata).into_iter().chain(messages) {
                // Writing into a text does not fail.
                writeln!(text, "{line}").ok();
            }
            text
        }
    }
}

/// `2025-11-15T22:24:49…` as `20251115_222449`, so that names sort by time.
fn file_time(record: &Record) -> String {
    let time = record.stamp.timestamp.to_string();
    time.chars()
        .take(19)
        .filter(|c| !matches!(c, '-' | ':'))
        .map(|c| if c == 'T' { '_' } else { c })
        .collect()
}

fn forget_oldest(folder: &Path, most: usize) -> io::Result<()> {
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(rest) = name.strip_prefix("transcript_") {
            let time = rest.split_once('_').map_or(rest, |(_, time)| time).to_owned();
            kept.push((time, path));
        }
    }
    kept.sort();
    let too_many = kept.len().saturating_sub(most.max(1));
    kept.into_iter().take(too_many).try_for_each(|(_, path)| std::fs::remove_file(path))
}
