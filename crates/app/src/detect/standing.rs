//! How every provider module stands here: whether it can be used, and why or why not. Values of variables are never told.

use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::ModuleSpec;
use amplifier_protocol::provider::ProviderInfo;
use serde::Serialize;
use serde_json::{Value, json};

use super::servers::{self, Server};
use super::{BY_VARIABLE, DetectError, Looked, Places, Tape};
use crate::catalog;
use crate::env::Environment;

/// The module that needs nothing and is no model: never chosen by itself.
const MOCK: &str = "provider-mock";
/// Modules whose server is looked for instead of a key.
const WITH_SERVER: [&str; 2] = ["provider-ollama", "provider-vllm"];

/// All providers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standings {
    /// One entry for each provider module.
    pub providers: Vec<Standing>,
    /// The module that is taken when nobody names one.
    pub detected: Option<ModuleId>,
}

/// How a provider stands here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// The module.
    pub module: ModuleId,
    /// Its short name, as `--provider` takes it.
    pub name: String,
    /// Whether it can be used.
    pub usable: bool,
    /// Why, or why not.
    pub reason: String,
    /// The variables that may hold its key.
    pub variables: Vec<Variable>,
    /// Where it would ask.
    pub base_url: Option<String>,
    /// Which model it would ask.
    pub model: Option<String>,
}

/// A variable, and whether it is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Whether it is set and not empty.
    pub set: bool,
}

/// How every provider module stands here.
pub async fn standings(environment: &Environment, places: &Places) -> Result<Standings, DetectError> {
    let modules = catalog::of_kind(ModuleKind::Provider).into_iter();
    let (with_server, others): (Vec<_>, Vec<_>) =
        modules.map(|info| info.id).partition(|id| WITH_SERVER.contains(&id.as_str()));
    let servers = async { servers::look(places, environment).await.map_err(DetectError::from) };
    let (servers, mut providers) = tokio::try_join!(servers, by_variables(others, environment))?;
    for module in with_server {
        providers.push(by_server(module, &servers, environment));
    }
    // A llama.cpp server is asked by the module of its protocol, unless that is to ask elsewhere.
    let llama_cpp = servers.iter().find(|server| !WITH_SERVER.contains(&server.module.as_str()));
    let same = |standing: &&mut Standing| llama_cpp.is_some_and(|server| server.module == standing.module);
    if let (Some(standing), Some(server)) = (providers.iter_mut().find(same), llama_cpp) {
        match &server.found {
            _ if standing.usable => {}
            Ok(_) => standing.take(server),
            Err(reason) => standing.reason.push_str(&format!("; {}: {reason}", server.name)),
        }
    }
    providers.sort_by(|a, b| a.module.cmp(&b.module));
    let usable = |id: &ModuleId| providers.iter().any(|row| row.usable && row.module == *id);
    let by_variable = BY_VARIABLE.into_iter().map(ModuleId::fixed);
    let detected = by_variable.chain(servers.iter().map(|server| server.module.clone())).find(usable);
    Ok(Standings { providers, detected })
}

/// The same without a look at any server: nothing is asked of anybody.
pub async fn standings_unasked(environment: &Environment) -> Result<Standings, DetectError> {
    let modules = catalog::of_kind(ModuleKind::Provider).into_iter().map(|info| info.id).collect();
    let mut providers = by_variables(modules, environment).await?;
    for standing in providers.iter_mut().filter(|row| WITH_SERVER.contains(&row.module.as_str())) {
        (standing.usable, standing.reason) = (false, "no server was looked for".to_owned());
    }
    providers.sort_by(|a, b| a.module.cmp(&b.module));
    let usable = |id: &ModuleId| providers.iter().any(|row| row.usable && row.module == *id);
    let detected = BY_VARIABLE.into_iter().map(ModuleId::fixed).find(usable);
    Ok(Standings { providers, detected })
}

/// How the modules stand that ask a model and need no server on this machine: nobody is asked.
pub async fn by_keys(environment: &Environment) -> Result<Vec<Standing>, DetectError> {
    let modules = catalog::of_kind(ModuleKind::Provider).into_iter();
    let apart = |id: &ModuleId| asks_nobody(id) || WITH_SERVER.contains(&id.as_str());
    by_variables(modules.map(|info| info.id).filter(|id| !apart(id)).collect(), environment).await
}

/// Whether a built-in provider answers by itself, without a model.
pub(crate) fn asks_nobody(id: &ModuleId) -> bool {
    [MOCK, super::DEMO].contains(&id.as_str())
}

