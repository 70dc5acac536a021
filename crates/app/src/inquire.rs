//! Questions to one provider without a session that anybody talks to: which models it has, and whether it answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::contracts::{DeltaSink, Provider, ProviderCx};
use amplifier_core::session::OpenError;
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind as Kind};
use amplifier_protocol::message::Message;
use amplifier_protocol::module_info::ModuleInfo;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::provider::{ModelInfo, ProviderInfo};
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::usage::{Usage, Usd};
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use crate::catalog::{self, UnknownModule};
use crate::connect;
use crate::detect::{self, DetectError, Detected, Looked, Places};
use crate::env::{self, Environment};
use crate::failure;
use crate::lack;

/// The module that asks a server of which only the address is known.
const BY_ADDRESS: &str = "provider-chat-completions";
/// Services that refuse to answer with fewer tokens than this.
const LEAST_TOKENS: [(&str, u64); 2] = [("openai", 16), ("azure-openai", 16)];
/// How long the answer to a test may take when nobody says.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whom to ask, and how.
#[derive(Debug, Clone, Default)]
pub struct Inquiry {
    /// The provider, by module or short name; without it the one that is found here.
    pub provider: Option<String>,
    /// The entry of a plan or of settings to ask with, instead of the provider's usual one.
    pub entry: Option<ModuleSpec>,
    /// The model, instead of the provider's usual one.
    pub model: Option<String>,
    /// Where the service is, instead of its usual place.
    pub base_url: Option<String>,
    /// How long it may take.
    pub timeout: Option<Duration>,
}

/// The models of a provider.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Models {
    /// The module that was asked.
    pub module: ModuleId,
    /// Where.
    pub base_url: Option<String>,
    /// What it has.
    pub models: Vec<ModelInfo>,
}

/// How a provider answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answered {
    /// The module that was asked.
    pub module: ModuleId,
    /// Where.
    pub base_url: Option<String>,
    /// The model that was asked.
    pub model: Option<String>,
    /// Milliseconds to find and reach the service; nothing where a proxy or a tape stands between.
    pub connect_ms: Option<f64>,
    /// Milliseconds until the first piece of the answer; nothing where none came before the end.
    pub first_token_ms: Option<f64>,
    /// Milliseconds until the answer was whole.
    pub total_ms: f64,
    /// What it consumed.
    pub usage: Option<Usage>,
    /// What it cost; nothing where that is not known.
    pub cost_usd: Option<Usd>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InquiryError {
    /// There is no such provider.
    #[error(transparent)]
    Unknown(#[from] UnknownModule),
    /// None was named, and none was found.
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// The session on which it is looked at did not open.
    #[error("the provider cannot be looked at")]
    Open(#[from] Box<OpenError>),
    /// The provider cannot be used here.
    #[error("`{module}` cannot be used here: {reason}")]
    NotUsable {
        /// Which.
        module: ModuleId,
        /// Why.
        reason: String,
    },
    /// It was asked and failed.
    #[error(transparent)]
    Call(Box<FailedCall>),
}

/// A call that failed, with what is needed to help.
#[derive(Debug, thiserror::Error)]
#[error("{}", failure::call(name, place.as_deref(), error))]
pub struct FailedCall {
    /// What happened.
    pub error: LlmError,
    /// What the provider is called where it was named.
    pub name: String,
    /// Where it was asked.
    pub place: Option<String>,
    /// Where its key comes from: the variable, or those that it may be in.
    pub variables: Vec<String>,
}

/// Who asks: what can be done differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// A command that has flags for the model, the place and the time.
    Command,
    /// The questions of `amplifier init`, which has none of them.
    Init,
}

impl InquiryError {
    /// What the person can do about it.
    pub fn hint(&self, asker: Asker) -> Option<String> {
        match self {
            Self::Unknown(_) | Self::NotUsable { .. } => {
                Some("`amplifier provider list` shows all, and which of them can be used".to_owned())
            }
            Self::Detect(DetectError::Nothing(_)) => {
                Some("name a provider, as in `amplifier provider test openai`; `amplifier provider list` shows all".to_owned())
            }
            Self::Detect(error) => error.hint().map(str::to_owned),
            Self::Open(_) => None,
            Self::Call(failed) => failed.hint(asker),
        }
    }

    /// Whether the time was up.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Call(failed) if failed.error.kind == Kind::Timeout)
    }
}

