//! `amplifier trust`, and the question whether something is trusted.

use std::path::{Path, PathBuf};

use amplifier_app::Freshness;
use amplifier_app::choice::{Choice, Chosen};
use amplifier_app::library::Access;
use amplifier_app::prepare::PrepareOptions;
use amplifier_app::spelling::quoted;
use amplifier_app::trust::{
    Answer, Before, CheckError, Consent, Mode, Power, Project, Removed, Request, State, Subject, Trust,
    Untrusted,
};
use serde_json::json;

use super::load;
use crate::args::{Form, TrustArgs, TrustCommand, TrustListArgs, TrustSubject};
use crate::exit::Exit;
use crate::question::{self, Usual};
use crate::render::{self, Remark};

/// The most things that one line names.
const MOST_NAMED: usize = 4;

/// `amplifier trust …`.
pub fn run(args: &TrustArgs, home: Option<PathBuf>) -> Exit {
    let done = match &args.command {
        None => trust(&args.subject, home),
        Some(TrustCommand::List(args)) => list(args, home),
        Some(TrustCommand::Remove(args)) => remove(&args.subject, home),
    };
    done.unwrap_or_else(|exit| exit)
}

/// The home and the settings of the directory that is meant. With [`Mode::Everything`] it is as if the project were trusted: what
/// it would do is looked at.
fn access(directory: Option<&Path>, home: Option<PathBuf>, mode: Mode) -> Result<Access, Exit> {
    let mut access = load::access_without_settings(home)?;
    if let Some(directory) = directory {
        access.base = directory.canonicalize().map_err(|error| {
            Remark::error(format!("cannot read `{}`: {error}", directory.display())).tell();
            Exit::Usage
        })?;
    }
    access.with_settings_trusting(mode).map_err(|error| load::refuse_settings(&error))
}

fn trust(subject: &TrustSubject, home: Option<PathBuf>) -> Result<Exit, Exit> {
    let choice = load::choice(&subject.choice);
    // What else is trusted is trusted as it runs: with the settings of a project only where that is trusted.
    let mode = if choice == Choice::Nothing { Mode::Everything } else { Mode::Recorded };
    let access = access(subject.directory.as_deref(), home, mode)?;
    let request = match choice {
        Choice::Nothing => project(&access, subject.directory.as_deref())?,
        choice => {
            let mut finding = Ok(Exit::Success);
            let mut found = None;
            load::block_on(async {
                match load::chosen(&choice, &access, PrepareOptions::default()).await {
                    Ok(chosen) => found = Some(chosen),
                    Err(exit) => finding = Err(exit),
                }
                Exit::Success
            });
            finding?;
            let chosen = found.ok_or(Exit::Failure)?;
            Request::of(&choice, &chosen, &access).map_err(|error| load::refuse_settings(&error))?
        }
    };
    let Request { subject, wants } = request;
    if !wants.is_empty() && question::is_somebody_there() {
        let untrusted = Untrusted { subject, missing: wants.clone(), wants, was_trusted: Before::Unknown };
        return Ok(match ask(&untrusted, &access)? {
            Answer::Trusted => Exit::Success,
            Answer::Refused => Exit::Refused,
        });
    }
    render::out(&format!("trusted: {subject}"));
    match wants.is_empty() {
        true => render::out("  it asks for nothing now; you will be asked again when that changes"),
        false => wants.iter().for_each(|power| render::out(&format!("  {power}"))),
    }
    record(&access, Consent { subject, answer: Answer::Trusted, powers: wants })?;
    Ok(Exit::Success)
}

/// What the project asks for, with the bundle that it chooses.
fn project(access: &Access, named: Option<&Path>) -> Result<Request, Exit> {
    let Some(project) = access.trust.project() else {
        Remark::error("your home directory is yours; there is nothing to trust")
            .hint("run `amplifier trust DIR` for the root of a project")
            .tell();
        return Err(Exit::Usage);
    };
    if named.is_some() && project.root != access.base {
        Remark::error(format!("`{}` is not the root of its project", access.base.display()))
            .hint(format!("run `amplifier trust {}` to trust the whole project", quoted(&project.root)))
            .tell();
        return Err(Exit::Usage);
    }
    Ok(review(access))
}

