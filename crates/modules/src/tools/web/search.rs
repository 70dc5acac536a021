//! `web_search`: asks the search service of the configuration. Without one it says what to configure; results are never
//! made up.

use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_core::redact::redact_text;
use amplifier_protocol::tool::Effects;
use reqwest::header::LOCATION;
use reqwest::{Client, RequestBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::Config;
use super::entity::{Place, decode};
use super::get::{Limits, bounded, read, told};
use crate::http::Redirected;

/// The most bytes of an answer of a search service.
const ANSWER: usize = 2 * 1024 * 1024;
/// The most characters of a title or an excerpt.
const EXCERPT: usize = 500;
/// The most results of one search, whatever is asked for.
const MOST: usize = 20;

/// Searches the web and gives titles, addresses and excerpts. Read a result with `web_fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to look for.
    query: String,
    /// The most results.
    max_results: Option<usize>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Output {
    query: String,
    results: Vec<Hit>,
    count: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Hit {
    title: String,
    url: String,
    snippet: String,
}

/// Why there is no search here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Missing {
    #[error(
        "no search service is configured; set `backend` (`searxng`, `brave` or `tavily`) in the config of `tool-web`, \
         with `base_url` for `searxng` or `api_key` for the others"
    )]
    Backend,
    #[error(
        "search service `{name}` is not known; `backend` of `tool-web` can be `searxng`, `brave` or `tavily`"
    )]
    Unknown { name: String },
    #[error("search service `{name}` needs `{key}` in the config of `tool-web`")]
    Key { name: &'static str, key: &'static str },
    #[error("`base_url` of `tool-web`, `{url}`, is no http or https address")]
    Address { url: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Searxng,
    Brave,
    Tavily,
}

/// A search service and how to ask it.
#[derive(Clone)]
pub(super) struct Service {
    backend: Backend,
    base: Url,
    api_key: Option<String>,
}

impl Service {
    pub(super) fn from_config(config: &Config) -> Result<Self, Missing> {
        let named = config.backend.as_deref().or(config.search_engine.as_deref()).map(str::trim);
        let (backend, name, usual) = match named.map(str::to_ascii_lowercase).as_deref() {
            // `mock` is what older configurations say when they mean nothing.
            None | Some("" | "mock" | "none") => return Err(Missing::Backend),
            Some("searxng") => (Backend::Searxng, "searxng", None),
            Some("brave") => (Backend::Brave, "brave", Some("https://api.search.brave.com/res/v1/")),
            Some("tavily") => (Backend::Tavily, "tavily", Some("https://api.tavily.com/")),
            Some(other) => return Err(Missing::Unknown { name: other.to_owned() }),
        };
        let base = config.base_url.as_deref().or(usual).ok_or(Missing::Key { name, key: "base_url" })?;
        // The last part of a path is replaced when joining, unless it is a folder.
        let base = format!("{}/", base.trim_end_matches('/'));
        let wrong = || {
            let shown = base.split('?').next().unwrap_or_default();
            Missing::Address { url: redact_text(shown).into_owned() }
        };
        let base = Url::parse(&base).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.ok_or_else(wrong)?;
        let api_key = config.api_key.clone().filter(|key| !key.trim().is_empty());
        if api_key.is_none() && backend != Backend::Searxng {
            return Err(Missing::Key { name, key: "api_key" });
        }
        Ok(Self { backend, base, api_key })
    }

    fn request(&self, client: &Client, query: &str, count: usize) -> Result<RequestBuilder, ToolFailure> {
        let place = |path: &str| {
            self.base.join(path).map_err(|error| ToolFailure::new(format!("`base_url`: {error}")))
        };
        let with = |mut url: Url, pairs: &[(&str, &str)]| {
            url.query_pairs_mut().extend_pairs(pairs);
            url
        };
        let key = self.api_key.as_deref();
        Ok(match self.backend {
            Backend::Searxng => {
                let request = client.get(with(place("search")?, &[("q", query), ("format", "json")]));
                match key {
                    Some(key) => request.bearer_auth(key),
                    None => request,
                }
            }
            Backend::Brave => {
                let url = with(place("web/search")?, &[("q", query), ("count", &count.to_string())]);
                client.get(url).header("X-Subscription-Token", key.unwrap_or_default())
            }
            Backend::Tavily => {
                let body = json!({ "query": query, "max_results": count }).to_string();
                let request = client.post(place("search")?).bearer_auth(key.unwrap_or_default());
                request.header("content-type", "application/json").body(body)
            }
        })
    }

