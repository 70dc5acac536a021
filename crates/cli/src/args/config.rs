//! What can be typed after `amplifier config` and `amplifier init`.

use amplifier_app::settings::Scope;
use clap::{Subcommand, ValueEnum};

use super::{Form, ListArgs};

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// All settings that are in force.
    Show(ConfigShowArgs),
    /// One setting: exit 0 when it is set, 1 when it is not, 2 when there is none of that name.
    Get(ConfigGetArgs),
    /// Set something; comments and order of the file stay as they are.
    Set(ConfigSetArgs),
    /// Take something out of a file.
    Unset(ConfigUnsetArgs),
    /// Open a file in your editor; what makes no sense is not kept.
    Edit(ConfigEditArgs),
    /// Where the files are.
    Path(ConfigPathArgs),
    /// Everything that can be set.
    Keys(ListArgs),
    /// The JSON Schema of a settings file, for editors.
    Schema,
}

/// Which file.
#[derive(clap::Args, Clone, Copy, Default)]
#[group(multiple = false)]
pub struct ScopeArgs {
    /// Your own settings, for everything you do.
    #[arg(long)]
    pub global: bool,

    /// The settings of this project, for everybody who works in it.
    #[arg(long)]
    pub project: bool,

    /// Your own settings for this project.
    #[arg(long)]
    pub local: bool,
}

impl ScopeArgs {
    /// The file that was named.
    pub fn named(self) -> Option<Scope> {
        match self {
            Self { local: true, .. } => Some(Scope::Local),
            Self { project: true, .. } => Some(Scope::Project),
            Self { global: true, .. } => Some(Scope::User),
            _ => None,
        }
    }

    /// The file that was named, else the person's own.
    pub fn scope(self) -> Scope {
        self.named().unwrap_or(Scope::User)
    }
}

#[derive(clap::Args)]
pub struct ConfigShowArgs {
    /// Where each value was set, and what it overrode.
    #[arg(long)]
    pub origin: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct ConfigGetArgs {
    /// The setting, such as `bundle.active`.
    pub path: String,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct ConfigSetArgs {
    /// The setting, such as `bundle.active`; `amplifier config keys` lists them.
    pub path: String,

    /// The value; lists and mappings as YAML or JSON, such as `[a, b]`.
    pub value: String,

    /// The file to write; your own when left out.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

#[derive(clap::Args)]
pub struct ConfigUnsetArgs {
    /// The setting, such as `bundle.active`.
    pub path: String,

    /// The file to write; your own when left out.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

#[derive(clap::Args)]
pub struct ConfigEditArgs {
    /// The file to edit; your own when left out.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

#[derive(clap::Args)]
pub struct ConfigPathArgs {
    /// Only this file.
    #[command(flatten)]
    pub scope: ScopeArgs,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

/// Where a key that is typed in is kept.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Store {
    /// The keyring of the system.
    Keyring,
    /// A file in the home folder, in plain text, that only you can read.
    File,
}

/// Exit codes: 0 connected, 1 the provider does not answer, 2 something is missing.
#[derive(clap::Args)]
pub struct InitArgs {
    /// Ask nothing: take the provider that is found here.
    #[arg(long)]
    pub yes: bool,

    /// Do not try the provider; its models are not listed either, you type the name.
    #[arg(long)]
    pub no_test: bool,

    /// The file to write; your own when left out.
    #[command(flatten)]
    pub scope: ScopeArgs,
}
