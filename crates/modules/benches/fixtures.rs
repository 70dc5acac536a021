//! What the kernel is measured with: a model, tools and hooks that cost nothing, as modules of a plan. Measures nothing.

use std::error::Error;
use std::sync::Arc;

use amplifier_core::clock::Clock;
use amplifier_core::contracts::{
    HookEvent, HookFailure, HookHandler, Module, Mounted, Provider, ProviderCx, Tool, ToolCx, ToolFailure,
};
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, ModuleFinder, MountCx};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::message::Role;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::time::Timestamp;
use amplifier_protocol::tool::{Effects, ToolCall, ToolSpec};
use amplifier_protocol::usage::Usage;
use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::{HOOKS, Outcome, TOOLS};

/// The clock of the system.
pub(crate) struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this program is the one that hands the clock in")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Asks for one tool call a round, then says `done`. Answers at once.
struct BenchProvider {
    rounds: u64,
}

#[async_trait]
impl Provider for BenchProvider {
    fn name(&self) -> &str {
        "bench"
    }

    fn info(&self) -> ProviderInfo {
        ProviderInfo { id: "bench".to_owned(), display_name: "Bench".to_owned(), ..ProviderInfo::default() }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(Vec::new())
    }

    async fn complete(&self, request: ChatRequest, _cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        let done = request.messages.iter().filter(|message| message.role == Role::Tool).count() as u64;
        let mut response = if done < self.rounds {
            let call = ToolCall::new(format!("call-{done}"), "bench_0", json!({"a": 1}));
            ChatResponse { tool_calls: Some(vec![call]), ..ChatResponse::default() }
        } else {
            ChatResponse::text("done")
        };
        response.usage = Some(Usage::new(10, 5));
        Ok(response)
    }

    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall> {
        response.calls()
    }
}

/// Answers at once.
struct BenchTool {
    name: String,
}

#[async_trait]
impl Tool for BenchTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: Some("Answers at once.".to_owned()),
            parameters: json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
            extra: Map::new(),
        }
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    async fn execute(&self, _input: Value, _cx: &ToolCx) -> Result<Value, ToolFailure> {
        Ok(Value::from("ok"))
    }
}

/// Agrees.
pub(crate) struct Agree;

#[async_trait]
impl HookHandler for Agree {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        Ok(HookResult::proceed())
    }
}

/// The modules of the bench: `provider-bench`, `tool-bench-N`, `hooks-bench-N`.
struct BenchModule {
    id: ModuleId,
    kind: ModuleKind,
    number: usize,
}

#[async_trait]
impl Module for BenchModule {
    fn id(&self) -> ModuleId {
        self.id.clone()
    }

    fn kind(&self) -> ModuleKind {
        self.kind
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        match self.kind {
            ModuleKind::Provider => {
                let rounds = config.get("rounds").and_then(Value::as_u64).unwrap_or(0);
                cx.mount_provider(Arc::new(BenchProvider { rounds }));
            }
            ModuleKind::Tool => cx.mount_tool(Arc::new(BenchTool { name: format!("bench_{}", self.number) })),
            _ => {
                let priority = i32::try_from(self.number).unwrap_or(i32::MAX);
                let spec = HookSpec::new(event_pattern(), self.id.as_str()).priority(priority);
                cx.on(spec, Arc::new(Agree));
            }
        }
        Ok(Mounted::Ready)
    }
}

/// What the hooks of the bench listen to.
pub(crate) fn event_pattern() -> EventPattern {
    "tool:pre".parse().unwrap_or(EventPattern::All)
}

/// Finds the modules of the bench.
pub(crate) struct BenchModules(Vec<Arc<dyn Module>>);

impl BenchModules {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let mut modules: Vec<Arc<dyn Module>> = Vec::new();
        let mut add = |id: String, kind, number| -> Outcome {
            modules.push(Arc::new(BenchModule { id: id.parse()?, kind, number }));
            Ok(())
        };
        add("provider-bench".to_owned(), ModuleKind::Provider, 0)?;
        (0..TOOLS).try_for_each(|number| add(format!("tool-bench-{number}"), ModuleKind::Tool, number))?;
        (0..HOOKS).try_for_each(|number| add(format!("hooks-bench-{number}"), ModuleKind::Hook, number))?;
        Ok(Self(modules))
    }
}

#[async_trait]
impl ModuleFinder for BenchModules {
    fn name(&self) -> &str {
        "bench"
    }

    fn known(&self) -> Vec<String> {
        self.0.iter().map(|module| module.id().to_string()).collect()
    }

    async fn find(&self, id: &ModuleId) -> Result<Option<Arc<dyn Module>>, LoadError> {
        Ok(self.0.iter().find(|module| module.id() == *id).cloned())
    }
}

/// A plan with one provider that asks for `rounds` tool calls a turn.
pub(crate) fn plan(rounds: u64, tools: usize, hooks: usize) -> Result<MountPlan, Box<dyn Error>> {
    let mut plan = MountPlan::new("loop-basic".parse()?, "context-simple".parse()?);
    let mut provider = ModuleSpec::new("provider-bench".parse()?);
    provider.config.insert("rounds".to_owned(), Value::from(rounds));
    plan.providers.push(provider);
    for number in 0..tools {
        plan.tools.push(ModuleSpec::new(format!("tool-bench-{number}").parse()?));
    }
    for number in 0..hooks {
        plan.hooks.push(ModuleSpec::new(format!("hooks-bench-{number}").parse()?));
    }
    Ok(plan)
}
