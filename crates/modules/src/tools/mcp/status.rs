//! How servers stand: the tool `mcp_servers` for who asks, and a hook that lets the model see them unasked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, ToolCx, ToolFailure, TypedTool};
use amplifier_protocol::event::{Event, ProviderRequest};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::tool::Effects;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::{Visibility, Way};
use super::server::{Phase, Server};
use crate::reminder::{Place, one_line, remind};

pub(super) const NAME: &str = "hooks-mcp-visibility";
/// The most of a server's instructions that is told unasked, in characters.
const INSTRUCTIONS: usize = 1_000;

/// The servers of a session: those that run or try to, and those whose entries make no sense.
pub(super) struct Servers {
    pub(super) known: Vec<Arc<Server>>,
    pub(super) refused: Vec<(String, String)>,
}

/// Says how the MCP servers of this session stand: which are up, what they offer, and why one is not there.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Only this server.
    #[serde(default)]
    server: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Report {
    server: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_id: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offers: Option<Offers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    error_output: String,
    starts: u64,
}

#[derive(Serialize)]
struct Offers {
    tools: usize,
    resources: usize,
    prompts: usize,
}

pub(super) struct Status(pub(super) Arc<Servers>);

impl TypedTool for Status {
    const NAME: &'static str = "mcp_servers";
    const EFFECTS: Effects = Effects::READS;
    type Input = Input;
    type Output = Vec<Report>;

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<Vec<Report>, ToolFailure> {
        let Servers { known, refused } = &*self.0;
        let mut reports: Vec<_> = known.iter().map(|server| report(server)).collect();
        reports.extend(refused.iter().map(|(name, why)| Report {
            server: name.clone(),
            error: Some(why.clone()),
            ..Report::blank("refused")
        }));
        if let Some(wanted) = input.server {
            let names: Vec<_> = reports.iter().map(|report| format!("`{}`", report.server)).collect();
            reports.retain(|report| report.server == wanted);
            if reports.is_empty() {
                let message = format!("there is no MCP server `{wanted}`; there are {}", names.join(", "));
                return Err(ToolFailure::new(message).of_kind("NotFound"));
            }
        }
        Ok(reports)
    }
}

impl Report {
    fn blank(state: &'static str) -> Self {
        Self {
            server: String::new(),
            state,
            transport: None,
            protocol: None,
            process_id: None,
            offers: None,
            error: None,
            left_out: Vec::new(),
            error_output: String::new(),
            starts: 0,
        }
    }
}

fn report(server: &Server) -> Report {
    let state = server.state();
    let transport = match server.settings.way {
        Way::Stdio { .. } => "stdio",
        Way::Http { .. } => "http",
    };
    let blank = |word| Report {
        server: server.name().to_owned(),
        transport: Some(transport),
        starts: state.attempt,
        ..Report::blank(word)
    };
    match &state.phase {
        Phase::Starting => blank("starting"),
        Phase::Down { why } => Report { error: Some(why.clone()), ..blank("down") },
        Phase::Closed => blank("closed"),
        Phase::Up { link, offer } => Report {
            protocol: Some(offer.protocol.clone()),
            process_id: link.process_id(),
            offers: Some(Offers {
                tools: offer.tools.len(),
                resources: offer.resources.len() + offer.templates.len(),
                prompts: offer.prompts.len(),
            }),
            left_out: offer.left_out.clone(),
            error_output: link.last_words(),
            ..blank("up")
        },
    }
}

/// Lets the model see which servers there are.
pub(super) struct Shown {
    servers: Arc<Servers>,
    visibility: Visibility,
    // What is stored is stored once.
    stored: AtomicBool,
}

impl Shown {
    pub(super) fn new(servers: Arc<Servers>, visibility: Visibility) -> Self {
        Self { servers, visibility, stored: AtomicBool::new(false) }
    }

    fn told(&self) -> String {
        let mut text =
            String::from("MCP servers of this session; their tools are named `mcp__<server>__…`:\n");
        let most = self.visibility.max_servers_visible;
        for server in self.servers.known.iter().take(most) {
            text.push_str(&format!("- {}", one_line(server.name(), 64)));
            match server.state().phase {
                Phase::Up { offer, .. } => {
                    if let Some(instructions) = &offer.instructions {
                        text.push_str(&format!(": {}", one_line(instructions, INSTRUCTIONS)));
                    }
                }
                Phase::Starting => text.push_str(" (starting)"),
                Phase::Down { .. } | Phase::Closed => {
                    text.push_str(" (not available; `mcp_servers` says why)")
                }
            }
            text.push('\n');
        }
        for (name, _) in &self.servers.refused {
            text.push_str(&format!("- {} (not available; `mcp_servers` says why)\n", one_line(name, 64)));
        }
        if let Some(more) = self.servers.known.len().checked_sub(most).filter(|more| *more > 0) {
            text.push_str(&format!("({more} more: `mcp_servers`)\n"));
        }
        text
    }
}

#[async_trait]
impl HookHandler for Shown {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        if event.name.as_str() != ProviderRequest::NAME {
            return Ok(HookResult::proceed());
        }
        let place = match self.visibility.ephemeral {
            true => Place::Apart,
            false if self.stored.swap(true, Ordering::Relaxed) => return Ok(HookResult::proceed()),
            false => Place::Kept,
        };
        Ok(remind(NAME, &self.told(), self.visibility.inject_role, place))
    }
}
