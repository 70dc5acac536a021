//! Profiles for the front ends: the `profile` crate with this home's folders, and a profile that is ready to become sessions.
//!
//! What the phases do is the `profile` crate's; here is only what they are done with.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_bundle::agent;
use amplifier_bundle::bundle;
use amplifier_bundle::home::{Home as FileHome, Source};
use amplifier_bundle::mention::Quotes;
use amplifier_bundle::node::mapping_to_json;
use amplifier_bundle::notice::{Notice, Strictness};
use amplifier_bundle::plan::PlanDraft;
use amplifier_bundle::yaml::YamlLimits;
use amplifier_core::contracts::ModuleSourceResolver;
use amplifier_core::validate::MountPlanValidator;
use amplifier_profile::chain::Profile;
use amplifier_profile::mention;
use amplifier_profile::plan::ProfilePlan;
use amplifier_protocol::mount_plan::{MountPlan, PlanForm};
use amplifier_sources::fetch::{Base, FetchContext, Fetcher, Freshness};
use amplifier_sources::resolver::SourceResolver;
use serde_json::{Map, Value};

pub use amplifier_bundle::bundle::Text;
pub use amplifier_profile::check::{Check, ProfileSummary, State};
pub use amplifier_profile::collections::{CollectionSummary, Collections};
pub use amplifier_profile::compile::{Compiled, Outcome};
pub use amplifier_profile::steps::{Step, Steps};
pub use amplifier_profile::sync::{Compilation, SyncReport, SyncStatus, TextLeft};
pub use amplifier_profile::{ProfileContext, ProfileError, ProfileId, Profiles, Share, ShareName};

use crate::clock::SystemClock;
use crate::credentials::{self, Credentials};
use crate::env;
use crate::library::{self, Access};
use crate::paths::Home;
use crate::prepare::modules;
use crate::prompt::{NamedPath, Project, PromptParts};
use crate::resolver;
use crate::settings::Settings;

/// Why a profile is not ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileFault {
    #[error(transparent)]
    Profile(#[from] Box<ProfileError>),
    /// Strict, and something is amiss.
    #[error("{}", problems.join("\n"))]
    Strict { problems: Vec<String> },
    /// It says something that makes no session.
    #[error("profile `{id}` makes no session:\n  {}", problems.join("\n  "))]
    Plan { id: String, problems: Vec<String> },
}

impl ProfileFault {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Profile(error) => error.hint(),
            _ => None,
        }
    }
}

impl From<ProfileError> for ProfileFault {
    fn from(error: ProfileError) -> Self {
        Self::Profile(Box::new(error))
    }
}

/// The collections and profiles of a home.
pub fn profiles(access: &Access) -> Profiles {
    with(access, Arc::new(library::fetcher(&access.home, &access.environment)))
}

fn with(access: &Access, fetcher: Arc<Fetcher>) -> Profiles {
    let profiles = Profiles::new(Share::new(access.home.share()), fetcher, Arc::new(SystemClock::default()));
    match access.environment.get(env::HOME) {
        Some(home) => profiles.with_user_home(home),
        None => profiles,
    }
}

/// A source as it may be shown: without its credentials.
pub fn shown_source(source: &str) -> String {
    crate::credentials::shown(source)
}

/// What the work is done with.
pub fn context(access: &Access, steps: Arc<dyn Steps>) -> ProfileContext {
    let (freshness, progress) = (access.freshness, Arc::clone(&access.progress));
    ProfileContext { freshness, progress, steps, cancel: access.cancel.clone() }
}

/// A profile that is ready to become sessions.
pub struct PreparedProfile {
    pub id: ProfileId,
    plan: ProfilePlan,
    profiles: Profiles,
    home: Home,
    fetcher: Arc<Fetcher>,
    base: Base,
    settings: Arc<Settings>,
}

/// Prepares a profile: compiles what is not, and makes its plan.
pub async fn prepare_profile(
    id: &ProfileId,
    access: &Access,
    strictness: Strictness,
) -> Result<PreparedProfile, ProfileFault> {
    let fetcher = Arc::new(library::fetcher(&access.home, &access.environment));
    let profiles = with(access, Arc::clone(&fetcher));
    let cx = context(access, Arc::new(amplifier_profile::steps::Silent));
    profiles.compile(id, &cx).await?;
    let prepared = ready(id, access, fetcher, profiles)?;
    let stops: Vec<_> = prepared.notices().iter().filter(|notice| notice.stops(strictness)).collect();
    if !stops.is_empty() {
        return Err(ProfileFault::Strict { problems: stops.into_iter().map(Notice::render).collect() });
    }
    Ok(prepared)
}

