//! Which provider and model a sub-session asks: the first preference that can be met.
//!
//! One rule says which instance a name means, here and in the running session: its own name, else of the instances of that
//! module the one with the lowest `priority`, of equals the first. What a preference brings may choose a model and its
//! settings, never where the requests go or with which credentials.

use amplifier_core::coordinator::Coordinator;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The priority of a provider that names none.
const USUAL_PRIORITY: i64 = 100;

/// What a preference never changes: where requests go, and who they come from.
const PROTECTED: [&str; 28] = [
    "api_key",
    "secret",
    "password",
    "token",
    "access_token",
    "bearer_token",
    "client_id",
    "client_secret",
    "tenant_id",
    "base_url",
    "host",
    "azure_endpoint",
    "api_version",
    "deployment_name",
    "organization",
    "project",
    "managed_identity_client_id",
    "use_managed_identity",
    "use_default_credential",
    "proxy",
    "http_proxy",
    "https_proxy",
    "verify_ssl",
    "ssl_verify",
    "verify",
    "ca_bundle",
    "endpoint",
    "headers",
];

/// How configs call the model; an entry keeps the word it uses, since both at once would contradict each other.
const MODEL_KEYS: [&str; 2] = ["default_model", "model"];

/// A provider and a model that somebody would like.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Preference {
    pub provider: String,
    /// The model, or a pattern with `*`, `?` and `[abc]`: of the models that fit, the last by name is taken.
    pub model: String,
    #[serde(default)]
    pub config: Map<String, Value>,
}

/// What an agent prefers itself.
pub fn of_agent(agent: &Map<String, Value>) -> Result<Vec<Preference>, serde_json::Error> {
    match agent.get("provider_preferences") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(preferences) => serde_json::from_value(preferences.clone()),
    }
}

/// Puts the first preference that can be met at the head of the plan. None that can be met leaves the plan as it is.
pub async fn apply(plan: &mut MountPlan, preferences: &[Preference], parent: &Coordinator) {
    for preference in preferences {
        let Some(at) = find(&plan.providers, &preference.provider) else { continue };
        let Some(entry) = plan.providers.get(at) else { continue };
        let Some(model) = model(preference, entry, parent).await else { continue };
        let mut entry = plan.providers.remove(at);
        let chosen = MODEL_KEYS.into_iter().find(|key| entry.config.contains_key(*key));
        let is_kept = |key: &str| PROTECTED.contains(&key) || MODEL_KEYS.contains(&key);
        let allowed = preference.config.iter().filter(|(key, _)| !is_kept(key));
        entry.config.extend(allowed.map(|(key, value)| (key.clone(), value.clone())));
        let lowest = plan.providers.iter().map(priority).min().unwrap_or(0).min(0);
        entry.config.insert("priority".to_owned(), Value::from(lowest));
        entry.config.insert(chosen.unwrap_or(MODEL_KEYS[0]).to_owned(), Value::String(model));
        plan.providers.insert(0, entry);
        return;
    }
}

fn priority(entry: &ModuleSpec) -> i64 {
    entry.config.get("priority").and_then(Value::as_i64).unwrap_or(USUAL_PRIORITY)
}

/// Which entry a name means.
pub(crate) fn find(providers: &[ModuleSpec], name: &str) -> Option<usize> {
    let short = name.strip_prefix("provider-").unwrap_or(name);
    let by_instance = providers.iter().position(|entry| entry.instance_id.as_deref() == Some(name));
    let of_module = |entry: &ModuleSpec| {
        let id = entry.module.as_str();
        id == name || id.strip_prefix("provider-") == Some(short)
    };
    by_instance.or_else(|| {
        let candidates = providers.iter().enumerate().filter(|(_, entry)| of_module(entry));
        candidates.min_by_key(|(_, entry)| priority(entry)).map(|(at, _)| at)
    })
}

/// The model that a preference means; nothing when its pattern fits none.
async fn model(preference: &Preference, entry: &ModuleSpec, parent: &Coordinator) -> Option<String> {
    let pattern = &preference.model;
    if !pattern.contains(['*', '?', '[']) {
        return Some(pattern.clone());
    }
    let short = entry.module.as_str().strip_prefix("provider-").unwrap_or(entry.module.as_str());
    let names = entry.instance_id.iter().map(String::as_str).chain([short, entry.module.as_str()]);
    let provider = names.into_iter().find_map(|name| parent.provider(name))?;
    // A provider that cannot list its models meets no pattern; the next preference may.
    let models = provider.list_models().await.ok()?;
    let pattern = glob(pattern)?;
    models.into_iter().map(|model| model.id).filter(|id| pattern.is_match(id)).max()
}

/// A pattern of a shell, in which case does not matter and `*` takes everything; nothing when it cannot be read.
fn glob(pattern: &str) -> Option<GlobMatcher> {
    let mut builder = GlobBuilder::new(pattern);
    builder.case_insensitive(true).literal_separator(false).backslash_escape(false);
    builder.build().ok().map(|glob| glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn providers(entries: Value) -> Vec<ModuleSpec> {
        let plan = json!({"session": {"orchestrator": "loop-basic", "context": "context-simple"}, "providers": entries});
        MountPlan::read(&plan).unwrap().providers
    }

    #[test]
    fn w18_one_rule_says_which_instance_is_meant() {
        let listed = providers(json!([
            {"module": "provider-x", "instance_id": "late", "config": {"priority": 5}},
            {"module": "provider-x", "instance_id": "early", "config": {"priority": 1}},
            {"module": "provider-x", "instance_id": "same", "config": {"priority": 1}},
            {"module": "provider-y", "instance_id": "x"},
        ]));
        // An instance called so is meant before any module.
        assert_eq!(find(&listed, "x"), Some(3));
        assert_eq!(find(&listed, "provider-x"), Some(1));
        assert_eq!(find(&listed, "late"), Some(0));
        assert_eq!(find(&listed, "provider-y"), Some(3));
        assert_eq!(find(&listed, "z"), None);
    }

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, text, fits) in [
            ("gpt-*", "gpt-4o", true),
            ("*mini", "gpt-4o-mini", true),
            ("g?t", "gpt", true),
            ("g?t", "gt", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "ab-a", false),
            ("GPT-4[o1]*", "gpt-4O-mini", true),
            ("gpt-4[!o]*", "gpt-4o-mini", false),
            ("*llama*", "meta/Llama-3", true),
            ("gpt-[4", "gpt-4", false),
            ("", "", true),
        ] {
            let found = glob(pattern).is_some_and(|glob| glob.is_match(text));
            assert_eq!(found, fits, "{pattern} {text}");
        }
    }
}
