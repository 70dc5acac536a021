//! The module source protocol: from an id and a hint to something that can be mounted.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_protocol::ids::ModuleId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::module::Module;

/// Decides where a module comes from. Mounted at `module-source-resolver` before a session is opened.
///
/// Same id and hint, same answer. A resolver that does not know the id says [`SourceError::NotFound`]; nobody looks
/// further then, because a module from elsewhere would be a module nobody asked for.
#[async_trait]
pub trait ModuleSourceResolver: Send + Sync {
    /// The source of a module. The hint is the plan's `source`, whose meaning the application defines.
    async fn resolve(
        &self,
        module_id: &ModuleId,
        hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError>;
}

/// A place a module can be had from.
#[async_trait]
pub trait ModuleSource: Send + Sync {
    /// Fetches what must be fetched and says where the module is.
    async fn resolve(&self) -> Result<Resolved, SourceError>;
}

/// Where a module is.
#[derive(Clone)]
pub enum Resolved {
    /// In a folder that says by itself what it holds.
    Folder(PathBuf),
    /// In this program.
    Native(Arc<dyn Module>),
}

/// Why a source gives no module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SourceError {
    /// The resolver does not know the module.
    #[error("Module '{id}' not found; tried {}", tried.join(", "))]
    NotFound {
        /// The module.
        id: ModuleId,
        /// Where it looked.
        tried: Vec<String>,
    },
    /// The source is known and could not be read or fetched.
    #[error("source `{source_hint}` of module `{id}` cannot be had: {message}")]
    Unavailable {
        /// The module.
        id: ModuleId,
        /// The hint.
        source_hint: String,
        /// What happened.
        message: String,
    },
}
