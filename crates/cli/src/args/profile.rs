//! What can be typed after `amplifier collection` and `amplifier profile`.

use clap::Subcommand;

use super::{Form, ListArgs, NameArgs};

#[derive(Subcommand)]
pub enum CollectionCommand {
    /// Register a collection, bring its profiles here and compile them.
    Add(MountArgs),
    /// All collections.
    List(ListArgs),
    /// Forget a collection and remove its profiles from here.
    Remove(NameArgs),
    /// Bring the profiles of collections here: exit 0 when all is well, 1 when something is not.
    Sync(SyncArgs),
}

#[derive(clap::Args)]
pub struct MountArgs {
    /// The name.
    pub name: String,

    /// Where it comes from: a folder or an address.
    pub source: String,

    /// Do not compile its profiles now.
    #[arg(long)]
    pub no_compile: bool,
}

#[derive(clap::Args)]
pub struct SyncArgs {
    /// Only this collection.
    pub name: Option<String>,

    /// Ask again what branches stand for, and fetch what is new.
    #[arg(long)]
    pub refresh: bool,

    /// Do not compile the profiles.
    #[arg(long)]
    pub no_compile: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(Subcommand)]
pub enum ProfileCommand {
    /// All profiles, with one line about each.
    List(ProfileListArgs),
    /// What a profile is, what it refers to, and whether it is compiled.
    Show(ProfileArgs),
    /// Resolve every reference of a profile into its folder.
    Compile(CompileArgs),
    /// Look for mistakes without fetching anything: exit 0 when it is fine and compiled, 1 when it is not.
    Check(ProfileArgs),
}

#[derive(clap::Args)]
pub struct ProfileListArgs {
    /// Only the profiles of this collection.
    pub collection: Option<String>,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct ProfileArgs {
    /// The profile.
    #[arg(value_name = "COLLECTION/PROFILE")]
    pub id: String,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct CompileArgs {
    /// The profile; every profile when left out.
    #[arg(value_name = "COLLECTION/PROFILE")]
    pub id: Option<String>,

    /// Ask again what branches stand for, and take what is new.
    #[arg(long, conflicts_with = "offline")]
    pub refresh: bool,

    /// Fetch nothing: use what is here.
    #[arg(long)]
    pub offline: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}
