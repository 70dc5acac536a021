//! `tool-apply-patch`: the patching tool of `tool-filesystem` as a module of its own, with its own rules for paths.
//!
//! All of it is in `filesystem/`: this file says what may be configured. In a plan with both modules, this one patches.

use amplifier_core::contracts::{Capability, Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::ArtifactWrite;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::filesystem::patching::{Patching, Shown};
use super::filesystem::{Applied, CHANGED};
use crate::files::paths::Rules;
use crate::table::BuiltIn;

/// Where providers look which form the model shall use.
const ENGINE: &str = "apply_patch.engine";

/// The form of a patch that the model is shown; the tool takes both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Engine {
    /// One operation on one file with its diff; providers whose models have such a tool built in use that.
    #[default]
    Native,
    /// A whole patch between `*** Begin Patch` and `*** End Patch`.
    Function,
}

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// The form the model is shown: `native` (`type`, `path`, `diff`) or `function` (`patch`). Both are taken.
    engine: Engine,
    /// What relative paths are relative to; without it the session's own, `session.working_dir`.
    working_dir: Option<String>,
    /// The folders and files that may be written, with everything in them; without it the working folder.
    allowed_write_paths: Option<Vec<String>>,
    /// The folders and files that may not be written, even inside those that may.
    denied_write_paths: Vec<String>,
    /// Whether a person is asked before each change, with its diff.
    require_approval: bool,
    /// The largest file that is changed or written, in bytes.
    max_file_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            engine: Engine::default(),
            working_dir: None,
            allowed_write_paths: None,
            denied_write_paths: Vec::new(),
            require_approval: false,
            max_file_bytes: 16 * 1024 * 1024,
        }
    }
}

/// The module, as the table lists it.
pub(crate) struct ApplyPatch;

#[async_trait]
impl Module for ApplyPatch {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-apply-patch")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        cx.coordinator.register_capability(ENGINE, Capability::Value(json!(config.engine)));
        let patching = Patching {
            rules: Rules {
                working_dir: config.working_dir,
                read: None,
                write: config.allowed_write_paths,
                denied_write: config.denied_write_paths,
            },
            shown: match config.engine {
                Engine::Native => Shown::Diff,
                Engine::Function => Shown::Patch,
            },
            require_approval: config.require_approval,
            max_file_bytes: config.max_file_bytes,
        };
        patching.mount(cx);
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for ApplyPatch {
    fn info(&self) -> ModuleInfo {
        self.about("Makes, changes and deletes files by patches, as some models are trained to.")
            .config::<Config>()
            .emits::<ArtifactWrite>()
            .emits::<Applied>()
            .uses("session.working_dir")
            .uses("user.home_dir")
            .uses("mention_resolver")
            .uses(CHANGED)
            .gives(ENGINE)
    }
}
