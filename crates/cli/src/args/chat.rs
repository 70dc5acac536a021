//! What the chat is opened with, by `amplifier` alone and by `amplifier chat`.

use super::StartArgs;

/// Exit codes: 0 left, 1 failed, 2 usage or configuration, 130 interrupted; in a pipe that of the last prompt.
#[derive(clap::Args, Clone)]
pub struct ChatArgs {
    #[command(flatten)]
    pub start: StartArgs,

    /// Go on with this session instead of opening a new one; the beginning of its id will do.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["provider", "model"])]
    pub resume: Option<String>,
}
