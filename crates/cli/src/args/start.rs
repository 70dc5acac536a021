//! What a session is started with, by `run` and by the chat, and what can be typed after `amplifier run`.

use super::{Output, PlanChoice};

/// What a session is started with.
#[derive(clap::Args, Clone)]
pub struct StartArgs {
    /// What to run; without either the bundle in use, else the built-in `foundation`.
    #[command(flatten)]
    pub choice: PlanChoice,

    /// The provider to ask, such as `anthropic`, before those of the plan or bundle; where none is named, one that is
    /// found here.
    #[arg(long, short, value_name = "PROVIDER")]
    pub provider: Option<String>,

    /// The model to ask, instead of the provider's usual one.
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,

    /// Fetch nothing: use what is here.
    #[arg(long)]
    pub offline: bool,

    /// Fail when any module of the plan does not load.
    #[arg(long)]
    pub strict: bool,
}

/// Exit codes: 0 answered, 1 failed, 2 usage or configuration, 3 denied or limit reached, 130 interrupted.
#[derive(clap::Args)]
pub struct RunArgs {
    /// What to ask; read from standard input when it is left out.
    pub prompt: Option<String>,

    #[command(flatten)]
    pub start: StartArgs,

    /// Go on with this session instead of opening a new one.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["provider", "model"])]
    pub resume: Option<String>,

    /// Finish the turn of the resumed session that was interrupted, instead of asking something new.
    #[arg(long = "continue", requires = "resume", conflicts_with = "prompt")]
    pub go_on: bool,

    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t = Output::Text, value_name = "FORM")]
    pub output: Output,
}
