//! `amplifier man`: pages for `man`, from the same words as `--help`.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Args, ManArgs};
use crate::exit::Exit;
use crate::render::{self, Remark};

/// `amplifier man`.
pub fn run(args: &ManArgs) -> Exit {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let done = match &args.dir {
        None => print(&command),
        Some(dir) => write(&command, dir),
    };
    match done {
        Ok(()) => Exit::Success,
        Err(Fault { path, source }) => {
            let place = path.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
            Remark::error(format!("`{place}` cannot be written: {source}"))
                .hint("`--dir` names a folder that is there or can be made, and that you may write to")
                .tell();
            Exit::Failure
        }
    }
}

/// What could not be written.
struct Fault {
    path: Option<PathBuf>,
    source: io::Error,
}

fn print(command: &Command) -> Result<(), Fault> {
    let page = page(command).map_err(|source| Fault { path: None, source })?;
    drop(render::raw(page));
    Ok(())
}

/// One page for the command and each below it; gives their names.
fn write(command: &Command, dir: &Path) -> Result<(), Fault> {
    let at = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Fault { path: Some(path), source }
    };
    std::fs::create_dir_all(dir).map_err(at(dir))?;
    let mut pages = 0;
    let mut open = vec![command];
    while let Some(command) = open.pop() {
        let path = dir.join(format!("{}.1", name(command)));
        let text = page(command).map_err(at(&path))?;
        std::fs::write(&path, text).map_err(at(&path))?;
        pages += 1;
        open.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
    }
    render::out(&format!("{pages} pages are in `{}`", dir.display()));
    Ok(())
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // Without a date: the same program gives the same page.
    Man::new(command.clone()).title(name(command)).render(&mut text)?;
    Ok(text)
}

/// The whole name with dashes, as `man` knows it: `amplifier-bundle-add`.
fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-")
}
