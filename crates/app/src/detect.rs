//! Which providers can be used here, and which one is taken when nobody names one.
//!
//! The modules judge themselves: they are mounted on sessions that live as long as the question, and what they say is what
//! is told. Variables are looked at first; servers on this machine only when no variable is set.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::clock::Clock;
use amplifier_core::contracts::{Capability, CapabilityCall, CapabilityError, Provider};
use amplifier_core::loader::Loader;
use amplifier_core::report::LoadOutcome;
use amplifier_core::session::{OpenError, Readiness, Session, SessionBuilder};
use amplifier_modules::MODULES;
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use amplifier_protocol::provider::ProviderInfo;
use async_trait::async_trait;
use serde_json::{Value, json};

mod error;
mod servers;
mod standing;

pub use error::{DetectError, Missed, NothingFound};
pub use servers::Places;
pub(crate) use standing::asks_nobody;
pub use standing::{Standing, Standings, Variable, by_keys, standings, standings_unasked, variables_of};

use crate::clock::SystemClock;
use crate::env::{self, Environment, OfferedVariables};
use crate::expand::EnvExpander;
use crate::{failure, lack};

/// Modules that need no server on this machine, in the order in which they are preferred.
const BY_VARIABLE: [&str; 5] = [
    "provider-anthropic",
    "provider-openai",
    "provider-azure-openai",
    "provider-gemini",
    "provider-chat-completions",
];

/// What answers when there is nobody to ask.
const DEMO: &str = "provider-demo";

/// A provider that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Detected {
    /// The entry for a plan.
    pub spec: ModuleSpec,
    /// Why this one, in words.
    pub reason: String,
}

/// Gives a plan that names no provider the one that is found here. A plan that names one stays as it is, and nothing is
/// looked for.
pub async fn fill(
    plan: &mut MountPlan,
    environment: &Environment,
    places: &Places,
) -> Result<Option<Detected>, DetectError> {
    if !plan.providers.is_empty() {
        return Ok(None);
    }
    let detected = detect(environment, places).await?;
    plan.providers.push(detected.spec.clone());
    Ok(Some(detected))
}

/// Who answers for a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Filled {
    /// A provider that the plan names.
    Named,
    /// One that was found.
    Found(Box<Detected>),
    /// Nobody was found: the built-in demo, which is no model.
    Demo(NothingFound),
}

/// Like [`fill`], but where nothing is found the built-in demo answers. Not where calls are played from a tape: that is meant
/// for a certain provider.
pub async fn fill_or_demo(
    plan: &mut MountPlan,
    environment: &Environment,
    places: &Places,
) -> Result<Filled, DetectError> {
    match fill(plan, environment, places).await {
        Ok(None) => Ok(Filled::Named),
        Ok(Some(found)) => Ok(Filled::Found(Box::new(found))),
        Err(DetectError::Nothing(nothing)) if !nothing.is_replaying => {
            plan.providers.push(ModuleSpec::new(ModuleId::fixed(DEMO)));
            Ok(Filled::Demo(nothing))
        }
        Err(error) => Err(error),
    }
}

/// Who answers from here on in a session that the demo answered so far: the providers of the settings, else one that is
/// found, else the demo again. Nothing where it has others to ask.
pub async fn relieve_demo(
    plan: &mut MountPlan,
    configured: &[ModuleSpec],
    environment: &Environment,
    places: &Places,
) -> Result<Option<Filled>, DetectError> {
    if plan.providers.is_empty() || plan.providers.iter().any(|entry| entry.module.as_str() != DEMO) {
        return Ok(None);
    }
    let demo = std::mem::replace(&mut plan.providers, configured.to_vec());
    let filled = fill_or_demo(plan, environment, places).await;
    if !matches!(filled, Ok(Filled::Named | Filled::Found(_))) {
        plan.providers = demo;
    }
    filled.map(Some)
}

