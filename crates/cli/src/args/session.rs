//! What can be typed after `amplifier session`, `amplifier continue` and `amplifier resume`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::{AskArgs, Form, StartArgs};

#[derive(Subcommand)]
pub enum SessionCommand {
    /// The sessions of this project, the last used first.
    List(SessionListArgs),
    /// Everything about one session: where, when, with what, and its turns.
    Show(SessionShowArgs),
    /// Go on with a session.
    Resume(ResumeArgs),
    /// Begin another session with the same turns. The first one stays as it is.
    Fork(SessionForkArgs),
    /// Take the conversation back to the end of a turn. Nothing is deleted; going to a later turn undoes it.
    Rewind(SessionRewindArgs),
    /// Give a session a name.
    Rename(SessionRenameArgs),
    /// Write a session down as a document, without secrets.
    Export(SessionExportArgs),
    /// Look for a text in what was said, whatever its case.
    Search(SessionSearchArgs),
    /// Print a session as it happened.
    Replay(SessionReplayArgs),
    /// Delete a session and its sub-sessions.
    Delete(SessionDeleteArgs),
    /// Delete sessions of this project that were not used for a while.
    Cleanup(SessionCleanupArgs),
}

/// Which sessions are meant: without a flag those of the project, which is what settings take for it.
#[derive(clap::Args)]
#[group(multiple = false)]
pub struct Where {
    /// The sessions of every folder, instead of those of this project.
    #[arg(long)]
    pub all: bool,

    /// Those that were started in this folder or below it, instead of this project.
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct SessionListArgs {
    #[command(flatten)]
    pub place: Where,

    /// This session with its sub-sessions and forks.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["all", "project"])]
    pub tree: Option<String>,

    /// How many at most.
    #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = most, allow_negative_numbers = true)]
    pub limit: usize,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct SessionShowArgs {
    /// The session; the beginning of its id is enough.
    pub session: String,

    /// Print what was said, too.
    #[arg(long, short = 't')]
    pub transcript: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

/// Without a session one is picked from a list; where nobody can pick, the last used one of this project. What flags
/// change, such as the provider or the model, stays so from here on.
#[derive(clap::Args)]
pub struct ResumeArgs {
    /// The session; the beginning of its id is enough.
    pub session: Option<String>,

    /// Take what the session was started from as it is now, instead of the plan it ran with.
    #[arg(long, conflicts_with_all = ["bundle", "profile", "plan"])]
    pub force_bundle: bool,

    /// How many sessions there are to pick from.
    #[arg(long, short = 'n', default_value_t = 10, value_name = "N", value_parser = most, allow_negative_numbers = true)]
    pub limit: usize,

    #[command(flatten)]
    pub start: StartArgs,
}

/// With a prompt it answers like `amplifier run --resume`, without one it opens the chat. What flags change, such as the
/// provider or the model, stays so from here on.
#[derive(clap::Args)]
#[command(after_help = super::start::EXIT_CODES)]
pub struct ContinueArgs {
    /// Take what the session was started from as it is now, instead of the plan it ran with.
    #[arg(long, conflicts_with_all = ["bundle", "profile", "plan"])]
    pub force_bundle: bool,

    /// Do not show the last messages.
    #[arg(long)]
    pub no_history: bool,

    #[command(flatten)]
    pub ask: AskArgs,
}

#[derive(clap::Args)]
pub struct SessionForkArgs {
    /// The session; the beginning of its id is enough.
    pub session: String,

    /// The last turn they share; all of them when left out.
    #[arg(long, value_name = "TURN", value_parser = turn, allow_negative_numbers = true)]
    pub at: Option<u64>,

    /// Make it of all that can be read of a damaged session; what cannot is left out and told.
    #[arg(long, conflicts_with = "at")]
    pub salvage: bool,

    /// What to call the fork.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

/// Files stay as they are, unless `--files` is given and `hooks-backup` kept copies of them.
#[derive(clap::Args)]
pub struct SessionRewindArgs {
    /// The session; the beginning of its id is enough.
    pub session: String,

    /// The turn to go to; 0 is the time before the first.
    #[arg(long, value_name = "TURN", value_parser = turn, allow_negative_numbers = true)]
    pub to: u64,

    /// Put files back as they were then, from the copies of `hooks-backup`. What stands there is kept first.
    #[arg(long)]
    pub files: bool,
}

#[derive(clap::Args)]
pub struct SessionRenameArgs {
    /// The session; the beginning of its id is enough.
    pub session: String,

    /// Its name, at most 80 characters.
    pub name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Markdown.
    Md,
    /// One JSON object.
    Json,
    /// One page that needs nothing else.
    Html,
}

#[derive(clap::Args)]
pub struct SessionExportArgs {
    /// The session; the beginning of its id is enough.
    pub session: String,

    /// How to write it; without it the ending of `--to` decides; without an ending it is Markdown.
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<ExportFormat>,

    /// The file to write, instead of standard output; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,

    /// Replace a file that is there already.
    #[arg(long)]
    pub force: bool,
}

#[derive(clap::Args)]
pub struct SessionSearchArgs {
    /// What to look for.
    pub text: String,

    #[command(flatten)]
    pub place: Where,

    /// How many places at most.
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N", value_parser = most, allow_negative_numbers = true)]
    pub limit: usize,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct SessionReplayArgs {
    /// The session; the beginning of its id is enough.
    pub session: String,

    /// Wait between moments as it did, this many times as fast; without it nothing waits.
    #[arg(long, value_name = "N", value_parser = speed, allow_negative_numbers = true)]
    pub speed: Option<f64>,

    /// Begin with this turn.
    #[arg(long, default_value_t = 1, value_name = "TURN", value_parser = turn, allow_negative_numbers = true)]
    pub from: u64,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM", conflicts_with = "speed")]
    pub output: Form,
}

#[derive(clap::Args)]
pub struct SessionDeleteArgs {
    /// The session; the beginning of its id is enough.
    pub session: String,

    /// Do not ask.
    #[arg(long, short = 'y')]
    pub yes: bool,
}

#[derive(clap::Args)]
pub struct SessionCleanupArgs {
    #[command(flatten)]
    pub place: Where,

    /// Delete what was not used for this many days.
    #[arg(long, short, default_value_t = 30, value_name = "N", value_parser = days, allow_negative_numbers = true)]
    pub days: u32,

    /// Only say what would be deleted.
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask.
    #[arg(long, short = 'y')]
    pub yes: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    pub output: Form,
}

/// How many at most.
fn most(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "not a whole number, such as 20".to_owned())
}

fn days(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "not a number of days, such as 30".to_owned())
}

/// The number of a turn.
fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| "not a number above 0, such as 2 or 0.5".to_owned())
}

fn turn(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "turns are counted 1, 2, 3, …; `amplifier session show SESSION` lists them".to_owned())
}
