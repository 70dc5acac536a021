//! Whether what a session was started from gives another plan, or says something else, now. Told, not obeyed: a session goes on with the plan it ran
//! with. Nothing is fetched to find out.

use std::path::Path;

use amplifier_core::canonical::plan_hash;
use amplifier_protocol::event::{OriginKind, SessionOrigin};
use amplifier_protocol::mount_plan::MountPlan;

use crate::files::is_handed_over;
use crate::library::Access;
use crate::prepare::{PlanFile, PrepareOptions, prepare_bundle};
use crate::profiles::{self, ProfileError, ProfileId};
use crate::prompt::PromptParts;
use crate::settings::Target;

/// What became of the thing a session was started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
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
pub fn origin(kind: OriginKind, reference: &str, plan: &MountPlan) -> SessionOrigin {
    let plan_hash = plan_hash(plan).ok().map(|hash| hash.to_string());
    SessionOrigin { kind, reference: reference.to_owned(), plan_hash }
}

/// Compares what an origin gives now with what it gave then, and what it says with what the session keeps of it. `access`
/// decides what may be fetched; hand in one that is offline. A key that stands in the origin in plain text is known to its
/// environment afterwards, as after every look at a plan.
pub async fn drift(origin: &SessionOrigin, kept: &PromptParts, access: &Access) -> Drift {
    let Some(then) = &origin.plan_hash else { return Drift::Unknown };
    // What was piped in then is not there any more.
    if origin.kind == OriginKind::Plan && is_handed_over(Path::new(&origin.reference)) {
        return Drift::Unknown;
    }
    let (plan, parts) = match given_now(origin, access).await {
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
async fn given_now(
    origin: &SessionOrigin,
    access: &Access,
) -> Result<(MountPlan, Option<PromptParts>), String> {
    let reference = origin.reference.as_str();
    match origin.kind {
        OriginKind::Plan => {
            let file = PlanFile::read(Path::new(reference)).map_err(|error| told(&error))?;
            let file = file.with_settings(&access.settings);
            access.environment.learn(file.plain());
            Ok((file.plan().map_err(|error| told(&error))?, None))
        }
        OriginKind::Bundle => {
            // As a session gets it, with what the settings add.
            let options = PrepareOptions { target: Target::Session, ..PrepareOptions::default() };
            let prepared = prepare_bundle(reference, access, options).await;
            let given = prepared.and_then(|bundle| Ok((bundle.plan()?, Some(bundle.prompt()))));
            given.map_err(|fault| told(&fault))
        }
        OriginKind::Profile => {
            let id: ProfileId = reference.parse().map_err(|error: ProfileError| told(&error))?;
            let compiled = profiles::compiled_profile(&id, access);
            let given = compiled.and_then(|profile| Ok((profile.plan()?, Some(profile.prompt()?))));
            given.map_err(|fault| told(&fault))
        }
    }
}

/// The first line says enough.
fn told(error: &(dyn std::error::Error + 'static)) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
