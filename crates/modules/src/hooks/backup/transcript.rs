//! Writes a conversation down, without its secrets.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_core::contracts::{CapabilityCall, EventStamp};
use amplifier_core::redact::redacted;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::Format;
use crate::hooks::place::{private_dir, write_atomic};

/// The messages of a conversation, each made when it is its turn: a long one is not held twice.
pub(super) type Messages = Box<dyn ExactSizeIterator<Item = Value> + Send>;

/// A conversation and why it is written.
pub(super) struct Record {
    pub(super) kind: &'static str,
    pub(super) stamp: EventStamp,
    pub(super) messages: Messages,
    /// Takes out the keys that the application knows.
    pub(super) hide: Option<Arc<dyn CapabilityCall>>,
    pub(super) format: Format,
    pub(super) include_metadata: bool,
}

/// Writes a conversation into a folder and lets the oldest there go. Blocks, also on whoever hides keys.
pub(super) fn write(folder: &Path, record: Record, most: usize) -> io::Result<PathBuf> {
    private_dir(folder)?;
    let ending = match record.format {
        Format::Jsonl => "jsonl",
        Format::Json => "json",
    };
    // The sequence number keeps two of the same second apart.
    let (time, sequence) = (file_time(&record.stamp), record.stamp.sequence);
    let path = folder.join(format!("transcript_{}_{time}_{sequence:08}.{ending}", record.kind));
    write_atomic(&path, &bytes(record)?)?;
    forget_oldest(folder, most)?;
    Ok(path)
}

fn bytes(record: Record) -> io::Result<Vec<u8>> {
    let Record { kind, stamp, messages, hide, .. } = record;
    let metadata = json!({
        "type": "metadata", "reason": kind, "session_id": stamp.session_id, "timestamp": stamp.timestamp,
        "turn": stamp.turn, "message_count": messages.len(),
    });
    let metadata = record.include_metadata.then_some(metadata);
    let messages = messages.map(|message| without_secrets(message, hide.as_deref()));
    let mut bytes = Vec::new();
    match record.format {
        Format::Json => {
            let messages = messages.collect::<io::Result<Value>>()?;
            let whole = match metadata {
                Some(metadata) => json!({"metadata": metadata, "messages": messages}),
                None => json!({"messages": messages}),
            };
            serde_json::to_writer(&mut bytes, &whole)?;
        }
        Format::Jsonl => {
            for line in metadata.map(Ok).into_iter().chain(messages) {
                serde_json::to_writer(&mut bytes, &line?)?;
                bytes.write_all(b"\n")?;
            }
        }
    }
    Ok(bytes)
}

/// A message without the keys that the application knows, and without what looks like one.
fn without_secrets(message: Value, hide: Option<&dyn CapabilityCall>) -> io::Result<Value> {
    let message = match hide {
        Some(hide) => Handle::current().block_on(hide.call(message)).map_err(io::Error::other)?,
        None => message,
    };
    Ok(redacted(message))
}

/// `2025-11-15T22:24:49…` as `20251115_222449`, so that names sort by time.
fn file_time(stamp: &EventStamp) -> String {
    let time = stamp.timestamp.to_string();
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
