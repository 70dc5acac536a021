//! Every fake keeps its contract.

use std::sync::Arc;

use amplifier_core::contracts::{
    ApprovalSystem, ContextManager, DisplaySystem, HookHandler, Module, ModuleSourceResolver, Mounted,
    Orchestrator, Provider, Tool,
};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_testing::{
    EchoTool, EventRecorder, Exhausted, FailTool, FakeModule, MockContextManager, MockProvider, MockTool,
    RecordingDisplay, ScriptedApproval, ScriptedProvider, SmallLoop, Step, conformance,
};
use serde_json::{Map, json};

use crate::fakes::OneFolder;

#[tokio::test]
async fn the_tools_keep_the_contract() {
    conformance::tool(async || Arc::new(EchoTool) as Arc<dyn Tool>).await.assert();
    conformance::tool(async || Arc::new(FailTool) as Arc<dyn Tool>).await.assert();
    conformance::tool(async || Arc::new(MockTool::default()) as Arc<dyn Tool>).await.assert();
}

#[tokio::test]
async fn the_providers_keep_the_contract() {
    conformance::provider(async || Arc::new(MockProvider::default()) as Arc<dyn Provider>).await.assert();
    conformance::provider(async || {
        let refusal = LlmError::new(LlmErrorKind::Authentication, "no key");
        let script = [Step::say("one two").in_chunks(["one ", "two"]), Step::from(refusal)];
        Arc::new(ScriptedProvider::new(script).when_exhausted(Exhausted::Repeat)) as Arc<dyn Provider>
    })
    .await
    .assert();
}

#[tokio::test]
async fn the_context_keeps_the_contract() {
    let make = async || Arc::new(MockContextManager::new()) as Arc<dyn ContextManager>;
    conformance::context(make).await.assert();
}

#[tokio::test]
async fn the_recorder_keeps_the_hook_contract() {
    conformance::hook(async || Arc::new(EventRecorder::new()) as Arc<dyn HookHandler>).await.assert();
}

#[tokio::test]
async fn the_small_loop_keeps_the_orchestrator_contract() {
    conformance::orchestrator(async || Arc::new(SmallLoop) as Arc<dyn Orchestrator>).await.assert();
}

#[tokio::test]
async fn approval_display_and_resolver_keep_their_contracts() {
    conformance::approval(async || Arc::new(ScriptedApproval::denying()) as Arc<dyn ApprovalSystem>)
        .await
        .assert();
    conformance::display(async || Arc::new(RecordingDisplay::new()) as Arc<dyn DisplaySystem>).await.assert();
    let make = async || Arc::new(OneFolder) as Arc<dyn ModuleSourceResolver>;
    conformance::resolver(make, &"tool-known".parse().unwrap(), Some(&json!("here"))).await.assert();
}

#[tokio::test]
async fn a_module_of_each_kind_keeps_the_module_contract() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Config {
        #[serde(default)]
        _text: String,
    }
    let make = async || {
        Arc::new(FakeModule::new("tool-echo", ModuleKind::Tool, |config, cx| {
            cx.read_config::<Config>(config)?;
            cx.mount_tool(Arc::new(EchoTool));
            Ok(Mounted::Ready)
        })) as Arc<dyn Module>
    };
    conformance::module(make, Map::from_iter([("_text".to_owned(), json!("a"))])).await.assert();
    let make = async || {
        Arc::new(FakeModule::declining("provider-x", ModuleKind::Provider, "no key is set"))
            as Arc<dyn Module>
    };
    conformance::module(make, Map::new()).await.assert();
    let make = async || {
        Arc::new(FakeModule::new("loop-small", ModuleKind::Orchestrator, |config, cx| {
            cx.read_config::<Config>(config)?;
            cx.mount_orchestrator(Arc::new(SmallLoop));
            Ok(Mounted::Ready)
        })) as Arc<dyn Module>
    };
    conformance::module(make, Map::new()).await.assert();
}
