//! What a person is told about a turn that failed: whom was asked, where, for which model, and what can be done about it.
//!
//! It decides nothing about the turn and prints nothing; `run` and the chat show the same words.

use std::io;

use amplifier_core::contracts::{ContextError, TurnError};
use amplifier_core::ledger::LimitReached;
use amplifier_core::report::{LoadEntry, LoadOutcome};
use amplifier_core::session::ExecuteError;
use amplifier_protocol::ids::{ModuleId, SessionId};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind as Kind};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::ModuleSpec;
use amplifier_protocol::provider::ProviderInfo;
use amplifier_protocol::spend::Unit;
use amplifier_protocol::text::sanitize;
use amplifier_protocol::usage::Usd;
use serde_json::Value;
use url::Url;

use crate::env::{AMPLIFIER_RECORD, AMPLIFIER_REPLAY, Environment, OLLAMA_HOST};
use crate::open::OpenSession;
use crate::settings::{Configured, Settings};
use crate::{catalog, connect, files, turns};

/// A failed turn in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong, and where.
    pub message: String,
    /// What the person can do about it.
    pub hint: Option<String>,
}

/// Where the person stands who reads it: what can be done differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// At a shell; the program ends now.
    Shell,
    /// In the chat; the session stays open.
    Chat,
}

/// Whom a session may ask. A session that is closed does not know any more, so this is taken before.
pub struct Doors {
    mounted: Vec<(String, ProviderInfo)>,
    configured: Vec<Configured>,
}

impl Doors {
    /// The providers of an open session, and those of the settings.
    pub fn of(opened: &OpenSession, settings: &Settings) -> Self {
        let providers = opened.session.coordinator().providers().into_iter();
        let mounted = providers.map(|(name, provider)| (name, provider.info())).collect();
        Self { mounted, configured: settings.providers() }
    }
}

/// Puts a failed turn into words.
pub fn describe(error: &ExecuteError, opened: &OpenSession, doors: &Doors, front: Front) -> Failure {
    let id = opened.session.id();
    let plain = |hint: Option<String>| Failure { message: error.to_string(), hint };
    match error {
        ExecuteError::Turn(TurnError::Model(error)) => {
            let asked = Asked::find(error, opened, doors);
            let recording = opened.environment().get(AMPLIFIER_REPLAY).filter(|folder| !folder.is_empty());
            let hint = match (error.kind, recording) {
                // Nothing else is out of order: nobody but the recording was asked.
                (Kind::Configuration, Some(folder)) => Some(format!(
                    "the answers come from `{folder}` (`{AMPLIFIER_REPLAY}`); `{AMPLIFIER_RECORD}` with an empty folder records \
                     them anew"
                )),
                _ => asked.hint(error, id, front),
            };
            Failure { message: asked.message(error), hint }
        }
        ExecuteError::Turn(TurnError::Limit(reached)) => plain(Some(limits(reached, id, front))),
        ExecuteError::NoProviders { .. } => plain(Some(nobody_to_ask(opened))),
        ExecuteError::Turn(TurnError::Context(ContextError::DoesNotFit { .. })) => {
            plain(Some(too_long(id, front)))
        }
        ExecuteError::Turn(TurnError::Journal { message }) => plain(Some(unwritten(message, opened, front))),
        _ => plain(None),
    }
}

/// What a person can do with a turn that was stopped.
pub fn after_stop(id: &SessionId) -> String {
    format!(
        "`amplifier run --resume {id} --continue` finishes the turn; `amplifier continue` goes on with something else"
    )
}

/// What helps where nobody has a module.
pub(crate) const OTHER_MODULES: &str =
    "`amplifier module list` shows the built-in ones; others need a `source` in their entry";

/// What can be done about a module that did not load.
pub fn cure(entry: &LoadEntry) -> Option<String> {
    let LoadOutcome::Failed { error } = &entry.outcome else { return None };
    let id = &entry.module;
    if error.contains("not found; tried") {
        return Some(OTHER_MODULES.to_owned());
    }
    (error.contains("rejected its config") && catalog::module(id.as_str()).is_some()).then(|| config_of(id))
}

/// What a module may be configured with is told there.
pub(crate) fn config_of(id: &ModuleId) -> String {
    format!("`amplifier module info {id}` shows its config")
}

