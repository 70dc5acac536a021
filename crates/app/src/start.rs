//! From what somebody wishes to a session that can be opened, for every front end. What is worth telling on the way is told
//! to whoever listens; nothing is printed here.

use std::sync::Arc;

use amplifier_bundle::notice::Strictness as BundleStrictness;
use amplifier_core::canonical::{PlanHash, plan_hash};
use amplifier_core::contracts::{ApprovalSystem, DisplaySystem, ModuleSourceResolver};
use amplifier_core::session::Strictness;
use amplifier_protocol::event::SessionOrigin;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_protocol::usage::Usd;
use amplifier_sources::fetch::Freshness;
use amplifier_sources::lock::BundleLock;

use crate::choice::{Choice, Chosen};
use crate::env::Environment;
use crate::lack;
use crate::library::Access;
use crate::open::{self, AppError, OpenRequest, OpenSession, RecordTap, Which};
use crate::overrides::{self, Override, OverrideError};
use crate::prepare::PrepareOptions;
use crate::prompt::PromptParts;
use crate::sessions::{self, drift};
use crate::store::SessionStore;
use crate::tape;
use crate::told::{Teller, Told};
use crate::trust::{CheckError, Request};

mod answerer;
mod error;

pub use error::{NoProvider, ProviderFault, StartError};

/// What somebody wants a session to be started with. What is left open is as the plan and the settings say.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// What to run.
    pub choice: Choice,
    /// The provider to ask, before those of the plan.
    pub provider: Option<String>,
    /// The model to ask, instead of the provider's usual one.
    pub model: Option<String>,
    /// The most tokens an answer of the first provider may have.
    pub max_tokens: Option<u64>,
    /// The most the session and its agents may cost together.
    pub max_cost: Option<Usd>,
    /// Single values of the plan.
    pub set: Vec<Override>,
    /// What a module that does not come up means. Who is strict does not want the demo either.
    pub strictness: Strictness,
    /// What may be fetched.
    pub freshness: Freshness,
}

/// A session that is to be opened, new or again.
pub struct Start {
    pub access: Access,
    pub which: Which,
    pub parts: Parts,
    /// The plan of a session that goes on, before the wish changed it.
    pub before: Option<PlanHash>,
    pub strictness: Strictness,
}

/// What a session is opened with beside its plan; see [`OpenRequest`].
#[derive(Default)]
pub struct Parts {
    pub prompt: Option<PromptParts>,
    pub resolver: Option<Arc<dyn ModuleSourceResolver>>,
    pub lock: Option<Arc<BundleLock>>,
    pub origin: Option<SessionOrigin>,
    pub request: Option<Request>,
    /// What the references of the session stand for, when it was open before; else what was learned last.
    pub environment: Option<Environment>,
}

/// What the front end of a session brings along; see [`OpenRequest`].
#[derive(Default)]
pub struct Ports {
    pub approval: Option<Arc<dyn ApprovalSystem>>,
    pub display: Option<Arc<dyn DisplaySystem>>,
    pub tap: Option<Arc<dyn RecordTap>>,
}

/// Finds out what a session is opened with: the plan that somebody names, else that of the session that goes on, else that
/// of the bundle in use. Nothing is opened, and what is known to be in the way of an answer is an error already.
pub async fn find(
    wish: &Wish,
    resumed: Option<&SessionId>,
    access: Access,
    tell: Teller<'_>,
) -> Result<Start, StartError> {
    // Before anything is told or fetched; opening refuses it too.
    open::check_names(&access.base, &access.home).map_err(Box::new)?;
    tape::check(&access.environment)?;
    let existing = |id: &SessionId| sessions::resolve(&SessionStore::new(access.home.clone()), id.as_str());
    match (resumed.map(existing).transpose()?, &wish.choice) {
        (Some(id), Choice::Nothing) => go_on(wish, id, access, tell).await,
        (resumed, _) => begin(wish, resumed, access, tell).await,
    }
}

