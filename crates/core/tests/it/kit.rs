//! What the kernel's tests stand on: a stage that opens sessions, and modules whose behaviour is a closure.
//!
//! Closures rather than the friendly fakes of `testing`, because these tests must also misbehave: hang, flood, panic.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::clock::Clock;
use amplifier_core::contracts::{
    ApprovalError, ApprovalSystem, ContextError, ContextManager, DisplayMessage, DisplaySystem, HookEvent,
    HookFailure, HookHandler, Module, Mounted, Orchestrator, Prompt, Provider, ProviderCx, RequestBudget,
    Tool, ToolCx, ToolFailure, TurnCx, TurnError,
};
use amplifier_core::hooks::HookSpec;
use amplifier_core::journal::{Journal, JournalError};
use amplifier_core::loader::{LoadError, Loader, ModuleFinder, MountCx};
use amplifier_core::session::{OpenError, Session, SessionBuilder};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::hook::{HookResult, Question};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::record::Record;
use amplifier_protocol::time::Timestamp;
use amplifier_protocol::tool::{Effects, ToolCall, ToolSpec};
use async_trait::async_trait;
use serde_json::{Map, Value, json};

/// A clock that follows the runtime's time, so that a paused runtime has a paused clock.
pub struct RuntimeClock(tokio::time::Instant);

impl RuntimeClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(tokio::time::Instant::now()))
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        let micros = i64::try_from(self.0.elapsed().as_micros()).unwrap();
        Timestamp::from_micros(1_750_000_000_000_000 + micros)
    }
}

/// Things that happened, in order, as the parts of a test tell them.
#[derive(Clone, Default)]
pub struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.read().iter().filter(|entry| *entry == what).count()
    }
}

/// Counts what is alive: take a guard into a call and see that the number comes back to zero.
#[derive(Clone, Default)]
pub struct Alive(Arc<AtomicUsize>);

pub struct AliveGuard(Alive);

impl Alive {
    pub fn guard(&self) -> AliveGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        AliveGuard(self.clone())
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for AliveGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub struct FnTool<F> {
    name: String,
    effects: Effects,
    run: F,
}

pub fn tool<F, Fut>(name: &str, effects: Effects, run: F) -> Arc<dyn Tool>
where
    F: Fn(Value, ToolCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
{
    Arc::new(FnTool { name: name.to_owned(), effects, run })
}

/// A tool that answers with its input.
pub fn echo(name: &str) -> Arc<dyn Tool> {
    tool(name, Effects::PURE, |input, _| async move { Ok(input) })
}

#[async_trait]
impl<F, Fut> Tool for FnTool<F>
where
    F: Fn(Value, ToolCx) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Value, ToolFailure>> + Send,
{
    fn spec(&self) -> ToolSpec {
        let parameters = json!({"type": "object"});
        ToolSpec { name: self.name.clone(), description: None, parameters, extra: Map::new() }
    }

    fn effects(&self) -> Effects {
        self.effects
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        (self.run)(input, cx.clone()).await
    }
}

pub struct FnProvider<F> {
    name: String,
    complete: F,
}

pub fn provider<F, Fut>(name: &str, complete: F) -> Arc<dyn Provider>
where
    F: Fn(ChatRequest, ProviderCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ChatResponse, LlmError>> + Send + 'static,
{
    Arc::new(FnProvider { name: name.to_owned(), complete })
}

/// A provider that always says the same.
pub fn parrot(name: &str) -> Arc<dyn Provider> {
    provider(name, |_, _| async { Ok(ChatResponse::text("squawk")) })
}

#[async_trait]
impl<F, Fut> Provider for FnProvider<F>
where
    F: Fn(ChatRequest, ProviderCx) -> Fut + Send + Sync,
    Fut: Future<Output = Result<ChatResponse, LlmError>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> ProviderInfo {
        serde_json::from_value(json!({"id": self.name, "display_name": self.name})).unwrap()
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(Vec::new())
    }

    async fn complete(&self, request: ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        (self.complete)(request, cx.clone()).await
    }

    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall> {
        response.calls()
    }
}

pub struct FnHook<F>(F);

pub fn hook<F, Fut>(handle: F) -> Arc<dyn HookHandler>
where
    F: Fn(HookEvent) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<HookResult, HookFailure>> + Send + 'static,
{
    Arc::new(FnHook(handle))
}

/// A hook that always answers the same.
pub fn answering(result: HookResult) -> Arc<dyn HookHandler> {
    hook(move |_| {
        let result = result.clone();
        async move { Ok(result) }
    })
}

#[async_trait]
impl<F, Fut> HookHandler for FnHook<F>
where
    F: Fn(HookEvent) -> Fut + Send + Sync,
    Fut: Future<Output = Result<HookResult, HookFailure>> + Send,
{
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        (self.0)(event.clone()).await
    }
}

/// `tool:pre` → a registration that hears it, named `hook`.
pub fn on(pattern: &str) -> HookSpec {
    HookSpec::new(pattern.parse().unwrap(), "hook")
}

/// Hears everything and keeps it.
#[derive(Clone, Default)]
pub struct Ear(Arc<Mutex<Vec<HookEvent>>>);

impl Ear {
    /// The names of everything heard.
    pub fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|event| event.name.to_string()).collect()
    }

    /// The payloads of one event.
    pub fn payloads(&self, name: &str) -> Vec<Value> {
        let heard = self.0.lock().unwrap();
        let of_name = heard.iter().filter(|event| event.name.as_str() == name);
        of_name.map(|event| Value::Object(event.payload())).collect()
    }
}