/// Whom to ask instead, or what to mend.
fn nobody_to_ask(opened: &OpenSession) -> String {
    let of_provider = |entry: &&LoadEntry| entry.kind == ModuleKind::Provider;
    let cured = opened.session.report().modules.iter().filter(of_provider).find_map(cure);
    cured.unwrap_or_else(|| {
        "`amplifier provider list` shows which providers can be used; `--provider NAME` asks one of them"
            .to_owned()
    })
}

/// The command that goes on after a limit was reached.
fn limits(reached: &LimitReached, id: &SessionId, front: Front) -> String {
    let go_on = match front {
        Front::Shell => format!("amplifier run --resume {id} --continue"),
        Front::Chat => format!("amplifier resume {id}"),
    };
    // What an agent of the session may do stands in its own plan, out of reach of a flag.
    if reached.session_id != *id {
        return format!(
            "`session.limits` of its plan sets the limit of `{}`; `{go_on}` goes on",
            reached.session_id
        );
    }
    // What was used counts on, so less would be reached at once.
    let most = reached.limit.max(reached.used.saturating_add(reached.asked)).saturating_mul(2);
    let set = |key: &str, most: u64| format!("--set session.limits.{key}={most}");
    let higher = match reached.unit {
        Unit::CostNanos => format!("--max-cost {}", Usd::from_nanos(most)),
        Unit::WallMillis => set("wall_seconds", most.div_ceil(1000)),
        Unit::Tokens => set("tokens", most),
        Unit::Steps => set("steps", most),
        Unit::ToolCalls => set("tool_calls", most),
        Unit::Spawns => set("spawns", most),
        Unit::InjectedTokens => set("injected_tokens", most),
        Unit::SpawnDepth => set("spawn_depth", most),
        Unit::SpawnWidth => set("spawn_width", most),
    };
    format!("`{go_on} {higher}` goes on under a higher limit")
}

/// What can be done about a journal that takes nothing more. The kernel hands on what the disk said as text alone.
fn unwritten(message: &str, opened: &OpenSession, front: Front) -> String {
    let (id, folder) = (opened.session.id(), &opened.folder);
    if !folder.events().exists() {
        let go_on = match front {
            Front::Shell => "begin anew",
            Front::Chat => "leave with `/quit` and begin anew",
        };
        return format!("`{}` is gone: put a copy back, or {go_on}", folder.dir().display());
    }
    let mend = match () {
        () if !folder.lease().exists() => "see that nobody else writes the session",
        () if files::tells_no_room(message) => "make room",
        () if files::tells_a_folder(message) => "a folder stands where a file belongs: move it away",
        () => "mend what it says",
    };
    // What was not written down was not begun, as far as the session knows.
    let again = match (front, turns::is_finished(folder)) {
        (Front::Chat, _) => "ask again: the session is opened anew for that".to_owned(),
        (Front::Shell, Ok(true)) => format!("`amplifier run --resume {id} PROMPT` asks again"),
        (Front::Shell, _) => format!("`amplifier run --resume {id} --continue` goes on"),
    };
    format!("nothing was done that is not written down; {mend}, then {again}")
}

fn too_long(id: &SessionId, front: Front) -> String {
    match front {
        Front::Shell => format!(
            "ask with less, or a model with a larger window with `--model`; `/compact` in `amplifier resume {id}` \
             shortens what was said"
        ),
        Front::Chat => {
            "`/compact` shortens what was said, `/model` asks one with a larger window; or send less"
                .to_owned()
        }
    }
}

/// Whether the server is one of this machine that does not run: the call itself was refused, and not the way there.
fn nobody_listens(error: &LlmError) -> bool {
    let cause = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

/// Whom a failed call asked, as far as that can be told.
struct Asked<'a> {
    /// The name it is mounted under, and who it is.
    provider: Option<&'a (String, ProviderInfo)>,
    /// Its entry in the plan.
    spec: Option<&'a ModuleSpec>,
    /// What it is called in the settings, where it stands there.
    configured: Option<&'a str>,
    /// The variable its key is in.
    variable: Option<String>,
}