/// A session that goes on with its own plan.
async fn go_on(wish: &Wish, id: SessionId, access: Access, tell: Teller<'_>) -> Result<Start, StartError> {
    let store = SessionStore::new(access.home.clone());
    if let Ok(folder) = store.open(&id)
        && let Some(request) =
            Request::of_session(&folder).map_err(|error| Box::new(AppError::from(error)))?
    {
        request.check(&access)?;
    }
    drift::tell_changes(&access, &id, tell).await;
    let (changed, before) = match store.open(&id).and_then(|folder| store.plan(&folder)) {
        Ok(stored) => {
            let mut plan = stored.clone();
            let answered = answerer::choose_again(wish, &mut plan, &access, tell).await;
            tell_keys(answered, &access, tell)?;
            wish.set_values(&mut plan)?;
            refuse_without_keys(&plan, &access)?;
            let changed = Some(plan).filter(|plan| *plan != stored);
            let before = changed.as_ref().and_then(|_| plan_hash(&stored).ok());
            (changed, before)
        }
        Err(error) if wish.changes_plan() => return Err(Box::new(AppError::from(error)).into()),
        // Opening tells it in full.
        Err(_) => (None, None),
    };
    let which = Which::Resume(id, changed.map(Box::new));
    Ok(Start { access, which, parts: Parts::default(), before, strictness: wish.strictness })
}

/// A new session, or one that goes on with another plan.
async fn begin(
    wish: &Wish,
    resumed: Option<SessionId>,
    mut access: Access,
    tell: Teller<'_>,
) -> Result<Start, StartError> {
    access.freshness = wish.freshness;
    let chosen = Chosen::find(&wish.choice, &access, wish.options()).await?;
    chosen.told().into_iter().for_each(tell);
    let mut plan = chosen.plan()?;
    let request = Request::of(&wish.choice, &chosen, &access).map_err(CheckError::from)?;
    request.clone().check(&access)?;
    let origin = Some(chosen.origin(&plan));
    let answered = answerer::choose(wish, &mut plan, &access, tell).await;
    tell_keys(answered, &access, tell)?;
    access.settings.limit_plan(&mut plan);
    wish.set_values(&mut plan)?;
    refuse_without_keys(&plan, &access)?;
    let parts = Parts { origin, request: Some(request), ..chosen.parts(&plan, &access)? };
    let plan = Box::new(plan);
    let which = match resumed {
        Some(id) => Which::Resume(id, Some(plan)),
        None => Which::New(plan),
    };
    Ok(Start { access, which, parts, before: None, strictness: wish.strictness })
}

/// Tells what went wrong while stored keys were looked for; where nobody can be asked it may be the reason, and goes with it.
fn tell_keys(
    answered: Result<(), ProviderFault>,
    access: &Access,
    tell: Teller<'_>,
) -> Result<(), NoProvider> {
    let keys = access.environment.problems();
    match answered {
        Ok(()) => keys.into_iter().for_each(|problem| tell(Told::Key(problem))),
        Err(fault) => return Err(NoProvider { fault, keys }),
    }
    Ok(())
}

/// A plan whose providers all wait for a variable is refused before anything begins: a report of what did come up would hide
/// the one thing that matters.
fn refuse_without_keys(plan: &MountPlan, access: &Access) -> Result<(), StartError> {
    match lack::nobody_to_ask(plan, &access.settings, &access.environment) {
        Some(nobody) => Err(Box::new(nobody).into()),
        None => Ok(()),
    }
}

impl Wish {
    /// Whether it changes something in a plan that is there.
    fn changes_plan(&self) -> bool {
        let asks_another = self.provider.is_some() || self.model.is_some();
        asks_another || !self.set.is_empty() || self.max_tokens.is_some() || self.max_cost.is_some()
    }

    /// Sets what it sets in a plan that has its providers. What is set by path comes last: it is the most exact.
    fn set_values(&self, plan: &mut MountPlan) -> Result<(), OverrideError> {
        if let Some(tokens) = self.max_tokens {
            overrides::cap_answer(plan, tokens);
        }
        if let Some(most) = self.max_cost {
            overrides::cap_cost(plan, most);
        }
        overrides::apply(plan, &self.set)
    }

    fn options(&self) -> PrepareOptions {
        let strictness = match self.strictness {
            Strictness::Strict => BundleStrictness::Strict,
            Strictness::Lenient => BundleStrictness::Lenient,
        };
        PrepareOptions { strictness, ..PrepareOptions::default() }
    }
}

impl Start {
    /// Opens the session.
    pub async fn open(self, ports: Ports) -> Result<OpenSession, AppError> {
        let Parts { prompt, resolver, lock, origin, request, environment } = self.parts;
        open::open(OpenRequest {
            home: self.access.home,
            which: self.which,
            working_dir: self.access.base,
            strictness: self.strictness,
            environment: environment.unwrap_or(self.access.environment),
            trust: self.access.trust,
            approval: ports.approval,
            display: ports.display,
            tap: ports.tap,
            prompt,
            resolver,
            lock,
            origin,
            request,
            cancel: self.access.cancel,
        })
        .await
    }
}
