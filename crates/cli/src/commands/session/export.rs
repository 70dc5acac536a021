//! `amplifier session export`.

use std::io::{IsTerminal, Write};
use std::path::Path;

use amplifier_app::library::Access;
use amplifier_app::output::{Existing, Output, OutputError};
use amplifier_app::sessions::export::Format;
use amplifier_app::sessions::{self, SessionError};
use amplifier_app::store::SessionStore;

use super::tell_damaged;
use crate::args::{ExportFormat, SessionExportArgs};
use crate::exit::Exit;
use crate::harmless::Harmless;
use crate::render::{self, Remark};

pub fn export(args: &SessionExportArgs, access: &Access, store: &SessionStore) -> Result<Exit, SessionError> {
    let id = sessions::resolve(store, &args.session)?;
    let Some(format) = format(args) else { return Ok(refuse_ending(args)) };
    let Some(to) = args.to.as_ref().filter(|to| to.as_os_str() != "-") else {
        let stdout = std::io::stdout().lock();
        let is_terminal = stdout.is_terminal();
        let stdout = std::io::BufWriter::new(stdout);
        let mut out: Box<dyn Write> = match is_terminal {
            true => Box::new(Harmless::new(stdout)),
            false => Box::new(stdout),
        };
        let damaged = sessions::export::export(store, &id, format, &mut out)?;
        out.flush().map_err(SessionError::Write)?;
        return Ok(tell_damaged(&id, &damaged));
    };
    let existing = if args.force { Existing::Replaced } else { Existing::Kept };
    let output = match Output::at(&access.base.join(to), existing) {
        Ok(output) => output,
        Err(error) => return Ok(refuse(&error)),
    };
    let mut document = Vec::new();
    let damaged = sessions::export::export(store, &id, format, &mut document)?;
    if let Err(error) = output.write(&document) {
        return Ok(refuse(&error));
    }
    render::out(&format!(
        "session `{id}` is in `{}` ({})",
        to.display(),
        render::bytes(document.len() as u64)
    ));
    Ok(tell_damaged(&id, &damaged))
}

fn refuse(error: &OutputError) -> Exit {
    render::error(error, Some(error.hint()));
    Exit::Failure
}

/// A file whose name promises what nobody can write.
fn refuse_ending(args: &SessionExportArgs) -> Exit {
    let to = args.to.as_deref().unwrap_or(Path::new("")).display();
    Remark::error(format!("`{to}` has an ending that stands for no form a session can be written in"))
        .hint("the name ends with .md, .json or .html; or `--format` says which of them it is")
        .tell();
    Exit::Usage
}

/// What to write; nothing where the ending of the file stands for something else.
fn format(args: &SessionExportArgs) -> Option<Format> {
    let ending = args.to.as_deref().and_then(Path::extension).map(|ending| ending.to_string_lossy());
    Some(match (args.format, ending.as_deref()) {
        (Some(ExportFormat::Md), _) => Format::Markdown,
        (Some(ExportFormat::Json), _) | (None, Some("json")) => Format::Json,
        (Some(ExportFormat::Html), _) | (None, Some("html" | "htm")) => Format::Html,
        (None, None | Some("md" | "markdown")) => Format::Markdown,
        (None, Some(_)) => return None,
    })
}