#[async_trait]
impl HookHandler for Ear {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        self.0.lock().unwrap().push(event.clone());
        Ok(HookResult::proceed())
    }
}

pub struct FnLoop<F>(F);

pub fn orchestrator<F, Fut>(run: F) -> Arc<dyn Orchestrator>
where
    F: Fn(Prompt, TurnCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, TurnError>> + Send + 'static,
{
    Arc::new(FnLoop(run))
}

#[async_trait]
impl<F, Fut> Orchestrator for FnLoop<F>
where
    F: Fn(Prompt, TurnCx) -> Fut + Send + Sync,
    Fut: Future<Output = Result<String, TurnError>> + Send,
{
    async fn execute(&self, prompt: Prompt, cx: &TurnCx) -> Result<String, TurnError> {
        (self.0)(prompt, cx.clone()).await
    }
}

/// A loop that takes the prompt for the name of a tool, calls it, and answers with what it gave.
pub async fn call_named_tool(prompt: Prompt, cx: TurnCx) -> Result<String, TurnError> {
    let Prompt::Text(name) = prompt else { return Ok("continued".to_owned()) };
    let call = ToolCall::new(format!("call-{}", cx.turn), name, json!({}));
    let result = cx.coordinator.call_tool(&call).await?;
    Ok(result.to_model_text())
}

/// Keeps messages in memory.
#[derive(Clone, Default)]
pub struct MemoryContext(Arc<Mutex<Messages>>);

impl MemoryContext {
    pub fn stored(&self) -> Messages {
        self.0.lock().unwrap().clone()
    }

    pub fn texts(&self) -> Vec<String> {
        self.stored().iter().map(|message| message.content.visible_text().into_owned()).collect()
    }
}

#[async_trait]
impl ContextManager for MemoryContext {
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
        self.0.lock().unwrap().push(message);
        Ok(())
    }

    async fn messages_for_request(&self, _budget: RequestBudget) -> Result<Messages, ContextError> {
        Ok(self.stored())
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        Ok(self.stored())
    }

    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
        *self.0.lock().unwrap() = messages;
        Ok(())
    }

    async fn clear(&self) -> Result<(), ContextError> {
        self.0.lock().unwrap().clear();
        Ok(())
    }
}

/// Keeps records in memory and knows which of them are durable.
#[derive(Clone, Default)]
pub struct MemoryJournal(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    records: Vec<Record>,
    synced: usize,
    syncs: usize,
    full_after: Option<usize>,
}

impl MemoryJournal {
    /// A journal that takes so many records and then fails, like a disk that is full.
    pub fn with_room_for(records: usize) -> Self {
        let journal = Self::default();
        journal.0.lock().unwrap().full_after = Some(records);
        journal
    }

    pub fn records(&self) -> Vec<Record> {
        self.0.lock().unwrap().records.clone()
    }

    /// The records that would survive a crash now.
    pub fn durable(&self) -> Vec<Record> {
        let pages = self.0.lock().unwrap();
        pages.records.iter().take(pages.synced).cloned().collect()
    }