/// What a project asks for, its own files and the bundle that they choose as far as it is on this machine. `access` trusts the
/// project.
fn review(access: &Access) -> Request {
    let direct = access.trust.project().map(|project| Request {
        subject: Subject::Directory(project.root.clone()),
        wants: project.wants.clone(),
    });
    let mut offline = access.clone();
    offline.freshness = Freshness::Offline;
    let mut found = None;
    load::block_on(async {
        // A bundle that is not here yet, or broken, is looked at when it is used.
        if let Ok(chosen) = Chosen::find(&Choice::Nothing, &offline, PrepareOptions::default()).await {
            found = Request::of(&Choice::Nothing, &chosen, &offline).ok();
        }
        Exit::Success
    });
    match (found, direct) {
        (Some(found), Some(direct)) if found.subject == direct.subject => found,
        (_, Some(direct)) => direct,
        (_, None) => Request { subject: Subject::Directory(access.base.clone()), wants: Vec::new() },
    }
}

fn record(access: &Access, consent: Consent) -> Result<(), Exit> {
    Trust::record(&access.home, consent).map_err(|error| load::refuse_settings(&error))
}

fn list(args: &TrustListArgs, home: Option<PathBuf>) -> Result<Exit, Exit> {
    let access = load::access_without_settings(home)?;
    let known = Trust::list(&access.home).map_err(|error| load::refuse_settings(&error))?;
    if args.output == Form::Json {
        render::json(&json!({ "answers": known }));
        return Ok(Exit::Success);
    }
    if known.is_empty() {
        render::out("nothing is trusted");
    }
    for Consent { subject, answer, powers } in known {
        let refused = if answer == Answer::Refused { " (refused)" } else { "" };
        render::out(&format!("{subject}{refused}"));
        powers.iter().for_each(|power| render::out(&format!("  {power}")));
    }
    Ok(Exit::Success)
}

fn remove(subject: &TrustSubject, home: Option<PathBuf>) -> Result<Exit, Exit> {
    let access = access(None, home, Mode::Everything)?;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let text = |path: &Path| real(path).display().to_string();
    let mut subjects = Vec::new();
    match load::choice(&subject.choice) {
        Choice::Nothing => {
            let named = subject.directory.as_deref().map(real);
            let root = access.trust.project().map(|project| project.root.clone());
            subjects.extend(named.or(root).map(Subject::Directory));
        }
        Choice::Bundle(name) => {
            subjects.push(Subject::Bundle(name.clone()));
            // A bundle is known by its file.
            subjects.push(Subject::Bundle(text(Path::new(&name))));
            subjects.push(Subject::Bundle(text(&Path::new(&name).join("bundle.md"))));
        }
        Choice::Profile(id) => subjects.push(Subject::Profile(id)),
        Choice::Plan(path) => subjects.push(Subject::Plan(text(&path))),
    }
    for subject in subjects {
        let removed = Trust::remove(&access.home, &subject).map_err(|error| load::refuse_settings(&error))?;
        if removed == Removed::Known {
            render::out(&format!("no longer trusted: {subject}"));
            return Ok(Exit::Success);
        }
    }
    Remark::error("it is not trusted").hint("`amplifier trust list` shows what is").tell();
    Err(Exit::Usage)
}