impl FailedCall {
    fn hint(&self, asker: Asker) -> Option<String> {
        let variables: Vec<_> = self.variables.iter().map(|name| format!("`{name}`")).collect();
        let place = self.place.as_deref().unwrap_or("its place");
        let name = &self.name;
        Some(match (self.error.kind, asker) {
            (Kind::Authentication, _) if variables.is_empty() => {
                format!("the service at {place} does not take the key; check `api_key` of its config")
            }
            (Kind::Authentication, _) => {
                format!("the service at {place} does not take the key; check {}", variables.join(" or "))
            }
            (Kind::AccessDenied, Asker::Command) => {
                "the key may not do this; ask for another model with `--model`".to_owned()
            }
            (Kind::AccessDenied, Asker::Init) => "the key may not do this; take another model".to_owned(),
            (Kind::NotFound, Asker::Command) => {
                format!("`amplifier provider models {name}` lists the models; is {place} the right place?")
            }
            (Kind::NotFound, Asker::Init) => {
                format!("is the name of the model right, and is {place} the right place?")
            }
            (Kind::Network, Asker::Command) => {
                format!("is there a server at {place}? `--base-url` names another place")
            }
            (Kind::Network, Asker::Init) => format!("is there a server at {place}?"),
            (Kind::Timeout, Asker::Command) => "`--timeout SECONDS` waits longer".to_owned(),
            (Kind::Timeout, Asker::Init) => {
                format!("is {place} the right place? `amplifier init --no-test` asks nobody")
            }
            (Kind::RateLimit, _) => "too many requests at once; try again later".to_owned(),
            (Kind::QuotaExceeded, _) => "the account has nothing left; look at its billing page".to_owned(),
            (Kind::ProviderUnavailable, _) => {
                "the service has trouble of its own; try again later".to_owned()
            }
            _ => return None,
        })
    }
}

/// Asks a provider for its models.
pub async fn models(
    inquiry: &Inquiry,
    environment: &Environment,
    places: &Places,
) -> Result<Models, InquiryError> {
    let asked = Asked::open(inquiry, environment, places).await?;
    let listed = asked.provider.list_models().await;
    let (module, base_url) = (asked.module.clone(), asked.told("base_url"));
    match asked.close(listed).await {
        Ok(models) => Ok(Models { module, base_url, models }),
        Err(error) => Err(error),
    }
}

/// Asks a provider for one token, and takes the time.
pub async fn test(
    inquiry: &Inquiry,
    environment: &Environment,
    places: &Places,
) -> Result<Answered, InquiryError> {
    let asked = Asked::open(inquiry, environment, places).await?;
    let (module, base_url, model) = (asked.module.clone(), asked.told("base_url"), asked.told("model"));
    let connect = match &base_url {
        Some(place) => connect(place, inquiry.timeout.unwrap_or(PATIENCE), environment).await,
        None => None,
    };
    let (answer, times) = one_token(&asked).await;
    let response = asked.close(answer).await?;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
    let cost_usd = response.usage.as_ref().and_then(|usage| usage.cost_usd);
    Ok(Answered {
        module,
        base_url,
        model,
        connect_ms: connect.map(milliseconds),
        first_token_ms: times.first.map(milliseconds),
        total_ms: milliseconds(times.total),
        usage: response.usage,
        cost_usd,
    })
}

/// A provider that can be asked.
struct Asked {
    looked: Looked,
    module: ModuleId,
    provider: Arc<dyn Provider>,
    info: ProviderInfo,
    /// What it is called where it was named.
    name: String,
    /// Where its key comes from.
    variables: Vec<String>,
}

impl Asked {
    async fn open(
        inquiry: &Inquiry,
        environment: &Environment,
        places: &Places,
    ) -> Result<Self, InquiryError> {
        let mut spec = whom(inquiry, environment, places).await?;
        let known = catalog::module(spec.module.as_str());
        let wanted = detect::patience(inquiry.timeout.unwrap_or(PATIENCE)).into_iter();
        let place = inquiry.base_url.as_ref().map(|place| ("base_url", json!(place)));
        for (key, value) in wanted.chain(place) {
            if known.as_ref().is_some_and(|info| has_key(info, key)) {
                spec.config.insert(key.to_owned(), value);
            }
        }
        if let Some(model) = &inquiry.model {
            set_model(&mut spec, model);
        }
        let module = spec.module.clone();
        if let Some(lack) = lack::unset(&spec, environment) {
            return Err(InquiryError::NotUsable { module, reason: lack.to_string() });
        }
        let name = spec.instance_id.clone().unwrap_or_else(|| connect::short(&module).to_owned());
        let looked = Looked::to_ask(spec.clone(), environment).await?;
        match looked.first() {
            Ok(provider) => {
                let info = provider.info();
                let variables = match failure::key_variable(Some(&spec), &info, environment) {
                    Some(variable) => vec![variable],
                    None if spec.config.contains_key("api_key") => Vec::new(),
                    None => info.credential_env_vars.clone(),
                };
                Ok(Self { info, looked, module, provider, name, variables })
            }
            Err(reason) => {
                looked.close().await;
                Err(InquiryError::NotUsable { module, reason })
            }
        }
    }

