//! `tool-filesystem`: files for the model: read, write, edit, patch, list, find.
//!
//! Where a path may lead is decided in `files/paths.rs`. Tools that change files say first what they would do (`desk.rs`),
//! are allowed (`approval.rs`) and then do it whole or not at all (`commit.rs`).

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted, Typed};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{ArtifactRead, ArtifactWrite};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

mod apply_patch;
mod approval;
mod changing;
mod commit;
mod desk;
mod diff;
mod edit;
mod edit_file;
mod endings;
mod folder;
mod images;
mod lines;
mod list_directory;
mod multi_edit;
mod neighbours;
pub(super) mod patching;
pub mod preview;
mod read_file;
mod stamps;
mod write_file;

use crate::files::paths::{Reach, Rules};
use crate::table::BuiltIn;
use crate::tools::search;
pub(super) use apply_patch::Applied;
use changing::{Changes, Changing};
use desk::{Desk, Overwriting, Telling};
pub(super) use neighbours::CHANGED;

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// What relative paths are relative to; without it the session's own, `session.working_dir`.
    working_dir: Option<String>,
    /// The folders and files that may be read or written, where the two keys below do not say otherwise; without it the
    /// working folder.
    allowed_paths: Option<Vec<String>>,
    /// The folders and files that may be read, with everything in them; without it `allowed_paths`, else the working
    /// folder and what may be written. `["/"]` is everything.
    allowed_read_paths: Option<Vec<String>>,
    /// The folders and files that may be written, with everything in them; without it `allowed_paths`.
    allowed_write_paths: Option<Vec<String>>,
    /// The folders and files that may not be written, even inside those that may.
    denied_write_paths: Vec<String>,
    /// Whether a person is asked before each change, with its diff.
    require_approval: bool,
    /// Whether a file that exists must have been read in this session before it is written over, and must not have
    /// changed since it was read or edited.
    require_read_before_write: bool,
    /// The largest file that is edited or written, in bytes.
    max_file_bytes: u64,
    /// The largest picture that `read_file` gives, in bytes; 0 refuses pictures.
    max_image_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            working_dir: None,
            allowed_paths: None,
            allowed_read_paths: None,
            allowed_write_paths: None,
            denied_write_paths: Vec::new(),
            require_approval: false,
            require_read_before_write: true,
            max_file_bytes: 16 * 1024 * 1024,
            max_image_bytes: 1024 * 1024,
        }
    }
}

impl Config {
    fn rules(&self) -> Rules {
        Rules {
            working_dir: self.working_dir.clone(),
            read: self.allowed_read_paths.clone().or_else(|| self.allowed_paths.clone()),
            write: self.allowed_write_paths.clone().or_else(|| self.allowed_paths.clone()),
            denied_write: self.denied_write_paths.clone(),
        }
    }
}

/// The module, as the table lists it.
pub(crate) struct Filesystem;

#[async_trait]
impl Module for Filesystem {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-filesystem")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let overwriting = match config.require_read_before_write {
            true => Overwriting::NeedsReading,
            false => Overwriting::Free,
        };
        let desk = Arc::new(Desk {
            reach: Reach::new(config.rules(), cx.coordinator.clone()),
            stamps: Arc::default(),
            coordinator: cx.coordinator.clone(),
            max_file_bytes: config.max_file_bytes,
            overwriting,
            approvals: config.require_approval.then(approval::Approvals::default),
            telling: Telling::Nobody,
            writing: tokio::sync::Mutex::default(),
        });
        cx.mount_tool(Arc::new(Typed(read_file::ReadFile::new(Arc::clone(&desk), config.max_image_bytes))));
        cx.mount_tool(Arc::new(Typed(Changing::<write_file::WriteFile>::new(Arc::clone(&desk)))));
        cx.mount_tool(Arc::new(Typed(Changing::<edit_file::EditFile>::new(Arc::clone(&desk)))));
        cx.mount_tool(Arc::new(Typed(Changing::<multi_edit::MultiEdit>::new(Arc::clone(&desk)))));
        let patches = !comes_from(cx, "apply_patch", "tool-apply-patch");
        if patches {
            cx.mount_tool(Arc::new(Typed(Changing::<apply_patch::ByPatch>::new(Arc::clone(&desk)))));
        }
        cx.mount_tool(Arc::new(Typed(list_directory::ListDirectory(Arc::clone(&desk)))));
        mount_glob(cx, desk.reach.clone());
        neighbours::listen(Arc::clone(&desk.stamps), config.max_file_bytes, &cx.coordinator);
        if config.require_approval {
            let tools = if patches { ALL_CHANGING } else { CHANGING };
            approval::Gate { desk, tools }.open(cx, "tool-filesystem-approval");
            if !patches {
                cx.warn("`require_approval` does not reach `apply_patch`, which `tool-apply-patch` brings; set it there");
            }
        }
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Filesystem {
    fn info(&self) -> ModuleInfo {
        self.about("Reads, writes, edits, patches, lists and finds files inside the allowed folders.")
            .config::<Config>()
            .emits::<ArtifactRead>()
            .emits::<ArtifactWrite>()
            .emits::<Applied>()
            .uses("session.working_dir")
            .uses("user.home_dir")
            .uses("mention_resolver")
            .gives(CHANGED)
    }
}

/// The tools that change files, but for the patch.
const CHANGING: &[&str] =
    &[write_file::WriteFile::NAME, edit_file::EditFile::NAME, multi_edit::MultiEdit::NAME];
const ALL_CHANGING: &[&str] = &[
    write_file::WriteFile::NAME,
    edit_file::EditFile::NAME,
    multi_edit::MultiEdit::NAME,
    apply_patch::ByPatch::NAME,
];

/// Whether another module of the plan brings a tool, configured there.
fn comes_from(cx: &MountCx, tool: &str, module: &str) -> bool {
    let in_plan = || cx.coordinator.plan().tools.iter().any(|entry| entry.module.as_str() == module);
    cx.coordinator.tool(tool).is_some() || in_plan()
}

/// `tool-search` brings its own `glob`, configured there; a plan with both has that one.
fn mount_glob(cx: &MountCx, reach: Reach) {
    if !comes_from(cx, "glob", "tool-search") {
        cx.mount_tool(Arc::new(Typed(search::glob::Glob::new(reach, search::Limits::default()))));
    }
}
