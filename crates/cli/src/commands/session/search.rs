//! `amplifier session search`.

use amplifier_app::library::Access;
use amplifier_app::sessions::search::{self, GoOn, Hit};
use amplifier_app::sessions::{SessionError, damaged_json};
use amplifier_app::store::SessionStore;
use serde_json::json;

use super::tell::{count, minute};
use super::{UNREAD, scope, tell_damaged, tell_unread, unread_json};
use crate::args::{Form, SessionSearchArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

pub fn search(args: &SessionSearchArgs, access: &Access, store: &SessionStore) -> Result<Exit, SessionError> {
    if args.text.trim().is_empty() {
        let hint = "`amplifier session search TEXT` looks for a text in what was said";
        Remark::error("there is nothing to look for").hint(hint).tell();
        return Ok(Exit::Usage);
    }
    let scope = scope(&args.place, access).with_children();
    let (mut hits, mut last, mut more) = (Vec::new(), None, false);
    let searched = search::search(store, &scope, &args.text, |hit| {
        if hits.len() >= args.limit {
            more = true;
            return GoOn::No;
        }
        let printed = match args.output {
            Form::Text if last.as_ref() != Some(&hit.session_id) => {
                last = Some(hit.session_id.clone());
                render::line(&format!("{}  {}\n{}", hit.session_id, hit.label, row(&hit)))
            }
            Form::Text => render::line(&row(&hit)),
            Form::Json => Ok(()),
        };
        hits.push(hit);
        if printed.is_ok() { GoOn::Yes } else { GoOn::No }
    })?;
    tell_unread(&searched.unread);
    for (id, damaged) in searched.damaged.iter().take(UNREAD) {
        tell_damaged(id, damaged);
    }
    if let more @ 1.. = searched.damaged.len().saturating_sub(UNREAD) {
        Remark::warning(format!("{more} more sessions are damaged; `--output json` names them all")).tell();
    }
    if args.output == Form::Json {
        let (sessions, unread) = (searched.sessions, unread_json(&searched.unread));
        let damaged: Vec<_> = searched
            .damaged
            .iter()
            .map(|(id, damaged)| json!({ "session_id": id, "places": damaged_json(damaged) }))
            .collect();
        render::json(&json!({
            "hits": hits, "sessions_searched": sessions, "more": more, "unread": unread, "damaged": damaged
        }));
    } else if hits.is_empty() {
        let searched = count(searched.sessions as u64, "session");
        render::note(&format!("nothing in {searched}; `--all` looks into those of other folders"));
    } else if more {
        render::note(&format!("there is more; `--limit {}` shows it", args.limit.saturating_mul(2)));
    }
    let is_whole = searched.damaged.is_empty();
    Ok(if hits.is_empty() || !is_whole { Exit::Failure } else { Exit::Success })
}

fn row(hit: &Hit) -> String {
    format!("  turn {}, {}, {}: {}", hit.turn, minute(hit.ts), hit.by, hit.text)
}
