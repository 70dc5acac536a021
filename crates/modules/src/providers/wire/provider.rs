//! The `Provider` that every service gets: mends, asks, tries again, tells, and answers.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Mounted, Provider, ProviderCx, TaskFailure};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::ledger::CallBound;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::ToolCall;
use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::answer::{Answer, Broken};
use super::environment;
use super::events::{BlockTeller, ProviderConcurrency, Teller};
use super::exchange::{self, Body, Exchange, Incoming};
use super::listening::{Listening, Progress, is_said};
use super::price::Spent;
use super::repair::repair;
use super::retry::{BEAT, pause, stopped};
use super::sse::Cutter;
use super::{About, Ask, Call, Delivery, Learnt, Resumes, Service, Settings, errors, models, price, retry};

/// While an answer is waited for within its time-outs, a sign of life this often: seldom enough for a stall to be told, and
/// for a plan to set a shorter deadline.
const ALIVE: Duration = Duration::from_secs(60);
/// How long a service may take to tell about a model.
const PROBE: Duration = Duration::from_secs(5);

/// A service as a provider.
pub(crate) struct WireProvider<S> {
    service: S,
    about: About,
    settings: Settings,
    exchange: Exchange,
    teller: Teller,
    spent: Arc<Spent>,
    learnt: Mutex<HashMap<String, Arc<Learnt>>>,
}

impl<S: Service> WireProvider<S> {
    /// A provider of this service. Fails where the settings cannot work, such as a `base_url` that is no URL.
    pub(crate) async fn new(service: S, settings: Settings, cx: &MountCx) -> Result<Self, LoadError> {
        let about = service.about();
        let proxies = environment::proxies(cx).await;
        let refused = |message| LoadError::Mount { id: cx.module().clone(), message };
        let tape = environment::tape(cx).await.map_err(refused)?;
        let exchange = Exchange::new(&about.id, &settings, &proxies, tape).map_err(refused)?;
        let (provider, coordinator) = (about.id.clone(), cx.coordinator.clone());
        let teller = Teller { provider, coordinator, detail: settings.detail() };
        let spent = Arc::new(Spent::default());
        let costs = Arc::clone(&spent);
        let contributor = move || {
            let told = costs.told();
            async move { Ok::<_, TaskFailure>(told) }
        };
        cx.coordinator.register_contributor("session.cost", &about.id, Arc::new(contributor));
        Ok(Self { service, about, settings, exchange, teller, spent, learnt: Mutex::default() })
    }

    fn model<'a>(&'a self, request: &'a ChatRequest) -> &'a str {
        let named = request.model.as_deref().filter(|model| !model.is_empty());
        named.or(self.settings.default_model.as_deref()).unwrap_or(&self.about.default_model)
    }

    fn delivery(&self, request: &ChatRequest) -> Delivery {
        let unwanted =
            request.metadata.as_ref().and_then(|notes| notes.get("stream")) == Some(&Value::Bool(false));
        match self.settings.use_streaming && !unwanted && request.stream != Some(false) {
            true => Delivery::Streamed,
            false => Delivery::Whole,
        }
    }

    /// What the service told about a model; asked once, and again next time when it did not answer.
    async fn learn(&self, model: &str) -> Arc<Learnt> {
        let known = self.learnt.lock().unwrap_or_else(PoisonError::into_inner).get(model).cloned();
        if let Some(known) = known {
            return known;
        }
        let Some(call) = self.service.probe(model) else { return Arc::default() };
        let told = tokio::time::timeout(PROBE, self.document(&call)).await;
        // The request itself will say what is wrong with the service.
        let Ok(Ok(told)) = told else { return Arc::default() };
        let learnt = Arc::new(self.service.learn(model, &told));
        let mut all = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(model.to_owned(), Arc::clone(&learnt));
        learnt
    }

    /// Mounts it, and looks at the default model once everything stands: for services whose models differ.
    pub(crate) async fn mount_and_learn(
        service: S,
        settings: Settings,
        cx: &MountCx,
    ) -> Result<Mounted, LoadError> {
        let provider = Arc::new(Self::new(service, settings, cx).await?);
        cx.mount_provider(Arc::clone(&provider) as Arc<dyn Provider>);
        cx.on_session_ready(async move |_: Coordinator| {
            let model = provider.settings.default_model.as_deref().unwrap_or(&provider.about.default_model);
            drop(provider.learn(model).await);
            Ok::<(), TaskFailure>(())
        });
        Ok(Mounted::Ready)
    }

