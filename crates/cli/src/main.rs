//! `amplifier`: parses, calls `app`, renders. It decides nothing else.

use std::process::ExitCode;

use clap::Parser;

mod args;
mod ask;
mod commands;
mod exit;
mod progress;
mod render;

use args::{Args, BackupCommand, Command, ModuleCommand, PlanCommand};
use exit::Exit;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are answers; everything else is a usage error. Clap prints both to the right place.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            return match error.print() {
                Ok(()) => exit.into(),
                Err(_) => Exit::Failure.into(),
            };
        }
    };
    let exit = match args.command {
        Command::Backup(BackupCommand::List(list)) => commands::backup::list(&list),
        Command::Backup(BackupCommand::Restore(restore)) => commands::backup::restore(&restore, args.home),
        Command::Module(ModuleCommand::List(list)) => commands::module::list(&list),
        Command::Module(ModuleCommand::Info(info)) => commands::module::info(&info),
        Command::Plan(PlanCommand::Validate(validate)) => commands::plan::validate(&validate),
        Command::Plan(PlanCommand::Show(show)) => commands::plan::show(&show, args.home),
        Command::Plan(PlanCommand::Explain(explain)) => commands::plan::explain(&explain, args.home),
        Command::Plan(PlanCommand::Hash(hash)) => commands::plan::hash(&hash, args.home),
        Command::Plan(PlanCommand::Diff(diff)) => commands::plan::diff(&diff, args.home),
        Command::Bundle(command) => commands::bundle::run(&command, args.home),
        Command::Collection(command) => commands::collection::run(&command, args.home),
        Command::Profile(command) => commands::profile::run(&command, args.home),
        Command::Cache(command) => commands::cache::run(&command, args.home),
        Command::Config(command) => commands::config::run(&command, args.home),
        Command::Init(init) => commands::init::run(&init, args.home),
        Command::Provider(command) => commands::provider::run(&command, args.home),
        Command::Run(run) => commands::run::run(&run, args.home),
    };
    exit.into()
}
