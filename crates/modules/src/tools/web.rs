//! `tool-web`: `web_fetch` brings a page as Markdown, `web_search` asks a configured search service.
//!
//! `address.rs` says which addresses may be reached, `get.rs` fetches within limits, `page.rs` makes text of what came:
//! `tidy.rs` reads HTML, `markdown.rs` writes what it says, `entity.rs` knows `&amp;`. `fetch.rs` and `search.rs` are the
//! tools, `save.rs` the first one where it may also write. Nothing here invents results: without a service there is no search.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{Module, Mounted, Typed};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::ArtifactWrite;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::tool::{EffectClass, Effects};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

mod address;
mod entity;
mod fetch;
mod get;
mod markdown;
mod page;
mod save;
mod search;
mod tidy;

use address::{Policy, Private};
use get::{Getter, Limits};

use crate::files::paths::{Reach, Rules};
use crate::table::BuiltIn;

/// What both tools touch when nothing is saved: other machines, and nothing is changed there.
const EFFECTS: Effects = Effects { class: EffectClass::Read, network: true, ..Effects::PURE };

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// The hosts that may be fetched from; every public one when empty. `example.com` means it and its subdomains,
    /// `*.example.com` the subdomains alone, `203.0.113.0/24` or `203.0.` addresses.
    allowed_hosts: Vec<String>,
    /// The same as `allowed_hosts`, under its older name; both count.
    allowed_domains: Vec<String>,
    /// The hosts that are never fetched from, written like `allowed_hosts`. Private addresses need no entry.
    blocked_hosts: Vec<String>,
    /// The same as `blocked_hosts`, under its older name; both count.
    blocked_domains: Vec<String>,
    /// Whether loopback and private addresses may be reached. Link-local ones, where clouds keep their secrets, stay
    /// out of reach unless `private_hosts` names them.
    allow_private: bool,
    /// Hosts that may have addresses which are not public, written like `allowed_hosts`.
    private_hosts: Vec<String>,
    /// How long one fetch or search may take in all, in seconds.
    timeout: f64,
    /// The most bytes of a page that are taken, after unpacking; the rest is left.
    max_bytes: usize,
    /// The most redirects that are followed.
    max_redirects: usize,
    /// How many bytes of a page's text one answer holds, when the call does not say.
    default_limit: usize,
    /// Whether HTML becomes Markdown; else it is given as it came.
    extract_text: bool,
    /// A proxy for `web_fetch`, such as `http://proxy.example:3128`. It resolves the names, so the addresses behind them
    /// cannot be checked here; without this key no proxy is used, whatever the environment says.
    proxy: Option<String>,
    /// The folders that `web_fetch` may save documents to, with everything in them. Without any it saves nothing, and the
    /// model is not offered to.
    allowed_write_paths: Vec<String>,
    /// The folders and files that may not be written, even inside those that may.
    denied_write_paths: Vec<String>,
    /// What relative paths are relative to; without it the session's own, `session.working_dir`.
    working_dir: Option<String>,
    /// The search service: `searxng`, `brave` or `tavily`. Without one, `web_search` says so.
    backend: Option<String>,
    /// The same as `backend`, under its older name.
    search_engine: Option<String>,
    /// Where the search service is; `searxng` needs it, the others have their own.
    base_url: Option<String>,
    /// The key of the search service, best as `${NAME}` of a variable; `brave` and `tavily` need it.
    api_key: Option<String>,
    /// The most results of a search.
    max_results: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            allowed_domains: Vec::new(),
            blocked_hosts: Vec::new(),
            blocked_domains: Vec::new(),
            allow_private: false,
            private_hosts: Vec::new(),
            timeout: 30.0,
            max_bytes: 5 * 1024 * 1024,
            max_redirects: 5,
            default_limit: 50_000,
            extract_text: true,
            proxy: None,
            allowed_write_paths: Vec::new(),
            denied_write_paths: Vec::new(),
            working_dir: None,
            backend: None,
            search_engine: None,
            base_url: None,
            api_key: None,
            max_results: 5,
        }
    }
}

impl Config {
    fn policy(&self) -> Result<Policy, String> {
        let private = if self.allow_private { Private::Allowed } else { Private::Denied };
        let all = |one: &[String], other: &[String]| [one, other].concat();
        Policy::new(
            &all(&self.allowed_hosts, &self.allowed_domains),
            &all(&self.blocked_hosts, &self.blocked_domains),
            &self.private_hosts,
            private,
        )
    }

    /// Where documents may be saved, if anywhere.
    fn write_rules(&self) -> Option<Rules> {
        (!self.allowed_write_paths.is_empty()).then(|| Rules {
            working_dir: self.working_dir.clone(),
            read: None,
            write: Some(self.allowed_write_paths.clone()),
            denied_write: self.denied_write_paths.clone(),
        })
    }

    fn limits(&self) -> Result<Limits, String> {
        let timeout = Duration::try_from_secs_f64(self.timeout).ok().filter(|timeout| !timeout.is_zero());
        let timeout = timeout.ok_or_else(|| format!("`timeout` {} is no time to wait", self.timeout))?;
        Ok(Limits { timeout, bytes: self.max_bytes, redirects: self.max_redirects })
    }
}

/// The module, as the table lists it.
pub(crate) struct Web;

#[async_trait]
impl Module for Web {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-web")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let wrong = |message: String| LoadError::Mount { id: self.id(), message };
        let limits = config.limits().map_err(wrong)?;
        let policy = Arc::new(config.policy().map_err(wrong)?);
        let getter = Getter::new(policy, limits.clone(), config.proxy.as_deref()).map_err(wrong)?;
        let form = if config.extract_text { page::Form::Markdown } else { page::Form::AsItCame };
        let fetch = fetch::Fetch::new(getter, form, config.default_limit);
        match config.write_rules() {
            None => cx.mount_tool(Arc::new(Typed(fetch))),
            Some(rules) => {
                let reach = Reach::new(rules, cx.coordinator.clone());
                cx.mount_tool(Arc::new(Typed(save::Saving {
                    fetch,
                    reach,
                    coordinator: cx.coordinator.clone(),
                })));
            }
        }
        let service = search::Service::from_config(&config);
        if let Err(missing) = &service
            && config.backend.is_some()
        {
            cx.warn(missing.to_string());
        }
        let search = search::Search::new(service, limits, config.max_results).map_err(wrong)?;
        cx.mount_tool(Arc::new(Typed(search)));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Web {
    fn info(&self) -> ModuleInfo {
        self.about("Fetches web pages as Markdown and searches through a configured service.")
            .config::<Config>()
            .emits::<ArtifactWrite>()
            .uses("session.working_dir")
            .uses("user.home_dir")
            .uses("mention_resolver")
    }
}