    /// A document of the service, read whole.
    async fn document(&self, call: &Call) -> Result<Value, LlmError> {
        let mut incoming = self.exchange.open(call, Delivery::Whole).await?;
        let whole = incoming.body.whole().await?;
        serde_json::from_slice(&whole)
            .map_err(|error| errors::broken(format!("what came is no JSON: {error}")))
    }

    /// How long the call may still take, where somebody limits it.
    fn left(&self, request: &ChatRequest, began: Instant) -> Option<Duration> {
        let asked = request.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let asked = asked.map(|time| time.saturating_sub(began.elapsed()));
        let session = self.teller.coordinator.ledger().wall_time_left();
        [asked, session].into_iter().flatten().min()
    }

    /// Asks until it is answered, fails for good, or there is no time for another try.
    async fn ask(&self, request: &ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        let (history, missing) = repair(&request.messages);
        if !missing.is_empty() {
            Box::pin(self.teller.repaired(&missing)).await;
        }
        let mut progress = Progress::new(history);
        let (policy, began) = (self.settings.policy(), Instant::now());
        for tries_before in 0.. {
            cx.pulse.beat();
            let error = match self.attempt(request, &mut progress, cx).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let longest = self.settings.max_retry_after.get();
            let bounds = retry::Bounds { left: self.left(request, began), longest };
            let Some(delay) = retry::wait(&policy, tries_before, &error, &bounds, retry::chance()) else {
                return Err(progress.told(error));
            };
            let attempt = (tries_before + 1, policy.max_retries);
            self.teller.retry(self.model(request), attempt, delay, &error, cx).await;
            pause(delay, cx).await.map_err(|stopped| stopped.caused_by(error))?;
        }
        Err(LlmError::new(LlmErrorKind::Unclassified, "no try was made"))
    }

    /// One try, told from request to answer.
    async fn attempt(
        &self,
        request: &ChatRequest,
        progress: &mut Progress,
        cx: &ProviderCx,
    ) -> Result<ChatResponse, LlmError> {
        let began = Instant::now();
        let (model, delivery) = (self.model(request), self.delivery(request));
        let learnt = self.learn(model).await;
        let kept = std::mem::take(&mut progress.kept);
        let mut listening = Listening {
            answer: Answer::after(&cx.request_id, kept, progress.base),
            blocks: BlockTeller::new(&self.teller, &cx.request_id),
            began: &mut progress.began,
            cx,
        };
        let result = {
            let (history, settings) = (&progress.history, &self.settings);
            let ask = Ask { request, history, settings, model, delivery, learnt: &learnt };
            let call = self.proven(self.service.call(&ask)?, cx).await?;
            let _place = self.enter(model, cx).await?;
            self.teller.request(&ask, &call, cx).await;
            let mut body = None;
            let exchange = self.exchange(&call, delivery, &mut listening, &mut body);
            match self.bounded(exchange, cx).await {
                Ok(()) => Ok(()),
                Err(error) => Err(exchange::given_up(body, error).await),
            }
        };
        let result = match result {
            Ok(()) => self.complete_answer(listening, model).await,
            Err(error) => {
                let answer = listening.answer;
                Err(self.break_off(error, answer, progress, cx).await)
            }
        };
        if let (Err(error), Some(tokens)) = (&result, self.service.tokens())
            && error.kind == LlmErrorKind::Authentication
        {
            tokens.forget().await;
        }
        let result = result.map_err(|error| self.signed(self.service.judge(error), model));
        self.teller.response(model, &result, began.elapsed(), cx).await;
        result
    }

    /// The exchange within the time of one try, with signs of life: a service that takes as long as it may is not lost.
    async fn bounded(
        &self,
        exchange: impl Future<Output = Result<(), LlmError>>,
        cx: &ProviderCx,
    ) -> Result<(), LlmError> {
        let patience = self.settings.timeout.get();
        let (mut exchange, mut late) = (pin!(exchange), pin!(tokio::time::sleep(patience)));
        let mut beat = tokio::time::interval_at(Instant::now() + ALIVE, ALIVE);
        loop {
            tokio::select! {
                result = &mut exchange => return result,
                _ = beat.tick() => cx.pulse.beat(),
                () = &mut late => {
                    let message = format!("the answer took longer than {:.1} s", patience.as_secs_f64());
                    return Err(LlmError::new(LlmErrorKind::Timeout, message));
                }
                () = cx.cancel.cancelled(CancelLevel::Immediate) => return Err(stopped()),
            }
        }
    }