/// Settles whether the project is trusted before a session begins: asks once where a user is there, and says otherwise what is
/// left out.
pub fn settle(access: Access) -> Result<Access, Exit> {
    let Some(project) = access.trust.project().filter(|project| !project.wants.is_empty()) else {
        return Ok(access);
    };
    match project.state {
        State::Unknown(before) if before != Before::Refused && question::is_somebody_there() => {
            let trusting = access.clone().with_settings_trusting(Mode::Everything);
            let trusting = trusting.map_err(|error| load::refuse_settings(&error))?;
            let Request { subject, wants } = review(&trusting);
            let known = Trust::list(&access.home).map_err(|error| load::refuse_settings(&error))?;
            let granted = known.into_iter().find(|known| known.subject == subject).map(|known| known.powers);
            let missing =
                |granted: Vec<Power>| wants.iter().filter(|want| !granted.contains(want)).cloned().collect();
            let missing = missing(granted.filter(|_| before == Before::Trusted).unwrap_or_default());
            let answer = ask(&Untrusted { subject, missing, wants, was_trusted: before }, &access)?;
            if answer == Answer::Refused {
                return Ok(access);
            }
            access.with_settings().map_err(|error| load::refuse_settings(&error))
        }
        State::Unknown(_) => {
            tell_left_out(&access);
            Ok(access)
        }
        State::Trusted => Ok(access),
    }
}

/// Says in one line what of an untrusted project is not used.
pub fn tell_left_out(access: &Access) {
    let untrusted = access.trust.project().filter(|project| project.state != State::Trusted);
    let Some(Project { root, wants, .. }) = untrusted.filter(|project| !project.wants.is_empty()) else {
        return;
    };
    let name = |power: &Power| match power {
        Power::Setting { key: name, .. } | Power::File { path: name, .. } => Some(format!("`{name}`")),
        Power::Path { key, path, .. } => Some(format!("`{key}` (a link to `{path}`)")),
        _ => None,
    };
    let names: Vec<_> = wants.iter().filter_map(name).collect();
    let more = names.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names: Vec<_> = names.into_iter().take(MOST_NAMED).collect();
    Remark::warning(format!("`{}` is not trusted; ignoring its {}{more}", root.display(), names.join(", ")))
        .hint(format!("run `amplifier trust {}` to review and allow them", quoted(root)))
        .tell();
}

/// Asks the user, and remembers the answer. What changed since an earlier yes is shown as a diff.
pub fn ask(untrusted: &Untrusted, access: &Access) -> Result<Answer, Exit> {
    let Untrusted { subject, missing, wants, was_trusted } = untrusted;
    let mut lines = Vec::new();
    if *was_trusted == Before::Trusted {
        lines.push(format!("The {subject} has changed:"));
        let known = Trust::list(&access.home).map_err(|error| load::refuse_settings(&error))?;
        let granted = known.iter().filter(|known| known.subject == *subject).flat_map(|known| &known.powers);
        lines.extend(granted.filter(|power| !wants.contains(power)).map(|power| format!("- {power}")));
        lines.extend(missing.iter().map(|power| format!("+ {power}")));
    } else {
        lines.push(format!("The {subject} asks for your trust. It:"));
        lines.extend(missing.iter().map(|power| format!("  {power}")));
    }
    // What is asked about is on the screen before the question.
    let said = lines.iter().try_for_each(|line| question::say(line));
    let yes = said.and_then(|()| question::agree("Trust it?", Usual::No)).map_err(|error| {
        render::error(&error, None);
        Exit::Failure
    })?;
    let answer = if yes { Answer::Trusted } else { Answer::Refused };
    record(access, Consent { subject: subject.clone(), answer, powers: wants.clone() })?;
    Ok(answer)
}

/// Passes what the user agreed to, and asks where a user is there.
pub fn require(choice: &Choice, chosen: &Chosen, access: &Access) -> Result<(), Exit> {
    let request = Request::of(choice, chosen, access).map_err(|error| load::refuse_settings(&error))?;
    request.check(access).or_else(|error| settle_missing(&error, access))
}

/// Asks for what is missing where a user is there; refuses otherwise.
pub fn settle_missing(error: &CheckError, access: &Access) -> Result<(), Exit> {
    if let CheckError::Untrusted(untrusted) = error
        && untrusted.was_trusted != Before::Refused
        && question::is_somebody_there()
        && ask(untrusted, access)? == Answer::Trusted
    {
        return Ok(());
    }
    render::error(error, error.hint().as_deref());
    Err(Exit::Refused)
}
