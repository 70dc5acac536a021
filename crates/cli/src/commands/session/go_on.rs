//! `amplifier continue` and `amplifier resume`: which session, and then the chat, or one answer.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use amplifier_app::choice::Choice;
use amplifier_app::library::Access;
use amplifier_app::sessions::{self, Listed, Scope, SessionError, story};
use amplifier_app::start::Wish;
use amplifier_app::store::SessionStore;
use amplifier_app::trust::Mode;
use amplifier_protocol::ids::SessionId;

use super::tell::{lines, minute};
use super::{refuse, row, tell_unread};
use crate::args::{ContinueArgs, ResumeArgs};
use crate::chat::Past;
use crate::commands::start::{self, Terms};
use crate::commands::{chat, load, run};
use crate::exit::Exit;
use crate::render::{self, Remark};

/// How much of a conversation is shown when it goes on.
const SHOWN: usize = 10;

/// How much room the numbers of a list take.
const NUMBERS: usize = 5;

/// `amplifier continue [PROMPT]`.
pub fn go_on(args: &ContinueArgs, home: Option<PathBuf>) -> Exit {
    let converses = args.ask.prompt.is_none() && !args.ask.go_on && std::io::stdin().is_terminal();
    let mut terms = Terms::of(&args.ask.start);
    let (access, found) = match newest_here(home, start::mode(&args.ask.start)) {
        Ok(found) => found,
        Err(exit) if converses => return exit,
        Err(exit) => return run::answer_with(&args.ask, terms.wish, None, Err(exit)),
    };
    announce(&found);
    let id = found.metadata.session_id.clone();
    if args.force_bundle {
        take_origin(&mut terms.wish, &found);
    }
    if !converses {
        return run::answer_with(&args.ask, terms.wish, Some(id.as_str()), Ok(access));
    }
    let past = if args.no_history { Past::Hidden } else { Past::Shown };
    chat::open(&terms, Some(id), access, past)
}

/// The last used session of this project.
fn newest_here(home: Option<PathBuf>, mode: Mode) -> Result<(Access, Listed), Exit> {
    let access = load::session_access(home, mode)?;
    let store = SessionStore::new(access.home.clone());
    let found = newest(&access, &store).map_err(|error| refuse(&error, &store))?;
    Ok((access, found))
}

/// `amplifier resume [SESSION]` and `amplifier session resume SESSION`.
pub fn resume(args: &ResumeArgs, home: Option<PathBuf>) -> Exit {
    let access = match load::session_access(home, start::mode(&args.start)) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    let store = SessionStore::new(access.home.clone());
    let found = match choose(args, &access, &store) {
        Ok(Some(found)) => found,
        Ok(None) => {
            render::note("nothing was picked");
            return Exit::Refused;
        }
        Err(error) => return refuse(&error, &store),
    };
    announce(&found);
    let mut terms = Terms::of(&args.start);
    if args.force_bundle {
        take_origin(&mut terms.wish, &found);
    }
    // On a terminal the chat shows it, as it was shown then.
    if !std::io::stdin().is_terminal() {
        show_last(&store, &found.metadata.session_id);
    }
    chat::open(&terms, Some(found.metadata.session_id), access, Past::Shown)
}

fn choose(args: &ResumeArgs, access: &Access, store: &SessionStore) -> Result<Option<Listed>, SessionError> {
    if let Some(text) = &args.session {
        let id = sessions::resolve(store, text)?;
        return Ok(Some(sessions::look(store, &id)?.0));
    }
    if std::io::stdin().is_terminal() {
        return pick(args.limit, access, store);
    }
    let found = newest(access, store)?;
    Remark::note("nobody is there to pick a session; the last used one of this project is taken").tell();
    Ok(Some(found))
}

/// The session of this project that was last used.
fn newest(access: &Access, store: &SessionStore) -> Result<Listed, SessionError> {
    let scope = Scope { limit: Some(1), ..Scope::here(access) };
    let listing = sessions::list(store, &scope)?;
    tell_unread(&listing.unread);
    listing.sessions.into_iter().next().ok_or(SessionError::NoneHere { place: scope.place })
}

/// Asks which of the last used sessions. An empty line takes the first.
fn pick(limit: usize, access: &Access, store: &SessionStore) -> Result<Option<Listed>, SessionError> {
    let scope = Scope { limit: Some(limit), ..Scope::here(access) };
    let listing = sessions::list(store, &scope)?.marked(store);
    tell_unread(&listing.unread);
    if listing.sessions.is_empty() {
        return Err(SessionError::NoneHere { place: scope.place });
    }
    let ids: Vec<_> = listing.sessions.iter().map(|listed| &listed.metadata.session_id).collect();
    let columns = render::columns_aside().map(|columns| columns.saturating_sub(NUMBERS));
    for (at, listed) in (1..).zip(&listing.sessions) {
        let row = row(listed, &ids, columns).replace('\n', &format!("\n{:NUMBERS$}", ""));
        render::note(&format!("{at:>3}  {row}"));
    }
    loop {
        render::note(&format!("which one? [1-{}, Enter for 1, q for none]", listing.sessions.len()));
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
            return Ok(None);
        }
        let number = match line.trim() {
            "" => 1,
            "q" => return Ok(None),
            text => text.parse().unwrap_or(0),
        };
        if let Some(picked) = usize::checked_sub(number, 1).and_then(|at| listing.sessions.get(at)) {
            return Ok(Some(picked.clone()));
        }
    }
}

fn announce(found: &Listed) {
    let metadata = &found.metadata;
    let (id, used) = (&metadata.session_id, minute(metadata.updated));
    render::aside(&format!("session {id}: {} (last used {used})", metadata.label()));
}

/// Names what the session was started from, so that it is taken as it is now.
fn take_origin(wish: &mut Wish, found: &Listed) {
    match Choice::of_origin(&found.metadata) {
        Some(origin) => wish.choice = origin,
        None => {
            Remark::note("nobody wrote down what this session was started from; it keeps its plan").tell();
        }
    }
}

/// The last words, for whoever goes on.
fn show_last(store: &SessionStore, id: &SessionId) {
    for what in story::last(&store.home().session(id), SHOWN) {
        lines(&what).iter().for_each(|line| render::note(line));
    }
}