    /// The call with a token, where the service takes one.
    async fn proven(&self, call: Call, cx: &ProviderCx) -> Result<Call, LlmError> {
        let Some(tokens) = self.service.tokens() else { return Ok(call) };
        let token = tokio::select! {
            token = tokens.token() => token?,
            () = cx.cancel.cancelled(CancelLevel::Immediate) => return Err(stopped()),
        };
        Ok(call.header("authorization", format!("Bearer {token}")))
    }

    /// A place on the line, told when it must be waited for.
    async fn enter(
        &self,
        model: &str,
        cx: &ProviderCx,
    ) -> Result<Option<tokio::sync::SemaphorePermit<'_>>, LlmError> {
        let load = match self.exchange.line.try_enter() {
            Ok(place) => return Ok(place),
            Err(load) => load,
        };
        let (provider, model) = (self.about.id.clone(), model.to_owned());
        let (active_requests, waiting_requests, max_concurrent) = (load.active, load.waiting, load.most);
        let told = ProviderConcurrency { provider, model, active_requests, waiting_requests, max_concurrent };
        self.teller.waiting(told).await;
        let mut beat = tokio::time::interval(BEAT);
        let mut place = pin!(self.exchange.line.enter());
        loop {
            tokio::select! {
                place = &mut place => return Ok(place),
                // Waiting for others is no stall; they have time-outs of their own.
                _ = beat.tick() => cx.pulse.beat(),
                () = cx.cancel.cancelled(CancelLevel::Immediate) => return Err(stopped()),
            }
        }
    }

    /// The call and its answer, piece by piece to who listens. The body stays with the caller, who may give it up.
    async fn exchange(
        &self,
        call: &Call,
        delivery: Delivery,
        listening: &mut Listening<'_>,
        incoming: &mut Option<Body>,
    ) -> Result<(), LlmError> {
        let Incoming { headers, body } = self.exchange.open(call, delivery).await?;
        let body = incoming.insert(body);
        let kind = errors::content_type(&headers);
        let mut reader = self.service.reader();
        let is_stream = kind.contains("event-stream") || kind.contains("ndjson") || kind.contains("jsonl");
        if !is_stream {
            let whole = body.whole().await?;
            let document = match serde_json::from_slice(&whole) {
                Ok(document) => document,
                Err(_) if !kind.contains("json") => return Err(errors::wrong_type(&headers, &whole)),
                Err(error) => return Err(errors::broken(format!("the answer is no JSON: {error}"))),
            };
            listening.take(reader.whole(document)?).await;
            return Ok(());
        }
        let mut cutter = Cutter::new(call.framing);
        loop {
            let (frames, ended) = match body.chunk().await {
                Ok(Some(bytes)) => (cutter.push(&bytes), false),
                Ok(None) => (cutter.finish().into_iter().collect(), true),
                // Everything was said; how the connection ended does not matter.
                Err(_) if listening.answer.is_complete() => return Ok(()),
                Err(error) => return Err(error),
            };
            listening.cx.pulse.beat();
            for frame in frames {
                listening.take(reader.frame(&frame)?).await;
            }
            if listening.answer.is_ended() {
                return body.settle(None).await;
            }
            if ended {
                return match listening.answer.is_complete() {
                    true => Ok(()),
                    false => Err(errors::broken("the stream ended before the answer did")),
                };
            }
        }
    }

    async fn complete_answer(
        &self,
        mut listening: Listening<'_>,
        model: &str,
    ) -> Result<ChatResponse, LlmError> {
        let ends = listening.answer.close();
        listening.tell(ends).await;
        let Listening { answer, mut blocks, cx, .. } = listening;
        let mut response = answer.finish()?;
        if let Some(usage) = &mut response.usage {
            if usage.cost_usd.is_none() {
                usage.cost_usd = price::cost(&self.about.id, model, usage, &self.settings.prices);
            }
            self.spent.add(usage.cost_usd);
        }
        if cx.deltas.is_open() {
            let end = StreamEvent::MessageEnd { usage: response.usage.clone() };
            blocks.tell(&end).await;
            cx.send(end).await;
        }
        Ok(response)
    }

    /// What a try that failed leaves to the next, and the error with what came of it.
    async fn break_off(
        &self,
        error: LlmError,
        answer: Answer,
        progress: &mut Progress,
        cx: &ProviderCx,
    ) -> LlmError {
        if answer.was_shown() {
            self.teller.aborted(&error, cx).await;
        }
        match answer.broken() {
            Broken::Afresh { kept, base } => {
                (progress.kept, progress.base) = (kept, base);
                error
            }
            // Behind thoughts alone nothing can be gone on with: they would be thought, and shown, again.
            Broken::Behind { kept, base }
                if self.service.resumes() == Resumes::BehindWholeBlocks && kept.iter().any(is_said) =>
            {
                progress.go_on_behind(kept, base, error.clone());
                error
            }
            Broken::Behind { .. } => progress.over(error, None),
            Broken::Shown { characters } => progress.over(error, Some(characters)),
        }
    }

    /// The error with whose it is, and without the key.
    fn signed(&self, error: LlmError, model: &str) -> LlmError {
        let message = self.settings.scrub(&error.message);
        LlmError { provider: Some(self.about.id.clone()), model: Some(model.to_owned()), message, ..error }
    }
}

