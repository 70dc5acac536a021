//! What can be typed to look at this installation: its health, its tools and agents, its version, what is new, and pages
//! about itself.

use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::Shell;

use super::{Approve, Form, PlanChoice};

/// Exit codes: 0 no problem, 1 a problem.
#[derive(clap::Args)]
pub struct DoctorArgs {
    /// Ask no server, not even on this machine.
    #[arg(long)]
    pub offline: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(Subcommand)]
pub enum ToolCommand {
    /// The tools that a session would have.
    List(ToolListArgs),
    /// Everything about one tool: what it does, what it takes, what it touches.
    Info(ToolInfoArgs),
    /// Call a tool by hand, with the hooks and limits of the plan.
    Invoke(ToolInvokeArgs),
}

#[derive(clap::Args)]
pub struct ToolListArgs {
    #[command(flatten)]
    pub choice: PlanChoice,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct ToolInfoArgs {
    /// The tool, such as `read_file`.
    pub name: String,

    #[command(flatten)]
    pub choice: PlanChoice,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

/// Exit codes: 0 done, 1 failed, 2 there is no such tool or the input does not fit, 3 denied or limit reached, 124 the tool
/// ran out of its time, 130 interrupted.
#[derive(clap::Args, Clone)]
pub struct ToolInvokeArgs {
    /// The tool, such as `read_file`.
    pub name: String,

    /// Its input, piece by piece: `path=a.md`. A value is JSON where it can be, else text.
    #[arg(value_name = "NAME=VALUE")]
    pub input: Vec<String>,

    /// Its input as a JSON object, or `-` to read that from standard input; pieces go on top.
    #[arg(long, value_name = "INPUT")]
    pub json: Option<String>,

    #[command(flatten)]
    pub choice: PlanChoice,

    /// What to answer when the tool needs permission; without it a person is asked, and where there is none: none.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub approve: Option<Approve>,

    /// Keep the session with its journal; otherwise it is removed afterwards.
    #[arg(long)]
    pub keep: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(Subcommand)]
pub enum AgentsCommand {
    /// The agents that tasks can be handed to.
    List(AgentsListArgs),
    /// Everything about one agent, with its instruction.
    Show(AgentsShowArgs),
}

#[derive(clap::Args)]
pub struct AgentsListArgs {
    #[command(flatten)]
    pub choice: PlanChoice,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct AgentsShowArgs {
    /// The agent, as `agents list` has it.
    pub name: String,

    #[command(flatten)]
    pub choice: PlanChoice,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// The shell, whose startup file reads what is printed.
    pub shell: Shell,
}

#[derive(clap::Args)]
pub struct ManArgs {
    /// The command whose page is printed, as in `amplifier man session export`; that of the program when left out.
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub command: Vec<String>,

    /// Write a page for each command into this folder, instead of one page to standard output.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct VersionArgs {
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,

    /// The same as `--output json`.
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 nothing is new, 1 something could not be asked, 100 something is new.")]
pub struct UpdateCheckArgs {
    /// Only look; fetch and write nothing. `bundle update` and `collection sync --refresh` bring what is new.
    #[arg(long)]
    pub check: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}
