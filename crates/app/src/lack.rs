//! What a provider that a plan or the settings name lacks here: a variable that is not set, or what its module says of
//! itself. No service is asked.

use std::fmt;

use amplifier_bundle::origin::Place;
use amplifier_core::loader::ConfigExpander;
use amplifier_core::redact::names_a_secret;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use serde_json::Value;

use crate::catalog;
use crate::connect;
use crate::detect::{DetectError, why_not};
use crate::env::Environment;
use crate::expand::EnvExpander;
use crate::plain;
use crate::settings::{Configured, Settings};

/// Why a provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// Its config names a variable that is not set.
    Unset {
        /// The variable.
        variable: String,
        /// The key of the config that names it, as a JSON pointer.
        pointer: String,
    },
    /// Its module declines or does not load.
    Declined {
        /// What it says.
        reason: String,
    },
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset { variable, pointer } if variable.starts_with(plain::PREFIX) => {
                let key = key(pointer);
                write!(f, "its `{key}` stood in plain text, which is not kept, and stands there no more")
            }
            Self::Unset { variable, pointer } => {
                write!(f, "`{variable}`, which its `{}` names, is not set", key(pointer))
            }
            Self::Declined { reason } => f.write_str(reason),
        }
    }
}

impl Lack {
    /// What the person can do about it.
    pub fn cure(&self) -> String {
        match self {
            Self::Unset { variable, .. } if variable.starts_with(plain::PREFIX) => {
                let better = plain::variable(variable);
                let connects = connect::provider_of(better).map(|name| {
                    format!(", as `amplifier provider add {name} --key-from-env {better}` does in the settings")
                });
                format!(
                    "write `${{{better}}}` in its place{}, and begin anew; or set `{variable}` for this one",
                    connects.unwrap_or_default()
                )
            }
            Self::Unset { variable, pointer } if is_key(pointer) => format!(
                "set `{variable}`, or keep a key with `amplifier init`; `amplifier provider add` connects another provider"
            ),
            Self::Unset { variable, .. } => format!(
                "set `{variable}`, or give a default with `${{{variable}:-default}}`; `amplifier config edit` opens the settings"
            ),
            Self::Declined { .. } => {
                "`amplifier init` connects a provider that works; `amplifier provider remove` takes this one out"
                    .to_owned()
            }
        }
    }

    /// The variable that is missing, where it is one.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Unset { variable, .. } => Some(variable),
            Self::Declined { .. } => None,
        }
    }
}

/// A key of a config as people write it.
fn key(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

fn is_key(pointer: &str) -> bool {
    pointer.rsplit('/').next().is_some_and(names_a_secret)
}

/// The first variable that the config of an entry names and that is not set. A key that is set to nothing is none.
pub fn unset(spec: &ModuleSpec, environment: &Environment) -> Option<Lack> {
    let expander = EnvExpander::new(environment.clone());
    if let Err(error) = expander.expand(Value::Object(spec.config.clone())) {
        let variable = error.reference.trim_start_matches("${").trim_end_matches('}').to_owned();
        return Some(Lack::Unset { variable, pointer: error.pointer });
    }
    let key = spec.config.get("api_key").and_then(Value::as_str)?;
    let variable = key.trim().strip_prefix("${")?.strip_suffix('}')?.to_owned();
    let is_blank = environment.get(&variable).is_some_and(|value| value.trim().is_empty());
    is_blank.then(|| Lack::Unset { variable, pointer: "/api_key".to_owned() })
}

/// What an entry lacks; nothing when it can be used, or when its module comes from elsewhere and only a session can tell.
pub async fn of(spec: &ModuleSpec, environment: &Environment) -> Result<Option<Lack>, DetectError> {
    match unset(spec, environment) {
        Some(lack) => Ok(Some(lack)),
        None => Ok(why_not(spec, environment).await?.map(|reason| Lack::Declined { reason })),
    }
}

/// The same of a provider that the settings name. A module that is not built in needs a source, from its entry or elsewhere
/// in the settings.
pub async fn of_configured(
    entry: &Configured,
    settings: &Settings,
    environment: &Environment,
) -> Result<Option<Lack>, DetectError> {
    let module = &entry.spec.module;
    let has_source = entry.spec.source.is_some() || settings.has_source(module.as_str());
    if catalog::module(module.as_str()).is_none() && !has_source {
        return Ok(Some(Lack::Declined { reason: catalog::unknown(module.as_str()).to_string() }));
    }
    of(&entry.spec, environment).await
}

/// No provider of a plan can be asked, since a variable is not set. It is known before anything is opened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the provider `{name}` cannot be used: {lack}{}", at(place.as_ref()))]
pub struct NobodyToAsk {
    /// The provider that would be asked first.
    pub name: String,
    /// What it lacks.
    pub lack: Lack,
    /// Where the settings name the variable, when they do.
    pub place: Option<Place>,
}

fn at(place: Option<&Place>) -> String {
    place.map(|place| format!(" ({place})")).unwrap_or_default()
}

/// Whether all providers of a plan lack a variable. Only keys and what the settings say are judged here: what else a plan
/// of somebody's own leaves open is told by its load report.
pub fn nobody_to_ask(
    plan: &MountPlan,
    settings: &Settings,
    environment: &Environment,
) -> Option<NobodyToAsk> {
    let mut lacks = Vec::new();
    for spec in &plan.providers {
        lacks.push((spec, unset(spec, environment)?));
    }
    let (spec, lack) = lacks.into_iter().next()?;
    let Lack::Unset { pointer, .. } = &lack else { return None };
    let configured = settings.providers();
    let is_same =
        |entry: &&Configured| entry.spec.module == spec.module && entry.spec.instance_id == spec.instance_id;
    let place = configured.iter().find(is_same).map(|entry| settings.place_in(entry, pointer));
    if place.is_none() && !is_key(pointer) {
        return None;
    }
    let name = spec.instance_id.clone().unwrap_or_else(|| connect::short(&spec.module).to_owned());
    Some(NobodyToAsk { name, lack, place })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(providers: Value) -> MountPlan {
        MountPlan::read(&json!({
            "session": {"orchestrator": "loop-basic", "context": "context-simple"},
            "providers": providers,
        }))
        .unwrap()
    }

    fn nobody(providers: Value) -> Option<String> {
        let environment = Environment::Fixed([("EMPTY".to_owned(), " ".to_owned())].into());
        let found = nobody_to_ask(&plan(providers), &Settings::default(), &environment);
        found.map(|found| found.to_string())
    }

    #[test]
    fn nobody_can_be_asked_when_every_provider_lacks_its_key() {
        let unset = json!({"module": "provider-openai", "config": {"api_key": "${NONE}"}});
        let empty = json!({"module": "provider-a", "config": {"api_key": "${EMPTY}"}});
        let told = "the provider `openai` cannot be used: `NONE`, which its `api_key` names, is not set";
        assert_eq!(nobody(json!([unset, empty])).as_deref(), Some(told));
        assert!(nobody(json!([empty])).unwrap().contains("`EMPTY`"));
        assert_eq!(nobody(json!([unset, {"module": "provider-mock"}])), None);
        assert_eq!(nobody(json!([{"module": "provider-mock", "config": {"x": "${NONE}"}}])), None);
        assert_eq!(nobody(json!([])), None);
    }
}