#[async_trait]
impl<S: Service> Provider for WireProvider<S> {
    fn name(&self) -> &str {
        &self.about.id
    }

    fn info(&self) -> ProviderInfo {
        let model = self.settings.default_model.as_deref().unwrap_or(&self.about.default_model);
        let known = models::known(&self.about.id, model);
        let learnt = self.learnt.lock().unwrap_or_else(PoisonError::into_inner).get(model).cloned();
        let told = learnt.and_then(|learnt| learnt.context_window);
        // What the plan wants cannot be more than what the server has.
        let window = match (self.settings.context_window, told) {
            (Some(wanted), Some(told)) => Some(wanted.min(told)),
            (wanted, told) => wanted.or(told).or_else(|| known.and_then(|known| known.context_window)),
        };
        let output =
            self.settings.max_output_tokens.or_else(|| known.and_then(|known| known.max_output_tokens));
        let mut defaults = Map::from_iter([("model".to_owned(), Value::from(model))]);
        let numbers = [
            ("context_window", window),
            ("max_output_tokens", output.or(self.settings.max_tokens)),
            ("max_tokens", self.settings.max_tokens),
        ];
        let known =
            numbers.into_iter().filter_map(|(key, number)| Some((key.to_owned(), Value::from(number?))));
        defaults.extend(known);
        if let Some(place) = self.exchange.place() {
            defaults.insert("base_url".to_owned(), Value::from(place));
        }
        if let Some(priority) = self.settings.priority {
            defaults.insert("priority".to_owned(), Value::from(priority));
        }
        let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        ProviderInfo {
            id: self.about.id.clone(),
            display_name: self.about.display_name.clone(),
            credential_env_vars: texts(self.about.credential_env_vars),
            capabilities: texts(self.about.capabilities),
            defaults,
            config_fields: Vec::new(),
        }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let Some(call) = self.service.list() else { return Ok(Vec::new()) };
        let listed = tokio::time::timeout(self.settings.timeout.get(), self.document(&call)).await;
        let late = || LlmError::new(LlmErrorKind::Timeout, "the list of models did not come in time");
        let listed = listed.map_err(|_| late()).and_then(|listed| listed);
        listed.map(|listed| self.service.models(&listed)).map_err(|error| self.signed(error, ""))
    }

    async fn complete(&self, request: ChatRequest, cx: &ProviderCx) -> Result<ChatResponse, LlmError> {
        // Boxed: a session holds its turn's futures, and most of the time nothing is asked.
        let answer = Box::pin(self.ask(&request, cx)).await;
        answer.map_err(|error| self.signed(error, self.model(&request)))
    }

    fn bound(&self, request: &ChatRequest) -> CallBound {
        let model = self.model(request);
        let known = || models::known(&self.about.id, model)?.max_output_tokens;
        let received = request.max_output_tokens.or(self.settings.max_tokens).or_else(known);
        // A token is a byte at least, and the JSON of a request holds all that is sent.
        let sent = serde_json::to_vec(request).ok().and_then(|text| u64::try_from(text.len()).ok());
        let (Some(sent), Some(received)) = (sent, received) else { return CallBound::default() };
        let cost = price::most(&self.about.id, model, (sent, received), &self.settings.prices);
        CallBound { tokens: Some(sent.saturating_add(received)), cost }
    }

    fn parse_tool_calls(&self, response: &ChatResponse) -> Vec<ToolCall> {
        response.calls()
    }
}
