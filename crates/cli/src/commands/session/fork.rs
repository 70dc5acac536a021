//! `amplifier session fork`.

use amplifier_app::chain;
use amplifier_app::sessions::{self, Salvaged, SessionError};
use amplifier_app::store::SessionStore;
use amplifier_protocol::ids::SessionId;
use serde_json::{Value, json};

use super::UNREAD;
use super::tell::count;
use crate::args::{Form, SessionForkArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

pub fn fork(args: &SessionForkArgs, store: &SessionStore) -> Result<Exit, SessionError> {
    let id = sessions::resolve(store, &args.session)?;
    let mut told = json!({});
    let forked = if args.salvage {
        let salvaged = sessions::salvage(store, &id, args.name.as_deref())?;
        tell_salvaged(&id, &salvaged);
        let damaged = sessions::damaged_json(&salvaged.damaged);
        told = json!({ "left_out": salvaged.left_out, "damaged": damaged });
        salvaged.forked
    } else {
        let request = sessions::ForkRequest { at: args.at, name: args.name.clone() };
        sessions::fork(store, &id, &request)?
    };
    let (shared, fork) = (count(forked.turn, "turn"), &forked.id);
    let mut goes_on = format!("amplifier resume {fork}");
    if let Err(error) = store.plan(&store.open(fork)?) {
        Remark::warning(format!("its plan is of no use: {}", chain(&error))).tell();
        goes_on.push_str(" --bundle NAME");
    }
    match args.output {
        Form::Json => {
            if let Value::Object(told) = &mut told {
                told.insert("session_id".to_owned(), json!(forked.id));
                told.insert("forked_from".to_owned(), json!(forked.metadata.forked_from));
            }
            render::json(&told);
        }
        Form::Text => {
            render::out(&forked.id.to_string());
            render::say_aside(&format!("it shares {shared} with `{id}`; `{goes_on}` goes on with it"));
        }
    }
    Ok(Exit::Success)
}

/// Says what of a damaged session is not in the one that was made of it.
fn tell_salvaged(id: &SessionId, salvaged: &Salvaged) {
    for damaged in salvaged.damaged.iter().take(UNREAD) {
        Remark::warning(chain(&damaged.error)).tell();
    }
    if let more @ 1.. = salvaged.damaged.len().saturating_sub(UNREAD) {
        Remark::warning(format!("{more} more places are damaged")).tell();
    }
    let kept = match (salvaged.kept, salvaged.told) {
        (0, 0) => "nothing that was said is missing".to_owned(),
        (kept, 0) => {
            format!("nothing that was said is missing: {} came from the transcript", count(kept, "message"))
        }
        (_, told) => format!("the model is told so in {}", count(told, "place")),
    };
    match (salvaged.left_out, salvaged.damaged.is_empty()) {
        (0, true) => Remark::note(format!("session `{id}` is whole: nothing was left out")).tell(),
        (0, false) => Remark::note(kept).tell(),
        (records, _) => {
            Remark::note(format!("{} could not be read; {kept}", count(records, "record"))).tell();
        }
    }
}
