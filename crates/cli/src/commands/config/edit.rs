//! `amplifier config edit`: a copy goes to the editor, and comes back only when it makes sense.

use std::path::{Path, PathBuf};
use std::process::Command;

use amplifier_app::env;
use amplifier_app::files::{create_private_dir, create_private_file};
use amplifier_app::library::Access;
use amplifier_app::settings::{Editor, SettingsError};

use super::{editor, shown};
use crate::args::ConfigEditArgs;
use crate::commands::load;
use crate::exit::Exit;
use crate::render::{self, Remark};

/// `amplifier config edit`.
pub fn edit(args: &ConfigEditArgs, access: &Access) -> Result<Exit, SettingsError> {
    let editor = editor(access, args.scope.scope())?;
    let file = editor.file().to_owned();
    let Some(program) = program(access) else {
        Remark::error(
            "there is no editor: neither `VISUAL` nor `EDITOR` is set, and `vi` and `nano` are not found",
        )
        .hint(format!("the file is `{}`", shown(&file, access)))
        .tell();
        return Ok(Exit::Usage);
    };
    let before = editor.text()?;
    let copy = copy_beside(&file);
    let made = file.parent().filter(|folder| !folder.exists());
    let mut command = command(&program, &copy);
    command.env_clear().envs(access.environment.without_secrets());
    let outcome = through((&program, command), &copy, &before);
    let leave_nothing = || {
        std::fs::remove_file(&copy).ok();
        // Only a folder that is empty goes, and only one that was made here.
        made.map(std::fs::remove_dir);
    };
    let after = match outcome {
        Ok(after) => after,
        Err(problem) => {
            leave_nothing();
            Remark::error(problem).hint("`VISUAL` or `EDITOR` names the program; nothing was changed").tell();
            return Ok(Exit::Failure);
        }
    };
    if after == before {
        leave_nothing();
        // A file that made no sense before makes none now.
        editor.check(&after)?;
        render::out("nothing was changed");
        return Ok(Exit::Success);
    }
    Ok(keep(&editor, (&before, &after), &copy, access))
}

/// What the person has named, else what is usually there.
fn program(access: &Access) -> Option<String> {
    let set = |name: &str| access.environment.get(name).filter(|value| !value.trim().is_empty());
    let usual = || {
        let folders = set(env::PATH)?;
        let has =
            |program: &&str| std::env::split_paths(&folders).any(|folder| folder.join(program).is_file());
        ["vi", "nano"].into_iter().find(has).map(str::to_owned)
    };
    [env::VISUAL, env::EDITOR].into_iter().find_map(set).or_else(usual)
}

/// Beside the file, so that an editor sees its ending and knows what it is.
fn copy_beside(file: &Path) -> PathBuf {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    file.with_file_name(format!("edit-{}-{name}", std::process::id()))
}

/// Shows a text in the editor; gives what became of it.
fn through((program, mut command): (&str, Command), copy: &Path, text: &str) -> Result<String, String> {
    if let Some(folder) = copy.parent() {
        create_private_dir(folder).map_err(|error| error.to_string())?;
    }
    let failed = |error: std::io::Error| format!("`{}` cannot be used: {error}", copy.display());
    // Settings are nobody else's business, and neither is a copy of them.
    create_private_file(copy).map_err(|error| error.to_string())?;
    std::fs::write(copy, text).map_err(failed)?;
    match command.status() {
        Ok(status) if status.success() => std::fs::read_to_string(copy).map_err(failed),
        Ok(status) if matches!(status.code(), Some(126 | 127)) => {
            Err(format!("the editor `{program}` cannot be started"))
        }
        Ok(status) => Err(format!("the editor `{program}` ended with {status}")),
        Err(error) => Err(format!("the editor `{program}` cannot be started: {error}")),
    }
}

/// The shell reads how the editor is named, with flags, blanks and quotes, as git has it do.
#[cfg(unix)]
fn command(program: &str, copy: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    // A path with blanks and no quotes around it is meant as it is.
    match Path::new(program).is_file() {
        true => command.args(["-c", "exec \"$0\" \"$@\""]).arg(program),
        false => command.args(["-c", &format!("{program} \"$@\"")]).arg(program),
    };
    command.arg(copy);
    command
}

#[cfg(not(unix))]
fn command(program: &str, copy: &Path) -> Command {
    // An editor is often named with its flags, as in `code --wait`.
    let mut words = program.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).arg(copy);
    command
}

fn keep(editor: &Editor, (before, after): (&str, &str), copy: &Path, access: &Access) -> Exit {
    let shown_file = shown(editor.file(), access);
    match editor.replace(before, after) {
        Ok(()) => {
            std::fs::remove_file(copy).ok();
            render::out(&format!("`{shown_file}` is changed"));
            editor.notices(after).iter().for_each(|notice| render::note(&load::line(notice)));
            Exit::Success
        }
        Err(error) => {
            let exit = load::refuse_settings(&error);
            let copy = shown(copy, access);
            render::note(&format!("`{shown_file}` stays as it was; what you wrote is kept in `{copy}`"));
            exit
        }
    }
}