/// A profile as it was last compiled. Nothing is fetched or written.
pub fn compiled_profile(id: &ProfileId, access: &Access) -> Result<PreparedProfile, ProfileFault> {
    let fetcher = Arc::new(library::fetcher(&access.home, &access.environment));
    let profiles = with(access, Arc::clone(&fetcher));
    ready(id, access, fetcher, profiles)
}

fn ready(
    id: &ProfileId,
    access: &Access,
    fetcher: Arc<Fetcher>,
    profiles: Profiles,
) -> Result<PreparedProfile, ProfileFault> {
    let mut plan = profiles.plan(id, PlanForm::Nested)?;
    access.settings.apply(&mut plan.plan);
    let mut notices = written_credentials(&plan.profile);
    let mut credentials = Credentials::default();
    let hidden = credentials.hide_draft(&mut plan.plan);
    notices.extend(hidden.into_iter().filter(|notice| !access.settings.tells(notice)));
    access.environment.learn(credentials.plain());
    plan.profile.notices.append(&mut notices);
    let user_home = access.environment.get(env::HOME).map(PathBuf::from);
    let base = Base { home: user_home, ..Base::at(&access.base) };
    let (home, settings) = (access.home.clone(), Arc::clone(&access.settings));
    Ok(PreparedProfile { id: id.clone(), plan, profiles, home, fetcher, base, settings })
}

/// The addresses in the texts of a profile that hold a credential. Its plan has none of them: it names the folders that
/// were brought.
fn written_credentials(profile: &Profile) -> Vec<Notice> {
    let composed = &profile.composed;
    let slots = ["orchestrator", "context"];
    let session = slots.iter().filter_map(|slot| composed.session.as_ref()?.at(slot));
    let lists = [&composed.providers, &composed.tools, &composed.hooks];
    let modules = lists.into_iter().flat_map(|list| &list.entries).map(|module| &module.node);
    let sources = session.chain(modules).filter_map(|entry| entry.at("source"));
    let sources = sources.filter_map(|source| credentials::told_of(source.as_text()?, &source.place));
    let agents = composed.agents.values().filter_map(|agent| agent.entry.reference.as_ref());
    let context = composed.context.values().map(|file| &file.path);
    let texts = agents.chain(context).filter_map(|text| credentials::told_of(&text.text, &text.place));
    sources.chain(texts).collect()
}

impl PreparedProfile {
    /// What is worth telling about its texts.
    pub fn notices(&self) -> &[Notice] {
        self.plan.notices()
    }

    /// The plan whose values know where they were set.
    pub fn draft(&self) -> &PlanDraft {
        &self.plan.plan
    }

    /// The modules that nobody has, in the words of a session that does not find them.
    pub fn unknown_modules(&self) -> Vec<String> {
        modules::unknown(self.draft())
    }

    /// The plan as the specification writes it.
    pub fn written(&self, form: PlanForm) -> Result<Value, ProfileFault> {
        match form {
            PlanForm::Nested => Ok(self.plan.plan.to_json()),
            PlanForm::Strings => {
                let mut plan = self.profiles.plan(&self.id, form)?.plan;
                self.settings.apply(&mut plan);
                Credentials::default().hide_draft(&mut plan);
                Ok(plan.to_json())
            }
        }
    }

    /// The mount plan.
    pub fn plan(&self) -> Result<MountPlan, ProfileFault> {
        let draft = self.draft();
        let json = draft.to_json();
        let place =
            |pointer: &str| draft.place_of(pointer).map(|place| format!("{place}: ")).unwrap_or_default();
        let validation = MountPlanValidator::validate(&json);
        let problems: Vec<_> =
            validation.errors().map(|check| format!("{}{}", place(&check.pointer), check.message)).collect();
        let refuse = |problems| ProfileFault::Plan { id: self.id.to_string(), problems };
        if !problems.is_empty() {
            return Err(refuse(problems));
        }
        MountPlan::read(&json)
            .map_err(|error| refuse(vec![format!("{}{error}: {}", place(&error.pointer), error.cause)]))
    }

