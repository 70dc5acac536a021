//! The tools that sessions of a plan would have: its tool modules, mounted on a session that nobody talks to and that
//! leaves nothing behind. Calling one is `invoke.rs`'s.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_core::clock::Clock;
use amplifier_core::contracts::{Capability, ModuleSourceResolver};
use amplifier_core::loader::Loader;
use amplifier_core::report::LoadOutcome;
use amplifier_core::session::{OpenError, Session, SessionBuilder};
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use serde::Serialize;
use serde_json::Value;

use crate::catalog::{ToolDetails, keys};
use crate::clock::SystemClock;
use crate::env::{self, OfferedVariables};
use crate::expand::EnvExpander;
use crate::library::Access;
use crate::open::capabilities::offer_trust;
use crate::open::sources;
use crate::resolver::for_plan;
use crate::spawn::{Door, ResumeCall, SpawnCall};

/// What the tool modules of a plan bring.
#[derive(Debug, Default)]
pub struct Toolbox {
    /// The tools, in the order of the plan.
    pub tools: Vec<OfferedTool>,
    /// Modules that bring none, and why.
    pub missing: Vec<String>,
}

/// A tool and the module it comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfferedTool {
    pub module: Option<ModuleId>,
    #[serde(flatten)]
    pub details: ToolDetails,
}

/// Looks which tools there are.
pub async fn tools(
    plan: &MountPlan,
    access: &Access,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
) -> Result<Toolbox, Box<OpenError>> {
    let mut plan = plan.clone();
    let servers: Vec<_> = plan.tools.extract_if(.., |spec| starts_programs(spec)).collect();
    let session = bare(&plan, access, resolver).open().await.map_err(Box::new)?;
    let mut toolbox = found(&session);
    toolbox.missing.extend(
        servers
            .iter()
            .map(|spec| format!("`{}` starts servers, and only a session knows their tools", spec.module)),
    );
    // What a tool says while it is let go does not change what it offers.
    drop(session.cleanup().await);
    Ok(toolbox)
}

/// Whether mounting a tool module starts programs or connects to addresses, which looking must not.
fn starts_programs(spec: &ModuleSpec) -> bool {
    spec.module.as_str() == "tool-mcp"
}

/// A session with the tools of the plan and nothing else of it: providers want keys, hooks and contexts write files.
fn bare(
    plan: &MountPlan,
    access: &Access,
    resolver: Option<Arc<dyn ModuleSourceResolver>>,
) -> SessionBuilder {
    let mut bare = plan.clone();
    bare.session.orchestrator = ModuleSpec::new(ModuleId::fixed("loop-basic"));
    bare.session.context = ModuleSpec::new(ModuleId::fixed("context-simple"));
    bare.providers.clear();
    bare.hooks.clear();
    let environment = &access.environment;
    let resolver =
        resolver.or_else(|| for_plan(&bare, sources(&access.home, environment, &access.base), &access.home));
    let loader =
        Loader::new().finder(Arc::new(BuiltIns)).expander(Arc::new(EnvExpander::new(environment.clone())));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let text = |path: PathBuf| Capability::Value(Value::String(path.display().to_string()));
    // Tools that start sub-sessions look for these when they are mounted; nobody comes through.
    let door = Arc::new(Door::default());
    let mut builder = SessionBuilder::new(bare, Arc::new(loader), clock)
        .capability("environment.variable", Capability::Call(Arc::new(OfferedVariables(environment.clone()))))
        .capability("session.working_dir", text(access.base.clone()))
        .capability("session.spawn", Capability::Call(Arc::new(SpawnCall(Arc::clone(&door)))))
        .capability("session.resume", Capability::Call(Arc::new(ResumeCall(door))));
    builder = offer_trust(builder, &access.trust, &access.home);
    if let Some(home) = environment.get(env::HOME) {
        builder = builder.capability("user.home_dir", text(home.into()));
    }
    match resolver {
        Some(resolver) => builder.resolver(resolver),
        None => builder,
    }
}

fn found(session: &Session) -> Toolbox {
    let (at, report) = (session.coordinator(), session.report());
    let owner = |name: &String| {
        let entry = report.modules.iter().find(|entry| {
            matches!(&entry.outcome, LoadOutcome::Mounted { names } if entry.kind == ModuleKind::Tool && names.contains(name))
        });
        entry.map(|entry| entry.module.clone())
    };
    let tools = at.tool_specs().into_iter().filter_map(|spec| {
        let effects = at.tool(&spec.name)?.effects();
        let module = owner(&spec.name);
        Some(OfferedTool {
            module,
            details: ToolDetails { input: keys(&spec.parameters), effects, spec: (*spec).clone() },
        })
    });
    let tools = tools.collect();
    let missing = report.modules.iter().filter(|entry| !matches!(entry.outcome, LoadOutcome::Mounted { .. }));
    Toolbox { tools, missing: missing.map(ToString::to_string).collect() }
}
