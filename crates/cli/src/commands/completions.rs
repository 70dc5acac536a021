//! `amplifier completions SHELL`: what a shell needs to complete our commands and flags.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::exit::Exit;
use crate::render;

/// `amplifier completions SHELL`.
pub fn run(args: &CompletionsArgs) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "amplifier", &mut text);
    match io::stdout().lock().write_all(&text) {
        Ok(()) => Exit::Success,
        // Whoever reads may stop when it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => {
            render::error(&error, None);
            Exit::Failure
        }
    }
}
