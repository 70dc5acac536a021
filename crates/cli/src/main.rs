//! `amplifier`: parses, calls `app`, renders. It decides nothing else.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

mod args;
mod ask;
mod attend;
mod chat;
mod commands;
mod exit;
mod failed;
mod harmless;
mod input;
mod outlet;
mod page;
mod progress;
mod question;
mod render;
mod stop;
mod typed;
mod voice;
mod width;

use amplifier_app::env::{self, Environment};
use amplifier_app::spelling::{quoted, told};
use amplifier_app::watchdog;
use amplifier_protocol::text::shorten;
use args::{Args, BackupCommand, Command, Misplaced, ModuleCommand, PlanCommand};
use exit::Exit;
use render::{Manner, Palette, Remark, Tone};
use typed::Flags;

fn main() -> ExitCode {
    if watchdog::serves() {
        return ExitCode::SUCCESS;
    }
    if is_version_asked() {
        render::out(concat!("amplifier ", env!("CARGO_PKG_VERSION")));
        return render::ending(Exit::Success).into();
    }
    env::seal();
    let matches = Args::command().try_get_matches();
    let wanted = matches.as_ref().map_or_else(|_| failed::seemingly_wanted(), failed::wanted);
    let parsed =
        matches.and_then(|matches| Ok((Args::from_arg_matches(&matches)?, Args::misplaced(&matches))));
    let exit = match parsed {
        Ok((_, Some(misplaced))) => refuse_misplaced(&misplaced),
        Ok((args, None)) => begin(args),
        Err(error) => refuse_words(&error),
    };
    if let Some(wanted) = wanted {
        failed::tell(exit, wanted);
    }
    render::ending(exit).into()
}

/// Goes where the work is, and does it.
fn begin(args: Args) -> Exit {
    render::set_manner(manner(&args));
    if let Some(folder) = &args.cwd
        && let Err(error) = std::env::set_current_dir(folder)
    {
        let hint = match folder.exists() {
            true => "`--cwd` takes a folder that you may enter".to_owned(),
            false => format!(
                "`mkdir -p {}` makes it; or name one that is there, or leave `--cwd` out",
                quoted(folder)
            ),
        };
        Remark::error(format!("`{}` is no folder to work in: {error}", told(folder))).hint(hint).tell();
        return Exit::Usage;
    }
    run(args)
}

/// What the parser did not take. Help is an answer; everything else is a usage error. Clap prints both to the right place.
fn refuse_words(error: &clap::Error) -> Exit {
    // A word that is no command is shown by the parser as far as it can be read, which nobody can type.
    let is_no_text = || std::env::args_os().skip(1).any(|word| word.to_str().is_none());
    if error.kind() == ErrorKind::InvalidUtf8
        || (error.kind() == ErrorKind::InvalidSubcommand && is_no_text())
    {
        return refuse_no_text();
    }
    if let Some(prompt) = dashed_prompt(error) {
        return refuse_dashed(&prompt);
    }
    let printed = error.print();
    if !error.use_stderr() {
        drop(render::heard(printed));
        return Exit::Success;
    }
    let hint = hint_about(error);
    hint.iter().for_each(|hint| render::note(&format!("  hint: {hint}")));
    let told = error.to_string();
    let what: Vec<_> = told.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let what = what.join(" ");
    let hint = hint.as_deref().unwrap_or("`--help` says what the command takes");
    render::remember(what.strip_prefix("error: ").unwrap_or(&what), hint);
    Exit::Usage
}

/// What helps with a command line that cannot be read, where the parser has nothing to say.
fn hint_about(error: &clap::Error) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        // Somebody typed a prompt of several words without quotes.
        ErrorKind::UnknownArgument if takes_prompt() && !word(ContextKind::InvalidArg)?.starts_with('-') => {
            Some("several words are one prompt when they stand in quotes".to_owned())
        }
        // Somebody typed a prompt and no command.
        ErrorKind::InvalidSubcommand if error.get(ContextKind::SuggestedSubcommand).is_none() => {
            let prompt = word(ContextKind::InvalidSubcommand)?;
            let commands = Args::command();
            let is_command = |word: OsString| commands.find_subcommand(word).is_some();
            let asks = format!("`amplifier run {}` asks that", quoted(prompt));
            (!std::env::args_os().skip(1).any(is_command)).then_some(asks)
        }
        _ => None,
    }
}

/// Whether the command is one that takes a prompt.
fn takes_prompt() -> bool {
    std::env::args_os().skip(1).any(|word| word == "run" || word == "continue")
}

/// A prompt that begins with a dash, which the parser took for flags: no flag has a blank in its name.
fn dashed_prompt(error: &clap::Error) -> Option<String> {
    let is_prompt = |word: &String| word.starts_with('-') && word.contains(' ') && !word.contains('=');
    let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    (error.kind() == ErrorKind::UnknownArgument && takes_prompt()).then(|| words.find(is_prompt)).flatten()
}

