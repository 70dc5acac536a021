//! `read_file`: shows some lines of a text file, or what a folder holds.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_core::coordinator::Coordinator;
use amplifier_protocol::event::ArtifactRead;
use amplifier_protocol::tool::Effects;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;
use super::lines::{self, Excerpt, Unfit, Window};
use super::paths::{Asked, ask, confine, unreadable};

/// The most entries of a folder that are shown.
const ENTRIES: usize = 1_000;
/// How much is read at once.
const BUFFER: usize = 64 * 1024;

/// Reads a text file from the local file system, or lists a folder.
///
/// Lines come with their numbers. Long files are read in parts: give `offset` (the first line, beginning with 1) and
/// `limit` (how many lines; 2000 when absent). Lines longer than 2000 characters are cut.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file or folder: absolute, relative to the working folder, or `@bundle:path`.
    file_path: String,
    /// The first line to read, beginning with 1.
    #[serde(default = "first_line")]
    #[schemars(range(min = 1))]
    offset: u64,
    /// How many lines to read.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1))]
    limit: u64,
}

fn first_line() -> u64 {
    1
}

fn usual_limit() -> u64 {
    2_000
}

/// What was read.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Output {
    File {
        file_path: String,
        content: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        total_lines: Option<u64>,
        lines_read: u64,
        offset: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
        #[serde(skip)]
        bytes: u64,
    },
    Folder {
        file_path: String,
        content: String,
        is_directory: bool,
        entry_count: usize,
    },
}

pub(super) struct ReadFile {
    config: Config,
    coordinator: Coordinator,
}

impl ReadFile {
    pub(super) fn new(config: Config, coordinator: Coordinator) -> Self {
        Self { config, coordinator }
    }
}

impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    const EFFECTS: Effects = Effects::READS;
    type Input = Input;
    type Output = Output;

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolFailure> {
        for (name, value) in [("offset", input.offset), ("limit", input.limit)] {
            if value == 0 {
                return Err(ToolFailure::new(format!("{name} must be 1 or more")).of_kind("InvalidInput"));
            }
        }
        let window = Window { offset: input.offset, limit: input.limit };
        let asked = ask(&input.file_path, &self.config, &self.coordinator).await?;
        let cancel = cx.cancel.clone();
        let output = tokio::task::spawn_blocking(move || look(&asked, window, &cancel))
            .await
            .map_err(|error| ToolFailure::new(format!("Error reading file: {error}")))??;
        if let Output::File { file_path, bytes, .. } = &output {
            self.coordinator.emit(ArtifactRead { path: file_path.clone(), bytes: *bytes }).await;
        }
        Ok(output)
    }
}

fn look(asked: &Asked, window: Window, cancel: &CancelToken) -> Result<Output, ToolFailure> {
    let real = confine(asked)?;
    let about = real.metadata().map_err(|error| unreadable(asked, &error))?;
    if about.is_dir() {
        return list(asked, &real);
    }
    // A pipe or a device has no lines to show and may never end.
    if !about.is_file() {
        let message = format!("Cannot read file: {} (not a regular file)", asked.text);
        return Err(ToolFailure::new(message).of_kind("NotAFile"));
    }
    let file = File::open(&real).map_err(|error| unreadable(asked, &error))?;
    let source = BufReader::with_capacity(BUFFER, file);
    let excerpt = lines::read(source, window, || !cancel.is_immediate()).map_err(|unfit| match unfit {
        Unfit::Io(error) => unreadable(asked, &error),
        Unfit::Cancelled => ToolFailure::new("cancelled").of_kind("Cancelled"),
        Unfit::Binary => {
            let message = format!("Cannot read file: {} (not a text file or encoding issue)", asked.text);
            ToolFailure::new(message).of_kind("UnicodeDecodeError")
        }
    })?;
    shown(asked, window, excerpt, about.len())
}

fn shown(asked: &Asked, window: Window, excerpt: Excerpt, bytes: u64) -> Result<Output, ToolFailure> {
    let offset = window.offset;
    let warning = match excerpt.total_lines {
        Some(0) if offset == 1 => Some("File exists but has empty contents".to_owned()),
        Some(total) if offset > total => {
            let message =
                format!("offset {offset} is past the end of {}, which has {total} lines", asked.text);
            return Err(ToolFailure::new(message).of_kind("InvalidInput"));
        }
        _ if excerpt.cut => {
            let next = offset.saturating_add(excerpt.lines_read);
            Some(format!("too much for one answer; read on with offset {next}"))
        }
        _ => None,
    };
    Ok(Output::File {
        file_path: asked.shown.display().to_string(),
        content: excerpt.content,
        total_lines: excerpt.total_lines,
        lines_read: excerpt.lines_read,
        offset,
        warning,
        bytes,
    })
}

fn list(asked: &Asked, real: &Path) -> Result<Output, ToolFailure> {
    let mut entries = Vec::new();
    for entry in real.read_dir().map_err(|error| unreadable(asked, &error))? {
        let entry = entry.map_err(|error| unreadable(asked, &error))?;
        // Through links: a link to a folder is a folder to whoever walks it. Folders sort first.
        let is_file = !entry.path().is_dir();
        entries.push((is_file, entry.file_name().to_string_lossy().into_owned()));
    }
    entries.sort();
    let mut content = format!("Directory: {}\n", asked.shown.display());
    for (is_file, name) in entries.iter().take(ENTRIES) {
        let kind = if *is_file { "FILE" } else { "DIR " };
        content.push_str(&format!("\n  {kind} {name}"));
    }
    if entries.len() > ENTRIES {
        content.push_str(&format!("\n  ... and {} more", entries.len() - ENTRIES));
    }
    let file_path = asked.shown.display().to_string();
    Ok(Output::Folder { file_path, content, is_directory: true, entry_count: entries.len() })
}
