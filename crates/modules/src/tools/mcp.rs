//! `tool-mcp`: tools, resources and prompts of MCP servers, as tools of the session, and `mcp_servers`, which says how the
//! servers stand.
//!
//! Which servers there are is in `mcp/files.rs`; each has a task that keeps it running (`mcp/server.rs`) over a connection
//! (`mcp/wire.rs`); what it offers is on the shelf (`mcp/shelf.rs`) as tools (`mcp/offered.rs`). Servers run as the user
//! who started us: nothing here confines what they do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted, TaskFailure, Typed};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::event::ProviderRequest;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::table::BuiltIn;
use crate::workspace;

mod config;
mod content;
mod events;
mod files;
mod guard;
mod names;
mod offered;
mod process;
mod server;
mod shelf;
mod status;
mod wire;

use config::{Config, seconds};
use content::Limits;
use events::{News, ServerFailed, ServerOutput, ServerReady, Teller, ToolsChanged};
use process::Errors;
use server::{Common, Phase, Server};
use shelf::Shelf;
use status::{Servers, Shown, Status};
use wire::Surroundings;

/// Lines of error output that may wait to be told.
const WAITING_LINES: usize = 64;

/// The module, as the table lists it.
pub(crate) struct McpModule;

#[async_trait]
impl Module for McpModule {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-mcp")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let mut config: Config = cx.read_config(config)?;
        let failed = |message: String| LoadError::Mount { id: self.id(), message };
        // A module that is late does not come up at all.
        let longest = cx.coordinator.deadlines().mount * 3 / 4;
        let wait = seconds("wait", config.wait).map_err(failed)?.min(longest);
        let gathered = files::gather(&mut config, cx).await;
        if gathered.servers.is_empty() && gathered.refused.is_empty() {
            let reason =
                "no MCP server is configured; name some under `servers`, or in `~/.amplifier/mcp.json`";
            return Ok(Mounted::Skipped { reason: reason.to_owned() });
        }
        let common = Common {
            teller: Arc::new(Teller::new(cx.coordinator.clone())),
            shelf: Arc::new(Shelf::new(cx.coordinator.clone(), self.id())),
            limits: Limits { text: config.max_content_size, image: config.max_image_bytes },
            max_restarts: config.max_restarts,
        };
        let known = gathered.servers.into_iter().map(|settings| {
            let around = surroundings(&settings.name, &config, cx, &common.teller);
            Server::new(settings, around, &common)
        });
        let servers = Arc::new(Servers { known: known.collect(), refused: gathered.refused });
        let ending = Arc::clone(&servers);
        cx.register_cleanup(move || async move {
            close_all(&ending).await;
            Ok::<(), TaskFailure>(())
        });
        for server in &servers.known {
            tokio::spawn(Arc::clone(server).run());
        }
        // All at once: the wait is as long as the slowest, and never longer than it may be.
        drop(tokio::time::timeout(wait, all_settled(&servers.known)).await);
        let order: Vec<_> = servers.known.iter().map(|server| server.name().to_owned()).collect();
        common.shelf.go_live(cx, &order);
        cx.mount_tool(Arc::new(Typed(Status(Arc::clone(&servers)))));
        warn_of(&servers, cx);
        let (teller, absent) = (Arc::clone(&common.teller), absent(&servers));
        cx.on_session_ready(async move |_: Coordinator| {
            teller.begin().await;
            // The module is there and what it was mounted for is not: who is strict goes no further.
            if absent.is_empty() { Ok(()) } else { Err(TaskFailure::new(absent.join("; "))) }
        });
        if config.visibility.enabled {
            let spec = HookSpec::new(EventPattern::event::<ProviderRequest>(), status::NAME);
            let spec = spec.priority(config.visibility.priority);
            cx.on(spec, Arc::new(Shown::new(servers, config.visibility)));
        }
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for McpModule {
    fn info(&self) -> ModuleInfo {
        self.about(
            "Gives the model the tools, resources and prompts of MCP servers and keeps the servers running.",
        )
        .config::<Config>()
        .emits::<ServerReady>()
        .emits::<ServerFailed>()
        .emits::<ToolsChanged>()
        .emits::<ServerOutput>()
        .uses("session.working_dir")
        .uses("user.home_dir")
        .uses(workspace::CAPABILITY)
    }
}

async fn all_settled(servers: &[Arc<Server>]) {
    for server in servers {
        server.settled().await;
    }
}

async fn close_all(servers: &Servers) {
    let mut closing = JoinSet::new();
    for server in &servers.known {
        let server = Arc::clone(server);
        closing.spawn(async move { server.close().await });
    }
    closing.join_all().await;
}

/// The servers that are configured and not there, each with why.
fn absent(servers: &Servers) -> Vec<String> {
    let down = servers.known.iter().filter_map(|server| match server.state().phase {
        Phase::Down { why } => Some(format!("MCP server `{}` is not available: {why}", server.name())),
        _ => None,
    });
    let refused = servers.refused.iter();
    down.chain(refused.map(|(name, why)| format!("MCP server `{name}` is not started: {why}"))).collect()
}

/// What else is not as it should be stands in the load report.
fn warn_of(servers: &Servers, cx: &MountCx) {
    let tool_deadline = cx.coordinator.deadlines().tool;
    for server in &servers.known {
        let name = server.name();
        match server.state().phase {
            Phase::Starting => {
                cx.warn(format!("MCP server `{name}` is still starting; its tools come when it is there"))
            }
            Phase::Up { offer, .. } => {
                offer
                    .left_out
                    .iter()
                    .for_each(|what| cx.warn(format!("MCP server `{name}`: left out: {what}")));
            }
            Phase::Down { .. } | Phase::Closed => {}
        }
        if server.settings.call_timeout > tool_deadline {
            let most = tool_deadline.as_secs_f64();
            cx.warn(format!("MCP server `{name}`: `call_timeout` is longer than the {most} s after which the session itself ends a silent call"));
        }
    }
}

fn surroundings(server: &str, config: &Config, cx: &MountCx, teller: &Arc<Teller>) -> Surroundings {
    let lines = config.verbose_servers.then(|| told_lines(server, teller));
    let file = config.server_log_dir.as_deref().and_then(|folder| log_file(folder, server, cx));
    Surroundings { pass_env: config.pass_env.clone(), errors: Errors { file, lines } }
}

fn log_file(folder: &str, server: &str, cx: &MountCx) -> Option<PathBuf> {
    let text = |name: &str| cx.coordinator.capability_text(name);
    let folder = match folder.strip_prefix("~/") {
        Some(rest) => text("user.home_dir").map(|home| Path::new(&home).join(rest)),
        None => text("session.working_dir")
            .map(|base| Path::new(&base).join(folder))
            .or_else(|| Some(PathBuf::from(folder))),
    };
    let Some(folder) = folder.filter(|folder| folder.is_absolute()) else {
        cx.warn("`server_log_dir` cannot be found from here; give an absolute path");
        return None;
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    Some(folder.join(format!("{}.log", server.chars().map(plain).collect::<String>())))
}

/// Where lines of error output go to become events.
fn told_lines(server: &str, teller: &Arc<Teller>) -> mpsc::Sender<String> {
    let (sender, mut lines) = mpsc::channel::<String>(WAITING_LINES);
    let (server, teller) = (server.to_owned(), Arc::clone(teller));
    tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            teller.tell(News::Output(ServerOutput { server: server.clone(), line })).await;
        }
    });
    sender
}