/// Why a built-in provider that somebody asks for by name cannot be used here; nothing when it can, or when its module comes
/// from elsewhere and only the session can tell.
pub async fn why_not(spec: &ModuleSpec, environment: &Environment) -> Result<Option<String>, DetectError> {
    // In better words than those of the module that did not come up.
    if let Some(lack) = lack::unset(spec, environment) {
        return Ok(Some(lack.to_string()));
    }
    let is_built_in = MODULES.iter().any(|module| module.id() == spec.module);
    if !is_built_in || spec.native == Some(false) {
        return Ok(None);
    }
    // Where the source leads does not matter: the module in this program is taken.
    let alone = ModuleSpec { source: None, ..spec.clone() };
    let looked = Looked::at(vec![alone], environment, Tape::Offered).await?;
    let reason = looked.first().err();
    looked.close().await;
    Ok(reason)
}

/// The provider to ask when nobody names one: the first whose variables are set, else a server on this machine. One whose
/// variables are set to something that cannot work is told, not passed over.
pub async fn detect(environment: &Environment, places: &Places) -> Result<Detected, DetectError> {
    let mut missed = Vec::new();
    let specs = BY_VARIABLE.map(|id| ModuleSpec::new(ModuleId::fixed(id)));
    let looked = Looked::at(specs.to_vec(), environment, Tape::Hidden).await?;
    let broken = looked.broken();
    let first = looked.outcomes().find_map(|(module, outcome)| match outcome {
        Ok(provider) => Some((module, provider)),
        Err(reason) => {
            missed.push(Missed { what: module.to_string(), reason });
            None
        }
    });
    let found = first.map(|(module, provider)| {
        let info = provider.info();
        let reason = standing::reason(&standing::variables(&info, environment));
        let place = named_place(&module, &info, environment);
        let mut spec = ModuleSpec::new(module);
        if let Some(place) = place {
            spec.config.insert("base_url".to_owned(), Value::from(place));
        }
        Detected { spec, reason }
    });
    looked.close().await;
    if let Some(reason) = broken {
        return Err(DetectError::Broken { reason });
    }
    if let Some(found) = found {
        return Ok(found);
    }
    for server in servers::look(places, environment).await? {
        match server.found {
            Ok(found) => return Ok(found),
            Err(reason) if server.is_broken => return Err(DetectError::Broken { reason }),
            Err(reason) => missed.push(Missed { what: server.name.to_owned(), reason }),
        }
    }
    let is_replaying = environment.get(env::AMPLIFIER_REPLAY).is_some_and(|folder| !folder.is_empty());
    Err(NothingFound { missed, is_replaying }.into())
}

/// The place that a variable names for a service, so that what is found now is found when the variable is gone. An address
/// that holds a credential stays where it is.
fn named_place(module: &ModuleId, info: &ProviderInfo, environment: &Environment) -> Option<String> {
    let used = info.defaults.get("base_url")?.as_str()?;
    // Variables of other services may name the same host; a key must never go where they point.
    let own = module.as_str().strip_prefix("provider-")?.replace('-', "_").to_uppercase();
    let names = ["ENDPOINT", "BASE_URL"].map(|last| format!("{own}_{last}"));
    let places = names.iter().filter_map(|name| environment.get(name));
    // A provider may put something behind it, such as a version.
    let is_used = |place: &String| {
        let behind = used.strip_prefix(place.as_str());
        !place.is_empty() && behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('/'))
    };
    let mut places = places.map(|place| place.trim().trim_end_matches('/').to_owned()).filter(is_used);
    places.next().filter(|place| failure::shown(place).as_ref() == Some(place))
}

/// Whether modules see the variables that name a tape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tape {
    /// They do: their calls may be recorded or played.
    Offered,
    /// They do not: with a tape to play from every provider looks usable.
    Hidden,
}

/// Providers on a session that nobody talks to.
pub(crate) struct Looked(Session);

impl Looked {
    /// A look at them: they are mounted and ask nobody.
    pub(crate) async fn at(
        providers: Vec<ModuleSpec>,
        environment: &Environment,
        tape: Tape,
    ) -> Result<Self, Box<OpenError>> {
        Self::open(providers, environment, tape, Readiness::Withheld).await
    }

