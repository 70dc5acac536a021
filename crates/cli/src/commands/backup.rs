//! `amplifier backup …`: what `hooks-backup` kept, and putting it back.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use amplifier_app::backups::{self, BackupsError, Entry, Found, PutBack, Restored, Standing};
use amplifier_app::env::Environment;
use amplifier_app::open::find_home;
use amplifier_app::settings::SettingsFiles;
use amplifier_app::spelling;
use amplifier_protocol::time::Timestamp;
use serde_json::json;

use crate::args::{BackupListArgs, BackupPlace, BackupRestoreArgs, Form};
use crate::exit::Exit;
use crate::render::{self, Remark};

/// `amplifier backup list`.
pub fn list(args: &BackupListArgs, home: Option<PathBuf>) -> Exit {
    let here = working_dir();
    let dir = keeper(&args.place, home, &here).join(&args.place.dir);
    let sessions = match backups::list(&dir, args.place.session.as_ref()) {
        Ok(sessions) => sessions,
        Err(error) => return refuse(&error),
    };
    if args.output == Form::Json {
        render::json(&json!({ "dir": spelling::told(&dir), "sessions": sessions }));
        return Exit::Success;
    }
    if sessions.is_empty() {
        render::out(&format!("nothing is kept in `{}`", spelling::told(&args.place.dir)));
    }
    for (at, backups) in sessions.iter().enumerate() {
        if at > 0 {
            render::out("");
        }
        render::out(&format!("session {}", backups.session));
        for entry in &backups.entries {
            render::out(&row(entry, &here));
        }
    }
    Exit::Success
}

fn row(entry: &Entry, here: &Path) -> String {
    let size = if entry.sha256.is_some() { render::bytes(entry.bytes) } else { "no file".to_owned() };
    let (file, tool) = (shown(&entry.path, here), &entry.tool_name);
    format!("{:>5}  {}  {size:>10}  {file} (before {tool})", entry.number, minute(entry.time))
}

/// A time to the second. Those who want more read the JSON.
fn minute(time: Timestamp) -> String {
    let text = time.to_string();
    text.chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).chain("Z".chars()).collect()
}

/// A path as the person would write it here.
fn shown(path: &Path, here: &Path) -> String {
    let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
    spelling::told(path.strip_prefix(here).unwrap_or(path)).into_owned()
}

/// The folder whose copies are meant: this one, or the nearest above it in the project that has some.
fn keeper(place: &BackupPlace, home: Option<PathBuf>, here: &Path) -> PathBuf {
    // Without a home there are no settings that could say what the project is.
    let Ok(home) = find_home(home, &Environment::Process) else { return here.to_owned() };
    backups::keeper(&SettingsFiles::find(&home, &Environment::Process, here), &place.dir)
}

fn working_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// `amplifier backup restore NUMBER`.
pub fn restore(args: &BackupRestoreArgs, home: Option<PathBuf>) -> Exit {
    let here = working_dir();
    let keeper = keeper(&args.place, home.clone(), &here);
    let dir = keeper.join(&args.place.dir);
    let within = args.within.as_ref().map_or(keeper, |within| here.join(within));
    let found = match backups::find(&dir, args.place.session.as_ref(), args.number) {
        Ok(found) => found,
        Err(error) => return refuse(&error),
    };
    let file = shown(&found.entry.path, &here);
    if found.now == Standing::Same {
        render::out(&format!("`{file}` is as it was; there is nothing to put back"));
        return Exit::Success;
    }
    if !args.yes {
        match confirm(&question(&found, &file)) {
            Answer::Yes => {}
            Answer::No => {
                render::note("nothing was changed");
                return Exit::Refused;
            }
            Answer::Nobody => {
                Remark::error(format!("nobody is there to confirm it: {}", question(&found, &file)))
                    .hint("`--yes` goes on without asking")
                    .tell();
                return Exit::Usage;
            }
        }
    }
    // Without a home there is no session that could be running in it.
    let home = find_home(home, &Environment::Process).ok();
    match backups::restore(&dir, &found, &within, home.as_ref()) {
        Ok(done) => {
            render::out(&told(&done, &file));
            Exit::Success
        }
        Err(error) => refuse(&error),
    }
}

fn question(found: &Found, file: &str) -> String {
    let entry = &found.entry;
    let before = format!("before `{}` at {}", entry.tool_name, minute(entry.time));
    let now = match found.now {
        Standing::Nothing | Standing::Same => "is not there".to_owned(),
        Standing::File(bytes) => format!("has {} now", render::bytes(bytes)),
    };
    match &entry.sha256 {
        Some(_) => {
            let size = render::bytes(entry.bytes);
            format!("`{file}` {now}; it will be the {size} it was {before}")
        }
        None => format!("`{file}` {now}; it will be removed, because it was not there {before}"),
    }
}

enum Answer {
    Yes,
    No,
    Nobody,
}

fn confirm(question: &str) -> Answer {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Answer::Nobody;
    }
    render::note(&format!("{question}. What stands there now is kept. Go on? [y/N]"));
    let mut line = String::new();
    match stdin.lock().read_line(&mut line) {
        Ok(_) if matches!(line.trim().to_lowercase().as_str(), "y" | "yes") => Answer::Yes,
        _ => Answer::No,
    }
}

fn told(done: &PutBack, file: &str) -> String {
    let undo = done.undo;
    match done.restored {
        Restored::Written(_) => format!("`{file}` is as it was; what stood there is backup {undo}"),
        Restored::Removed(_) => format!("`{file}` is gone, as it was; what stood there is backup {undo}"),
    }
}

fn refuse(error: &BackupsError) -> Exit {
    render::error(error, error.hint());
    if let BackupsError::WhichSession { sessions } = error {
        sessions.iter().for_each(|session| render::note(&format!("  {session}")));
    }
    if error.is_usage() { Exit::Usage } else { Exit::Failure }
}
