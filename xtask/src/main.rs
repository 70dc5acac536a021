//! `cargo xtask`: the project's own checks, generated pages, benches and bounded fuzz runs.
//!
//! This file only parses the command line and turns outcomes into exit codes: 0 all is well, 1 something was found
//! or could not be done, 2 the command line was wrong. It is not part of the product and nothing depends on it.

mod bench;
mod check;
mod fuzz;
mod generate;
mod once;
mod output;
mod process;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::output::{TaskError, complain};
use crate::workspace::Workspace;

/// How a task ended when nothing went wrong with the task itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing to complain about.
    Clean,
    /// The task did its work and found something that must be mended.
    Found,
}

/// Checks, generated documents, benches and bounded fuzzing of this workspace.
#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", disable_version_flag = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check crate arrows, names, lints, the kernel's purity and the files named in ARCHITECTURE.md
    Check,
    /// Write the generated reference pages under docs/reference/
    Gen {
        /// Write nothing; fail when a page is stale
        #[arg(long)]
        check: bool,
    },
    /// Measure, beside the public Python package where there is one
    Bench {
        /// What to measure
        what: BenchName,
        /// Exit with 1 when a goal is not met
        #[arg(long)]
        enforce: bool,
    },
    /// Build the fuzz targets and run each for a bounded time
    Fuzz {
        /// Seconds per target
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        seconds: u64,
        /// Run only this target
        #[arg(long)]
        target: Option<String>,
    },
    /// Run one program and print what it took, for the benches
    #[command(hide = true)]
    Once {
        /// What it says goes to FILE.out and FILE.err
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
        /// How long it may take
        #[arg(long)]
        seconds: u64,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BenchName {
    /// Open and close, emit, turns and many live sessions
    Kernel,
    /// Compaction, searching beside `rg`, reading and editing, what the standard hooks cost
    Modules,
    /// A root with fifty includes: a cold process, a warm load, the composition alone
    Bundles,
    /// What a provider adds to its transport, beside the public `openai` client
    Providers,
    /// The `amplifier` program beside other agents: version, runs, lists, resuming
    Cli,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments.task) {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Found) => ExitCode::FAILURE,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<Outcome, TaskError> {
    if let Task::Once { output, seconds, program } = task {
        // Before anything else is looked at: what is measured shall not wait for cargo.
        return once::run(output, *seconds, program).map(|()| Outcome::Clean);
    }
    let workspace = Workspace::read()?;
    match task {
        Task::Check => check::run(&workspace),
        Task::Gen { check: false } => generate::write(&workspace),
        Task::Gen { check: true } => generate::check(&workspace),
        Task::Bench { what, enforce } => {
            let unmet = match what {
                BenchName::Kernel => bench::kernel(&workspace)?,
                BenchName::Modules => bench::modules(&workspace)?,
                BenchName::Bundles => bench::bundles(&workspace)?,
                BenchName::Providers => bench::providers(&workspace)?,
                BenchName::Cli => bench::cli(&workspace)?,
            };
            Ok(if *enforce && unmet > 0 { Outcome::Found } else { Outcome::Clean })
        }
        Task::Once { .. } => Ok(Outcome::Clean),
        Task::Fuzz { seconds, target } => fuzz::run(&workspace, *seconds, target.as_deref()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_fuzz_run_is_always_bounded() {
        assert!(Arguments::try_parse_from(["xtask", "fuzz", "--seconds", "0"]).is_err());
        let arguments = Arguments::try_parse_from(["xtask", "fuzz"]).unwrap();
        assert!(matches!(arguments.task, Task::Fuzz { seconds: 10, target: None }));
    }
}