impl<'a> Asked<'a> {
    fn find(error: &LlmError, opened: &'a OpenSession, doors: &'a Doors) -> Self {
        let of_the_error = |(name, info): &&(String, ProviderInfo)| {
            error.provider.as_ref().is_some_and(|said| info.id == *said || name == said)
        };
        let alike: Vec<_> = doors.mounted.iter().filter(of_the_error).collect();
        // Of several doors to one service the model tells which; where it does not, no place is better than a wrong one.
        let model =
            |info: &ProviderInfo| info.defaults.get("model").and_then(Value::as_str).map(str::to_owned);
        let mut exact = alike.iter().filter(|(_, info)| alike.len() == 1 || model(info) == error.model);
        let provider = match (exact.next(), exact.next()) {
            (Some(only), None) => Some(*only),
            _ => None,
        };
        let spec = provider.and_then(|(name, info)| {
            let named = |spec: &&ModuleSpec| spec.instance_id.as_ref() == Some(name);
            let of_type =
                |spec: &&ModuleSpec| spec.instance_id.is_none() && connect::short(&spec.module) == info.id;
            let entries = &opened.session.coordinator().plan().providers;
            entries.iter().find(named).or_else(|| entries.iter().find(of_type))
        });
        let in_settings = |entry: &&Configured| {
            spec.is_some_and(|spec| {
                entry.spec.module == spec.module && entry.spec.instance_id == spec.instance_id
            })
        };
        let variable = provider.and_then(|(_, info)| key_variable(spec, info, opened.environment()));
        let configured = doors.configured.iter().find(in_settings).map(Configured::name);
        Self { provider, spec, configured, variable }
    }

    fn place(&self) -> Option<String> {
        let (_, info) = self.provider?;
        shown(info.defaults.get("base_url")?.as_str()?)
    }

    fn message(&self, error: &LlmError) -> String {
        let name = self.provider.map(|(name, _)| name).or(error.provider.as_ref());
        let Some(name) = name else { return sanitize(&error.to_string()).into_owned() };
        call(name, self.place().as_deref(), error)
    }

    fn hint(&self, error: &LlmError, id: &SessionId, front: Front) -> Option<String> {
        let later = |when: &str| match front {
            Front::Shell => format!("{when} `amplifier run --resume {id} --continue` asks again"),
            Front::Chat => format!("{when} ask again"),
        };
        Some(match error.kind {
            Kind::Authentication => {
                format!(
                    "{}; {} tries it, {} takes another key",
                    self.key(),
                    self.test(),
                    self.change(" --key-stdin")
                )
            }
            Kind::AccessDenied => {
                format!(
                    "{}; it may not do this: `--model` asks another model, {} takes another key",
                    self.key(),
                    self.change(" --key-stdin")
                )
            }
            Kind::NotFound => format!(
                "is the name of the model right, and `base_url`? {} tries them, `amplifier provider models` lists models",
                self.test()
            ),
            Kind::RateLimit => match error.retry_after {
                Some(seconds) => later(&format!("the service asks to wait {}; then", wait(seconds))),
                None => later("too many requests; wait a little, then"),
            },
            Kind::QuotaExceeded => {
                format!("the account has nothing left; look at its billing page, {}", later("then"))
            }
            Kind::ProviderUnavailable => later("the service has trouble of its own; later"),
            Kind::Network if nobody_listens(error) => self.start(),
            Kind::Network => {
                let place = self.place().unwrap_or_else(|| "its place".to_owned());
                format!(
                    "is there a server at {place}? `base_url` names another place; {} tries it",
                    self.test()
                )
            }
            Kind::Timeout => later("`timeout` in the provider's config waits longer;"),
            Kind::Stream => later("the answer was not kept;"),
            Kind::ContextLength => too_long(id, front),
            Kind::ContentFilter => "the service does not answer this; ask in other words".to_owned(),
            Kind::Configuration => format!("{} tries it, {} sets it up anew", self.test(), self.change("")),
            _ => return None,
        })
    }

    /// How a server of this machine is started, or another is named.
    fn start(&self) -> String {
        let place = self.place().unwrap_or_else(|| "its place".to_owned());
        let own = self.spec.is_some_and(|spec| spec.config.contains_key("base_url"));
        let (start, named) = match self.provider.map(|(_, info)| info.id.as_str()) {
            Some("ollama") if !own => {
                ("start it with `ollama serve`", format!("`{OLLAMA_HOST}` or `base_url`"))
            }
            Some("ollama") => ("start it with `ollama serve`", "`base_url`".to_owned()),
            _ => ("start the server", "`base_url`".to_owned()),
        };
        format!(
            "nobody listens at {place}: {start}, or name another place with {named}; {} tries it",
            self.test()
        )
    }

