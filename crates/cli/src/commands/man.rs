//! `amplifier man`: pages for `man`, from the same words as `--help`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Args, ManArgs};
use crate::exit::Exit;
use crate::render::{self, Remark, Weight};

/// What the page of the program says beside its flags.
const EXIT_STATUS: [(&str, &str); 8] = [
    ("0", "It did what was asked."),
    ("1", "It could not; for commands that compare, something differs."),
    ("2", "It was asked in a wrong way, or its configuration is wrong."),
    ("3", "A hook, the person or a limit stood against it, or a lock was not kept."),
    ("100", "With \\-\\-check, something is new."),
    ("124", "Its time was up."),
    ("130", "It was interrupted; 129 and 143 after the signals of that number less 128."),
    ("141", "Nobody reads what it prints."),
];
const ENVIRONMENT: [(&str, &str); 7] = [
    ("AMPLIFIER_HOME", "The home folder, instead of ~/.amplifierd."),
    (
        "AMPLIFIER_BUNDLE, AMPLIFIER_APPROVE, AMPLIFIER_COLOR, AMPLIFIER_THINKING, AMPLIFIER_PREFER",
        "As the settings bundle.active, approve, ui.color, ui.thinking and prefer.",
    ),
    (
        "AMPLIFIER_MAX_COST_USD, AMPLIFIER_MAX_TOKENS, AMPLIFIER_TIMEOUT_SECONDS",
        "As the settings below limits.",
    ),
    ("ANTHROPIC_API_KEY, OPENAI_API_KEY, …", "Keys of model services; amplifier provider list names all."),
    ("OLLAMA_HOST, LLAMA_CPP_HOST, VLLM_BASE_URL", "Where servers of models are."),
    ("VISUAL, EDITOR", "The editor of amplifier config edit."),
    ("NO_COLOR", "Set to anything, it keeps colours out of what is printed."),
];
const FILES: [(&str, &str); 5] = [
    ("~/.amplifierd/settings.yaml", "Your settings."),
    ("\\&.amplifier/settings.yaml, .amplifier/settings.local.yaml", "Those of a project, and yours in it."),
    ("~/.amplifierd/keys.env", "Keys, in plain text, where the system has no keyring."),
    ("~/.amplifierd/registry.json", "Names of bundles."),
    ("~/.amplifierd/state/sessions/", "A folder for each session: its plan, its journal, its transcript."),
];

/// `amplifier man`.
pub fn run(args: &ManArgs) -> Exit {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let done = match &args.dir {
        None => match find(&command, &args.command) {
            Some(found) => print(found),
            None => {
                Remark::quoting(
                    Weight::Error,
                    format!("there is no command `amplifier {}`", args.command.join(" ")),
                )
                .hint("`amplifier --help` lists the commands")
                .tell();
                return Exit::Usage;
            }
        },
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

/// A command by its words.
fn find<'c>(command: &'c Command, words: &[String]) -> Option<&'c Command> {
    words.iter().try_fold(command, |command, word| {
        command.get_subcommands().find(|below| below.get_name() == word && !below.is_hide_set())
    })
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
    // Without a date: the same program gives the same page. The foot of every page names the program.
    let page = Man::new(command.clone())
        .title(name(command))
        .source(concat!("amplifier ", env!("CARGO_PKG_VERSION")));
    page.render(&mut text)?;
    if !command.get_bin_name().unwrap_or_default().contains(' ') {
        for (heading, rows) in
            [("EXIT STATUS", EXIT_STATUS.as_slice()), ("ENVIRONMENT", &ENVIRONMENT), ("FILES", &FILES)]
        {
            writeln!(text, ".SH \"{heading}\"")?;
            for (name, about) in rows {
                writeln!(text, ".TP\n{name}\n{about}")?;
            }
        }
    }
    Ok(text)
}

/// The whole name with dashes, as `man` knows it: `amplifier-bundle-add`.
fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-")
}
