//! A tool that answers what the test says and remembers what it was asked.

use std::sync::Mutex;
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Tool, ToolCx, ToolFailure};
use amplifier_protocol::tool::{Effects, ToolSpec};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::sync::lock;

/// Answers one thing, as often as it is called.
pub struct MockTool {
    spec: ToolSpec,
    effects: Effects,
    answer: Result<Value, ToolFailure>,
    delay: Duration,
    hears_cancel: bool,
    inputs: Mutex<Vec<Value>>,
}

impl MockTool {
    /// A pure tool that takes any object and answers `Success`.
    pub fn new(name: impl Into<String>) -> Self {
        let spec = ToolSpec {
            name: name.into(),
            description: Some("A mock tool".to_owned()),
            parameters: json!({"type": "object", "properties": {}}),
            extra: Map::new(),
        };
        Self {
            spec,
            effects: Effects::PURE,
            answer: Ok(json!("Success")),
            delay: Duration::ZERO,
            hears_cancel: true,
            inputs: Mutex::default(),
        }
    }

    /// The same, described like this.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.spec.description = Some(description.into());
        self
    }

    /// The same, with this schema of its input.
    #[must_use]
    pub fn parameters(mut self, parameters: Value) -> Self {
        self.spec.parameters = parameters;
        self
    }

    /// The same, answering this.
    #[must_use]
    #[doc(alias = "output")]
    pub fn return_value(mut self, value: impl Into<Value>) -> Self {
        self.answer = Ok(value.into());
        self
    }

    /// The same, failing with this.
    #[must_use]
    pub fn failing(mut self, message: impl Into<String>) -> Self {
        self.answer = Err(ToolFailure::new(message));
        self
    }

    /// The same, taking this long. It ends early when it is told to stop now.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The same, but never answering and deaf to every wish to stop.
    #[must_use]
    pub fn hanging(mut self) -> Self {
        (self.delay, self.hears_cancel) = (Duration::MAX, false);
        self
    }

    /// The same, declaring these effects.
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    /// How often it was called.
    pub fn call_count(&self) -> usize {
        lock(&self.inputs).len()
    }

    /// What it was last called with.
    pub fn last_input(&self) -> Option<Value> {
        lock(&self.inputs).last().cloned()
    }

    /// Everything it was called with, in order.
    pub fn inputs(&self) -> Vec<Value> {
        lock(&self.inputs).clone()
    }

    async fn wait(&self) {
        if self.delay == Duration::MAX {
            std::future::pending::<()>().await;
        } else if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
    }
}

impl Default for MockTool {
    fn default() -> Self {
        Self::new("mock_tool")
    }
}

#[async_trait]
impl Tool for MockTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn effects(&self) -> Effects {
        self.effects
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        lock(&self.inputs).push(input);
        if !self.hears_cancel {
            self.wait().await;
            return self.answer.clone();
        }
        tokio::select! {
            biased;
            () = cx.cancel.cancelled(CancelLevel::Immediate) => {
                Err(ToolFailure::new("stopped before it was done").of_kind("Cancelled"))
            }
            () = self.wait() => self.answer.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_answers_as_told_and_remembers_its_inputs() {
        let tool = MockTool::new("t").return_value(json!({"n": 1}));
        for n in 0..2 {
            assert_eq!(tool.execute(json!({"n": n}), &ToolCx::default()).await, Ok(json!({"n": 1})));
        }
        assert_eq!((tool.call_count(), tool.last_input()), (2, Some(json!({"n": 1}))));
        let failing = MockTool::default().failing("no");
        assert_eq!(failing.execute(json!({}), &ToolCx::default()).await, Err(ToolFailure::new("no")));
    }

    #[tokio::test]
    async fn a_slow_one_ends_when_it_is_told_to_stop_now() {
        let tool = MockTool::default().delay(Duration::from_secs(3_600));
        let cx = ToolCx::default();
        cx.cancel.request_immediate();
        assert!(tool.execute(json!({}), &cx).await.is_err());
    }
}
