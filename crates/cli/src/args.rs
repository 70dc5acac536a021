//! What can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

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
}

#[derive(Subcommand)]
pub enum PlanCommand {
    /// Check a mount plan: exit 0 when it is valid, 1 when it is not, 2 when it cannot be read.
    Validate(ValidateArgs),
}

#[derive(clap::Args)]
pub struct ValidateArgs {
    /// The plan, a JSON file.
    pub file: PathBuf,

    /// Print the checks as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Exit codes: 0 answered, 1 failed, 2 usage or configuration, 3 denied or limit reached, 130 interrupted.
#[derive(clap::Args)]
pub struct RunArgs {
    /// What to ask; read from standard input when it is left out.
    pub prompt: Option<String>,

    /// The mount plan to run, a JSON file.
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub plan: Option<PathBuf>,

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