    fn told(&self, key: &str) -> Option<String> {
        self.info.defaults.get(key).and_then(Value::as_str).map(str::to_owned)
    }

    async fn close<T>(self, result: Result<T, LlmError>) -> Result<T, InquiryError> {
        let place = self.told("base_url").and_then(|place| failure::shown(&place));
        self.looked.close().await;
        let (name, variables) = (self.name, self.variables);
        result.map_err(|error| InquiryError::Call(Box::new(FailedCall { error, name, place, variables })))
    }
}

async fn whom(
    inquiry: &Inquiry,
    environment: &Environment,
    places: &Places,
) -> Result<ModuleSpec, InquiryError> {
    if let Some(entry) = &inquiry.entry {
        return Ok(entry.clone());
    }
    let Some(name) = &inquiry.provider else {
        if inquiry.base_url.is_some() {
            return Ok(ModuleSpec::new(ModuleId::fixed(BY_ADDRESS)));
        }
        let Detected { spec, .. } = detect::detect(environment, places).await?;
        return Ok(spec);
    };
    Ok(ModuleSpec::new(connect::provider(name)?.id))
}

/// Makes the first provider of a plan ask this model when a request names none.
pub fn prefer_model(plan: &mut MountPlan, model: &str) {
    prefer_model_of(plan, 0, model);
}

/// The same for the provider at this place of the plan: the first may be one that cannot be asked here.
pub fn prefer_model_of(plan: &mut MountPlan, at: usize, model: &str) {
    if let Some(spec) = plan.providers.get_mut(at) {
        set_model(spec, model);
    }
}

pub(crate) fn set_model(spec: &mut ModuleSpec, model: &str) {
    let known = catalog::module(spec.module.as_str());
    let key = match known {
        Some(info) if !has_key(&info, "default_model") => "model",
        _ => "default_model",
    };
    // Both are names of the same key; two of them would leave open which one counts.
    spec.config.shift_remove("model");
    spec.config.insert(key.to_owned(), json!(model));
}

pub(crate) fn has_key(info: &ModuleInfo, key: &str) -> bool {
    let properties = info.config_schema.as_ref().and_then(|schema| schema.get("properties"));
    properties.is_some_and(|properties| properties.get(key).is_some())
}

struct Times {
    first: Option<Duration>,
    total: Duration,
}

async fn one_token(asked: &Asked) -> (Result<ChatResponse, LlmError>, Times) {
    let least = LEAST_TOKENS.iter().find(|(name, _)| *name == asked.info.id).map_or(1, |(_, least)| *least);
    let messages = vec![Arc::new(Message::user("Say one word."))];
    let request = ChatRequest { messages, max_output_tokens: Some(least), ..ChatRequest::default() };
    let (deltas, mut pieces) = DeltaSink::open();
    let cx = ProviderCx { request_id: "provider-test".to_owned(), deltas, ..ProviderCx::default() };
    let began = Instant::now();
    // A task of its own: what is sent in one go would else be heard only when everything was said.
    let listener = tokio::spawn(async move {
        let mut first = None;
        while let Some(piece) = pieces.recv().await {
            let is_content = !matches!(piece, StreamEvent::MessageStart | StreamEvent::MessageEnd { .. });
            first = first.or_else(|| is_content.then(|| began.elapsed()));
        }
        first
    });
    let answer = asked.provider.complete(request, &cx).await;
    let total = began.elapsed();
    // Nothing more comes: the listener ends with the sink.
    drop(cx);
    // A listener that heard of the first piece late did not make it later than the last.
    let first = listener.await.ok().flatten().map(|first| first.min(total));
    (answer, Times { first, total })
}

/// How long it takes to find and reach a service, where we reach it ourselves. That it cannot be reached is said by the
/// call itself, in better words.
async fn connect(place: &str, patience: Duration, environment: &Environment) -> Option<Duration> {
    let url = Url::parse(place).ok()?;
    let host = url.host_str()?;
    let is_here = host == "localhost" || host.starts_with("127.") || host == "[::1]";
    let between = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    let is_set = |name: &&str| environment.get(name).is_some_and(|value| !value.is_empty());
    let has_proxy = !is_here && between.iter().any(is_set);
    if has_proxy || is_set(&env::AMPLIFIER_REPLAY) {
        return None;
    }
    let address = (host.trim_matches(['[', ']']), url.port_or_known_default()?);
    let began = Instant::now();
    let reached = tokio::time::timeout(patience, tokio::net::TcpStream::connect(address)).await;
    matches!(reached, Ok(Ok(_))).then(|| began.elapsed())
}
