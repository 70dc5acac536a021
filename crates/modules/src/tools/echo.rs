//! `tool-echo`: gives back the text it was given. The smallest whole module: copy it to begin another.

use std::sync::Arc;

use crate::table::BuiltIn;
use amplifier_core::contracts::{Module, Mounted, ToolCx, ToolFailure, Typed, TypedTool};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::tool::Effects;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// What a plan may configure.
#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// The longest text that is given back, in bytes.
    max_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_bytes: 100_000 }
    }
}

/// Gives back the text it is given, unchanged.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The text to give back.
    text: String,
}

struct EchoTool {
    config: Config,
}

impl TypedTool for EchoTool {
    const NAME: &'static str = "echo";
    const EFFECTS: Effects = Effects::PURE;
    type Input = Input; // its doc comment is the description the model reads
    type Output = String;

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<String, ToolFailure> {
        if input.text.len() > self.config.max_bytes {
            let most = self.config.max_bytes;
            return Err(ToolFailure::new(format!("text is longer than {most} bytes; send it in parts")));
        }
        Ok(input.text)
    }
}

/// The module, as the table lists it.
pub(crate) struct Echo;

#[async_trait]
impl Module for Echo {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-echo")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config = cx.read_config(config)?;
        cx.mount_tool(Arc::new(Typed(EchoTool { config })));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Echo {
    fn info(&self) -> ModuleInfo {
        self.about("Gives back the text it was given; the smallest whole module, to copy from.")
            .config::<Config>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_core::contracts::Tool;
    use serde_json::json;

    #[tokio::test]
    async fn the_text_comes_back_and_a_long_one_is_refused_with_a_way_out() {
        let tool = Typed(EchoTool { config: Config { max_bytes: 3 } });
        let answer = |text: &str| json!({ "text": text });
        assert_eq!(tool.execute(answer("abc"), &ToolCx::default()).await, Ok(json!("abc")));
        assert_eq!(
            tool.execute(answer("abcd"), &ToolCx::default()).await,
            Err(ToolFailure::new("text is longer than 3 bytes; send it in parts"))
        );
    }
}
