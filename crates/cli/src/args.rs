//! What can be typed.

use std::path::PathBuf;

use amplifier_protocol::ids::SessionId;
use clap::parser::ValueSource;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

mod bundle;
mod chat;
mod config;
mod look;
mod plan;
mod profile;
mod provider;
mod session;
mod start;
mod trust;

pub use bundle::{
    AddArgs, BundleArgs, BundleCommand, CacheArgs, CacheCommand, CacheListArgs, ClearArgs, ListArgs,
    LockArgs, NameArgs, TreeArgs, UpdateArgs, UseArgs, ValidateBundleArgs,
};
pub use chat::ChatArgs;
pub use config::{
    ConfigCommand, ConfigEditArgs, ConfigGetArgs, ConfigPathArgs, ConfigSetArgs, ConfigShowArgs,
    ConfigUnsetArgs, InitArgs, Store,
};
pub use look::{
    AgentsCommand, AgentsListArgs, AgentsShowArgs, CompletionsArgs, DoctorArgs, ManArgs, ToolCommand,
    ToolInfoArgs, ToolInvokeArgs, ToolListArgs, UpdateCheckArgs, VersionArgs,
};
pub use plan::{
    DiffArgs, ExplainArgs, HashArgs, PlanChoice, PlanCommand, PlanFormat, ShowArgs, ValidateArgs,
};
pub use profile::{
    CollectionCommand, CompileArgs, MountArgs, ProfileArgs, ProfileCommand, ProfileListArgs, SyncArgs,
};
pub use provider::{
    ProviderAddArgs, ProviderAskArgs, ProviderCommand, ProviderListArgs, ProviderRemoveArgs, ProviderSetArgs,
};
pub use session::{
    ContinueArgs, ExportFormat, ResumeArgs, SessionCleanupArgs, SessionCommand, SessionDeleteArgs,
    SessionExportArgs, SessionForkArgs, SessionListArgs, SessionRenameArgs, SessionReplayArgs,
    SessionRewindArgs, SessionSearchArgs, SessionShowArgs, Where,
};
pub use start::{Approve, AskArgs, RunArgs, StartArgs};
pub use trust::{TrustArgs, TrustCommand, TrustListArgs, TrustSubject};

/// Runs AI agents that are assembled from text.
#[derive(Parser)]
#[command(name = "amplifier", version, propagate_version = true, max_term_width = 100)]
pub struct Args {
    /// The home folder, instead of $AMPLIFIER_HOME or ~/.amplifierd.
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,

    /// Work in this folder, as if started there.
    #[arg(long, global = true, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// No colours, whatever the terminal can; NO_COLOR in the environment says the same.
    #[arg(long, global = true)]
    pub no_color: bool,

