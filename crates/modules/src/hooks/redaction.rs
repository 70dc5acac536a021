//! `hooks-redaction`: takes secrets and personal data out of the data of every event.
//!
//! `redaction/walk.rs` goes through a payload, `redaction/entropy.rs` and `redaction/personal.rs` find what the kernel's
//! own net (`amplifier_core::redact`) leaves. Events that carry the conversation keep personal data: a masked address
//! would come back in a file the model writes. The rules are offered as `redaction.rules`, so that whoever writes events
//! down (`hooks-logging`) applies all of them, also to what runs past this hook unchanged.

use std::sync::Arc;

use amplifier_core::contracts::{Capability, HookEvent, HookFailure, HookHandler, Module, Mounted};
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::{LoadError, MountCx};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod entropy;
mod personal;
mod walk;

pub(super) use walk::Redactor;

use super::wildcard::fits_any;
use crate::table::BuiltIn;

/// Under this name other modules find the rules.
pub(super) const RULES_CAPABILITY: &str = "redaction.rules";
/// Events whose data goes on to the model, where personal data is often what the work is about.
const CONVERSATION: [&str; 3] = ["prompt:*", "tool:*", "provider:*"];

/// What can be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Rule {
    /// Keys of known services, values under keys that say "secret", and long random values.
    Secrets,
    /// E-mail addresses and telephone numbers.
    PiiBasic,
}

/// What a plan may configure.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Config {
    /// What is looked for: `secrets`, `pii-basic`.
    pub(super) rules: Vec<Rule>,
    /// Places that are left alone, as dotted paths into the data: `tool_input.email`, `messages[0].content`, `usage.*`.
    pub(super) allowlist: Vec<String>,
    /// Whether long random values without a known shape count as secrets.
    pub(super) high_entropy: bool,
    /// Events whose data is not changed, as patterns. What a tool gets is left alone: changing it would change the work.
    pub(super) skip_events: Vec<String>,
    /// Whether personal data is also kept from the model, in prompts and in the results of tools.
    pub(super) pii_for_model: bool,
    /// The place among the hooks; lower runs first.
    pub(super) priority: i32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rules: vec![Rule::Secrets, Rule::PiiBasic],
            allowlist: Vec::new(),
            high_entropy: true,
            skip_events: vec!["tool:pre".to_owned()],
            pii_for_model: false,
            priority: 10,
        }
    }
}

struct Masks {
    everything: Redactor,
    conversation: Redactor,
    skip_events: Vec<String>,
}

impl Masks {
    fn new(config: &Config) -> Self {
        let mut for_model = config.clone();
        if !config.pii_for_model {
            for_model.rules.retain(|rule| *rule != Rule::PiiBasic);
        }
        Self {
            everything: Redactor::new(config),
            conversation: Redactor::new(&for_model),
            skip_events: config.skip_events.clone(),
        }
    }
}

#[async_trait]
impl HookHandler for Masks {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let name = event.name.as_str();
        if fits_any(&self.skip_events, name) {
            return Ok(HookResult::proceed());
        }
        let reaches_the_model = CONVERSATION.iter().any(|pattern| super::wildcard::fits(pattern, name));
        let redactor = if reaches_the_model { &self.conversation } else { &self.everything };
        let Some((mut data, rules)) = redactor.clean(&event.data) else { return Ok(HookResult::proceed()) };
        data.insert("redaction".to_owned(), json!({"applied": true, "rules": rules}));
        Ok(HookResult::modify(data))
    }
}

/// The module, as the table lists it.
pub(crate) struct Redaction;

#[async_trait]
impl Module for Redaction {
    fn id(&self) -> ModuleId {
        ModuleId::fixed("hooks-redaction")
    }

    fn kind(&self) -> ModuleKind {
        ModuleKind::Hook
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        let config: Config = cx.read_config(config)?;
        let rules = json!(config);
        cx.coordinator.register_capability(RULES_CAPABILITY, Capability::Value(rules));
        // Closed: when it breaks, what it should have hidden must not go on.
        let spec = HookSpec::new(EventPattern::All, "hooks-redaction").priority(config.priority).closed();
        cx.on(spec, Arc::new(Masks::new(&config)));
        Ok(Mounted::Ready)
    }
}

impl BuiltIn for Redaction {
    fn info(&self) -> ModuleInfo {
        self.about("Hides keys, secrets and personal data in every event before others see it.")
            .config::<Config>()
            .gives("redaction.rules")
    }
}
