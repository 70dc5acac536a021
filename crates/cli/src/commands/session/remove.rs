//! `amplifier session delete` and `amplifier session cleanup`.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use amplifier_app::library::Access;
use amplifier_app::sessions::{self, Old, Place, Scope, SessionError};
use amplifier_app::store::SessionStore;
use amplifier_protocol::ids::SessionId;
use serde_json::json;

use super::tell::{count, minute};
use super::{as_json, placed_row, scope, tell_unread, unread_json};
use crate::args::{Form, SessionCleanupArgs, SessionDeleteArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

/// How many folders with copies are named.
const COPIES: usize = 5;

pub fn delete(args: &SessionDeleteArgs, store: &SessionStore) -> Result<Exit, SessionError> {
    let id = sessions::resolve(store, &args.session)?;
    let family = sessions::families(store, std::slice::from_ref(&id))?.pop().unwrap_or_default();
    let copies = copies(store, &family);
    let more = match family.len() {
        1 => String::new(),
        n => format!(" and {}", count(n as u64 - 1, "sub-session")),
    };
    let label = store.metadata(&id).map(|metadata| metadata.label().to_owned()).unwrap_or_default();
    if !args.yes
        && let Some(exit) = unless_confirmed(&format!("session `{id}` ({label}){more} will be gone for good"))
    {
        return Ok(exit);
    }
    let removed = sessions::delete(store, &family)?;
    sessions::sweep(store)?;
    render::out(&format!("deleted: session `{id}`{more} ({})", render::bytes(removed.bytes)));
    tell_copies(&copies);
    Ok(Exit::Success)
}

/// The folders with copies of files that these sessions changed.
fn copies(store: &SessionStore, ids: &[SessionId]) -> BTreeSet<PathBuf> {
    ids.iter().filter_map(|id| sessions::copies_of(store, id)).collect()
}

/// Says what is not gone with a session: the copies are the project's, and may be wanted yet.
fn tell_copies(copies: &BTreeSet<PathBuf>) {
    for folder in copies.iter().take(COPIES) {
        render::note(&format!("note: copies of files that it changed stay in `{}`", folder.display()));
    }
    if let more @ 1.. = copies.len().saturating_sub(COPIES) {
        render::note(&format!("note: {} with such copies stay as well", count(more as u64, "more folder")));
    }
}

pub fn cleanup(
    args: &SessionCleanupArgs,
    access: &Access,
    store: &SessionStore,
) -> Result<Exit, SessionError> {
    let scope = scope(&args.place, access);
    let old = sessions::older_than(store, &scope, args.days)?;
    tell_unread(&old.unread);
    tell_undated(&old);
    let days = args.days;
    if old.sessions.is_empty() {
        if !args.dry_run {
            tell_swept(sessions::sweep(store)?, args.output);
        }
        if args.output == Form::Json {
            tell_json(&old, &[], 0);
            return Ok(Exit::Success);
        }
        render::out(&why_none(&scope, &old, days, store)?);
        return Ok(Exit::Success);
    }
    let ids: Vec<_> = old.sessions.iter().map(|listed| listed.metadata.session_id.clone()).collect();
    if args.output == Form::Text {
        let ids: Vec<_> = ids.iter().collect();
        old.sessions.iter().for_each(|listed| render::out(&placed_row(listed, &ids, &args.place)));
    }
    let (these, those_days) = (count(ids.len() as u64, "session"), count(days, "day"));
    if args.dry_run {
        if args.output == Form::Json {
            tell_json(&old, &[], 0);
        }
        render::note(&format!("not used for {those_days}: {these}; nothing was deleted"));
        return Ok(Exit::Success);
    }
    let question = format!("{these} not used for {those_days} will be gone for good");
    if !args.yes
        && let Some(exit) = unless_confirmed(&question)
    {
        return Ok(exit);
    }
    remove_old(&old, ids, args.output, store)
}

/// Why there is nothing to delete.
fn why_none(scope: &Scope, old: &Old, days: u32, store: &SessionStore) -> Result<String, SessionError> {
    let there = sessions::list(store, scope)?.sessions;
    let used = there.iter().filter(|listed| listed.owner.is_some()).count();
    let whose = match &scope.place {
        Place::Anywhere => "session".to_owned(),
        place => format!("session that was started in {place}"),
    };
    let every = if old.undated.is_empty() { "every" } else { "every other" };
    Ok(match (there.len(), used) {
        (0, _) => format!("there is no {whose}"),
        (all, used) if all == used => format!("{every} {whose} is in use"),
        (_, 0) => format!("{every} {whose} was used in the last {}", count(days, "day")),
        _ => format!("{every} {whose} was used in the last {}, or is in use", count(days, "day")),
    })
}

fn remove_old(
    old: &Old,
    ids: Vec<SessionId>,
    form: Form,
    store: &SessionStore,
) -> Result<Exit, SessionError> {
    let families = sessions::families(store, &ids)?;
    let copies: BTreeSet<_> = families.iter().flat_map(|family| copies(store, family)).collect();
    let (mut bytes, mut gone, mut failed) = (0, Vec::new(), 0);
    for (id, removed) in ids.into_iter().zip(sessions::delete_each(store, &families)?) {
        match removed {
            Ok(removed) => {
                bytes += removed.bytes;
                gone.push(id);
            }
            Err(error) => {
                failed += 1;
                render::error(&error, error.hint().as_deref());
            }
        }
    }
    tell_swept(sessions::sweep(store)?, form);
    match form {
        Form::Json => tell_json(old, &gone, bytes),
        Form::Text => {
            let these = count(gone.len() as u64, "session");
            render::out(&format!("deleted: {these} ({})", render::bytes(bytes)));
        }
    }
    tell_copies(&copies);
    Ok(if failed == 0 { Exit::Success } else { Exit::Failure })
}

fn tell_json(old: &Old, deleted: &[SessionId], bytes: u64) {
    let sessions: Vec<_> = old.sessions.iter().map(as_json).collect();
    let unread = unread_json(&old.unread);
    let undated: Vec<_> = old.undated.iter().map(as_json).collect();
    render::json(&json!({
        "sessions": sessions, "deleted": deleted, "bytes": bytes, "unread": unread, "undated": undated
    }));
}

/// Names sessions that stay because nobody knows when they were used.
fn tell_undated(old: &Old) {
    for listed in &old.undated {
        let (id, when) = (&listed.metadata.session_id, minute(listed.metadata.updated));
        Remark::warning(format!(
            "session `{id}` stays: the clock was wrong when it was last used, and said {when}"
        ))
        .hint(format!("`amplifier session delete {id}` deletes it"))
        .tell();
    }
}

/// Says what was cleared away beside what was asked for.
fn tell_swept(folders: usize, form: Form) {
    if folders > 0 {
        let left = count(folders as u64, "folder");
        let told = format!("removed: {left} that a killed process left, without a word in it");
        match form {
            Form::Text => render::out(&told),
            Form::Json => render::note(&told),
        }
    }
}

/// Asks the person; what the command ends with, unless they agree.
fn unless_confirmed(question: &str) -> Option<Exit> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        Remark::error(format!("nobody is there to confirm it: {question}"))
            .hint("`--yes` goes on without asking")
            .tell();
        return Some(Exit::Usage);
    }
    render::note(&format!("{question}. Go on? [y/N]"));
    let mut line = String::new();
    match stdin.lock().read_line(&mut line) {
        Ok(_) if matches!(line.trim().to_lowercase().as_str(), "y" | "yes") => None,
        _ => {
            render::note("nothing was changed");
            Some(Exit::Refused)
        }
    }
}
