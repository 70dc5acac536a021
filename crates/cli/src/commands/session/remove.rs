//! `amplifier session delete` and `amplifier session cleanup`.

use std::io::{BufRead, IsTerminal};

use amplifier_app::library::Access;
use amplifier_app::sessions::{self, SessionError};
use amplifier_app::store::SessionStore;

use super::tell::count;
use super::{placed_row, scope};
use crate::args::{SessionCleanupArgs, SessionDeleteArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

pub fn delete(args: &SessionDeleteArgs, store: &SessionStore) -> Result<Exit, SessionError> {
    let id = sessions::resolve(store, &args.session)?;
    let family = sessions::family(store, &id)?;
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
    Ok(Exit::Success)
}

pub fn cleanup(
    args: &SessionCleanupArgs,
    access: &Access,
    store: &SessionStore,
) -> Result<Exit, SessionError> {
    let scope = scope(&args.place, access);
    let old = sessions::older_than(store, &scope, args.days)?;
    let days = args.days;
    if old.is_empty() {
        if !args.dry_run {
            tell_swept(sessions::sweep(store)?);
        }
        let here = scope.project.map(|project| format!(" of `{}`", project.display())).unwrap_or_default();
        render::out(&format!("every session{here} was used in the last {}", count(days, "day")));
        return Ok(Exit::Success);
    }
    let ids: Vec<_> = old.iter().map(|listed| &listed.metadata.session_id).collect();
    for listed in &old {
        render::out(&placed_row(listed, &ids, &args.place));
    }
    let (these, those_days) = (count(old.len() as u64, "session"), count(days, "day"));
    if args.dry_run {
        render::note(&format!("not used for {those_days}: {these}; nothing was deleted"));
        return Ok(Exit::Success);
    }
    let question = format!("{these} not used for {those_days} will be gone for good");
    if !args.yes
        && let Some(exit) = unless_confirmed(&question)
    {
        return Ok(exit);
    }
    let (mut bytes, mut gone, mut failed) = (0, 0_u64, 0);
    for id in ids {
        match sessions::family(store, id).and_then(|family| sessions::delete(store, &family)) {
            Ok(removed) => (bytes, gone) = (bytes + removed.bytes, gone + 1),
            Err(error) => {
                failed += 1;
                render::error(&error, error.hint().as_deref());
            }
        }
    }
    tell_swept(sessions::sweep(store)?);
    render::out(&format!("deleted: {} ({})", count(gone, "session"), render::bytes(bytes)));
    Ok(if failed == 0 { Exit::Success } else { Exit::Failure })
}

/// Says what was cleared away beside what was asked for.
fn tell_swept(folders: usize) {
    if folders > 0 {
        let left = count(folders as u64, "folder");
        render::out(&format!("removed: {left} that a killed process left, without a word in it"));
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
