//! `amplifier session …`, `amplifier continue`, `amplifier resume`, and a session by what somebody typed of its id.

use std::io::ErrorKind;
use std::path::PathBuf;

use amplifier_app::chain;
use amplifier_app::library::Access;
use amplifier_app::sessions::{self, Damaged, Listed, Place, Scope, SessionError, Unread, story};
use amplifier_app::spelling;
use amplifier_app::store::SessionStore;
use amplifier_protocol::ids::SessionId;
use serde_json::{Value, json};

use super::load;
use super::start::tell_repair;
use crate::args::{
    Form, SessionCommand, SessionListArgs, SessionRenameArgs, SessionReplayArgs, SessionRewindArgs,
    SessionShowArgs, Where,
};
use crate::exit::Exit;
use crate::page;
use crate::render::{self, Remark};

mod export;
mod fork;
mod go_on;
mod remove;
mod search;
mod tell;

pub use go_on::{go_on, resume};
pub use tell::{count, status_word};
use tell::{last_use, minute, short, words};

/// How many sessions are named whose ids begin alike.
const CANDIDATES: usize = 10;
/// How many sessions that cannot be read are named beside a list.
const UNREAD: usize = 5;
/// The least that is shown of a title beside the rest of its row.
const TITLE: usize = 20;
/// What stands before the title of a session that was found to be damaged.
const DAMAGED: &str = "damaged: ";

