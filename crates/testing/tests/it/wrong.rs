//! Deliberately wrong implementations: each breaks clauses, and the suite names exactly those.

use std::sync::Arc;

use amplifier_core::contracts::{
    ApprovalError, ApprovalSystem, ContextError, ContextManager, DisplayMessage, DisplaySystem, HookEvent,
    HookFailure, HookHandler, Module, ModuleSource, ModuleSourceResolver, Orchestrator, Prompt, Provider,
    ProviderCx, RequestBudget, Resolved, SourceError, Tool, ToolCx, ToolFailure, TurnCx, TurnError,
};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::hook::{HookAction, HookResult, Question};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::message::{Content, Message, Messages};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::tool::{Effects, ToolCall, ToolSpec};
use amplifier_testing::{
    EchoTool, FakeModule, MockContextManager, MockProvider, ScriptedOrchestrator, conformance,
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

fn failed(report: &conformance::Report) -> Vec<&'static str> {
    report.failed().map(|clause| clause.name).collect()
}

/// Panics on unknown keys, has no description, and says it is pure while it writes.
struct WrongTool;

#[async_trait]
impl Tool for WrongTool {
    fn spec(&self) -> ToolSpec {
        let (name, parameters) = ("wrong".to_owned(), json!({"type": "object"}));
        ToolSpec { name, description: None, parameters, extra: Map::new() }
    }

    fn effects(&self) -> Effects {
        Effects { writes: true, ..Effects::PURE }
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        if cx.cancel.is_cancelled() {
            std::future::pending::<()>().await;
        }
        assert!(input.as_object().is_none_or(|input| input.is_empty()), "an unknown key");
        Ok(json!("ok"))
    }
}

#[tokio::test]
async fn a_wrong_tool_is_caught() {
    let report = conformance::tool(async || Arc::new(WrongTool) as Arc<dyn Tool>).await;
    assert_eq!(
        failed(&report),
        [
            "the spec has a name, a description and an object schema",
            "the declared effects fit together",
            "unknown keys are answered or refused",
            "a call that is cancelled before it starts ends soon",
        ]
    );
    assert!(report.to_string().contains("panicked: an unknown key"), "{report}");
}

/// Finds a call where there is none, answers with nothing, and has no name.
struct WrongProvider;

#[async_trait]
impl Provider for WrongProvider {
    fn name(&self) -> &str {
        ""
    }

    fn info(&self) -> ProviderInfo {
        MockProvider::default().info()
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(vec![ModelInfo::default()])
    }

    async fn complete(&self, _request: ChatRequest, _cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        Ok(ChatResponse::default())
    }

    fn parse_tool_calls(&self, _response: &ChatResponse) -> Vec<ToolCall> {
        vec![ToolCall::new("x", "echo", json!({}))]
    }
}

#[tokio::test]
async fn a_wrong_provider_is_caught() {
    let report = conformance::provider(async || Arc::new(WrongProvider) as Arc<dyn Provider>).await;
    let failed = failed(&report);
    for clause in [
        "it says its name and who it is",
        "its models are listed or the error says why not",
        "a text without calls has no calls",
        "the calls of an answer are found in order",
        "a request is answered with content and usage, or the error is of the taxonomy",
    ] {
        assert!(failed.contains(&clause), "{report}");
    }
}

/// Shortens by cutting, and forgets every block it does not know.
#[derive(Default)]
struct WrongContext(MockContextManager);

#[async_trait]
impl ContextManager for WrongContext {
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
        let text = message.content.visible_text().into_owned();
        let plain = Message { content: Content::Text(text), ..(*message).clone() };
        self.0.add_message(Arc::new(plain)).await
    }

    async fn messages_for_request(&self, _budget: RequestBudget) -> Result<Messages, ContextError> {
        let mut messages = self.0.messages();
        let cut = messages.len().saturating_sub(3);
        Ok(messages.split_off(cut))
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        Ok(self.0.messages())
    }

    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
        for message in messages {
            self.add_message(message).await?;
        }
        Ok(())
    }

    async fn clear(&self) -> Result<(), ContextError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_wrong_context_is_caught() {
    let report =
        conformance::context(async || Arc::<WrongContext>::default() as Arc<dyn ContextManager>).await;
    assert_eq!(
        failed(&report),
        [
            "what is added comes back in order, byte for byte",
            "clearing forgets everything",
            "setting replaces everything",
            "a view holds what was said and does not change it",
            "a view within a budget parts no call from its result, keeps order and system messages",
        ]
    );
}

/// Denies without a reason and panics at what it does not know.
struct WrongHook;

