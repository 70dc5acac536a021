//! Which provider a turn asks: the configured one, else the first; and the next one when that failed.

use std::sync::Arc;

use amplifier_core::contracts::{Provider, TaskFailure, TurnError};
use amplifier_core::coordinator::{CallError, Coordinator};
use amplifier_protocol::llm_error::LlmErrorKind;
use amplifier_protocol::provider::ProviderInfo;
use serde_json::Value;

use super::Turn;
use super::config::FallbackOn;

/// The provider a turn asks.
#[derive(Clone)]
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) info: ProviderInfo,
}

impl Chosen {
    fn new((name, provider): (String, Arc<dyn Provider>)) -> Self {
        Self { info: provider.info(), name, provider }
    }

    /// The model the provider takes unless it is told otherwise.
    pub(super) fn model(&self) -> Option<String> {
        let model = self.info.defaults.get("model").or_else(|| self.info.defaults.get("default_model"));
        model.and_then(Value::as_str).map(str::to_owned)
    }
}

/// A mounted provider by the name it is mounted under or by its module's id.
fn named(coordinator: &Coordinator, wanted: &str) -> Option<(String, Arc<dyn Provider>)> {
    let short = wanted.strip_prefix("provider-").unwrap_or(wanted);
    let name = [wanted, short].into_iter().find(|name| coordinator.provider(name).is_some())?;
    Some((name.to_owned(), coordinator.provider(name)?))
}

/// The first of the plan, unless providers tell priorities: then the lowest number, the first of equals.
fn first(coordinator: &Coordinator) -> Option<(String, Arc<dyn Provider>)> {
    let providers = coordinator.providers();
    let priority = |provider: &Arc<dyn Provider>| {
        provider.info().defaults.get("priority").and_then(Value::as_i64).unwrap_or(100)
    };
    match providers.len() {
        0 | 1 => providers.into_iter().next(),
        _ => providers.into_iter().min_by_key(|(_, provider)| priority(provider)),
    }
}

/// The provider that a turn asks: the one that is wanted, where it is mounted, else the first.
pub fn asked_provider(
    coordinator: &Coordinator,
    wanted: Option<&str>,
) -> Option<(String, Arc<dyn Provider>)> {
    wanted.and_then(|wanted| named(coordinator, wanted)).or_else(|| first(coordinator))
}

/// Whether every provider that the config names is there.
pub(super) fn check(coordinator: &Coordinator, names: &[String]) -> Result<(), TaskFailure> {
    let absent: Vec<_> = names.iter().filter(|name| named(coordinator, name).is_none()).collect();
    if absent.is_empty() {
        return Ok(());
    }
    let absent: Vec<_> = absent.into_iter().map(|name| format!("`{name}`")).collect();
    Err(TaskFailure::new(format!(
        "the config names providers that are not mounted and cannot be asked: {}",
        absent.join(", ")
    )))
}

impl Turn<'_> {
    /// Chosen once a turn: a conversation that changes its model from step to step loses its prompt cache.
    pub(super) fn provider(&mut self) -> Result<Chosen, TurnError> {
        if let Some(chosen) = &self.provider {
            return Ok(chosen.clone());
        }
        let found = asked_provider(self.coordinator, self.config.default_provider.as_deref());
        let Some(found) = found else {
            return Err(TurnError::Broken { message: "no provider is mounted".to_owned() });
        };
        Ok(self.provider.insert(Chosen::new(found)).clone())
    }

    /// A provider by its name, unless it failed in this turn.
    pub(super) fn by_name(&self, wanted: &str) -> Option<Chosen> {
        let found = named(self.coordinator, wanted)?;
        (!self.failed.contains(&found.0)).then(|| Chosen::new(found))
    }

    /// Goes on with the next provider when this failure allows it and there is one. False when the turn is over.
    pub(super) fn fall_back(&mut self, failed: String, error: &CallError) -> bool {
        self.failed.push(failed);
        let allowed = match error {
            CallError::Model(error) if error.kind == LlmErrorKind::Abort => false,
            CallError::Model(error) => self.config.fallback_on == FallbackOn::Any || !error.retryable,
            CallError::UnknownProvider { .. } | CallError::Broken { .. } => true,
            // Limits, cancels and the journal stand against every provider.
            _ => false,
        };
        if !allowed {
            return false;
        }
        let mut next = self.config.fallback_providers.iter().filter_map(|name| self.by_name(name));
        match next.next() {
            Some(next) => {
                drop(self.provider.replace(next));
                true
            }
            None => false,
        }
    }
}
