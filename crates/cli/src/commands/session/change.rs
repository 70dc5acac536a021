//! What a session was started from, when it begins; and whether that gives another plan now, when it goes on.

use amplifier_app::library::Access;
use amplifier_app::sessions::drift::{self, Drift};
use amplifier_app::sessions::export::kind;
use amplifier_app::store::SessionStore;
use amplifier_app::{Freshness, prompt};
use amplifier_protocol::event::{OriginKind, SessionOrigin};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;

use crate::commands::load::Chosen;
use crate::render;

/// What a plan comes from, and what it gave, before the person's choices are put in.
pub fn origin(chosen: &Chosen, plan: &MountPlan) -> SessionOrigin {
    match chosen {
        Chosen::File(file) => {
            let path = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
            drift::origin(OriginKind::Plan, &path.display().to_string(), plan)
        }
        Chosen::Bundle(bundle) => {
            drift::origin(OriginKind::Bundle, &prompt::without_credentials(&bundle.reference), plan)
        }
        Chosen::Profile(profile) => drift::origin(OriginKind::Profile, &profile.id.to_string(), plan),
    }
}

/// Says if what a session was started from gives another plan now. The session keeps the plan it ran with.
pub async fn tell_changes(access: &Access, id: &SessionId) {
    // What cannot be read is told when the session is opened.
    let Ok(metadata) = SessionStore::new(access.home.clone()).metadata(id) else { return };
    let Some(origin) = &metadata.bundle else { return };
    let mut then = access.clone();
    then.freshness = Freshness::Offline;
    if let Some(dir) = metadata.working_dir {
        then.base = dir;
    }
    let what = format!("{} `{}`", kind(origin.kind), origin.reference);
    match drift::drift(origin, &then).await {
        Drift::Same | Drift::Unknown => {}
        Drift::Changed => render::note(&format!(
            "note: {what} changed since this session began; it goes on with the plan it ran with\n  \
             hint: `--{} {}` takes what is there now",
            kind(origin.kind),
            origin.reference
        )),
        Drift::Gone(reason) => {
            render::note(&format!("note: {what} cannot be compared with the plan of this session: {reason}"));
        }
    }
}
