//! What can be typed.

use std::path::PathBuf;

use amplifier_protocol::ids::SessionId;
use clap::{Parser, Subcommand, ValueEnum};

mod bundle;
mod plan;
mod profile;
mod provider;

pub use bundle::{
    AddArgs, BundleArgs, BundleCommand, CacheArgs, CacheCommand, CacheListArgs, ListArgs, LockArgs, NameArgs,
    TreeArgs, UpdateArgs, ValidateBundleArgs,
};
pub use plan::{
    DiffArgs, ExplainArgs, HashArgs, PlanChoice, PlanCommand, PlanFormat, ShowArgs, ValidateArgs,
};
pub use profile::{
    CollectionCommand, CompileArgs, MountArgs, ProfileArgs, ProfileCommand, ProfileListArgs, SyncArgs,
};
pub use provider::{ProviderAskArgs, ProviderCommand, ProviderListArgs};

/// Runs AI agents that are assembled from text.
#[derive(Parser)]
#[command(name = "amplifier", version, propagate_version = true, max_term_width = 100)]
pub struct Args {
    /// The home folder, instead of $AMPLIFIER_HOME or ~/.amplifierd.
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Answer one prompt.
    Run(RunArgs),
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
    /// See which model providers can be used here, and try them.
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// See which files were kept before tools changed them, and put one back.
    #[command(subcommand)]
    Backup(BackupCommand),
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
    /// What `hooks-backup` kept in this folder, by session.
    List(BackupListArgs),
    /// Put a file back as it was. What stands there now is kept first.
    Restore(BackupRestoreArgs),
}

#[derive(clap::Args)]
pub struct BackupPlace {
    /// The folder the copies are in: the `backup_dir` of the plan, relative to this folder.
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

    /// Files are put back only inside this folder; this one when left out.
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

/// Exit codes: 0 answered, 1 failed, 2 usage or configuration, 3 denied or limit reached, 130 interrupted.
#[derive(clap::Args)]
pub struct RunArgs {
    /// What to ask; read from standard input when it is left out.
    pub prompt: Option<String>,

    /// What to run; without either the bundle in use, else the built-in `foundation`.
    #[command(flatten)]
    pub choice: PlanChoice,

    /// The provider to ask, such as `anthropic`, before those of the plan or bundle; where none is named, one that is
    /// found here.
    #[arg(long, short, value_name = "PROVIDER", conflicts_with = "resume")]
    pub provider: Option<String>,

    /// The model to ask, instead of the provider's usual one.
    #[arg(long, short, value_name = "MODEL", conflicts_with = "resume")]
    pub model: Option<String>,

    /// Fetch nothing: use what is here.
    #[arg(long)]
    pub offline: bool,

    /// Go on with this session instead of opening a new one.
    #[arg(long, value_name = "SESSION")]
    pub resume: Option<String>,

    /// Finish the turn of the resumed session that was interrupted, instead of asking something new.
    #[arg(long = "continue", requires = "resume", conflicts_with = "prompt")]
    pub go_on: bool,

    /// Fail when any module of the plan does not load.
    #[arg(long)]
    pub strict: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Output::Text, value_name = "FORM")]
    pub output: Output,
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
