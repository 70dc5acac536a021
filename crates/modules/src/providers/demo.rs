//! `provider-demo`: what answers where no model is connected. It drives the real loop and the real tools over the folder the
//! person works in, tells what it saw, and says how to connect a model.
//!
//! It is the mock (`mock.rs`) with another way to converse (`demo/look.rs`), and it never pretends to be a model.

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::{LlmRequest, LlmResponse};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

mod look;

use super::mock::{MockProvider, Persona};
use crate::table::BuiltIn;

/// What a plan may configure.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Which provider is asked first when several are mounted; lower is earlier.
    priority: Option<i64>,
}

/// The module, as the table lists it.
pub(crate) struct Demo;

#[async_trait]
impl Module for Demo {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("provider-demo")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Provider
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let persona = Persona { name: "demo", display_name: "Demo", model: "demo", converse: look::reply };
        let provider = MockProvider::unscripted(persona, config.priority, cx.coordinator.clone());
        cx.mount_provider(Arc::new(provider));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Demo {
    fn info(&self) -> ModuleInfo {
        self.about(
            "Looks at the folder with the real tools and tells what it saw, without a model or a network.",
        )
        .config::<Config>()
        .emits::<LlmRequest>()
        .emits::<LlmResponse>()
    }
}
