//! What the chat is opened with, by `amplifier` alone and by `amplifier chat`.

use super::StartArgs;

/// How the chat ends.
pub const EXIT_CODES: &str = "Exit codes: 0 left, 1 failed, 2 usage or configuration, 130 interrupted; 129, 141 and 143 when \
                              the terminal, the reader or another program ended it. Where lines are piped in, that of the \
                              last one that went wrong, as `run` would end: 3 denied or limit reached, 124 out of time.";

#[derive(clap::Args, Clone)]
pub struct ChatArgs {
    #[command(flatten)]
    pub start: StartArgs,

    /// Go on with this session instead of opening a new one; the beginning of its id will do.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["provider", "model"])]
    pub resume: Option<String>,
}