    /// One that will be asked something; it may look at its server first.
    pub(crate) async fn to_ask(
        provider: ModuleSpec,
        environment: &Environment,
    ) -> Result<Self, Box<OpenError>> {
        Self::open(vec![provider], environment, Tape::Offered, Readiness::Told).await
    }

    async fn open(
        providers: Vec<ModuleSpec>,
        environment: &Environment,
        tape: Tape,
        readiness: Readiness,
    ) -> Result<Self, Box<OpenError>> {
        let mut plan = MountPlan::new(ModuleId::fixed("loop-basic"), ModuleId::fixed("context-simple"));
        plan.providers = providers;
        let expander = EnvExpander::new(environment.clone());
        let loader = Loader::new().finder(Arc::new(BuiltIns)).expander(Arc::new(expander));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let variables = Variables { offered: OfferedVariables(environment.clone()), tape };
        let session = SessionBuilder::new(plan, Arc::new(loader), clock)
            .readiness(readiness)
            .capability("environment.variable", Capability::Call(Arc::new(variables)));
        Ok(Self(session.open().await.map_err(Box::new)?))
    }

    /// What became of each provider: itself, or why it cannot be used.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (ModuleId, Result<Arc<dyn Provider>, String>)> {
        let provider = |names: &[String]| {
            let name = names.first().ok_or("it offers nothing")?;
            self.0.coordinator().provider(name).ok_or("it offers nothing")
        };
        let wanted = &self.0.coordinator().plan().providers;
        let entries = self.0.report().modules.iter();
        let entries = entries.filter(|entry| wanted.iter().any(|spec| spec.module == entry.module));
        entries.map(move |entry| {
            let outcome = match &entry.outcome {
                LoadOutcome::Mounted { names } => provider(names).map_err(str::to_owned),
                LoadOutcome::Skipped { reason } => Err(reason.clone()),
                LoadOutcome::Failed { error } => Err(error.clone()),
            };
            (entry.module.clone(), outcome)
        })
    }

    /// What is wrong with one that is set up, before the first that can be used. Whoever lacks something is not meant.
    fn broken(&self) -> Option<String> {
        let wanted = &self.0.coordinator().plan().providers;
        let entries = self.0.report().modules.iter();
        let mut entries = entries.filter(|entry| wanted.iter().any(|spec| spec.module == entry.module));
        match &entries.find(|entry| !matches!(entry.outcome, LoadOutcome::Skipped { .. }))?.outcome {
            LoadOutcome::Failed { error } => Some(error.clone()),
            LoadOutcome::Mounted { .. } | LoadOutcome::Skipped { .. } => None,
        }
    }

    /// The first of them.
    pub(crate) fn first(&self) -> Result<Arc<dyn Provider>, String> {
        let outcome = self.outcomes().next().map(|(_, outcome)| outcome);
        outcome.unwrap_or_else(|| Err("it was not mounted".to_owned()))
    }

    pub(crate) async fn close(self) {
        // Providers hold nothing but connections; what one says while it is let go changes no answer.
        drop(self.0.cleanup().await);
    }
}

/// The variables that modules may ask for, with or without those of the tape.
struct Variables {
    offered: OfferedVariables,
    tape: Tape,
}

#[async_trait]
impl CapabilityCall for Variables {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        let tapes = [json!(env::AMPLIFIER_RECORD), json!(env::AMPLIFIER_REPLAY)];
        if self.tape == Tape::Hidden && arguments.get("name").is_some_and(|name| tapes.contains(name)) {
            return Ok(Value::Null);
        }
        self.offered.call(arguments).await
    }
}

/// Times for a call that shall end soon, in the words of a config.
pub(crate) fn patience(time: Duration) -> [(&'static str, Value); 4] {
    let seconds = json!(time.as_secs_f64());
    [
        ("connect_timeout", seconds.clone()),
        ("first_byte_timeout", seconds.clone()),
        ("timeout", seconds),
        ("max_retries", json!(0)),
    ]
}

#[cfg(test)]
#[path = "detect_tests.rs"]
mod tests;
