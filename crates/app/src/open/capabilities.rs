//! What the application offers modules by name, before any of them mounts. `docs/reference/capabilities.md` lists it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use amplifier_core::contracts::{Capability, CapabilityCall, CapabilityError};
use amplifier_core::session::SessionBuilder;
use amplifier_protocol::mount_plan::MountPlan;
use async_trait::async_trait;
use serde_json::{Value, json};

use super::Surroundings;
use crate::env::OfferedVariables;
use crate::paths::{Home, SessionFolder};
use crate::profiles;
use crate::prompt::{MentionResolver, SystemPrompt};
use crate::spawn::{Door, ResumeCall, SpawnCall, failed};
use crate::trust::Trust;

/// Offers everything that does not differ between a session and its children.
pub(super) fn offer(
    builder: SessionBuilder,
    plan: &MountPlan,
    folder: &SessionFolder,
    surroundings: &Surroundings,
    prompt: &Arc<SystemPrompt>,
    door: &Arc<Door>,
) -> SessionBuilder {
    let text = |path: &Path| Capability::Value(Value::String(path.display().to_string()));
    let variables = Capability::Call(Arc::new(OfferedVariables(surroundings.environment.clone())));
    let agents = Value::Object(profiles::agents(plan));
    let mut builder = builder
        .capability("agents.list", Capability::Value(agents))
        .capability("environment.variable", variables)
        .capability("hook_metadata", Capability::Call(Arc::new(HookMetadata(Arc::clone(door)))))
        .capability("mention_resolver", Capability::Call(Arc::new(MentionResolver(Arc::clone(prompt)))))
        .capability("session.working_dir", text(&surroundings.working_dir))
        .capability("session.dir", text(folder.dir()))
        .capability("session.spawn", Capability::Call(Arc::new(SpawnCall(Arc::clone(door)))))
        .capability("session.resume", Capability::Call(Arc::new(ResumeCall(Arc::clone(door)))));
    if let Some(home) = &surroundings.user_home {
        builder = builder.capability("user.home_dir", text(home));
    }
    builder
}

/// Tells modules which files are not to be trusted, and where keys are kept.
pub(crate) fn offer_trust(builder: SessionBuilder, trust: &Trust, home: &Home) -> SessionBuilder {
    let [trusted, untrusted] = trust.roots().map(|root| root.map(|root| root.display().to_string()));
    let home = home.root().canonicalize().unwrap_or_else(|_| home.root().to_owned());
    builder
        .capability(
            "workspace.trust",
            Capability::Value(json!({
                "trusted": trusted.as_slice(),
                "untrusted": untrusted.as_slice(),
                "asking": trust.asking().into_iter().collect::<Vec<_>>(),
            })),
        )
        .capability("amplifier.home", Capability::Value(Value::String(home.display().to_string())))
}

/// `hook_metadata`: which events each handler hears, as of now.
struct HookMetadata(Arc<Door>);

#[async_trait]
impl CapabilityCall for HookMetadata {
    async fn call(&self, _arguments: Value) -> Result<Value, CapabilityError> {
        let nest = self.0.nest().map_err(|error| failed("hook_metadata", &error))?;
        let mut heard: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for handler in nest.session.coordinator().hooks().timings() {
            let patterns = heard.entry(handler.name).or_default();
            if !patterns.contains(&handler.pattern) {
                patterns.push(handler.pattern);
            }
        }
        Ok(json!(heard))
    }
}