    /// What the system prompt of its sessions is made from: its body, and its context folders for mentions.
    pub fn prompt(&self) -> Result<PromptParts, ProfileFault> {
        let profile = &self.plan.profile;
        let namespaces = mention::namespaces(profile)?;
        Ok(PromptParts {
            bundle: Some(self.id.to_string()),
            instruction: profile.composed.instruction.as_ref().map(|body| body.text.text.clone()),
            context: Vec::new(),
            namespaces: namespaces.into_iter().map(|(name, path)| NamedPath { name, path }).collect(),
            project: Project::Read,
            quotes: Quotes::Skip,
        })
    }

    /// Where the modules of its sessions come from: its own folders, nothing new.
    pub fn resolver(&self, plan: &MountPlan) -> Option<Arc<dyn ModuleSourceResolver>> {
        let cx = FetchContext { freshness: Freshness::Offline, ..FetchContext::new(self.base.clone()) };
        let sources = SourceResolver::new(Arc::clone(&self.fetcher), cx);
        resolver::for_plan(plan, sources, &self.home)
    }
}

/// The agents of a plan, each as bundles write them; what is no mapping is no agent.
pub fn agents(plan: &MountPlan) -> Map<String, Value> {
    let agents = plan.agents.iter().filter_map(|(name, about)| Some((name, about.as_object()?)));
    agents.map(|(name, about)| (name.clone(), Value::Object(unfolded(about)))).collect()
}

/// An agent of a plan as others are written: that of a profile is a whole file, whose head says what it changes.
pub fn unfolded(agent: &Map<String, Value>) -> Map<String, Value> {
    let Some(content) = agent.get("content").and_then(Value::as_str) else { return agent.clone() };
    let mut found = agent.clone();
    found.remove("content");
    let source = Source::Fetched { uri: "a profile".to_owned(), pinned: None };
    let home = Arc::new(FileHome::new("/agents/agent.md".into(), "/agents".into(), source));
    let read = bundle::read(content.as_bytes().to_vec(), &home, &YamlLimits::default());
    let said = match read {
        Ok((file, _)) => mapping_to_json(&agent::said(file)),
        // A head that cannot be read is no reason to lose the words.
        Err(_) => Map::from_iter([("instruction".to_owned(), Value::from(content))]),
    };
    let has_words = instruction(agent).is_some();
    for (key, value) in said.into_iter().filter(|(key, _)| !(has_words && key == "instruction")) {
        found.entry(key).or_insert(value);
    }
    found
}

/// The words of an agent that has any: `instruction`, else `system.instruction`.
pub fn instruction(agent: &Map<String, Value>) -> Option<&str> {
    let written =
        [agent.get("instruction"), agent.get("system").and_then(|system| system.get("instruction"))];
    written.into_iter().flatten().filter_map(Value::as_str).find(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_agent_of_a_profile_is_read_like_any_other() {
        let plain = json!({"content": "You are an expert.", "metadata": {"source": "f:agents/a.md"}});
        let read = |value: Value| Value::Object(unfolded(value.as_object().unwrap()));
        assert_eq!(
            read(plain),
            json!({"metadata": {"source": "f:agents/a.md"}, "instruction": "You are an expert."})
        );
        let full =
            "---\nmeta:\n  name: a\n  description: helps\ntools:\n- module: tool-bash\n---\n\nBe brief.\n";
        assert_eq!(
            read(json!({"content": full})),
            json!({"name": "a", "description": "helps", "instruction": "Be brief.", "tools": [{"module": "tool-bash"}]})
        );
        assert_eq!(read(json!({"instruction": "x"})), json!({"instruction": "x"}));
        let both = read(json!({"system": {"instruction": "y"}, "content": full}));
        assert_eq!((both.get("instruction"), &both["description"]), (None, &json!("helps")));
        let alone = "---\nmeta: {name: a}\nagents: none\n---\nx";
        assert_eq!(read(json!({"content": alone}))["agents"], "none");
        assert_eq!(read(json!({"content": "---\na: [\n---\nx"}))["instruction"], "---\na: [\n---\nx");
    }
}
