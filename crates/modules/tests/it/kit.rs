//! What these tests share: built-in modules by id, a session around the loop, hooks with one answer.

use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, Module};
use amplifier_core::hooks::HookSpec;
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::BuiltIns;
use amplifier_protocol::hook::{HookAction, HookResult, Injection, InjectionRole};
use amplifier_protocol::message::Messages;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{TestSession, TestSessionBuilder};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

/// A module of the table.
pub async fn built_in(id: &str) -> Arc<dyn Module> {
    BuiltIns.find(&id.parse().unwrap()).await.unwrap().unwrap()
}

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// A session with `loop-basic`, configured like this, and `context-simple`.
pub async fn looping(config: Value) -> TestSessionBuilder {
    TestSession::builder()
        .module_with(built_in("loop-basic").await, object(config))
        .module(built_in("context-simple").await)
}

/// A hook that always answers the same.
pub struct Always(pub HookResult);

#[async_trait]
impl HookHandler for Always {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        Ok(self.0.clone())
    }
}

/// A hook on one event that always answers the same.
pub fn on(event: &str, answer: HookResult) -> (HookSpec, Arc<dyn HookHandler>) {
    (HookSpec::new(event.parse().unwrap(), format!("on-{event}")), Arc::new(Always(answer)))
}

/// Words for the next request only, in the user's name.
pub fn passing(text: &str) -> HookResult {
    HookResult::from(HookAction::InjectContext(Injection {
        text: text.to_owned(),
        role: InjectionRole::User,
        ephemeral: true,
        append_to_last_tool_result: false,
    }))
}

pub fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::new(id, name, json!({}))
}

/// What the session's context holds.
pub async fn stored(session: &TestSession) -> Messages {
    session.coordinator().context().unwrap().messages().await.unwrap()
}

/// Role and text of messages, one line each.
pub fn lines(messages: &Messages) -> Vec<String> {
    let line = |message: &Arc<amplifier_protocol::message::Message>| {
        let role = serde_json::to_value(message.role).unwrap();
        format!("{}: {}", role.as_str().unwrap(), message.content.visible_text())
    };
    messages.iter().map(line).collect()
}
