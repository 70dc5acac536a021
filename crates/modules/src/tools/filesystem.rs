//! `tool-filesystem`: files for the model. It mounts `read_file`.
//!
//! Where a path may lead is decided in `filesystem/paths.rs`; what is read, and how much of it, in `read_file.rs`.

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted, Typed};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

mod lines;
mod paths;
mod read_file;

/// What a plan may configure.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Config {
    /// What relative paths are relative to; without it the session's own, `session.working_dir`.
    working_dir: Option<String>,
    /// The folders and files that may be read, with everything in them; without it `allowed_paths`.
    allowed_read_paths: Option<Vec<String>>,
    /// The folders and files that may be touched at all; without it everything the process can read.
    allowed_paths: Option<Vec<String>>,
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
        cx.mount_tool(Arc::new(Typed(read_file::ReadFile::new(config, cx.coordinator.clone()))));
        Ok(Mounted::Ready)
    }
}
