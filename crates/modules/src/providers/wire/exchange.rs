//! Carries calls: over the network, within the times and sizes of the settings. It does not know what a call says.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::redact::redact_text;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{NoProxy, Proxy, StatusCode};
use tokio::time::timeout;
use url::{Host, Url};

use super::limits::Line;
use super::tape::{Asked, Given, Recorder, Run, Tape};
use super::{Call, Delivery, Settings, errors};

/// The most of a failed answer that is read.
const ERROR_BYTES: u64 = 64 * 1024;

/// Carries the calls of one provider.
pub(super) struct Exchange {
    pub(super) line: Arc<Line>,
    provider: String,
    tape: Tape,
    settings: Settings,
    base: String,
    headers: HeaderMap,
}

/// Proxies that the environment names.
#[derive(Debug, Clone, Default)]
pub(super) struct Proxies {
    pub(super) http: Option<String>,
    pub(super) https: Option<String>,
    pub(super) except: Option<String>,
}

impl Proxies {
    /// Whether no place at all is reached through them. The list of the HTTP client takes a `*` for names only, not for
    /// addresses.
    fn except_all(&self) -> bool {
        self.except.as_deref().is_some_and(|places| places.split(',').any(|place| place.trim() == "*"))
    }
}

/// An answer whose head has come.
pub(super) struct Incoming {
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

impl Exchange {
    /// Opens or finds the line for these settings. The error is a sentence for the load report.
    pub(super) fn new(
        provider: &str,
        settings: &Settings,
        proxies: &Proxies,
        tape: Tape,
    ) -> Result<Self, String> {
        let base = settings.base_url.as_deref().unwrap_or_default();
        let key = settings.base_url_from.as_deref().unwrap_or("base_url");
        let shown = redact_text(base.split('?').next().unwrap_or_default());
        let url = Url::parse(base).map_err(|error| format!("`{key}` `{shown}` is no URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(format!("`{key}` `{shown}` must begin with http:// or https:// and name a host"));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let name: HeaderName =
                name.parse().map_err(|_| format!("`{name}` in `headers` is no header name"))?;
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| format!("the value of header `{name}` cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let proxy = format!("{:?} {proxies:?} {:?}", settings.proxy, settings.connect_timeout);
        let parts = [provider, base, settings.key().unwrap_or_default(), &proxy];
        let client = || client(settings, proxies, &url);
        Ok(Self {
            line: Line::find(&parts, settings.max_concurrent_requests, client)?,
            provider: provider.to_owned(),
            tape,
            settings: settings.clone(),
            base: base.trim_end_matches('/').to_owned(),
            headers,
        })
    }

    /// Where calls go, without anything that may be a secret.
    pub(super) fn place(&self) -> Option<String> {
        let mut url = Url::parse(&self.base).ok()?;
        // Fails only for URLs that cannot have a name and a password, and those were refused.
        url.set_username("").and_then(|()| url.set_password(None)).ok()?;
        url.set_query(None);
        Some(url.as_str().trim_end_matches('/').to_owned())
    }

    /// Sends a call and waits for the head of its answer. An answer that is not a success is an error.
    pub(super) async fn open(&self, call: &Call, delivery: Delivery) -> Result<Incoming, LlmError> {
        let (status, headers, source) = match &self.tape {
            Tape::Play(player) => {
                let given = player.play(&self.asked(call, &player.run).await?)?;
                (given.status(), given.headers(), Source::Tape(Some(given)))
            }
            Tape::Off | Tape::Record(_) => {
                let response = self.send(call, delivery).await?;
                (response.status(), response.headers().clone(), Source::Net(response))
            }
        };
        let copy = match &self.tape {
            Tape::Record(recorder) => Some(Copy {
                recorder: Arc::clone(recorder),
                asked: self.asked(call, &recorder.run).await?,
                status,
                headers: headers.clone(),
                bytes: Vec::new(),
                settings: self.settings.clone(),
            }),
            Tape::Off | Tape::Play(_) => None,
        };
        let (first, idle) = (self.settings.first_byte_timeout.get(), self.settings.idle_timeout.get());
        let most = self.settings.max_response_bytes;
        let body = Body { source, wait: Wait { first, idle }, begun: false, read: 0, most, copy };
        if status.is_success() {
            Ok(Incoming { headers, body })
        } else {
            Err(refused(status, &headers, body, &self.base).await)
        }
    }

    /// A call as a tape knows it.
    async fn asked(&self, call: &Call, run: &Run) -> Result<Asked, LlmError> {
        let scrub = |text: &str| self.settings.scrub(text);
        Asked::new(&self.provider, &call.path, call.body.as_ref(), scrub, run).await
    }

    async fn send(&self, call: &Call, delivery: Delivery) -> Result<reqwest::Response, LlmError> {
        let address = format!("{}/{}", self.base, call.path);
        let client = &self.line.client;
        let request = match &call.body {
            None => client.get(address),
            Some(body) => {
                client.post(address).header(CONTENT_TYPE, "application/json").body(body.to_string())
            }
        };
        let accept = match delivery {
            Delivery::Streamed => "text/event-stream, application/x-ndjson, application/json",
            Delivery::Whole => "application/json",
        };
        let mut headers = self.headers.clone();
        for (name, value) in &call.headers {
            let (Ok(name), Ok(mut value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) else {
                let message = format!("header `{name}` cannot be sent; is there a line break in the key?");
                return Err(LlmError::new(LlmErrorKind::Configuration, message));
            };
            value.set_sensitive(true);
            // What the plan says about a header counts more than what the provider does.
            headers.entry(name).or_insert(value);
        }
        let patience = self.settings.first_byte_timeout.get();
        let sent = timeout(patience, request.header(ACCEPT, accept).headers(headers).send()).await;
        sent.map_err(|_| no_first_byte(patience))?.map_err(|error| {
            let is_here =
                self.settings.proxy.is_none() && Url::parse(&self.base).is_ok_and(|url| is_local(&url));
            let nobody_listens = is_here && errors::is_refused(&error);
            let error = errors::from_transport(error);
            // On this machine that is no passing trouble of a network: somebody has to start the server. The cause says so to
            // whoever tells a person, since much else is not tried again.
            match error.cause.clone().filter(|_| nobody_listens) {
                Some(cause) => LlmError { retryable: false, ..error }
                    .caused_by(io::Error::new(io::ErrorKind::ConnectionRefused, cause)),
                None => error,
            }
        })
    }
}

async fn refused(status: StatusCode, headers: &HeaderMap, mut body: Body, base: &str) -> LlmError {
    body.most = ERROR_BYTES;
    let mut said = Vec::new();
    // What can be read of the reason is told; the status stands without it.
    while let Ok(Some(bytes)) = body.chunk().await {
        said.extend_from_slice(&bytes);
    }
    errors::from_status(status, headers, &said, base)
}

fn client(settings: &Settings, proxies: &Proxies, url: &Url) -> Result<reqwest::Client, String> {
    let mut builder = crate::http::client().no_proxy().connect_timeout(settings.connect_timeout.get());
    let told = |error: reqwest::Error| format!("`proxy` cannot be used: {}", error.without_url());
    if let Some(proxy) = &settings.proxy {
        builder = builder.proxy(Proxy::all(proxy.as_str()).map_err(told)?);
    } else if !is_local(url) && !proxies.except_all() {
        let except = proxies.except.as_deref().and_then(NoProxy::from_string);
        if let Some(proxy) = &proxies.https {
            builder = builder.proxy(Proxy::https(proxy.as_str()).map_err(told)?.no_proxy(except.clone()));
        }
        if let Some(proxy) = &proxies.http {
            builder = builder.proxy(Proxy::http(proxy.as_str()).map_err(told)?.no_proxy(except));
        }
    }
    builder.build().map_err(|error| format!("no HTTP client can be made: {}", error.without_url()))
}

/// Whether an address is on this machine.
pub(super) fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
        None => false,
    }
}

/// The bytes of an answer.
pub(super) struct Body {
    source: Source,
    wait: Wait,
    begun: bool,
    read: u64,
    most: u64,
    copy: Option<Copy>,
}

/// Where the bytes come from.
enum Source {
    Net(reqwest::Response),
    Tape(Option<Given>),
}

#[derive(Clone, Copy)]
struct Wait {
    first: Duration,
    idle: Duration,
}

/// What is written down when the answer has ended.
struct Copy {
    recorder: Arc<Recorder>,
    asked: Asked,
    status: StatusCode,
    headers: HeaderMap,
    bytes: Vec<u8>,
    settings: Settings,
}

impl Body {
    /// The next bytes; none at the end. Waits no longer and reads no more than allowed.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, LlmError> {
        let chunk = self.next().await;
        if let (Some(copy), Ok(Some(bytes))) = (&mut self.copy, &chunk) {
            copy.bytes.extend_from_slice(bytes);
        }
        match &chunk {
            Ok(Some(_)) => {}
            Ok(None) => self.settle(None).await?,
            Err(error) => self.settle(Some(error.message.clone())).await?,
        }
        chunk
    }

    async fn next(&mut self) -> Result<Option<Bytes>, LlmError> {
        let patience = if self.begun { self.wait.idle } else { self.wait.first };
        let chunk = match timeout(patience, self.source.chunk()).await {
            Err(_) if self.begun => return Err(stalled(patience)),
            Err(_) => return Err(no_first_byte(patience)),
            Ok(chunk) => chunk?,
        };
        self.begun = true;
        self.read += chunk.as_ref().map_or(0, |bytes| bytes.len() as u64);
        if self.read > self.most { Err(errors::too_large(self.most)) } else { Ok(chunk) }
    }

    /// Everything.
    pub(super) async fn whole(&mut self) -> Result<Vec<u8>, LlmError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }

