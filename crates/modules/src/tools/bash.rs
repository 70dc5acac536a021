//! `tool-bash`: commands for the model. It mounts `bash`, `bash_output` and `bash_kill`, and a gate that asks a person.
//!
//! A command passes `bash/policy.rs` (may it run), `bash/gate.rs` (was a person asked), `bash/sandbox.rs` (what can it
//! reach) and runs in `bash/process.rs`. The policy reads commands; only the sandbox is a boundary.

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted, TaskFailure, Typed};
use amplifier_core::hooks::HookSpec;
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use serde_json::Value;

mod bench;
mod capture;
mod config;
mod gate;
mod jobs;
pub(crate) mod policy;
mod process;
mod run;
mod sandbox;
mod scratch;
pub(crate) mod shell;

use crate::table::BuiltIn;
use bench::Bench;
use config::{Approval, Config};
use sandbox::Sandbox;

/// The gate runs after the hooks that may change a command.
const GATE_PRIORITY: i32 = 1_000;

/// The module, as the table lists it.
pub(crate) struct Bash;

#[async_trait]
impl Module for Bash {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("tool-bash")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Tool
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let failed = |message: String| LoadError::Mount { id: self.id(), message };
        config.check().map_err(failed)?;
        let sandbox = sandbox::probe(config.sandbox).await;
        match &sandbox {
            Sandbox::Missing { why } if config.sandbox_required => {
                cx.warn(format!("no command will run: `sandbox` is asked for and {why}; install `bwrap`, or set `sandbox_required: false`"));
            }
            Sandbox::Missing { why } => cx.warn(format!("commands run without a sandbox, because {why}")),
            Sandbox::Off | Sandbox::Fenced { .. } => {
                sandbox.caveat().into_iter().for_each(|caveat| cx.warn(caveat))
            }
        }
        let asks = config.require_approval != Approval::Never;
        let bench = Arc::new(Bench::new(config, sandbox, cx.coordinator.clone()));
        if asks {
            let pattern = "tool:pre".parse().map_err(|error| failed(format!("{error}")))?;
            let spec = HookSpec::new(pattern, "tool-bash").priority(GATE_PRIORITY).closed();
            cx.on(spec, Arc::new(gate::Gate::new(Arc::clone(&bench))));
        }
        cx.mount_tool(Arc::new(Typed(run::RunCommand::new(Arc::clone(&bench)))));
        cx.mount_tool(Arc::new(Typed(jobs::ReadOutput::new(Arc::clone(&bench)))));
        cx.mount_tool(Arc::new(Typed(jobs::EndJob::new(Arc::clone(&bench)))));
        cx.register_cleanup(move || async move {
            bench.close().await;
            Ok::<(), TaskFailure>(())
        });
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Bash {
    fn info(&self) -> ModuleInfo {
        self.about(
            "Runs shell commands within a safety profile, in the background too, sandboxed on request.",
        )
        .config::<Config>()
        .uses("session.working_dir")
        .uses("user.home_dir")
        .uses("amplifier.home")
        .uses(crate::workspace::CAPABILITY)
    }
}
