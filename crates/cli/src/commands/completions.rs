//! `amplifier completions SHELL`: what a shell needs to complete our commands and flags.

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::exit::Exit;
use crate::render;

/// `amplifier completions SHELL`.
pub fn run(args: &CompletionsArgs) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "amplifier", &mut text);
    drop(render::raw(text));
    Exit::Success
}