    fn hits(&self, answer: &Value, most: usize) -> Option<Vec<Hit>> {
        let (list, excerpt) = match self.backend {
            Backend::Searxng | Backend::Tavily => ("/results", "content"),
            Backend::Brave => ("/web/results", "description"),
        };
        // Brave leaves the part out when it found nothing.
        let empty = Vec::new();
        let items = match answer.pointer(list) {
            Some(items) => items.as_array()?,
            None if self.backend == Backend::Brave && answer.is_object() => &empty,
            None => return None,
        };
        let text = |item: &Value, key: &str| plain(item.get(key).and_then(Value::as_str).unwrap_or_default());
        let hit = |item: &Value| {
            let url = item.get("url").and_then(Value::as_str).filter(|url| !url.is_empty())?;
            Some(Hit { title: text(item, "title"), url: url.to_owned(), snippet: text(item, excerpt) })
        };
        Some(items.iter().filter_map(hit).take(most).collect())
    }
}

/// A short text without the marks that services put around what was found.
fn plain(text: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    for c in text.chars().filter(|c| !c.is_control() || c.is_whitespace()).take(8 * EXCERPT) {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    let out = decode(&out, Place::Text);
    out.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(EXCERPT).collect()
}

pub(super) struct Search {
    service: Result<Service, Missing>,
    client: Client,
    limits: Limits,
    max_results: usize,
}

impl Search {
    pub(super) fn new(
        service: Result<Service, Missing>,
        limits: Limits,
        max_results: usize,
    ) -> Result<Self, String> {
        // The service was chosen by whoever configured it, so its address needs no check; it may well be this machine.
        let client = crate::http::client().build().map_err(|error| format!("no HTTP client: {error}"))?;
        Ok(Self { service, client, limits, max_results })
    }

    async fn ask(&self, service: &Service, input: &Input, cx: &ToolCx) -> Result<Output, ToolFailure> {
        let most = input.max_results.unwrap_or(self.max_results).clamp(1, MOST);
        let response = service.request(&self.client, &input.query, most)?.send().await;
        let response = response.map_err(|error| told(&service.base, error))?;
        cx.pulse.beat();
        let status = response.status();
        if status.is_redirection() {
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let redirected = Redirected::new(&service.base, location);
            return Err(ToolFailure::new(format!("the search service answered HTTP {status}: {redirected}"))
                .of_kind("HttpError"));
        }
        let (bytes, cut) = read(response, ANSWER, cx).await.map_err(|error| told(&service.base, error))?;
        if !status.is_success() {
            let start = plain(&String::from_utf8_lossy(&bytes));
            let message = format!("the search service answered HTTP {status}: {start}");
            return Err(ToolFailure::new(message).of_kind("HttpError"));
        }
        let hits = serde_json::from_slice::<Value>(&bytes).ok().filter(|_| !cut);
        let Some(results) = hits.and_then(|answer| service.hits(&answer, most)) else {
            let message = "the search service answered something that is no list of results; check `backend` and \
                           `base_url` of `tool-web` (SearXNG must allow the `json` format)";
            return Err(ToolFailure::new(message).of_kind("BadAnswer"));
        };
        Ok(Output { query: input.query.clone(), count: results.len(), results })
    }
}

impl TypedTool for Search {
    const NAME: &'static str = "web_search";
    const EFFECTS: Effects = super::EFFECTS;
    type Input = Input;
    type Output = Output;

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolFailure> {
        if input.query.trim().is_empty() {
            return Err(ToolFailure::new("query is required").of_kind("InvalidInput"));
        }
        let service = self.service.as_ref();
        let service =
            service.map_err(|missing| ToolFailure::new(missing.to_string()).of_kind("NotConfigured"))?;
        bounded(self.limits.timeout, cx, self.ask(service, &input, cx)).await
    }
}