    /// What the chat is opened with when no command is given.
    #[command(flatten)]
    pub chat: ChatArgs,

    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Args {
    /// Flags of the chat that stand before a command, which would not see them.
    pub fn misplaced(matches: &clap::ArgMatches) -> Option<Misplaced> {
        let command = matches.subcommand_name()?.to_owned();
        let typed = |id: &clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        let of_the_chat = |arg: &&clap::Arg| !arg.is_global_set() && typed(arg.get_id());
        let parser = Self::command();
        let flag = parser.get_arguments().find(of_the_chat)?.get_long()?.to_owned();
        let place = place_of(&flag, &parser, matches);
        Some(Misplaced { flag, command, place })
    }
}

/// The command that was typed, with those above it, if it takes a flag.
fn place_of(flag: &str, parser: &clap::Command, matches: &clap::ArgMatches) -> Option<String> {
    let (mut parser, mut matches, mut words) = (parser, matches, Vec::new());
    while let Some((name, below)) = matches.subcommand() {
        parser = parser.find_subcommand(name)?;
        matches = below;
        words.push(name);
    }
    let takes = |arg: &clap::Arg| arg.get_long() == Some(flag);
    parser.get_arguments().any(takes).then(|| words.join(" "))
}

/// A flag that stands where nobody looks for it.
pub struct Misplaced {
    pub flag: String,
    pub command: String,
    /// Where it may stand.
    pub place: Option<String>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Talk: the same as no command at all.
    #[command(after_help = chat::EXIT_CODES)]
    Chat(ChatArgs),
    /// Answer one prompt.
    Run(RunArgs),
    /// Go on with the last used session of this project.
    Continue(Box<ContinueArgs>),
    /// Go on with a session.
    Resume(Box<ResumeArgs>),
    /// List, show, fork, rewind, export, search and delete sessions.
    #[command(subcommand)]
    Session(Box<SessionCommand>),
    /// Connect a model provider: finds keys and servers, asks what it needs, and writes your settings.
    Init(InitArgs),
    /// See and change settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look at mount plans.
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Register, look at, check and lock bundles.
    #[command(subcommand)]
    Bundle(BundleCommand),
    /// Bring collections of profiles here and keep them up to date.
    #[command(subcommand)]
    Collection(CollectionCommand),
    /// Look at, check and compile profiles.
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// See and clear what was fetched.
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Look at the built-in modules.
    #[command(subcommand)]
    Module(ModuleCommand),
    /// See which model providers can be used here, try them, and put them into the settings.
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// See which files were kept before tools changed them, and put one back.
    #[command(subcommand)]
    Backup(BackupCommand),
    /// See which tools a session would have, and call one by hand.
    #[command(subcommand)]
    Tool(ToolCommand),
    /// See which agents tasks can be handed to.
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Trust a project, bundle, profile or plan with the programs, addresses and keys that it asks for.
    Trust(Box<TrustArgs>),
    /// Look for what is wrong here, and what to do about it.
    Doctor(DoctorArgs),
    /// See which bundles and collections have newer commits.
    Update(UpdateCheckArgs),
    /// Print what a shell needs to complete our commands.
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them into a folder.
    Man(ManArgs),
    /// What this program is, and which files it writes.
    Version(VersionArgs),
}

#[derive(Subcommand)]
pub enum ModuleCommand {
    /// All modules, with one line about each.
    List(ModuleListArgs),
    /// Everything about one module: its config, its tools, its events.
    Info(ModuleInfoArgs),
}

#[derive(clap::Args)]
pub struct ModuleListArgs {
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct ModuleInfoArgs {
    /// The module, such as `tool-bash`.
    pub id: String,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(Subcommand)]
pub enum BackupCommand {
    /// What `hooks-backup` kept in this folder, or in the nearest above it in the project, by session.
    List(BackupListArgs),
    /// Put a file back as it was. What stands there now is kept first.
    Restore(BackupRestoreArgs),
}

#[derive(clap::Args)]
pub struct BackupPlace {
    /// The folder the copies are in: the `backup_dir` of the plan, relative to the folder the session was started in.
    #[arg(long, value_name = "DIR", default_value = amplifier_app::backups::USUAL_DIR)]
    pub dir: PathBuf,

    /// Only this session's.
    #[arg(long, value_name = "SESSION")]
    pub session: Option<SessionId>,
}

#[derive(clap::Args)]
pub struct BackupListArgs {
    #[command(flatten)]
    pub place: BackupPlace,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

/// Exit codes: 0 put back, 1 failed, 2 there is no such backup or it was not confirmed, 3 the person said no.
#[derive(clap::Args)]
pub struct BackupRestoreArgs {
    /// Which copy, by its number in the list.
    pub number: u64,

    #[command(flatten)]
    pub place: BackupPlace,

    /// Files are put back only inside this folder; when left out, the one that the copies are kept in.
    #[arg(long, value_name = "DIR")]
    pub within: Option<PathBuf>,

    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The answer.
    Text,
    /// One JSON object: answer, status, usage, session, load report.
    Json,
    /// One JSON object a line: every record as it happens, then the result.
    Jsonl,
}
