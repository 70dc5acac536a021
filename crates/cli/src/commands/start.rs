//! From flags to a session that `app` starts, for `run`, for the chat and for everything else that opens one; and what is said
//! about it.

use std::sync::Arc;

use amplifier_app::approval::{Approvals, Asker};
use amplifier_app::journal::Repair;
use amplifier_app::library::Access;
use amplifier_app::open::{AppError, OpenSession};
use amplifier_app::start::{self, Start, StartError, Wish};
use amplifier_app::store::SessionStore;
use amplifier_app::told::Told;
use amplifier_app::trust::Mode;
use amplifier_app::{
    DisplaySystem, Freshness, LoadEntry, LoadOutcome, PlanHash, Strictness, causes, failure, settings, tape,
};
use amplifier_protocol::ids::SessionId;

use super::{load, session, trust};
use crate::args::{Approve, StartArgs};
use crate::exit::Exit;
use crate::render::{self, Remark, Tone};

/// What a session is started with: what is wished for, and what is answered when a tool needs permission.
pub struct Terms {
    pub wish: Wish,
    pub approve: Option<Approve>,
}

impl Terms {
    /// What the flags say.
    pub fn of(args: &StartArgs) -> Self {
        Self { wish: wish(args), approve: args.approve }
    }
}

/// How much is trusted.
pub fn mode(args: &StartArgs) -> Mode {
    if args.trust { Mode::Everything } else { Mode::Recorded }
}

/// What the flags ask for.
pub fn wish(args: &StartArgs) -> Wish {
    Wish {
        choice: load::choice(&args.choice),
        provider: args.provider.clone(),
        model: args.model.clone(),
        max_tokens: args.max_tokens,
        max_cost: args.max_cost,
        set: args.set.clone(),
        strictness: if args.strict { Strictness::Strict } else { Strictness::Lenient },
        freshness: if args.offline { Freshness::Offline } else { Freshness::default() },
    }
}

/// Finds out what a session is opened with; what is worth telling and what went wrong has been told.
pub async fn find(wish: &Wish, resumed: Option<SessionId>, access: Access) -> Result<Start, Exit> {
    let find = || start::find(wish, resumed.as_ref(), access.clone(), &tell);
    match find().await {
        Err(StartError::Trust(error)) => {
            trust::settle_missing(&error, &access)?;
            find().await.map_err(|error| refuse(&error, &access))
        }
        found => found.map_err(|error| refuse(&error, &access)),
    }
}

/// Tells something that the person should know before the first answer.
pub fn tell(told: Told) {
    if let Told::Check(line) = &told {
        return render::aside(line);
    }
    Remark::quoting(load::weight(told.severity()), told.to_string()).maybe_hint(told.hint()).tell();
    if let Told::Demo(nothing) = &told {
        let missed = nothing.missed.iter();
        missed.for_each(|missed| render::detail(&format!("  {}: {}", missed.what, missed.reason)));
    }
}

/// Tells why no session can be started; whoever stopped it says so instead.
pub fn refuse(error: &StartError, access: &Access) -> Exit {
    if access.cancel.is_cancelled() {
        return Exit::Interrupted;
    }
    match error {
        StartError::Session(error) => session::refuse(error, &SessionStore::new(access.home.clone())),
        StartError::Kept(error) => refuse_to_open(error),
        StartError::Choice(error) => load::refuse_choice(error),
        error => {
            render::error(error, error.hint().as_deref());
            if let StartError::Provider(error) = error {
                error.keys.iter().for_each(|problem| tell(Told::Key(problem.clone())));
            }
            Exit::Usage
        }
    }
}

/// Who answers when a tool needs permission: the policy that a flag or the settings name, else the person, else nobody.
pub fn approvals(
    approve: Option<Approve>,
    access: &Access,
    person: Option<Arc<dyn Asker>>,
    display: Arc<dyn DisplaySystem>,
) -> Approvals {
    let wished = approve.map(|approve| match approve {
        Approve::All => settings::Approve::All,
        Approve::Safe => settings::Approve::Safe,
        Approve::None => settings::Approve::None,
    });
    Approvals::decided(wished, person, access, display)
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
    tape::idle(opened).into_iter().for_each(tell);
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
            render::say_aside(&format!("    hint: {cure}"));
        }
    }
    match entries.iter().filter(|entry| is_well(entry)).count() {
        0 => {}
        1 => render::note("  1 other module is mounted"),
        count => render::note(&format!("  {count} other modules are mounted")),
    }
}
