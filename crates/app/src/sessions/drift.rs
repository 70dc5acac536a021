//! Whether a session goes on elsewhere, and whether what it was started from gives another plan, or says something else, now.
//! Told, not obeyed: a session goes on with the plan it ran with. Nothing is fetched to find out.

use std::path::Path;

use amplifier_core::canonical::plan_hash;
use amplifier_protocol::event::{OriginKind, SessionOrigin};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;
use amplifier_sources::fetch::Freshness;

use crate::choice::{Choice, ChoiceError, Chosen};
use crate::library::Access;
use crate::prepare::PrepareOptions;
use crate::profiles::{self, ProfileFault};
use crate::prompt::PromptParts;
use crate::store::SessionStore;
use crate::told::{Teller, Told};

/// What became of the thing a session was started from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Drift {
    /// It gives the same plan and says the same.
    Same,
    /// It gives another plan, or says something else.
    Changed,
    /// It gives no plan any more, for this reason.
    Gone(String),
    /// Nobody wrote down what it gave then.
    Unknown,
}

/// An origin, with the hash of the plan that it gives.
pub(crate) fn origin(kind: OriginKind, reference: &str, plan: &MountPlan) -> SessionOrigin {
    let plan_hash = plan_hash(plan).ok().map(|hash| hash.to_string());
    SessionOrigin { kind, reference: reference.to_owned(), plan_hash }
}

/// Tells if a session goes on elsewhere, and if what it was started from gives something else now. The session keeps what it
/// ran with.
pub async fn tell_changes(access: &Access, id: &SessionId, tell: Teller<'_>) {
    // What cannot be read is told when the session is opened.
    let store = SessionStore::new(access.home.clone());
    let Ok(metadata) = store.metadata(id) else { return };
    if let Some(began) = metadata.working_dir.clone().filter(|began| !is_same(began, &access.base)) {
        tell(Told::Elsewhere { began, here: access.base.clone() });
    }
    let Some(origin) = metadata.bundle else { return };
    let Ok(kept) = store.open(id).map_err(drop).and_then(|folder| PromptParts::read(&folder).map_err(drop))
    else {
        return;
    };
    // That it has lost its words, or its plan, is told when it is opened.
    let is_whole = origin.kind == OriginKind::Plan || kept.is_some();
    if !is_whole || !store.open(id).is_ok_and(|folder| store.plan(&folder).is_ok()) {
        return;
    }
    let mut then = access.clone();
    then.freshness = Freshness::Offline;
    if let Some(dir) = metadata.working_dir {
        then.base = dir;
    }
    match drift(&origin, &kept.unwrap_or_default(), &then).await {
        Drift::Same | Drift::Unknown => {}
        Drift::Changed => tell(Told::Changed(origin)),
        Drift::Gone(reason) => tell(Told::Gone { origin, reason }),
    }
}

/// Whether two paths lead to one folder. One that is gone is another.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Compares what an origin gives now with what it gave then, and what it says with what the session keeps of it. `access`
/// decides what may be fetched; hand in one that is offline. A key that stands in the origin in plain text is known to its
/// environment afterwards, as after every look at a plan.
async fn drift(origin: &SessionOrigin, kept: &PromptParts, access: &Access) -> Drift {
    let Some(then) = &origin.plan_hash else { return Drift::Unknown };
    let Some(choice) = Choice::named(origin.kind, origin.reference.clone()) else { return Drift::Unknown };
    let (plan, parts) = match given_now(&choice, access).await {
        Err(reason) => return Drift::Gone(reason),
        Ok(given) => given,
    };
    let says_the_same =
        parts.is_none_or(|now| now.instruction == kept.instruction && now.context == kept.context);
    match plan_hash(&plan) {
        Ok(now) if now.to_string() == *then && says_the_same => Drift::Same,
        _ => Drift::Changed,
    }
}

/// The plan of an origin, and what it says where it can say something.
async fn given_now(choice: &Choice, access: &Access) -> Result<(MountPlan, Option<PromptParts>), String> {
    let chosen = chosen_now(choice, access).await;
    let given = chosen.and_then(|chosen| Ok((chosen.plan()?, chosen.prompt()?)));
    given.map_err(|error| told(&error))
}

async fn chosen_now(choice: &Choice, access: &Access) -> Result<Chosen, ChoiceError> {
    let Choice::Profile(id) = choice else {
        return Chosen::find(choice, access, PrepareOptions::default()).await;
    };
    // As it was last compiled.
    let id = id.parse().map_err(ProfileFault::from)?;
    Ok(Chosen::Profile(Box::new(profiles::compiled_profile(&id, access)?)))
}

/// The first line says enough.
fn told(error: &(dyn std::error::Error + 'static)) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
