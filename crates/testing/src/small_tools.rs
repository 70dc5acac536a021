//! The two tools every test coordinator has: one that gives back its input and one that always fails.

use amplifier_core::contracts::{Tool, ToolCx, ToolFailure};
use amplifier_protocol::tool::{Effects, ToolSpec};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

/// `echo`: answers its input.
pub struct EchoTool;

#[async_trait]
impl Tool for EchoTool {
    fn spec(&self) -> ToolSpec {
        spec("echo", "Answers its input")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, input: Value, _cx: &ToolCx) -> Result<Value, ToolFailure> {
        Ok(input)
    }
}

/// `fail`: fails, whatever it is asked.
pub struct FailTool;

#[async_trait]
impl Tool for FailTool {
    fn spec(&self) -> ToolSpec {
        spec("fail", "Fails, whatever it is asked")
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, _input: Value, _cx: &ToolCx) -> Result<Value, ToolFailure> {
        Err(ToolFailure::new("this tool always fails"))
    }
}

fn spec(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        parameters: json!({"type": "object"}),
        extra: Map::new(),
    }
}