impl Standing {
    fn new(module: ModuleId) -> Self {
        let name = module.as_str().trim_start_matches("provider-").to_owned();
        let (reason, variables) = (String::new(), Vec::new());
        Self { module, name, usable: false, reason, variables, base_url: None, model: None }
    }

    fn know(&mut self, info: &ProviderInfo, environment: &Environment) {
        let text = |key: &str| info.defaults.get(key).and_then(Value::as_str).map(str::to_owned);
        self.variables = variables(info, environment);
        (self.base_url, self.model) = (text("base_url"), text("model"));
    }

    fn take(&mut self, server: &Server) {
        match &server.found {
            Err(reason) => self.reason.clone_from(reason),
            Ok(found) => {
                let text = |key: &str| found.spec.config.get(key).and_then(Value::as_str).map(str::to_owned);
                (self.usable, self.reason) = (true, found.reason.clone());
                (self.base_url, self.model) = (text("base_url"), text("default_model"));
            }
        }
    }
}

/// The variables of a provider, and whether they are set.
pub(super) fn variables(info: &ProviderInfo, environment: &Environment) -> Vec<Variable> {
    let set = |name: &String| environment.get(name).is_some_and(|value| !value.trim().is_empty());
    info.credential_env_vars.iter().map(|name| Variable { set: set(name), name: name.clone() }).collect()
}

/// The variables that may hold the key of one provider. Nothing is asked.
pub async fn variables_of(module: ModuleId, environment: &Environment) -> Result<Vec<Variable>, DetectError> {
    let looked = Looked::at(vec![with_anything(module)], environment, Tape::Hidden).await?;
    let found = looked.first().map(|provider| variables(&provider.info(), environment));
    looked.close().await;
    // A module that does not even come up with a key has no variable for one.
    Ok(found.unwrap_or_default())
}

/// Why a provider that asks for no server here can be used.
pub(super) fn reason(variables: &[Variable]) -> String {
    match variables.iter().find(|variable| variable.set) {
        Some(variable) => format!("`{}` is set", variable.name),
        None => "it needs no key".to_owned(),
    }
}

async fn by_variables(
    modules: Vec<ModuleId>,
    environment: &Environment,
) -> Result<Vec<Standing>, DetectError> {
    let specs = modules.into_iter().map(ModuleSpec::new).collect();
    let looked = Looked::at(specs, environment, Tape::Hidden).await?;
    let (mut standings, mut declined) = (Vec::new(), Vec::new());
    for (module, outcome) in looked.outcomes() {
        let mut standing = Standing::new(module.clone());
        match outcome {
            Ok(provider) => {
                standing.know(&provider.info(), environment);
                standing.usable = true;
                standing.reason = match module.as_str() {
                    MOCK => "always there; it plays scripts and asks no model".to_owned(),
                    super::DEMO => "always there; it looks at your folder and asks no model".to_owned(),
                    _ => reason(&standing.variables),
                };
            }
            Err(reason) => {
                standing.reason = reason;
                declined.push(with_anything(module));
            }
        }
        standings.push(standing);
    }
    looked.close().await;
    // A module that declines says nothing more about itself; with any key and place it does. Nothing is asked there.
    let looked = Looked::at(declined, environment, Tape::Hidden).await?;
    for (module, outcome) in looked.outcomes() {
        let standing = standings.iter_mut().find(|standing| standing.module == module);
        if let (Some(standing), Ok(provider)) = (standing, outcome) {
            standing.variables = variables(&provider.info(), environment);
        }
    }
    looked.close().await;
    Ok(standings)
}

fn with_anything(module: ModuleId) -> ModuleSpec {
    let mut spec = ModuleSpec::new(module);
    spec.config.insert("api_key".to_owned(), json!("none"));
    spec.config.insert("base_url".to_owned(), json!("http://127.0.0.1"));
    spec
}

fn by_server(module: ModuleId, servers: &[Server], environment: &Environment) -> Standing {
    let server = servers.iter().find(|server| server.module == module);
    let mut standing = Standing::new(module);
    match server {
        Some(server) => {
            standing.take(server);
            standing.variables = variables(&server.info, environment);
        }
        // Only vLLM is not looked for unless it is named: its usual port is everybody's.
        None => standing.reason = "no server is named: set `VLLM_BASE_URL`".to_owned(),
    }
    standing
}