    pub fn syncs(&self) -> usize {
        self.0.lock().unwrap().syncs
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    fn append(&self, record: &Record) -> Result<(), JournalError> {
        let mut pages = self.0.lock().unwrap();
        if pages.full_after.is_some_and(|full| pages.records.len() >= full) {
            return Err(JournalError { message: "no space left in memory".to_owned() });
        }
        pages.records.push(record.clone());
        Ok(())
    }

    async fn sync(&self) -> Result<(), JournalError> {
        let mut pages = self.0.lock().unwrap();
        pages.synced = pages.records.len();
        pages.syncs += 1;
        Ok(())
    }
}

pub struct FnApproval<F>(F);

pub fn approval<F, Fut>(answer: F) -> Arc<dyn ApprovalSystem>
where
    F: Fn(Question) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ApprovalError>> + Send + 'static,
{
    Arc::new(FnApproval(answer))
}

/// Somebody who always gives the same answer.
pub fn always(answer: &str) -> Arc<dyn ApprovalSystem> {
    let answer = answer.to_owned();
    approval(move |_| {
        let answer = answer.clone();
        async move { Ok(answer) }
    })
}

#[async_trait]
impl<F, Fut> ApprovalSystem for FnApproval<F>
where
    F: Fn(Question) -> Fut + Send + Sync,
    Fut: Future<Output = Result<String, ApprovalError>> + Send,
{
    async fn request_approval(&self, question: Question) -> Result<String, ApprovalError> {
        (self.0)(question).await
    }
}

/// Keeps what was shown.
#[derive(Clone, Default)]
pub struct Screen(Arc<Mutex<Vec<DisplayMessage>>>);

impl Screen {
    pub fn shown(&self) -> Vec<DisplayMessage> {
        self.0.lock().unwrap().clone()
    }

    pub fn texts(&self) -> Vec<String> {
        self.shown().into_iter().map(|message| message.message).collect()
    }
}

#[async_trait]
impl DisplaySystem for Screen {
    async fn show_message(&self, message: DisplayMessage) {
        self.0.lock().unwrap().push(message);
    }
}

pub struct FnModule<F> {
    id: ModuleId,
    kind: ModuleKind,
    // How long mounting takes; `None` is for ever.
    takes: Option<Duration>,
    mount: F,
}

/// A module that mounts by a closure.
pub fn module<F>(id: &str, kind: ModuleKind, mount: F) -> Arc<dyn Module>
where
    F: Fn(Value, &MountCx) -> Result<Mounted, LoadError> + Send + Sync + 'static,
{
    Arc::new(FnModule { id: id.parse().unwrap(), kind, takes: Some(Duration::ZERO), mount })
}

/// A module that takes its time to mount, having done what the closure does.
pub fn slow_module<F>(id: &str, kind: ModuleKind, takes: Duration, mount: F) -> Arc<dyn Module>
where
    F: Fn(Value, &MountCx) -> Result<Mounted, LoadError> + Send + Sync + 'static,
{
    Arc::new(FnModule { id: id.parse().unwrap(), kind, takes: Some(takes), mount })
}

/// A module that never finishes mounting, having done what the closure does.
pub fn hanging_module<F>(id: &str, kind: ModuleKind, mount: F) -> Arc<dyn Module>
where
    F: Fn(Value, &MountCx) -> Result<Mounted, LoadError> + Send + Sync + 'static,
{
    Arc::new(FnModule { id: id.parse().unwrap(), kind, takes: None, mount })
}

#[async_trait]
impl<F> Module for FnModule<F>
where
    F: Fn(Value, &MountCx) -> Result<Mounted, LoadError> + Send + Sync,
{
    fn id(&self) -> ModuleId {
        self.id.clone()
    }

    fn kind(&self) -> ModuleKind {
        self.kind
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let mounted = (self.mount)(config, cx);
        match self.takes {
            Some(Duration::ZERO) => mounted,
            Some(takes) => {
                tokio::time::sleep(takes).await;
                mounted
            }
            None => std::future::pending().await,
        }
    }
}

/// A shelf of modules; the last one put there under an id is found.
#[derive(Clone, Default)]
pub struct Shelf(Vec<Arc<dyn Module>>);

#[async_trait]
impl ModuleFinder for Shelf {
    fn name(&self) -> &str {
        "shelf"
    }

    fn known(&self) -> Vec<String> {
        self.0.iter().map(|module| module.id().to_string()).collect()
    }

