//! `read_file`: shows some lines of a text file, or what a folder holds.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_protocol::event::ArtifactRead;
use amplifier_protocol::tool::Effects;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::desk::Desk;
use super::folder::{self, Kind};
use super::images::{self, Image};
use super::lines::{self, Excerpt, Unfit, Window};
use super::stamps::{Hash, Hashing, Stamp, Stamps};
use crate::files::blocking;
use crate::files::names::NOT_TEXT;
use crate::files::paths::{Asked, Purpose};
use crate::files::place::{Folders, Place};

/// The most entries of a folder that are shown.
const ENTRIES: usize = 1_000;
/// How much is read at once.
const BUFFER: usize = 64 * 1024;

/// Reads a text file or a picture from the local file system, or lists a folder.
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
    Image(Image),
}

pub(super) struct ReadFile {
    desk: Arc<Desk>,
    max_image_bytes: u64,
}

impl ReadFile {
    pub(super) fn new(desk: Arc<Desk>, max_image_bytes: u64) -> Self {
        Self { desk, max_image_bytes }
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
        let asked = self.desk.reach.ask(&input.file_path, Purpose::Read).await?;
        let (stamps, cancel) = (Arc::clone(&self.desk.stamps), cx.cancel.clone());
        let max_image_bytes = self.max_image_bytes;
        let look = Look { asked, window, max_image_bytes };
        let output = blocking(move || look.run(&stamps, &cancel)).await?;
        let read = match &output {
            Output::File { file_path, bytes, .. } => Some((file_path, *bytes)),
            Output::Image(image) => Some((&image.file_path, image.bytes)),
            Output::Folder { .. } => None,
        };
        if let Some((path, bytes)) = read {
            self.desk.coordinator.emit(ArtifactRead { path: path.clone(), bytes }).await;
        }
        Ok(output)
    }
}

/// One reading.
struct Look {
    asked: Asked,
    window: Window,
    max_image_bytes: u64,
}

impl Look {
    fn run(self, stamps: &Stamps, cancel: &CancelToken) -> Result<Output, ToolFailure> {
        let asked = &self.asked;
        let real = asked.confine()?;
        let about = real.symlink_metadata().map_err(|error| asked.unreadable(&error))?;
        if about.is_dir() {
            return list(asked, &real);
        }
        // A pipe or a device has no lines to show and may never end.
        let special = || {
            let message = format!("Cannot read file: {} (not a regular file)", asked.text);
            ToolFailure::new(message).of_kind("NotAFile")
        };
        if !about.is_file() {
            return Err(special());
        }
        let place = Place::reach(&real, Folders::Expected).map_err(|error| asked.unreadable(&error))?;
        let mut file = place.open().map_err(|error| asked.unreadable(&error))?;
        // What was opened is what counts; between the two looks it may have become another thing.
        let about = file.metadata().map_err(|error| asked.unreadable(&error))?;
        if !about.is_file() {
            return Err(special());
        }
        let head = head(&mut file).map_err(|error| asked.unreadable(&error))?;
        if let Some(media_type) = images::media_type(&head) {
            let image = images::read(asked, &place, media_type, self.max_image_bytes)?;
            stamps.note(real, Stamp::new(&about, None));
            return Ok(Output::Image(image));
        }
        let (excerpt, hash) = self.lines(file, cancel)?;
        stamps.note(real, Stamp::new(&about, hash));
        shown(asked, self.window, excerpt, about.len())
    }

    /// The lines, and the hash of the file if all of it was read.
    fn lines(&self, file: File, cancel: &CancelToken) -> Result<(Excerpt, Option<Hash>), ToolFailure> {
        let mut source = BufReader::with_capacity(BUFFER, Hashing::new(file));
        let read = lines::read(&mut source, self.window, || !cancel.is_immediate());
        let excerpt = read.map_err(|unfit| match unfit {
            Unfit::Io(error) => self.asked.unreadable(&error),
            Unfit::Cancelled => ToolFailure::new("cancelled").of_kind("Cancelled"),
            Unfit::Binary => self.asked.no_text(),
        })?;
        Ok((excerpt, source.into_inner().finish()))
    }
}

/// The first bytes of a file, read and put back.
fn head(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(images::HEAD);
    file.take(u64::try_from(images::HEAD).unwrap_or(u64::MAX)).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head)
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
    let (entries, _) = folder::entries(real).map_err(|error| asked.unreadable(&error))?;
    let mut content = format!("Directory: {}\n", asked.shown.display());
    for entry in entries.iter().take(ENTRIES) {
        let kind = match entry.kind {
            Kind::Folder => "DIR ",
            Kind::Link => "LINK",
            Kind::File | Kind::Other => "FILE",
        };
        content.push_str(&format!("\n  {kind} {}", entry.name));
    }
    if entries.len() > ENTRIES {
        content.push_str(&format!("\n  ... and {} more", entries.len() - ENTRIES));
    }
    if entries.iter().take(ENTRIES).any(|entry| !entry.is_text) {
        content.push_str(&format!("\n\n{NOT_TEXT}"));
    }
    let file_path = asked.shown.display().to_string();
    Ok(Output::Folder { file_path, content, is_directory: true, entry_count: entries.len() })
}
