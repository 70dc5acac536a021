//! What can be typed after `amplifier plan`, and how a plan is named anywhere.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::Form;

/// Where a plan comes from. At most one of them.
#[derive(clap::Args, Clone)]
#[group(multiple = false)]
pub struct PlanChoice {
    /// A bundle: a folder, a file, an address or a registered name.
    #[arg(long, short = 'B', value_name = "REF")]
    pub bundle: Option<String>,

    /// A profile of a collection.
    #[arg(long, value_name = "COLLECTION/PROFILE")]
    pub profile: Option<String>,

    /// A mount plan, a JSON file.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum PlanCommand {
    /// Check a mount plan: exit 0 when it is valid, 1 when it is not, 2 when it cannot be read.
    Validate(ValidateArgs),
    /// Print the mount plan as JSON.
    Show(ShowArgs),
    /// Say for each value which file and line set it, and what it overrode.
    Explain(ExplainArgs),
    /// Print the hash of the mount plan; the same plan has the same hash, however it is written.
    Hash(HashArgs),
    /// Compare two plans: exit 0 when they are the same, 1 when they are not, 2 when one cannot be had.
    Diff(DiffArgs),
}

#[derive(clap::Args)]
pub struct ValidateArgs {
    /// The plan, a JSON file.
    pub file: PathBuf,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,

    /// The same as `--output json`.
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
}

impl ValidateArgs {
    /// What to print, whichever way it was said.
    pub fn form(&self) -> Form {
        if self.json { Form::Json } else { self.output }
    }
}

/// How a plan is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// Modules of the session as objects.
    Nested,
    /// Modules of the session as strings, with sources and configs beside them.
    String,
}

#[derive(clap::Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub choice: PlanChoice,

    /// How to write it.
    #[arg(long, value_enum, default_value_t = PlanFormat::Nested, value_name = "FORM")]
    pub format: PlanFormat,

    /// What to print on standard output; a plan is JSON for people too.
    #[arg(long, value_enum, default_value_t = Form::Json, value_name = "FORM")]
    pub output: Form,

    /// Fail when anything is amiss.
    #[arg(long)]
    pub strict: bool,
}

#[derive(clap::Args)]
pub struct ExplainArgs {
    /// Only this value and what is below it, a JSON pointer such as `/tools/0/config`.
    #[arg(default_value = "")]
    pub pointer: String,

    #[command(flatten)]
    pub choice: PlanChoice,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct HashArgs {
    #[command(flatten)]
    pub choice: PlanChoice,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct DiffArgs {
    /// A plan file (`.json`), a bundle, or a profile as `profile:COLLECTION/PROFILE`.
    pub a: String,

    /// Another.
    pub b: String,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}