    async fn find(&self, id: &ModuleId) -> Result<Option<Arc<dyn Module>>, LoadError> {
        Ok(self.0.iter().rev().find(|module| module.id() == *id).cloned())
    }
}

/// A session in the making: a loop that calls the tool the prompt names, a context in memory, a parrot, an ear.
pub struct Stage {
    pub plan: Value,
    pub shelf: Shelf,
    pub context: MemoryContext,
    pub ear: Ear,
    pub loader: Loader,
    pub clock: Arc<dyn Clock>,
}

impl Stage {
    pub fn new() -> Self {
        let plan = json!({
            "session": { "orchestrator": "loop-test", "context": "context-test" },
            "providers": [], "tools": [], "hooks": [],
        });
        let (shelf, context) = (Shelf::default(), MemoryContext::default());
        let (ear, loader) = (Ear::default(), Loader::new());
        let mut stage = Self { plan, shelf, context, ear, loader, clock: RuntimeClock::new() };
        let (context, ear) = (stage.context.clone(), stage.ear.clone());
        stage = stage.orchestrator(orchestrator(call_named_tool));
        stage.shelf.0.push(module("context-test", ModuleKind::Context, move |_, cx| {
            cx.mount_context(Arc::new(context.clone()));
            Ok(Mounted::Ready)
        }));
        let heard = HookSpec::new("*".parse().unwrap(), "ear").priority(-1_000);
        stage.provider(parrot("test")).hook("ear", heard, Arc::new(ear))
    }

    /// Runs turns with this.
    pub fn orchestrator(mut self, run: Arc<dyn Orchestrator>) -> Self {
        self.shelf.0.push(module("loop-test", ModuleKind::Orchestrator, move |_, cx| {
            cx.mount_orchestrator(Arc::clone(&run));
            Ok(Mounted::Ready)
        }));
        self
    }

    /// Adds a module to the shelf and an entry to the plan's list of its kind.
    pub fn module(mut self, module: Arc<dyn Module>) -> Self {
        self = self.entry(module.kind(), json!({"module": module.id()}));
        self.on_shelf(module)
    }

    /// Adds a module to the shelf only.
    pub fn on_shelf(mut self, module: Arc<dyn Module>) -> Self {
        self.shelf.0.push(module);
        self
    }

    /// Adds an entry to the plan only.
    pub fn entry(mut self, kind: ModuleKind, entry: Value) -> Self {
        let section = format!("{kind}s");
        self.plan[&section].as_array_mut().unwrap().push(entry);
        self
    }

    pub fn tool(self, tool: Arc<dyn Tool>) -> Self {
        let id = format!("tool-{}", tool.spec().name);
        self.module(module(&id, ModuleKind::Tool, move |_, cx| {
            cx.mount_tool(Arc::clone(&tool));
            Ok(Mounted::Ready)
        }))
    }

    pub fn provider(self, provider: Arc<dyn Provider>) -> Self {
        let id = format!("provider-{}", provider.name());
        self.module(module(&id, ModuleKind::Provider, move |_, cx| {
            cx.mount_provider(Arc::clone(&provider));
            Ok(Mounted::Ready)
        }))
    }

    pub fn hook(self, name: &str, spec: HookSpec, handler: Arc<dyn HookHandler>) -> Self {
        let (id, name) = (format!("hooks-{name}"), name.to_owned());
        self.module(module(&id, ModuleKind::Hook, move |_, cx| {
            let spec = HookSpec { name: name.clone(), ..spec.clone() };
            cx.on(spec, Arc::clone(&handler));
            Ok(Mounted::Ready)
        }))
    }

    /// A tool module that mounts a tool of its name and writes its cleanup into the diary.
    pub fn tidy(self, name: &str, diary: &Diary) -> Self {
        let (diary, owned) = (diary.clone(), name.to_owned());
        self.module(module(&format!("tool-{name}"), ModuleKind::Tool, move |_, cx| {
            cx.mount_tool(echo(&owned));
            let (diary, owned) = (diary.clone(), owned.clone());
            cx.register_cleanup(move || async move {
                diary.note(format!("cleanup {owned}"));
                Ok(())
            });
            Ok(Mounted::Ready)
        }))
    }

    /// Puts keys over the plan's session section.
    pub fn session(mut self, keys: Value) -> Self {
        self.plan["session"].as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        self
    }

    pub fn mount_plan(&self) -> MountPlan {
        MountPlan::read(&self.plan).unwrap()
    }

    pub fn builder(&self) -> SessionBuilder {
        let loader = self.loader.clone().finder(Arc::new(self.shelf.clone()));
        SessionBuilder::new(self.mount_plan(), Arc::new(loader), Arc::clone(&self.clock))
    }

    pub async fn open(&self) -> Session {
        self.builder().open().await.unwrap()
    }

    pub async fn open_error(&self) -> OpenError {
        match self.builder().open().await {
            Ok(_) => panic!("this session should not open"),
            Err(error) => error,
        }
    }
}

/// Lets other tasks run until nothing more happens without time passing.
pub async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// A map from a JSON object.
pub fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}
