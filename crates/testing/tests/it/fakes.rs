//! Small implementations that the suites are tried with.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_core::contracts::{ModuleSource, ModuleSourceResolver, Resolved, SourceError};
use amplifier_protocol::ids::ModuleId;
use async_trait::async_trait;
use serde_json::Value;

/// Knows one module, in a folder named after its hint.
pub struct OneFolder;

#[async_trait]
impl ModuleSourceResolver for OneFolder {
    async fn resolve(
        &self,
        module_id: &ModuleId,
        hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        if module_id.as_str() != "tool-known" {
            return Err(SourceError::NotFound {
                id: module_id.clone(),
                tried: vec!["one folder".to_owned()],
            });
        }
        let folder = hint.and_then(Value::as_str).ok_or_else(|| SourceError::Unavailable {
            id: module_id.clone(),
            source_hint: hint.map(Value::to_string).unwrap_or_default(),
            message: "the hint is no text".to_owned(),
        })?;
        Ok(Arc::new(Folder(PathBuf::from(folder))))
    }
}

struct Folder(PathBuf);

#[async_trait]
impl ModuleSource for Folder {
    async fn resolve(&self) -> Result<Resolved, SourceError> {
        Ok(Resolved::Folder(self.0.clone()))
    }
}
