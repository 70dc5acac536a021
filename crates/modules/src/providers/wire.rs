//! What every provider that talks HTTP shares. A provider is a [`Service`] (pure: shapes in, shapes out) and its config;
//! everything with effects is here and exists once.
//!
//! The way of a request, each step a file:
//!
//! 1. `settings.rs`: the config keys all providers have, read when the module is mounted; `environment.rs`: keys that
//!    stand in variables.
//! 2. `provider.rs`: [`WireProvider`] is the `Provider`; it mends the history (`repair.rs`, pure), asks, tries again
//!    (`retry.rs`), tells events (`events.rs`).
//! 3. [`Service::call`] maps the request to a [`Call`]; `exchange.rs` carries it, within the time-outs and sizes of the
//!    settings, over a `limits.rs` line (how many at once), or from a `tape.rs` (record and replay).
//! 4. `sse.rs` cuts the bytes into frames; the service's [`Reader`] maps frames to [`Piece`]s; `answer.rs` joins pieces to
//!    stream events and the whole answer, `listening.rs` passes them on; `price.rs` adds what it cost, `models.rs` knows windows and abilities.
//! 5. `errors.rs` turns status, body and transport into one taxonomy.
//!
//! A new provider: a config struct, a `Service`, a `Reader`, its description by [`described`], and in `mount`
//! `let (settings, own) = wire::read(cx, config, defaults)?; let settings = settings.with_key(cx, &["SOME_API_KEY"]).await;`
//! and `cx.mount_provider(Arc::new(WireProvider::new(service, settings, cx).await?))`. `chat_completions.rs` is the one to
//! copy.

use amplifier_protocol::chat::{ChatRequest, ResponseFormat};
use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::llm_error::LlmError;
use amplifier_protocol::provider::ModelInfo;
use amplifier_protocol::usage::Usage;
use async_trait::async_trait;
use serde_json::{Map, Value};

mod answer;
mod described;
mod environment;
mod errors;
mod events;
mod exchange;
#[cfg(test)]
pub(crate) mod histories;
mod keys;
mod limits;
mod listening;
pub(crate) mod models;
mod price;
mod provider;
pub(crate) mod repair;
mod retry;
mod settings;
mod sse;
mod tape;

pub(crate) use described::{described, leave_out, with_defaults};
pub(crate) use environment::variable;
pub(crate) use errors::from_body;
pub(crate) use provider::WireProvider;
pub(crate) use repair::History;
pub(crate) use settings::{Settings, read};

/// A model service: how its requests and answers look. Pure; a service never waits and never sees the network.
pub(crate) trait Service: Send + Sync + 'static {
    /// Who it is.
    fn about(&self) -> About;

    /// The request in the service's words.
    fn call(&self, ask: &Ask<'_>) -> Result<Call, LlmError>;

    /// Reads the answer to one request; a fresh one for every try.
    fn reader(&self) -> Box<dyn Reader>;

    /// Asks for the models on offer, where the service can tell.
    fn list(&self) -> Option<Call>;

    /// The models of an answer to [`Service::list`].
    fn models(&self, listed: &Value) -> Vec<ModelInfo>;

    /// Asks what a model can take, before it is first asked; for services whose models differ from server to server.
    fn probe(&self, _model: &str) -> Option<Call> {
        None
    }

    /// What the answer to [`Service::probe`] says.
    fn learn(&self, _model: &str, _told: &Value) -> Learnt {
        Learnt::default()
    }

    /// Whether an answer that broke off can be gone on with behind its whole blocks.
    fn resumes(&self) -> Resumes;

    /// Where tokens come from that end and are fetched anew, for services that take no lasting key.
    fn tokens(&self) -> Option<&dyn Tokens> {
        None
    }

    /// The error as this service means it, such as one that asks for more patience.
    fn judge(&self, error: LlmError) -> LlmError {
        error
    }
}

/// Gives tokens that prove whose a request is, each for a while.
#[async_trait]
pub(crate) trait Tokens: Send + Sync {
    /// A token that is good now.
    async fn token(&self) -> Result<String, LlmError>;

    /// The service did not take the last one: the next is fetched anew.
    async fn forget(&self);
}

/// Reads one answer. Pure: what it must remember between frames it keeps in itself.
pub(crate) trait Reader: Send {
    /// One frame of a streamed answer: the data of a server-sent event, or a line.
    fn frame(&mut self, frame: &sse::Frame) -> Result<Vec<Piece>, LlmError>;

    /// An answer that came as one document.
    fn whole(&mut self, body: Value) -> Result<Vec<Piece>, LlmError>;
}

pub(crate) use sse::Frame;

