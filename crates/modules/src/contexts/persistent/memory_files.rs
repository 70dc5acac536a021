//! Files whose text a new conversation begins with. Read once, when the conversation is new; then they are part of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_core::loader::MountCx;
use amplifier_protocol::event::ContextInclude;
use amplifier_protocol::message::{Message, Messages, Role};
use serde_json::Value;

use crate::contexts::window::estimate::tokens;
use crate::workspace::Workspace;

/// The value of `source` in the notes of such a message.
const SOURCE: &str = "memory-file";

/// Whether a message is the text of a memory file.
pub(super) fn is_memory(message: &Message) -> bool {
    message.metadata.get("source").and_then(Value::as_str) == Some(SOURCE)
}

/// The files as system messages. Those that are missing, empty or not text are left out with a warning; together they
/// must fit into `most_tokens`.
pub(super) async fn read(files: &[PathBuf], most_tokens: u64, cx: &MountCx) -> Result<Messages, String> {
    let working_dir = cx.coordinator.capability_text("session.working_dir").map(PathBuf::from);
    let workspace = Workspace::of(&cx.coordinator);
    let (mut messages, mut sizes) = (Messages::new(), Vec::new());
    for file in files {
        let path = working_dir.as_deref().map_or_else(|| file.clone(), |dir| dir.join(file));
        if let Some(real) = workspace.leads_out(&path) {
            let (file, real) = (file.display(), real.display());
            cx.warn(format!(
                "memory file `{file}` is left out: it leads to `{real}`, out of a directory that is not trusted"
            ));
            continue;
        }
        // A file that cannot fit is not read at all.
        let most_bytes = most_tokens.saturating_mul(8);
        let message = match read_one(path.clone(), most_bytes).await {
            Ok(message) => Arc::new(message),
            Err(Unread::TooLarge { bytes }) => {
                sizes.push((file.display().to_string(), bytes / 4));
                continue;
            }
            Err(Unread::Passed(reason)) => {
                cx.warn(format!("memory file `{}` is left out: {reason}", file.display()));
                continue;
            }
        };
        sizes.push((file.display().to_string(), tokens(&message)));
        let bytes = u64::try_from(message.content.visible_text().len()).unwrap_or(u64::MAX);
        cx.coordinator.emit(ContextInclude { path: path.display().to_string(), bytes }).await;
        messages.push(message);
    }
    let total = sizes.iter().map(|(_, tokens)| *tokens).fold(0, u64::saturating_add);
    if total > most_tokens {
        let each: Vec<_> = sizes.iter().map(|(file, tokens)| format!("`{file}` {tokens}")).collect();
        return Err(format!(
            "the memory files need about {total} tokens and may have {most_tokens}: {}; leave some out or raise `max_tokens`",
            each.join(", ")
        ));
    }
    Ok(messages)
}

enum Unread {
    TooLarge { bytes: u64 },
    Passed(String),
}

async fn read_one(path: PathBuf, most_bytes: u64) -> Result<Message, Unread> {
    let read = tokio::task::spawn_blocking(move || read_text(&path, most_bytes).map(|text| (path, text)));
    let (path, text) = read.await.map_err(|error| Unread::Passed(error.to_string()))??;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut message = Message::text(Role::System, format!("[Context from {name}]\n\n{text}"));
    message.metadata.insert("source".to_owned(), Value::String(SOURCE.to_owned()));
    Ok(message)
}

fn read_text(path: &Path, most_bytes: u64) -> Result<String, Unread> {
    let passed = |error: std::io::Error| Unread::Passed(error.to_string());
    let about = std::fs::metadata(path).map_err(passed)?;
    if !about.is_file() {
        return Err(Unread::Passed("it is no file".to_owned()));
    }
    if about.len() > most_bytes {
        return Err(Unread::TooLarge { bytes: about.len() });
    }
    let text = std::fs::read_to_string(path).map_err(passed)?;
    if text.trim().is_empty() {
        return Err(Unread::Passed("it is empty".to_owned()));
    }
    Ok(text)
}