    /// Where the key comes from.
    fn key(&self) -> String {
        let written = self.spec.and_then(|spec| spec.config.get("api_key")).is_some();
        let variables = self.provider.map(|(_, info)| info.credential_env_vars.as_slice());
        match (&self.variable, variables) {
            (Some(variable), _) => format!("the key comes from `{variable}`"),
            (None, _) if written => "the key stands as `api_key` in the provider's config".to_owned(),
            (None, Some([first, ..])) => {
                format!("it has no key; `{first}` or `api_key` in its config gives one")
            }
            (None, _) => "the service does not take the key".to_owned(),
        }
    }

    /// The command that changes how it is set up.
    fn change(&self, flag: &str) -> String {
        match self.configured {
            Some(name) => format!("`amplifier provider set {name}{flag}`"),
            None => "`amplifier init`".to_owned(),
        }
    }

    /// The command that tries the provider alone.
    fn test(&self) -> String {
        let type_name = self.provider.map(|(_, info)| info.id.as_str());
        match (self.configured, type_name) {
            (Some(name), _) => format!("`amplifier provider test {name}`"),
            (None, Some(name)) => {
                // What is not in the settings is known to that command by its type alone.
                let own = self.spec.is_some_and(|spec| spec.config.contains_key("base_url"));
                let place = self.place().filter(|_| own).map(|place| format!(" --base-url {place}"));
                format!("`amplifier provider test {name}{}`", place.unwrap_or_default())
            }
            (None, None) => "`amplifier provider test`".to_owned(),
        }
    }
}

/// A failed call in words: who was asked, where, for which model, and what came of it.
pub(crate) fn call(name: &str, place: Option<&str>, error: &LlmError) -> String {
    let place = place.map(|place| format!(" at {place}")).unwrap_or_default();
    let model = error.model.as_ref().filter(|model| !model.is_empty());
    let model = model.map(|model| format!(", model `{model}`")).unwrap_or_default();
    let said = LlmError { message: told(error), provider: None, ..error.clone() };
    format!("`{name}`{place}{model}: {}", sanitize(&said.to_string()))
}

/// What is said about a failed call. The transport tells every layer; the innermost is what happened. What the provider says
/// before, as that an answer had begun, stays.
fn told(error: &LlmError) -> String {
    let outermost = error.cause.as_ref().map(|cause| &**cause as &(dyn std::error::Error + 'static));
    let layers: Vec<_> =
        std::iter::successors(outermost, |layer| layer.source()).map(ToString::to_string).collect();
    match (layers.last(), error.message.strip_suffix(&layers.join(": "))) {
        (Some(innermost), Some(before)) if error.kind == Kind::Network => {
            format!("{before}cannot be reached: {innermost}")
        }
        _ => error.message.clone(),
    }
}

/// The variable that the key of a provider is in: the one its config refers to, else the first of the usual ones that is set.
pub(crate) fn key_variable(
    spec: Option<&ModuleSpec>,
    info: &ProviderInfo,
    environment: &Environment,
) -> Option<String> {
    if let Some(written) = spec.and_then(|spec| spec.config.get("api_key")) {
        let inside = written.as_str()?.strip_prefix("${")?.strip_suffix('}')?;
        return inside.split(":-").next().map(str::to_owned);
    }
    let is_set = |name: &&String| environment.get(name).is_some_and(|value| !value.is_empty());
    info.credential_env_vars.iter().find(is_set).cloned()
}

/// An address without anything that may be a secret.
pub(crate) fn shown(address: &str) -> Option<String> {
    let mut url = Url::parse(address).ok()?;
    url.set_username("").and_then(|()| url.set_password(None)).ok()?;
    url.set_query(None);
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

fn wait(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{} s", seconds.ceil()),
        seconds => format!("{} min", (seconds / 60.0).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        let address = shown("https://me:secret@example.com:8443/v1/?key=secret#x");
        assert_eq!(address.as_deref(), Some("https://example.com:8443/v1"));
        assert_eq!(shown("no address"), None);
    }

    #[test]
    fn a_wait_is_rounded_up() {
        assert_eq!([wait(0.2), wait(7.0), wait(91.0)], ["1 s", "7 s", "2 min"]);
    }
}