/// What a provider says about its service.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// The name it is mounted under, such as `chat-completions`.
    pub(crate) id: String,
    /// For people.
    pub(crate) display_name: String,
    /// Variables that may hold the key.
    pub(crate) credential_env_vars: &'static [&'static str],
    /// What it can do whatever the model.
    pub(crate) capabilities: &'static [&'static str],
    /// What is asked for when nobody names a model.
    pub(crate) default_model: String,
}

/// What a service told about one of its models.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Learnt {
    /// Tokens that fit into a request and its answer.
    pub(crate) context_window: Option<u64>,
    /// What it can do, in the service's words.
    pub(crate) abilities: Vec<String>,
}

/// One question, ready to be mapped.
pub(crate) struct Ask<'a> {
    /// The parameters; its messages are those before the mending.
    pub(crate) request: &'a ChatRequest,
    /// The conversation, mended.
    pub(crate) history: &'a History,
    /// What the plan configured.
    pub(crate) settings: &'a Settings,
    /// The model to ask.
    pub(crate) model: &'a str,
    /// How the answer shall come.
    pub(crate) delivery: Delivery,
    /// What the service told about the model, where it was asked.
    pub(crate) learnt: &'a Learnt,
}

impl Ask<'_> {
    /// The most tokens the answer may have, where somebody says.
    pub(crate) fn max_tokens(&self) -> Option<u64> {
        self.request.max_output_tokens.or(self.settings.max_tokens)
    }

    /// The randomness, where somebody says.
    pub(crate) fn temperature(&self) -> Option<f64> {
        self.request.temperature.or(self.settings.temperature)
    }

    /// Nucleus sampling, where somebody says.
    pub(crate) fn top_p(&self) -> Option<f64> {
        self.request.top_p.or(self.settings.top_p)
    }

    /// The shape of the answer, where somebody says.
    pub(crate) fn response_format(&self) -> Option<&ResponseFormat> {
        self.request.response_format.as_ref().or(self.settings.response_format.as_ref())
    }

    /// Texts that end the answer, where somebody says.
    pub(crate) fn stop(&self) -> Option<&[String]> {
        self.request.stop.as_deref().or(self.settings.stop.as_deref())
    }
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Piece by piece.
    Streamed,
    /// As one document.
    Whole,
}

/// How the frames of a streamed answer are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document a line.
    Lines,
}

/// A request in the service's words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Behind the base URL, without a slash in front.
    pub(crate) path: String,
    /// Headers, the key's among them; never logged, never recorded.
    pub(crate) headers: Vec<(String, String)>,
    /// What is posted; nothing means that it is only read.
    pub(crate) body: Option<Value>,
    /// How a streamed answer is cut.
    pub(crate) framing: Framing,
}

impl Call {
    /// Posts a document and reads server-sent events or a document.
    pub(crate) fn post(path: impl Into<String>, body: Map<String, Value>) -> Self {
        let (headers, framing) = (Vec::new(), Framing::Events);
        Self { path: path.into(), headers, body: Some(Value::Object(body)), framing }
    }

    /// Reads a document.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { path: path.into(), headers: Vec::new(), body: None, framing: Framing::Events }
    }

    /// The same call with one header more.
    #[must_use]
    pub(crate) fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Whether an answer can be gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resumes {
    /// The whole blocks are sent back as the beginning of the answer.
    BehindWholeBlocks,
    /// It cannot.
    Never,
}

/// A part of an answer, in no service's words. `block` is whatever the reader numbers its blocks with; blocks stand in the
/// answer in the order in which they first appear.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// More text.
    Text { block: u32, text: String },
    /// More thinking.
    Thinking { block: u32, text: String },
    /// The proof that belongs to a thought; a later one replaces it.
    Signature { block: u32, signature: String },
    /// The opaque state that belongs to a thought.
    ThinkingState { block: u32, content: Vec<Value> },
    /// A tool call begins. Without an id it gets one.
    CallStart { block: u32, id: Option<String>, name: String },
    /// More of a call's arguments, as JSON text.
    CallArguments { block: u32, fragment: String },
    /// A key of the service that must come back with the block.
    Extra { block: u32, key: String, value: Value },
    /// A block that came whole.
    Block { block: u32, content: ContentBlock },
    /// A block is complete.
    BlockEnd { block: u32 },
    /// What was consumed; a later one replaces it.
    Usage(Usage),
    /// Why it ended: `stop`, `tool_calls`, `length`, `content_filter`, or a word of the service.
    Finish(String),
    /// A note to keep with the message.
    Note(String, Value),
    /// The service says that the answer is complete.
    End,
}