fn refuse_dashed(prompt: &str) -> Exit {
    let begins = shorten(prompt.lines().next().unwrap_or_default(), 40);
    Remark::error(format!("`{begins}` begins with a dash, so it is read as flags"))
        .hint("a prompt that does so stands last, behind two dashes: `amplifier run -- PROMPT`")
        .tell();
    Exit::Usage
}

/// Tells which argument is no text: the parser knows that there is one, not which.
fn refuse_no_text() -> Exit {
    let no_text = std::env::args_os().filter(|word| word.to_str().is_none());
    let named: Vec<_> = no_text.map(|word| format!("`{}`", told(&word))).collect();
    Remark::error(format!("what was typed is not text: {} is not UTF-8", named.join(" or ")))
        .hint("a file or folder of that name can be renamed, a prompt be piped in after `iconv -t UTF-8`")
        .tell();
    Exit::Usage
}

/// Tells where a flag belongs that stands before a command.
fn refuse_misplaced(Misplaced { flag, command, place }: &Misplaced) -> Exit {
    Remark::error(format!("`--{flag}` stands before `{command}`, which does not see it there"))
        .hint(match place {
            Some(place) => format!("write `amplifier {place} --{flag} …`"),
            None => "leave it out: it is a flag of `amplifier` alone, which opens the chat, and of `run`"
                .to_owned(),
        })
        .tell();
    Exit::Usage
}

/// Whether the version is all that is asked for: scripts ask often, and the commands need not be known to answer.
fn is_version_asked() -> bool {
    let mut args = std::env::args_os().skip(1);
    let first = args.next();
    args.next().is_none() && first.is_some_and(|first| first == "--version" || first == "-V")
}

/// How to print, before anything is printed.
fn manner(args: &Args) -> Manner {
    let set = |name: &str| Environment::Process.get(name).filter(|value| !value.is_empty());
    let is_plain = args.no_color || set(env::NO_COLOR).is_some() || set(env::TERM).as_deref() == Some("dumb");
    let palette = match is_plain {
        true => Palette::Plain,
        false => commands::load::palette(args.home.clone(), args.cwd.as_deref()),
    };
    let ask = match &args.command {
        Some(Command::Run(run)) => Some(&run.ask),
        Some(Command::Continue(wish)) => Some(&wish.ask),
        _ => None,
    };
    let tone = match ask {
        Some(ask) if ask.quiet => Tone::Quiet,
        Some(ask) if ask.verbose => Tone::Verbose,
        _ => Tone::Usual,
    };
    Manner { tone, palette, flags: Flags::of(args.home.as_deref(), args.cwd.as_deref()) }
}

fn run(args: Args) -> Exit {
    let Some(command) = args.command else { return commands::chat::chat(&args.chat, args.home) };
    match command {
        Command::Chat(chat) => commands::chat::chat(&chat, args.home),
        Command::Backup(BackupCommand::List(list)) => commands::backup::list(&list, args.home),
        Command::Backup(BackupCommand::Restore(restore)) => commands::backup::restore(&restore, args.home),
        Command::Module(ModuleCommand::List(list)) => commands::module::list(&list),
        Command::Module(ModuleCommand::Info(info)) => commands::module::info(&info),
        Command::Plan(PlanCommand::Validate(validate)) => commands::plan::validate(&validate),
        Command::Plan(PlanCommand::Show(show)) => commands::plan::show(&show, args.home),
        Command::Plan(PlanCommand::Explain(explain)) => commands::plan::explain(&explain, args.home),
        Command::Plan(PlanCommand::Hash(hash)) => commands::plan::hash(&hash, args.home),
        Command::Plan(PlanCommand::Diff(diff)) => commands::plan::diff(&diff, args.home),
        Command::Bundle(command) => commands::bundle::run(&command, args.home),
        Command::Collection(command) => commands::collection::run(&command, args.home),
        Command::Profile(command) => commands::profile::run(&command, args.home),
        Command::Cache(command) => commands::cache::run(&command, args.home),
        Command::Config(command) => commands::config::run(&command, args.home),
        Command::Init(init) => commands::init::run(&init, args.home),
        Command::Provider(command) => commands::provider::run(&command, args.home),
        Command::Tool(command) => commands::tool::run(&command, args.home),
        Command::Agents(command) => commands::agents::run(&command, args.home),
        Command::Trust(trust) => commands::trust::run(&trust, args.home),
        Command::Doctor(doctor) => commands::doctor::run(&doctor, args.home),
        Command::Update(update) => commands::update::run(&update, args.home),
        Command::Completions(completions) => commands::completions::run(&completions),
        Command::Man(man) => commands::man::run(&man),
        Command::Version(version) => commands::version::run(&version, args.home),
        Command::Continue(wish) => commands::session::go_on(&wish, args.home),
        Command::Resume(resume) => commands::session::resume(&resume, args.home),
        Command::Session(command) => commands::session::run(&command, args.home),
        Command::Run(run) => commands::run::run(&run, args.home),
    }
}