#[async_trait]
impl HookHandler for WrongHook {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        match event.name.namespace() {
            "tool" => Ok(HookAction::Deny { reason: String::new() }.into()),
            "test" => panic!("what is `{}`?", event.name),
            _ => Ok(HookResult::proceed()),
        }
    }
}

#[tokio::test]
async fn a_wrong_hook_is_caught() {
    let report = conformance::hook(async || Arc::new(WrongHook) as Arc<dyn HookHandler>).await;
    assert_eq!(failed(&report).len(), 5, "{report}");
    assert!(report.to_string().contains("`tool:pre`: a denial without a reason"), "{report}");
    assert!(report.to_string().contains("panicked: what is `test:event`?"), "{report}");
}

/// Calls the model once, runs tools without asking anybody, and says nothing at the end.
struct WrongLoop;

#[async_trait]
impl Orchestrator for WrongLoop {
    async fn execute(&self, _prompt: Prompt, cx: &TurnCx) -> Result<String, TurnError> {
        let coordinator = &cx.coordinator;
        let (name, _) = coordinator.providers().remove(0);
        let response = coordinator.call_provider(&name, ChatRequest::default(), Default::default()).await?;
        for call in response.calls() {
            coordinator.call_tool(&call).await?;
        }
        Ok(response.visible_text())
    }
}

#[tokio::test]
async fn a_wrong_loop_is_caught() {
    let report = conformance::orchestrator(async || Arc::new(WrongLoop) as Arc<dyn Orchestrator>).await;
    let kept: Vec<_> =
        report.clauses.iter().filter(|clause| clause.outcome.is_ok()).map(|c| c.name).collect();
    assert_eq!(kept, ["the model's text is the answer"], "{report}");
    let scripted = async || Arc::new(ScriptedOrchestrator::new(["hello"])) as Arc<dyn Orchestrator>;
    let report = conformance::orchestrator(scripted).await;
    assert!(failed(&report).contains(&"a tool's result reaches the model"), "{report}");
}

struct WrongApproval;

#[async_trait]
impl ApprovalSystem for WrongApproval {
    async fn request_approval(&self, _question: Question) -> Result<String, ApprovalError> {
        Ok("Perhaps".to_owned())
    }
}

struct WrongDisplay;

#[async_trait]
impl DisplaySystem for WrongDisplay {
    async fn show_message(&self, message: DisplayMessage) {
        assert!(!message.message.is_empty(), "nothing to show");
    }
}

struct WrongResolver;

#[async_trait]
impl ModuleSourceResolver for WrongResolver {
    async fn resolve(
        &self,
        _module_id: &ModuleId,
        _hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        struct Anything;
        #[async_trait]
        impl ModuleSource for Anything {
            async fn resolve(&self) -> Result<Resolved, SourceError> {
                Ok(Resolved::Folder("anything".into()))
            }
        }
        Ok(Arc::new(Anything))
    }
}

#[tokio::test]
async fn wrong_approvals_displays_and_resolvers_are_caught() {
    let report = conformance::approval(async || Arc::new(WrongApproval) as Arc<dyn ApprovalSystem>).await;
    assert!(failed(&report).contains(&"the answer is one of the options, or there is an error"), "{report}");
    let report = conformance::display(async || Arc::new(WrongDisplay) as Arc<dyn DisplaySystem>).await;
    assert_eq!(failed(&report), ["every message is taken, whatever it holds"]);
    let make = async || Arc::new(WrongResolver) as Arc<dyn ModuleSourceResolver>;
    let report = conformance::resolver(make, &"tool-known".parse().unwrap(), None).await;
    assert_eq!(failed(&report), ["a module it does not have is not found"]);
}

#[tokio::test]
async fn a_module_that_ignores_its_config_or_mounts_nothing_is_caught() {
    let make = async || Arc::new(FakeModule::tool("tool-echo", Arc::new(EchoTool))) as Arc<dyn Module>;
    let report = conformance::module(make, Map::new()).await;
    assert_eq!(failed(&report), ["an unknown config key is a warning or a refusal that names it"]);
    let make = async || Arc::new(FakeModule::broken("tool-x", ModuleKind::Tool, "no")) as Arc<dyn Module>;
    let report = conformance::module(make, Map::new()).await;
    assert!(
        failed(&report).contains(&"it mounts what its kind promises, or declines with a reason"),
        "{report}"
    );
}

#[tokio::test]
#[should_panic(expected = "the declared effects fit together")]
async fn asserting_a_report_names_the_clause() {
    conformance::tool(async || Arc::new(WrongTool) as Arc<dyn Tool>).await.assert();
}
