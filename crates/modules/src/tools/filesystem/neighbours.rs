//! Other modules that change files for the same model. They tell `tool-filesystem` which ones, through a capability; else
//! it would take their changes for a stranger's and refuse the next edit until the file is read again.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_core::contracts::{Capability, CapabilityCall, CapabilityError, ToolFailure};
use amplifier_core::coordinator::Coordinator;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::Before;
use super::stamps::Stamps;
use crate::files::blocking;

/// Where a module tells that it changed a file because the model said how: `{"path": absolute path without links}`.
pub(in crate::tools) const CHANGED: &str = "filesystem.changed";

#[derive(Deserialize)]
struct Told {
    path: PathBuf,
}

/// Takes what others tell.
struct Listening {
    stamps: Arc<Stamps>,
    most: u64,
}

/// Offers the place where others tell.
pub(super) fn listen(stamps: Arc<Stamps>, most: u64, at: &Coordinator) {
    at.register_capability(CHANGED, Capability::Call(Arc::new(Listening { stamps, most })));
}

/// Tells of files, if anybody listens.
pub(super) async fn tell(files: Vec<PathBuf>, at: &Coordinator) {
    for path in files.iter().filter_map(|path| path.to_str()) {
        // Who is not reached asks to read the file again, which is right then.
        drop(at.call_capability(CHANGED, json!({ "path": path })).await);
    }
}

#[async_trait]
impl CapabilityCall for Listening {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        let failed = |message: String| CapabilityError::Failed { name: CHANGED.to_owned(), message };
        let Told { path } = serde_json::from_value(arguments).map_err(|error| failed(error.to_string()))?;
        let (stamps, most) = (Arc::clone(&self.stamps), self.most);
        let noted = blocking(move || {
            let now = Before::look(&path, most).map_err(|error| ToolFailure::new(error.to_string()))?;
            match now.stamp() {
                Some(stamp) => stamps.note(path, stamp.clone()),
                None => stamps.forget(&path),
            }
            Ok(Value::Null)
        });
        noted.await.map_err(|failure| failed(failure.message))
    }
}
