//! What can be typed after `amplifier bundle` and `amplifier cache`.

use clap::Subcommand;

use super::Form;
use super::config::ScopeArgs;

#[derive(Subcommand)]
pub enum BundleCommand {
    /// Register a bundle under a name.
    Add(AddArgs),
    /// All names, the built-in bundles included.
    List(ListArgs),
    /// Forget a name; the bundle itself stays where it is.
    Remove(NameArgs),
    /// What a bundle is and what it brings.
    Show(BundleArgs),
    /// Use a bundle when none is named.
    Use(UseArgs),
    /// Use no bundle of your own when none is named.
    Clear(ClearArgs),
    /// Which bundle is in use.
    Current(ListArgs),
    /// Fetch what is new, show what changed, and write the lock when there is one.
    Update(UpdateArgs),
    /// The includes of a bundle as a tree.
    Tree(TreeArgs),
    /// Check a bundle: exit 0 when it is fine, 1 when it is not, 2 when it cannot be had.
    Validate(ValidateBundleArgs),
    /// Write `bundle.lock`: every source with its commit and the hash of its content.
    Lock(LockArgs),
}

#[derive(clap::Args)]
pub struct AddArgs {
    /// A folder, a file or an address.
    pub source: String,

    /// The name, instead of what the bundle calls itself.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(clap::Args)]
pub struct ListArgs {
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct NameArgs {
    /// The name.
    pub name: String,
}

#[derive(clap::Args)]
pub struct UseArgs {
    /// The name, or a folder, a file or an address.
    pub name: String,

    /// The settings to write; your own when left out.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

#[derive(clap::Args)]
pub struct ClearArgs {
    /// The settings to write; your own when left out.
    #[command(flatten)]
    pub scope: ScopeArgs,
}

#[derive(clap::Args)]
pub struct BundleArgs {
    /// A folder, a file, an address or a registered name; the one in use when left out.
    #[arg(value_name = "REF")]
    pub reference: Option<String>,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct LockArgs {
    /// A folder or a file of this machine, or a name registered for one.
    #[arg(value_name = "REF")]
    pub reference: String,
}

#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 done or nothing new, 1 failed, 100 with `--check` something is new.")]
pub struct UpdateArgs {
    /// A folder, a file, an address or a registered name; every registered bundle and the one in use when left out.
    #[arg(value_name = "REF")]
    pub reference: Option<String>,

    /// Only look; fetch and write nothing.
    #[arg(long)]
    pub check: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct TreeArgs {
    #[command(flatten)]
    pub bundle: BundleArgs,

    /// A picture for Graphviz.
    #[arg(long, conflicts_with = "output")]
    pub dot: bool,
}

#[derive(clap::Args)]
pub struct ValidateBundleArgs {
    /// A folder, a file, an address or a registered name.
    #[arg(value_name = "REF")]
    pub reference: String,

    /// Warnings count as errors.
    #[arg(long)]
    pub strict: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(Subcommand)]
pub enum CacheCommand {
    /// What is kept, and where it came from.
    List(CacheListArgs),
    /// Remove what is kept; it is fetched again when it is wanted.
    Clear(CacheArgs),
    /// Compare what is kept with what was recorded when it was fetched: exit 0 when all is well, 1 when not.
    Verify(CacheArgs),
}

#[derive(clap::Args)]
pub struct CacheListArgs {
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct CacheArgs {
    /// Only entries whose key begins so; all when left out.
    #[arg(value_name = "KEY")]
    pub key: Option<String>,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}
