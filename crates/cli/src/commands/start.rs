//! From flags to an open session, for `run`, for the chat and for everything else that opens one.

use std::sync::Arc;

use amplifier_app::approval::{ApprovalPolicy, Approvals, Asker, GrantFile};
use amplifier_app::detect::{DetectError, Filled, Places};
use amplifier_app::journal::Repair;
use amplifier_app::library::Access;
use amplifier_app::open::{AppError, OpenRequest, OpenSession, RecordTap, Which, open};
use amplifier_app::prepare::PrepareOptions;
use amplifier_app::prompt::PromptParts;
use amplifier_app::store::SessionStore;
use amplifier_app::{
    ApprovalSystem, BundleLock, BundleStrictness, DisplaySystem, Freshness, LoadEntry, LoadOutcome,
    ModuleSourceResolver, PlanHash, Strictness, causes, detect, failure, inquire, lack, overrides, plan_hash,
    providers, settings,
};
use amplifier_protocol::event::SessionOrigin;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;

use super::load::Chosen;
use super::session;
use crate::args::{Approve, StartArgs};
use crate::exit::Exit;
use crate::render::{self, Remark, Tone};

/// A session that is to be opened, new or again.
pub struct Start {
    pub access: Access,
    pub which: Which,
    pub prompt: Option<PromptParts>,
    pub resolver: Option<Arc<dyn ModuleSourceResolver>>,
    pub lock: Option<Arc<BundleLock>>,
    pub origin: Option<SessionOrigin>,
    /// The plan of the resumed session before flags changed it.
    pub before: Option<PlanHash>,
    strictness: Strictness,
}

/// Finds out what a session is opened with: the plan that somebody names, else that of the resumed session, else that of
/// the bundle in use.
pub async fn find(args: &StartArgs, resumed: Option<SessionId>, mut access: Access) -> Result<Start, Exit> {
    let strictness = if args.strict { Strictness::Strict } else { Strictness::Lenient };
    let choice = &args.choice;
    let named = choice.bundle.is_some() || choice.profile.is_some() || choice.plan.is_some();
    let resumed = resumed.map(|id| session::existing(&access, &id)).transpose()?;
    if let (Some(id), false) = (&resumed, named) {
        session::tell_changes(&access, id).await;
        let store = SessionStore::new(access.home.clone());
        let stored = match store.open(id).and_then(|folder| store.plan(&folder)) {
            Ok(plan) => Some(plan),
            Err(error) if changes_plan(args) => return Err(refuse_to_open(&AppError::from(error))),
            // Opening tells it in full.
            Err(_) => None,
        };
        let changed = match &stored {
            Some(stored) => changed_plan(args, stored, &access).await?,
            None => None,
        };
        refuse_without_keys(changed.as_ref().or(stored.as_ref()), &access)?;
        let before = changed.as_ref().and(stored).and_then(|stored| plan_hash(&stored).ok());
        let which = Which::Resume(id.clone(), changed.map(Box::new));
        let (prompt, resolver, lock, origin) = (None, None, None, None);
        return Ok(Start { access, which, prompt, resolver, lock, origin, before, strictness });
    }
    if args.offline {
        access.freshness = Freshness::Offline;
    }
    let of_bundle = if args.strict { BundleStrictness::Strict } else { BundleStrictness::Lenient };
    let options = PrepareOptions { strictness: of_bundle, ..PrepareOptions::default() };
    let chosen = Chosen::find(&args.choice, &access, options).await?;
    let mut plan = chosen.plan()?;
    let origin = Some(session::origin(&chosen, &plan));
    let answered_by = choose_provider(args, &mut plan, &access).await;
    super::load::tell_key_problems(&access);
    answered_by?;
    access.settings.limit_plan(&mut plan);
    set_values(args, &mut plan)?;
    refuse_without_keys(Some(&plan), &access)?;
    let (prompt, resolver) = match &chosen {
        Chosen::File(file) => (None, file.resolver(&plan, &access)),
        Chosen::Bundle(bundle) => (Some(bundle.prompt()), bundle.resolver(&plan)),
        Chosen::Profile(profile) => {
            (Some(profile.prompt().map_err(|fault| super::profile::refuse(&fault))?), profile.resolver(&plan))
        }
    };
    let plan = Box::new(plan);
    let which = match resumed {
        Some(id) => Which::Resume(id, Some(plan)),
        None => Which::New(plan),
    };
    Ok(Start { access, which, prompt, resolver, lock: chosen.lock(), origin, before: None, strictness })
}

