//! A real session of built-in modules around a scripted model.

use std::sync::Arc;

use amplifier_core::contracts::{Capability, CapabilityCall, CapabilityError, Module};
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{ScriptedProvider, Step, TestSession, TestSessionBuilder};
use async_trait::async_trait;
use serde_json::{Map, Value};

pub(crate) async fn built_in(id: &str) -> Arc<dyn Module> {
    BuiltIns.find(&id.parse().unwrap()).await.unwrap().unwrap()
}

/// `loop-basic`, `context-simple` and a scripted model, with more built-in modules and their configs.
pub(crate) async fn session(
    provider: &Arc<ScriptedProvider>,
    modules: &[(&str, Value)],
) -> TestSessionBuilder {
    let builder = TestSession::builder()
        .module(built_in("loop-basic").await)
        .module(built_in("context-simple").await)
        .provider(provider.clone());
    with(builder, modules).await
}

pub(crate) async fn with(mut builder: TestSessionBuilder, modules: &[(&str, Value)]) -> TestSessionBuilder {
    for (id, config) in modules {
        builder = builder.module_with(built_in(id).await, object(config.clone()));
    }
    builder
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn script(steps: impl IntoIterator<Item = Step>) -> Arc<ScriptedProvider> {
    Arc::new(ScriptedProvider::new(steps))
}

/// A step that calls one tool.
pub(crate) fn calls(id: &str, tool: &str, arguments: Value) -> Step {
    Step::call([ToolCall::new(id, tool, arguments)])
}

/// The texts of a request's messages.
pub(crate) fn texts(request: &ChatRequest) -> Vec<String> {
    request.messages.iter().map(|message| message.content.visible_text().into_owned()).collect()
}

/// A capability made of a closure.
pub(crate) struct Offered<F>(pub(crate) F);

#[async_trait]
impl<F, Fut> CapabilityCall for Offered<F>
where
    F: Fn(Value) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Value, CapabilityError>> + Send,
{
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        (self.0)(arguments).await
    }
}

pub(crate) fn offer<F, Fut>(call: F) -> Capability
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, CapabilityError>> + Send + 'static,
{
    Capability::Call(Arc::new(Offered(call)))
}