/// `amplifier session …`.
pub fn run(command: &SessionCommand, home: Option<PathBuf>) -> Exit {
    if let SessionCommand::Resume(args) = command {
        return resume(args, home);
    }
    let access = match load::access(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    let store = SessionStore::new(access.home.clone());
    let done = match command {
        SessionCommand::List(args) => list(args, &access, &store),
        SessionCommand::Show(args) => show(args, &store),
        SessionCommand::Fork(args) => fork::fork(args, &store),
        SessionCommand::Rewind(args) => rewind(args, &store),
        SessionCommand::Rename(args) => rename(args, &store),
        SessionCommand::Replay(args) => replay(args, &store),
        SessionCommand::Export(args) => export::export(args, &access, &store),
        SessionCommand::Search(args) => search::search(args, &access, &store),
        SessionCommand::Delete(args) => remove::delete(args, &store),
        SessionCommand::Cleanup(args) => remove::cleanup(args, &access, &store),
        SessionCommand::Resume(_) => Ok(Exit::Success),
    };
    match done {
        Ok(exit) => exit,
        // What goes to a file is whole before it is written, so this was standard output.
        Err(SessionError::Write(error)) => match render::heard(Err(error)) {
            Err(_) => Exit::Unread,
            Ok(()) => Exit::Failure,
        },
        Err(error) => refuse(&error, &store),
    }
}

/// Tells why something could not be done.
pub fn refuse(error: &SessionError, store: &SessionStore) -> Exit {
    render::error(error, error.hint().as_deref());
    if let SessionError::Ambiguous { candidates, .. } = error {
        for id in candidates.iter().take(CANDIDATES) {
            let label = store.metadata(id).map(|metadata| metadata.label().to_owned()).unwrap_or_default();
            render::note(&format!("  {id}  {label}"));
        }
        if let more @ 1.. = candidates.len().saturating_sub(CANDIDATES) {
            render::note(&format!("  and {more} more"));
        }
    }
    if error.is_usage() { Exit::Usage } else { Exit::Failure }
}

fn scope(place: &Where, access: &Access) -> Scope {
    match (&place.project, place.all) {
        (Some(project), _) => Scope::below(&access.base.join(project)),
        (None, true) => Scope::all(),
        (None, false) => Scope::here(access),
    }
}

/// Names sessions that could not be read: one of them may be what somebody looks for.
fn tell_unread(unread: &[Unread]) {
    for (id, error) in unread.iter().take(UNREAD) {
        warn(&format!("session `{id}` cannot be read"), error);
    }
    if let more @ 1.. = unread.len().saturating_sub(UNREAD) {
        Remark::warning(format!(
            "{more} more cannot be read; `amplifier session list --output json` names them all"
        ))
        .tell();
    }
}

fn unread_json(unread: &[Unread]) -> Value {
    let told = |(id, error): &Unread| json!({ "session_id": id, "error": error.to_string() });
    unread.iter().map(told).collect()
}

fn list(args: &SessionListArgs, access: &Access, store: &SessionStore) -> Result<Exit, SessionError> {
    if let Some(root) = &args.tree {
        return tree(&sessions::resolve(store, root)?, args.output, store);
    }
    let scope = Scope { limit: Some(args.limit), ..scope(&args.place, access) };
    let listing = sessions::list(store, &scope)?.marked(store);
    tell_unread(&listing.unread);
    for (id, error) in listing.damaged.iter().take(UNREAD) {
        warn(&format!("session `{id}` is shown as it was known"), error);
    }
    for id in &listing.rebuilt {
        Remark::note(format!(
            "what is shown of session `{id}` was damaged; it was made again from its journal"
        ))
        .tell();
    }
    if args.output == Form::Json {
        let sessions: Vec<_> = listing.sessions.iter().map(as_json).collect();
        let unread = unread_json(&listing.unread);
        let known = |listed: &Listed| {
            let id = &listed.metadata.session_id;
            let is_told = listing.damaged.iter().any(|(told, _)| told == id);
            let place = listed.damaged.first().filter(|_| !is_told)?;
            Some(json!({ "session_id": id, "error": place.cause }))
        };
        let mut damaged = unread_json(&listing.damaged);
        if let Value::Array(damaged) = &mut damaged {
            damaged.extend(listing.sessions.iter().filter_map(known));
        }
        let total = listing.total;
        render::json(&json!({ "sessions": sessions, "total": total, "unread": unread, "damaged": damaged }));
        return Ok(Exit::Success);
    }
    if listing.total == 0 {
        match &scope.place {
            Place::Anywhere => render::out("there is no session yet"),
            place => {
                render::out(&format!("no session was started in {place}"));
                render::note("  hint: `--all` shows those of other folders");
            }
        }
    }
    let ids: Vec<_> = listing.sessions.iter().map(|listed| &listed.metadata.session_id).collect();
    for listed in &listing.sessions {
        render::out(&placed_row(listed, &ids, &args.place));
    }
    if listing.sessions.len() < listing.total {
        let (shown, total) = (listing.sessions.len(), listing.total);
        render::note(&format!("{shown} of {total} sessions; `--limit {total}` shows all"));
    }
    Ok(Exit::Success)
}

/// Says what is wrong with a session, and what helps.
fn warn(what: &str, error: &SessionError) {
    Remark::warning(format!("{what}: {}", chain(error))).maybe_hint(error.hint()).tell();
}

/// Says that something is done, although the views do not show it yet.
fn tell_stale(stale: Option<&str>) {
    if let Some(why) = stale {
        Remark::warning(format!("{why}; the journal is complete, and the views are rebuilt from it")).tell();
    }
}

/// A session in a list of answers; with its folder where those of every folder are listed.
fn placed_row(listed: &Listed, ids: &[&SessionId], place: &Where) -> String {
    let columns = render::columns();
    let row = row(listed, ids, columns);
    let elsewhere = listed.metadata.working_dir.as_ref().filter(|_| place.all);
    match (elsewhere.map(|dir| dir.display().to_string()), columns) {
        (None, _) => row,
        (Some(dir), None) => format!("{row}  ({dir})"),
        (Some(dir), Some(columns)) => {
            format!("{row}\n  {}", page::shortened_before(&dir, columns.saturating_sub(2)))
        }
    }
}

/// A session in a list. On a terminal its title is cut to what fits, and a narrow one has two lines for it.
fn row(listed: &Listed, ids: &[&SessionId], columns: Option<usize>) -> String {
    let metadata = &listed.metadata;
    let (id, used) = (short(&metadata.session_id, ids), last_use(listed));
    let running = if listed.owner.is_some() { "in use: " } else { "" };
    let damaged = if listed.damaged.is_empty() { "" } else { DAMAGED };
    let turns = count(metadata.turns, "turn");
    let title = format!("{damaged}{running}{}", metadata.label().replace(['\n', '\t'], " "));
    let head = format!("{id}  {used}  {turns:>9}  ");
    let fitting =
        |before: &str, columns: usize| page::shortened(&title, columns.saturating_sub(page::width(before)));
    match columns {
        None => format!("{head}{title}"),
        Some(columns) if columns >= page::width(&head) + TITLE => {
            format!("{head}{}", fitting(&head, columns))
        }
        Some(columns) => {
            let below = format!("  {turns}  ");
            format!("{id}  {used}\n{below}{}", fitting(&below, columns))
        }
    }
}

fn tree(root: &SessionId, form: Form, store: &SessionStore) -> Result<Exit, SessionError> {
    let tree = sessions::tree(store, root)?;
    tell_unread(&tree.unread);
    if form == Form::Json {
        let sessions = tree.sessions.iter().map(|(depth, listed)| {
            let mut session = as_json(listed);
            if let Value::Object(session) = &mut session {
                session.insert("depth".to_owned(), json!(depth));
            }
            session
        });
        let unread = unread_json(&tree.unread);
        render::json(&json!({ "sessions": sessions.collect::<Vec<_>>(), "unread": unread }));
        return Ok(Exit::Success);
    }
    for (depth, listed) in &tree.sessions {
        let metadata = &listed.metadata;
        let kind = match &metadata.forked_from {
            Some(point) => format!("fork at turn {}: ", point.turn),
            None if *depth > 0 => "sub-session: ".to_owned(),
            None => String::new(),
        };
        let indent = "  ".repeat(*depth);
        let damaged = if listed.damaged.is_empty() { "" } else { DAMAGED };
        let line = format!("{indent}{}  {damaged}{kind}{}", metadata.session_id, metadata.label());
        render::out(&tell::fitting(&line));
    }
    Ok(Exit::Success)
}

fn as_json(listed: &Listed) -> Value {
    let mut session = listed.metadata.told();
    if let Value::Object(session) = &mut session {
        session.insert("in_use_by".to_owned(), json!(listed.owner));
        session.insert("damaged".to_owned(), json!(listed.damaged));
    }
    session
}

fn show(args: &SessionShowArgs, store: &SessionStore) -> Result<Exit, SessionError> {
    let id = sessions::resolve(store, &args.session)?;
    let folder = store.open(&id)?;
    let (listed, rebuilt) = sessions::look_around(store, &id)?;
    if !rebuilt.is_empty() {
        Remark::note("its transcript and metadata were damaged; they were made again from its journal")
            .tell();
    }
    let ((turns, mut damaged), bytes) = (sessions::turns_around(&folder)?, sessions::size_of(folder.dir()));
    let mut moments = Vec::new();
    if args.output == Form::Text {
        tell::facts(&listed, folder.dir(), bytes).iter().for_each(|fact| render::out(fact));
        for turn in &turns {
            render::out(&tell::turn_row(turn, &listed, render::columns()));
        }
    }
    if args.transcript {
        let more = story::tell(&folder, 0, |moment| match args.output {
            Form::Text => print(words(&moment)),
            Form::Json => {
                moments.push(json!(moment));
                Ok(())
            }
        })?;
        sessions::join_damaged(&mut damaged, more);
    }
    sessions::note_damaged(&folder, &damaged);
    if args.output == Form::Json {
        let mut session = as_json(&listed);
        if let Value::Object(session) = &mut session {
            session.insert("folder".to_owned(), json!(spelling::told(folder.dir())));
            session.insert("bytes".to_owned(), json!(bytes));
            session.insert("turn_list".to_owned(), json!(turns));
            session.insert("damaged".to_owned(), sessions::damaged_json(&damaged));
            if args.transcript {
                session.insert("transcript".to_owned(), Value::Array(moments));
            }
        }
        render::json(&session);
    }
    Ok(tell_damaged(&id, &damaged))
}

/// Says what of a session could not be read, where, and what helps. Who got a part must not take it for the whole.
pub fn tell_damaged(id: &SessionId, damaged: &[Damaged]) -> Exit {
    let Some(first) = damaged.first() else { return Exit::Success };
    let more = match damaged.len() - 1 {
        0 => String::new(),
        1 => "; one more place is damaged".to_owned(),
        more => format!("; {more} more places are damaged"),
    };
    let told =
        format!("session `{id}` is damaged, and this is what can be read: {}{more}", chain(&first.error));
    Remark::warning(told).maybe_hint(first.error.hint()).tell();
    Exit::Failure
}

/// Prints lines of a story, which ends where nobody reads it any more.
fn print(lines: impl IntoIterator<Item = String>) -> Result<(), SessionError> {
    let printed = lines.into_iter().try_for_each(|line| render::line(&line));
    printed.map_err(|_| SessionError::Write(ErrorKind::BrokenPipe.into()))
}

fn rewind(args: &SessionRewindArgs, store: &SessionStore) -> Result<Exit, SessionError> {
    let id = sessions::resolve(store, &args.session)?;
    // Before anything is changed: who wants files back wants both or nothing.
    let copies = args.files.then(|| sessions::copies(store, &id)).transpose()?;
    let done = sessions::rewind(store, &id, args.to)?;
    let messages = count(done.messages as u64, "message");
    tell_repair(done.repair.as_ref());
    tell_stale(done.stale.as_deref());
    render::out(&format!("the conversation is at the end of turn {} and has {messages}", done.to));
    if done.from != done.to {
        render::say_aside(&format!("`amplifier session rewind {id} --to {}` undoes it", done.from));
    }
    let Some(copies) = copies else { return Ok(Exit::Success) };
    if !done.back {
        let to = done.to;
        Remark::warning(format!(
            "files were left as they are: copies only lead back, and turn {to} is not on the way back"
        ))
        .tell();
        return Ok(Exit::Success);
    }
    let files = sessions::files_back(store, copies, args.to);
    for (path, put_back) in &files.back {
        render::out(&format!(
            "`{}` is as it was; what stood there is backup {}",
            path.display(),
            put_back.undo
        ));
    }
    if files.back.is_empty() && files.failed.is_empty() {
        let dir = files.dir.display();
        render::note(&format!("no file had to be put back; copies were looked for in `{dir}`"));
    }
    for (_, error) in &files.failed {
        render::error(error, error.hint());
    }
    Ok(if files.failed.is_empty() { Exit::Success } else { Exit::Failure })
}

fn rename(args: &SessionRenameArgs, store: &SessionStore) -> Result<Exit, SessionError> {
    let id = sessions::resolve(store, &args.session)?;
    let renamed = sessions::rename(store, &id, &args.name)?;
    tell_repair(renamed.repair.as_ref());
    tell_stale(renamed.stale.as_deref());
    render::out(&format!("session `{id}` is called `{}`", renamed.label()));
    Ok(Exit::Success)
}

fn replay(args: &SessionReplayArgs, store: &SessionStore) -> Result<Exit, SessionError> {
    let id = sessions::resolve(store, &args.session)?;
    let folder = store.open(&id)?;
    let mut pace = tell::Pace::new(args.speed);
    let mut turn = 0;
    let mut moments = Vec::new();
    let damaged = story::tell(&folder, args.from, |moment| {
        if args.output == Form::Json {
            turn = moment.turn;
            moments.push(json!(moment));
            return Ok(());
        }
        pace.wait_until(moment.ts);
        let begins =
            (moment.turn != turn).then(|| format!("--- turn {}, {}", moment.turn, minute(moment.ts)));
        turn = moment.turn;
        print(begins.into_iter().chain(words(&moment)))
    })?;
    if turn == 0 {
        let last = sessions::turns_around(&folder)?.0.last().map_or(0, |turn| turn.number);
        return Err(SessionError::NoTurn { id, turn: args.from, last });
    }
    sessions::note_damaged(&folder, &damaged);
    if args.output == Form::Json {
        let damaged = sessions::damaged_json(&damaged);
        render::json(&json!({ "session_id": id, "moments": moments, "damaged": damaged }));
    }
    Ok(tell_damaged(&id, &damaged))
}
