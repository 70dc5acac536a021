//! What a session was started from, when it begins; and whether that gives another plan now, when it goes on.

use std::path::Path;

use amplifier_app::library::Access;
use amplifier_app::prompt::PromptParts;
use amplifier_app::sessions::drift::{self, Drift};
use amplifier_app::sessions::export::kind;
use amplifier_app::store::SessionStore;
use amplifier_app::{Freshness, prompt};
use amplifier_protocol::event::{OriginKind, SessionOrigin};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::mount_plan::MountPlan;

use crate::commands::load::Chosen;
use crate::render::Remark;

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

/// Says if a session goes on elsewhere, and if what it was started from gives something else now. The session keeps what
/// it ran with.
pub async fn tell_changes(access: &Access, id: &SessionId) {
    // What cannot be read is told when the session is opened.
    let store = SessionStore::new(access.home.clone());
    let Ok(metadata) = store.metadata(id) else { return };
    if let Some(began) = metadata.working_dir.as_deref().filter(|began| !is_same(began, &access.base)) {
        let (began, here) = (began.display(), access.base.display());
        Remark::note(format!("this session began in `{began}`; its tools work in `{here}` now"))
            .hint(format!("`--cwd {began}` works there again"))
            .tell();
    }
    let Some(origin) = &metadata.bundle else { return };
    let Ok(kept) = store.open(id).map_err(drop).and_then(|folder| PromptParts::read(&folder).map_err(drop))
    else {
        return;
    };
    let mut then = access.clone();
    then.freshness = Freshness::Offline;
    if let Some(dir) = metadata.working_dir {
        then.base = dir;
    }
    let what = format!("{} `{}`", kind(origin.kind), origin.reference);
    match drift::drift(origin, &kept.unwrap_or_default(), &then).await {
        Drift::Same | Drift::Unknown => {}
        Drift::Changed => {
            let (flag, reference) = (kind(origin.kind), &origin.reference);
            Remark::note(format!(
                "{what} changed since this session began; it goes on with what it began with"
            ))
            .hint(format!("`--{flag} {reference}` takes what is there now"))
            .tell();
        }
        Drift::Gone(reason) => {
            Remark::note(format!("{what} cannot be compared with the plan of this session: {reason}")).tell();
        }
    }
}

/// Whether two paths lead to one folder. One that is gone is another.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
