//! A choice of provider and model that a scheduler makes for the next model call, and answers to `tool:selecting`.

use amplifier_core::contracts::{HookEvent, TaskFailure};
use amplifier_core::coordinator::{Coordinator, MountPoint};
use amplifier_protocol::hook::HookResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who shall be asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Choice {
    /// The provider, by the name it is mounted under; without it the one that would be asked anyway.
    pub(super) provider: Option<String>,
    /// The model; without it the provider's own choice.
    pub(super) model: Option<String>,
}

impl Choice {
    /// The answer to `provider:request` that makes this choice.
    pub(super) fn answer(&self, event: &HookEvent) -> HookResult {
        let mut data = event.data.clone();
        if let Some(provider) = &self.provider {
            data.insert("provider".to_owned(), Value::String(provider.clone()));
            // A model that was chosen for another provider means nothing to this one.
            data.shift_remove("model");
        }
        if let Some(model) = &self.model {
            data.insert("model".to_owned(), Value::String(model.clone()));
        }
        if data == event.data { HookResult::proceed() } else { HookResult::modify(data) }
    }

    /// Whether it names nobody.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Says which chosen providers are not mounted. Providers may be named by their module's id.
pub(super) fn check<'a>(
    choices: impl IntoIterator<Item = &'a Choice>,
    coordinator: &Coordinator,
) -> Result<(), TaskFailure> {
    let mounted = coordinator.mounted(&MountPoint::Providers);
    let is_mounted = |name: &str| {
        let short = name.strip_prefix("provider-").unwrap_or(name);
        mounted.iter().any(|known| known == name || known == short)
    };
    let wanted = choices.into_iter().filter_map(|choice| choice.provider.as_deref());
    let missing: Vec<_> = wanted.filter(|name| !is_mounted(name)).map(|name| format!("`{name}`")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(TaskFailure::new(format!(
        "{} is chosen in the config and not mounted (mounted: {}); the loop's own provider is asked instead",
        missing.join(", "),
        mounted.join(", ")
    )))
}

/// The tool a selection is about. `tool` is how some emitters call it.
pub(super) fn selected_tool(event: &HookEvent) -> Option<&str> {
    let name = |key: &str| event.data.get(key).and_then(Value::as_str).filter(|name| !name.is_empty());
    name("tool_name").or_else(|| name("tool"))
}

/// Refuses a selection: as a denial for who dispatches, and as data, in the words of `tool:selecting`, for who gathers.
pub(super) fn refuse_tool(tool: &str, reason: String) -> HookResult {
    let data = Map::from_iter([
        ("tool_name".to_owned(), Value::String(tool.to_owned())),
        ("decision".to_owned(), Value::String("deny".to_owned())),
        ("reason".to_owned(), Value::String(reason.clone())),
    ]);
    HookResult { data: Some(data), ..HookResult::deny(reason) }
}
