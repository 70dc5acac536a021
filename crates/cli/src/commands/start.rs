//! From flags to an open session, for `run`, for the chat and for everything else that opens one.

use std::sync::Arc;

use amplifier_app::detect::Places;
use amplifier_app::env::Environment;
use amplifier_app::library::Access;
use amplifier_app::open::{AppError, OpenRequest, OpenSession, RecordTap, Which, open};
use amplifier_app::prepare::PrepareOptions;
use amplifier_app::prompt::PromptParts;
use amplifier_app::{
    ApprovalSystem, BundleLock, BundleStrictness, DisplaySystem, Freshness, ModuleSourceResolver, Strictness,
    detect, inquire, providers,
};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;

use super::load::Chosen;
use crate::args::StartArgs;
use crate::exit::Exit;
use crate::render;

/// A session that is to be opened, new or again.
pub struct Start {
    pub access: Access,
    pub which: Which,
    pub prompt: Option<PromptParts>,
    pub resolver: Option<Arc<dyn ModuleSourceResolver>>,
    pub lock: Option<Arc<BundleLock>>,
    strictness: Strictness,
}

/// Finds out what a session is opened with: the plan that somebody names, else that of the resumed session, else that of
/// the bundle in use.
pub async fn find(args: &StartArgs, resumed: Option<SessionId>, mut access: Access) -> Result<Start, Exit> {
    let strictness = if args.strict { Strictness::Strict } else { Strictness::Lenient };
    let choice = &args.choice;
    let named = choice.bundle.is_some() || choice.profile.is_some() || choice.plan.is_some();
    if let (Some(id), false) = (&resumed, named) {
        let which = Which::Resume(id.clone(), None);
        return Ok(Start { access, which, prompt: None, resolver: None, lock: None, strictness });
    }
    if args.offline {
        access.freshness = Freshness::Offline;
    }
    let of_bundle = if args.strict { BundleStrictness::Strict } else { BundleStrictness::Lenient };
    let options = PrepareOptions { strictness: of_bundle, ..PrepareOptions::default() };
    let chosen = Chosen::find(&args.choice, &access, options).await?;
    let mut plan = chosen.plan()?;
    choose_provider(args, &mut plan, &access.environment).await?;
    let (prompt, resolver) = match &chosen {
        Chosen::File(_) => (None, None),
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
    Ok(Start { access, which, prompt, resolver, lock: chosen.lock(), strictness })
}

/// The provider and the model that the person names, else the provider of the plan, else one that is found here.
async fn choose_provider(
    args: &StartArgs,
    plan: &mut MountPlan,
    environment: &Environment,
) -> Result<(), Exit> {
    if let Some(provider) = &args.provider
        && let Err(error) = providers::prefer(plan, provider)
    {
        render::error(&error, Some("`amplifier provider list` shows the providers that are built in"));
        return Err(Exit::Usage);
    }
    match detect::fill(plan, environment, &Places::of(environment)).await {
        Ok(None) => {}
        Ok(Some(found)) => {
            let (module, reason) = (found.spec.module, found.reason);
            render::note(&format!("note: no provider is named; `{module}` is used: {reason}"));
        }
        Err(error) => {
            render::error(&error, error.hint());
            return Err(Exit::Usage);
        }
    }
    if let Some(model) = &args.model {
        inquire::prefer_model(plan, model);
    }
    Ok(())
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
        })
        .await
    }
}

/// Tells why there is no session.
pub fn refuse_to_open(error: &AppError) -> Exit {
    render::error(error, error.hint());
    if let AppError::Open(open) = error {
        let said = open.to_string();
        let others = open.report.failed().map(ToString::to_string).filter(|entry| !said.contains(entry));
        others.for_each(|entry| render::note(&format!("  {entry}")));
    }
    Exit::Failure
}

/// What the person should know before the answer.
pub fn tell_about(opened: &OpenSession) {
    if let Some(repair) = &opened.repair {
        let (bytes, saved) = (repair.bytes, repair.saved.display());
        render::note(&format!(
            "note: the last {bytes} bytes of the journal were torn; they are kept in `{saved}`"
        ));
    }
    let session = &opened.session;
    if let Some(change) = session.plan_change() {
        render::note(&format!(
            "note: the plan changed since this session last ran ({} to {})",
            change.was, change.is
        ));
    }
    for call in session.interrupted() {
        let state = serde_json::to_value(call.state).unwrap_or_default();
        let state = state.as_str().unwrap_or_default().replace('_', " ");
        render::note(&format!("note: tool `{}` was interrupted: {state}", call.tool));
    }
    if !session.report().is_clean() {
        render::note("load report:");
        for entry in &session.report().modules {
            render::note(&format!("  {entry}"));
        }
    }
}
