//! `list_directory`: what a folder holds, with kinds and sizes.

use std::sync::Arc;

use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_protocol::tool::Effects;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::desk::Desk;
use super::folder::{self, Kind};
use crate::files::blocking;
use crate::files::names::NOT_TEXT;
use crate::files::paths::{Asked, Purpose};

/// Lists a folder: folders first, then files with their sizes, by name. Does not look into folders; use glob for that.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The folder: absolute, relative to the working folder, or `@bundle:path`. Without it the working folder.
    #[serde(default = "here")]
    path: String,
    /// How many entries to leave out at the beginning.
    #[serde(default)]
    offset: usize,
    /// How many entries to list.
    #[serde(default = "usual_limit")]
    limit: usize,
}

fn here() -> String {
    ".".to_owned()
}

fn usual_limit() -> usize {
    500
}

/// What is in the folder.
#[derive(Debug, Serialize)]
pub(super) struct Output {
    path: String,
    entries: Vec<Item>,
    count: usize,
    entry_count: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    results_capped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Item {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_utf8: bool,
}

pub(super) struct ListDirectory(pub(super) Arc<Desk>);

impl TypedTool for ListDirectory {
    const NAME: &'static str = "list_directory";
    const EFFECTS: Effects = Effects::READS;
    type Input = Input;
    type Output = Output;

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<Output, ToolFailure> {
        let asked = self.0.reach.ask(&input.path, Purpose::Read).await?;
        blocking(move || list(&asked, &input)).await
    }
}

fn list(asked: &Asked, input: &Input) -> Result<Output, ToolFailure> {
    let real = asked.confine()?;
    let about = real.symlink_metadata().map_err(|error| asked.unreadable(&error))?;
    if !about.is_dir() {
        let message = format!("{} is not a directory; read it with read_file", asked.text);
        return Err(ToolFailure::new(message).of_kind("NotADirectory"));
    }
    let (found, more) = folder::entries(&real).map_err(|error| asked.unreadable(&error))?;
    let entry_count = found.len();
    let shown = found.into_iter().skip(input.offset).take(input.limit);
    let entries: Vec<_> = shown.map(item).collect();
    let results_capped = more || input.offset.saturating_add(entries.len()) < entry_count;
    let path = asked.shown.display().to_string();
    let warning = entries.iter().any(|item| item.not_utf8).then_some(NOT_TEXT);
    Ok(Output { path, count: entries.len(), entries, entry_count, results_capped, warning })
}

fn item(entry: folder::Entry) -> Item {
    let kind = match entry.kind {
        Kind::Folder => "dir",
        Kind::File => "file",
        Kind::Link => "link",
        Kind::Other => "other",
    };
    Item { name: entry.name, kind, size: entry.bytes, not_utf8: !entry.is_text }
}
