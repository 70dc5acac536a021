//! Whether what a session was started from gives another plan now. Told, not obeyed: a session goes on with the plan it ran
//! with. Nothing is fetched to find out.

use std::path::Path;

use amplifier_core::canonical::plan_hash;
use amplifier_protocol::event::{OriginKind, SessionOrigin};
use amplifier_protocol::mount_plan::MountPlan;

use crate::library::Access;
use crate::prepare::{PlanFile, PrepareOptions, prepare_bundle};
use crate::profiles::{self, ProfileError, ProfileId};

/// What became of the thing a session was started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// It gives the same plan.
    Same,
    /// It gives another plan.
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

/// Compares what an origin gives now with what it gave then. `access` decides what may be fetched; hand in one that is
/// offline.
pub async fn drift(origin: &SessionOrigin, access: &Access) -> Drift {
    let Some(then) = &origin.plan_hash else { return Drift::Unknown };
    match plan_now(origin, access).await {
        Err(reason) => Drift::Gone(reason),
        Ok(plan) => match plan_hash(&plan) {
            Ok(now) if now.to_string() == *then => Drift::Same,
            _ => Drift::Changed,
        },
    }
}

async fn plan_now(origin: &SessionOrigin, access: &Access) -> Result<MountPlan, String> {
    let reference = origin.reference.as_str();
    match origin.kind {
        OriginKind::Plan => {
            let file = PlanFile::read(Path::new(reference)).map_err(|error| told(&error))?;
            file.plan().map_err(|error| told(&error))
        }
        OriginKind::Bundle => {
            let prepared = prepare_bundle(reference, access, PrepareOptions::default()).await;
            prepared.and_then(|bundle| bundle.plan()).map_err(|fault| told(&fault))
        }
        OriginKind::Profile => {
            let id: ProfileId = reference.parse().map_err(|error: ProfileError| told(&error))?;
            let compiled = profiles::compiled_profile(&id, access);
            compiled.and_then(|profile| profile.plan()).map_err(|fault| told(&fault))
        }
    }
}

/// The first line says enough.
fn told(error: &(dyn std::error::Error + 'static)) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