/// Whether flags change something in a plan that is there.
fn changes_plan(args: &StartArgs) -> bool {
    let asks_another = args.provider.is_some() || args.model.is_some();
    asks_another || !args.set.is_empty() || args.max_tokens.is_some() || args.max_cost.is_some()
}

/// The plan that a session was opened with, where the flags change something in it or a model answers in place of the demo.
async fn changed_plan(
    args: &StartArgs,
    stored: &MountPlan,
    access: &Access,
) -> Result<Option<MountPlan>, Exit> {
    let mut plan = stored.clone();
    match &args.provider {
        Some(provider) => prefer_provider(provider, &mut plan, access).await?,
        None => relieve_demo(&mut plan, access).await?,
    }
    if let Some(model) = &args.model {
        inquire::prefer_model(&mut plan, model);
    }
    set_values(args, &mut plan)?;
    Ok(Some(plan).filter(|plan| plan != stored))
}

/// A session that was begun without a model goes on with one as soon as there is one, and says so.
async fn relieve_demo(plan: &mut MountPlan, access: &Access) -> Result<(), Exit> {
    let configured: Vec<_> = access.settings.providers().into_iter().map(|entry| entry.spec).collect();
    let places = Places::of(&access.environment);
    match detect::relieve_demo(plan, &configured, &access.environment, &places).await {
        Ok(Some(Filled::Demo(nothing))) => tell_who_answers(Ok(Filled::Demo(nothing))),
        Ok(Some(Filled::Named | Filled::Found(_))) => {
            let name = plan.providers.first().map_or_else(String::new, |spec| spec.module.to_string());
            Remark::note(format!("the demo answered so far; `{name}` is asked from here on")).tell();
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => tell_who_answers(Err(error)),
    }
}

/// A plan whose providers all wait for a variable is told before anything begins: a report of what did come up would hide
/// the one thing that matters.
fn refuse_without_keys(plan: Option<&MountPlan>, access: &Access) -> Result<(), Exit> {
    let nobody = plan.and_then(|plan| lack::nobody_to_ask(plan, &access.settings, &access.environment));
    let Some(nobody) = nobody else { return Ok(()) };
    render::error(&nobody, Some(&nobody.lack.cure()));
    Err(Exit::Usage)
}

/// What the flags set in a plan that has its providers. What is set by path comes last: it is the most exact.
fn set_values(args: &StartArgs, plan: &mut MountPlan) -> Result<(), Exit> {
    if let Some(tokens) = args.max_tokens {
        overrides::cap_answer(plan, tokens);
    }
    if let Some(most) = args.max_cost {
        overrides::cap_cost(plan, most);
    }
    overrides::apply(plan, &args.set).map_err(|error| {
        render::error(&error, error.hint());
        Exit::Usage
    })
}

/// The provider and the model that the person names, else the provider of the plan, else one that is found here.
async fn choose_provider(args: &StartArgs, plan: &mut MountPlan, access: &Access) -> Result<(), Exit> {
    if let Some(provider) = &args.provider {
        prefer_provider(provider, plan, access).await?;
    }
    let environment = &access.environment;
    let places = Places::of(environment);
    // Who wants a certain model, or nothing but what was asked for, does not want the demo.
    let filled = if args.strict || args.model.is_some() {
        let found = detect::fill(plan, environment, &places).await;
        found.map(|found| found.map_or(Filled::Named, |found| Filled::Found(Box::new(found))))
    } else {
        detect::fill_or_demo(plan, environment, &places).await
    };
    tell_who_answers(filled)?;
    if let Some(model) = &args.model {
        inquire::prefer_model(plan, model);
    }
    Ok(())
}

/// Makes the provider that the person names the first. One that is not there, or cannot be asked, is told before anything
/// begins: nobody who names one wants another.
async fn prefer_provider(name: &str, plan: &mut MountPlan, access: &Access) -> Result<(), Exit> {
    let configured: Vec<_> = access.settings.providers().into_iter().map(|entry| entry.spec).collect();
    if let Err(error) = providers::prefer_among(plan, name, &configured) {
        render::error(&error, Some(error.hint()));
        return Err(Exit::Usage);
    }
    let Some(spec) = plan.providers.first() else { return Ok(()) };
    match detect::why_not(spec, &access.environment).await {
        Ok(None) => Ok(()),
        Ok(Some(reason)) => {
            Remark::error(format!("the provider `{name}` cannot be used here: {reason}")).hint("`amplifier init` connects it and keeps its key; `amplifier provider list` shows the others").tell();
            Err(Exit::Usage)
        }
        Err(error) => {
            render::error(&error, error.hint());
            Err(Exit::Usage)
        }
    }
}

fn tell_who_answers(filled: Result<Filled, DetectError>) -> Result<(), Exit> {
    match filled {
        Ok(Filled::Named) => Ok(()),
        Ok(Filled::Found(found)) => {
            let (module, reason) = (found.spec.module, found.reason);
            Remark::note(format!("no provider is named; `{module}` is used: {reason}")).tell();
            Ok(())
        }
        Ok(Filled::Demo(nothing)) => {
            Remark::note(
                "no model is connected, so the built-in demo answers: it looks at this folder and thinks nothing",
            )
            .hint("`amplifier init` connects a model; `amplifier provider list` shows what was looked for")
            .tell();
            nothing
                .missed
                .iter()
                .for_each(|missed| render::detail(&format!("  {}: {}", missed.what, missed.reason)));
            Ok(())
        }
        Err(error) => {
            render::error(&error, error.hint());
            Err(Exit::Usage)
        }
    }
}

/// Who answers when a tool needs permission: the policy that a flag or the settings name, else the person, else nobody.
pub fn approvals(
    args: &StartArgs,
    access: &Access,
    person: Option<Arc<dyn Asker>>,
    display: Arc<dyn DisplaySystem>,
) -> Arc<Approvals> {
    decided(args.approve, access, person, &display, Some(Arc::clone(&display)))
}

/// The same for a single call, whose own end tells that a policy refused it.
pub fn answering(
    approve: Option<Approve>,
    access: &Access,
    person: Option<Arc<dyn Asker>>,
    display: Arc<dyn DisplaySystem>,
) -> Arc<Approvals> {
    decided(approve, access, person, &display, None)
}

fn decided(
    approve: Option<Approve>,
    access: &Access,
    person: Option<Arc<dyn Asker>>,
    display: &Arc<dyn DisplaySystem>,
    refusals: Option<Arc<dyn DisplaySystem>>,
) -> Arc<Approvals> {
    let set = access.settings.approve().and_then(|approve| match approve {
        settings::Approve::Ask => None,
        settings::Approve::All => Some(Approve::All),
        settings::Approve::Safe => Some(Approve::Safe),
        settings::Approve::None => Some(Approve::None),
    });
    let policy = match (approve.or(set), person) {
        (Some(Approve::All), _) => ApprovalPolicy::All,
        (Some(Approve::Safe), _) => ApprovalPolicy::Safe,
        (Some(Approve::None), _) | (None, None) => ApprovalPolicy::None,
        (None, Some(person)) => {
            let kept = GrantFile::new(access.home.approvals());
            let display = Some(Arc::clone(display));
            return Arc::new(Approvals::of_person(person, kept, access.base.clone(), display));
        }
    };
    Arc::new(Approvals::of_policy(policy, refusals))
}

/// What the front end of a session brings along.
#[derive(Default)]
pub struct Ports {
    /// Who is asked; nobody means that every question is answered with no.
    pub approval: Option<Arc<dyn ApprovalSystem>>,
    pub display: Option<Arc<dyn DisplaySystem>>,
    /// Sees every record as it is made.
    pub tap: Option<Arc<dyn RecordTap>>,
}

impl Start {
    /// Opens the session.
    pub async fn open(self, ports: Ports) -> Result<OpenSession, AppError> {
        open(OpenRequest {
            home: self.access.home,
            which: self.which,
            working_dir: self.access.base,
            strictness: self.strictness,
            environment: self.access.environment,
            approval: ports.approval,
            display: ports.display,
            tap: ports.tap,
            prompt: self.prompt,
            resolver: self.resolver,
            lock: self.lock,
            origin: self.origin,
            cancel: self.access.cancel,
        })
        .await
    }
}

/// Tells why there is no session.
pub fn refuse_to_open(error: &AppError) -> Exit {
    render::error(error, error.hint().as_deref());
    if let AppError::Open(open) = error {
        let said = causes(error).join(": ");
        let is_said = |entry: &&LoadEntry| match &entry.outcome {
            LoadOutcome::Failed { error } => said.contains(error),
            LoadOutcome::Mounted { .. } | LoadOutcome::Skipped { .. } => true,
        };
        let others = open.report.failed().filter(|entry| !is_said(entry));
        others.for_each(|entry| render::note(&format!("  {entry}")));
    }
    if error.is_usage() { Exit::Usage } else { Exit::Failure }
}

/// Says what was cut from the end of a journal.
pub fn tell_repair(repair: Option<&Repair>) {
    if let Some(Repair { bytes, saved, .. }) = repair {
        let saved = saved.display();
        Remark::note(format!("the last {bytes} bytes of the journal were torn; they are kept in `{saved}`"))
            .tell();
    }
}

/// What the person should know before the answer. `before` is the plan before the flags of this call changed it: who gives
/// a flag knows what it changes.
pub fn tell_about(opened: &OpenSession, before: Option<&PlanHash>) {
    tell_repair(opened.repair.as_ref());
    if opened.rebuilt {
        Remark::note("the transcript was damaged; it was made again from the journal, which is whole").tell();
    }
    let session = &opened.session;
    let known = before.map(ToString::to_string);
    if let Some(change) = session.plan_change().filter(|change| known.as_ref() != Some(&change.was)) {
        let is = change.is.to_string();
        Remark::note(format!(
            "the plan changed since this session last ran ({} to {})",
            digits(&change.was),
            digits(&is)
        ))
        .tell();
    }
    for call in session.interrupted() {
        let state = serde_json::to_value(call.state).unwrap_or_default();
        let state = state.as_str().unwrap_or_default().replace('_', " ");
        Remark::note(format!("tool `{}` was interrupted: {state}", call.tool)).tell();
    }
    if !session.report().is_clean() && render::tone() != Tone::Quiet {
        tell_load(&session.report().modules);
    }
}

/// The first digits of a hash; enough to tell plans apart.
fn digits(hash: &str) -> &str {
    let digits = hash.strip_prefix("sha256:").unwrap_or(hash);
    digits.get(..12).unwrap_or(digits)
}

/// What did not come up or should be looked at, with what can be done; the rest is only counted.
fn tell_load(entries: &[LoadEntry]) {
    let is_well =
        |entry: &LoadEntry| matches!(entry.outcome, LoadOutcome::Mounted { .. }) && entry.warnings.is_empty();
    render::note("load report:");
    for entry in entries.iter().filter(|entry| !is_well(entry)) {
        render::note(&format!("  {entry}"));
        if let Some(cure) = failure::cure(entry) {
            render::note(&format!("    hint: {cure}"));
        }
    }
    match entries.iter().filter(|entry| is_well(entry)).count() {
        0 => {}
        1 => render::note("  1 other module is mounted"),
        count => render::note(&format!("  {count} other modules are mounted")),
    }
}
