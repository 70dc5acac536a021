//! What can be typed after `amplifier trust`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{Form, PlanChoice};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TrustArgs {
    #[command(flatten)]
    pub subject: TrustSubject,

    #[command(subcommand)]
    pub command: Option<TrustCommand>,
}

/// What to trust, or not any more.
#[derive(clap::Args)]
pub struct TrustSubject {
    /// The root of a project; the project of the working directory when left out.
    #[arg(value_name = "DIR", conflicts_with_all = ["bundle", "profile", "plan"])]
    pub directory: Option<PathBuf>,

    #[command(flatten)]
    pub choice: PlanChoice,
}

#[derive(Subcommand)]
pub enum TrustCommand {
    /// List what is trusted, and with what.
    List(TrustListArgs),
    /// Stop trusting a directory, bundle, profile or plan.
    Remove(TrustRemoveArgs),
}

#[derive(clap::Args)]
pub struct TrustListArgs {
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct TrustRemoveArgs {
    #[command(flatten)]
    pub subject: TrustSubject,
}
