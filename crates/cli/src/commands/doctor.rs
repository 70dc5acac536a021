//! `amplifier doctor`: what is wrong here, and what to do about it.

use std::io::IsTerminal;
use std::path::PathBuf;

use amplifier_app::detect::Places;
use amplifier_app::doctor::{self, Check, Finding, Level, PATIENCE, Patient, Reach, Terminal, Watcher};
use serde_json::json;

use super::load;
use crate::args::{DoctorArgs, Form};
use crate::exit::Exit;
use crate::render;

/// Where the column of findings begins.
const FINDINGS: usize = 24;

/// `amplifier doctor`.
pub fn run(args: &DoctorArgs, home: Option<PathBuf>) -> Exit {
    // Broken settings are a finding, not an end.
    let access = match load::access_or_defaults(home) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    let patient = Patient {
        places: Places::of(&access.environment),
        access,
        reach: if args.offline { Reach::Nothing } else { Reach::Servers },
        terminal: Terminal {
            input: std::io::stdin().is_terminal(),
            output: std::io::stdout().is_terminal(),
            columns: terminal_size::terminal_size().map(|(width, _)| width.0),
        },
        patience: PATIENCE,
    };
    load::block_on(async {
        let findings: Vec<_> = doctor::examine(&patient, &Waiting).await.into_iter().map(typed).collect();
        let is_well = doctor::is_well(&findings);
        match args.output {
            Form::Json => render::json(&json!({ "passed": is_well, "findings": findings })),
            Form::Text => tell(&findings),
        }
        if is_well { Exit::Success } else { Exit::Failure }
    })
}

struct Waiting;

impl Watcher for Waiting {
    fn waits_for(&self, checks: &[Check]) {
        let names: Vec<_> = checks.iter().map(|check| check.name()).collect();
        render::note(&format!("still looking at {}", names.join(", ")));
    }
}

/// With a cure that works as it is printed, for people and programs.
fn typed(finding: Finding) -> Finding {
    Finding { cure: finding.cure.map(|cure| render::typed(&cure).into_owned()), ..finding }
}

fn tell(findings: &[Finding]) {
    for finding in findings {
        let head = format!("{:8}{}", finding.level.name(), finding.check.name());
        render::out(&render::entry(&head, &finding.message, FINDINGS));
        if let Some(cure) = &finding.cure {
            render::out(&render::below(&format!("cure: {cure}"), FINDINGS));
        }
    }
    let number = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    render::out(&format!("\n{}", summary(number(Level::Problem), number(Level::Warning))));
}

fn summary(problems: usize, warnings: usize) -> String {
    let some = |number: usize, one: &str, many: &str| match number {
        0 => format!("no {many}"),
        1 => format!("one {one}"),
        number => format!("{number} {many}"),
    };
    format!("{}, {}", some(problems, "problem", "problems"), some(warnings, "warning", "warnings"))
}