    /// Writes down what came, when calls are recorded. Call it when nothing more is wanted before the end.
    pub(super) async fn settle(&mut self, broke_off: Option<String>) -> Result<(), LlmError> {
        let Some(copy) = self.copy.take() else { return Ok(()) };
        let scrub = |text: &str| copy.settings.scrub(text);
        let broke_off = broke_off.as_deref().map(scrub);
        let given = Given::new(copy.status, &copy.headers, &copy.bytes, scrub);
        copy.recorder.record(copy.asked, given.broken_off(broke_off)).await
    }
}

/// The error of an answer that nobody reads to its end, with what came of it written down.
pub(super) async fn given_up(body: Option<Body>, error: LlmError) -> LlmError {
    let Some(mut body) = body else { return error };
    match body.settle(Some(error.message.clone())).await {
        Ok(()) => error,
        Err(unwritten) => unwritten.caused_by(error),
    }
}

impl Source {
    async fn chunk(&mut self) -> Result<Option<Bytes>, LlmError> {
        match self {
            Self::Net(response) => response.chunk().await.map_err(|error| {
                let error = errors::from_transport(error);
                // Whatever the transport calls it: an answer had begun and broke off.
                LlmError { kind: LlmErrorKind::Stream, retryable: true, ..error }
            }),
            Self::Tape(given) => match given.take() {
                None => Ok(None),
                Some(mut rest) if rest.body().is_empty() => match rest.broke_off.take() {
                    Some(message) => Err(errors::broken(message)),
                    None => Ok(None),
                },
                Some(whole) => {
                    let bytes = Bytes::copy_from_slice(whole.body().as_bytes());
                    *given = Some(whole.without_body());
                    Ok(Some(bytes))
                }
            },
        }
    }
}

fn no_first_byte(patience: Duration) -> LlmError {
    let message = format!("no answer began within {:.1} s", patience.as_secs_f64());
    LlmError::new(LlmErrorKind::Timeout, message)
}

fn stalled(patience: Duration) -> LlmError {
    let message = format!("the answer stalled: nothing more came for {:.1} s", patience.as_secs_f64());
    LlmError::new(LlmErrorKind::Timeout, message)
}
