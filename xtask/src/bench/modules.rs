//! `cargo xtask bench modules`: what the modules cost, beside `rg` for searching and beside a turn without hooks.
//!
//! The work is in `crates/modules/benches/modules.rs` and `crates/modules/benches/search.rs`. This file runs them, and
//! installs `rg` below the target folder when the machine has none; it measures nothing.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::goals::{Goal, Share, judge};
use super::{MODULES, chain, measure, show};
use crate::output::{TaskError, say};
use crate::process::{capture_quietly, cargo};
use crate::workspace::Workspace;

/// The program that searching is measured beside, by name and version only.
const RIPGREP: &str = "ripgrep@15.2.0";
const INSTALL_LIMIT: Duration = Duration::from_secs(900);

const fn at_most(name: &'static str, nanoseconds: f64) -> Goal {
    Goal { name, at_most: Some(nanoseconds), over: None, times: None, share: Share::Whole }
}

/// A search may take a quarter longer than `rg`, which neither sorts what it finds nor gives it to a model.
const fn like_rg(name: &'static str) -> Goal {
    Goal { name, at_most: None, over: None, times: Some(0.8), share: Share::Whole }
}

const fn shown(name: &'static str) -> Goal {
    Goal { name, at_most: None, over: None, times: None, share: Share::Whole }
}

const MS: f64 = 1_000_000.0;

/// In the order of the table. Those of compaction are the project's; the others are our own measure of what is good enough.
const GOALS: &[Goal] = &[
    at_most("compaction_cold_10k", 20.0 * MS),
    at_most("compaction_warm_10k", MS),
    shown("request_whole_10k"),
    shown("add_after_10k"),
    shown("persistent_add_after_10k"),
    like_rg("grep_1gib_rare_files"),
    like_rg("grep_1gib_rare_lines"),
    like_rg("grep_1gib_regex_count"),
    like_rg("grep_1gib_ignore_case"),
    shown("glob_1gib_all"),
    at_most("read_file_1mib", 5.0 * MS),
    at_most("edit_file_1mib", 20.0 * MS),
    shown("turn_0_all_hooks"),
    shown("turn_10_all_hooks"),
    // A whole run may take 20 ms without tools and 80 ms with ten rounds of them; the hooks may have a tenth of each.
    at_most("hooks_cost_turn_0", 2.0 * MS),
    at_most("hooks_cost_turn_10", 8.0 * MS),
];

/// What stands in the second column: the measurement, and what it is compared with.
const BESIDE: &[(&str, &str)] = &[
    ("grep_1gib_rare_files", "rg_1gib_rare_files"),
    ("grep_1gib_rare_lines", "rg_1gib_rare_lines"),
    ("grep_1gib_regex_count", "rg_1gib_regex_count"),
    ("grep_1gib_ignore_case", "rg_1gib_ignore_case"),
    ("turn_0_all_hooks", "turn_0_no_hooks"),
    ("turn_10_all_hooks", "turn_10_no_hooks"),
];

/// Measures and prints the table. Returns how many goals were not met.
pub(crate) fn modules(workspace: &Workspace) -> Result<usize, TaskError> {
    let rg = ripgrep(workspace);
    let options: Vec<_> = match &rg {
        Ok(rg) => vec![OsStr::new("--rg"), rg.as_os_str()],
        Err(_) => Vec::new(),
    };
    let ours =
        measure(workspace, MODULES, "modules", &[])?.and(measure(workspace, MODULES, "search", &options)?);
    let rows = judge(GOALS, &ours, &ours.beside(BESIDE));
    let unmet = show(&rows, "beside", &[("ours", &ours)])?;
    say("beside: `rg` for searches, the same turn without hooks for turns")?;
    if let Err(error) = rg {
        say(&format!("there is no `rg` to measure beside: {}", chain(&error)))?;
    }
    Ok(unmet)
}

/// The `rg` of the machine, else one of our own.
fn ripgrep(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let usual = PathBuf::from("rg");
    if capture_quietly(Command::new(&usual).arg("--version"), Duration::from_secs(20)).is_ok() {
        return Ok(usual);
    }
    let root = workspace.target.join("bench-tools");
    let rg = root.join("bin").join(format!("rg{EXE_SUFFIX}"));
    if !rg.is_file() {
        say(&format!("installing {RIPGREP} below the target folder to measure beside"))?;
        let mut install = cargo();
        install.args(["install", "--quiet", "--locked", RIPGREP, "--root"]).arg(&root);
        install.arg("--target-dir").arg(root.join("build"));
        capture_quietly(&mut install, INSTALL_LIMIT)?;
    }
    Ok(rg)
}

#[cfg(test)]
mod tests {
    use super::super::goals::Verdict;
    use super::super::measurement::Run;
    use super::*;

    #[test]
    fn searches_are_judged_by_rg_and_compaction_by_its_time() {
        let line = |name: &str, ms: f64| format!("{{\"name\":\"{name}\",\"value\":{ms},\"unit\":\"ms\"}}\n");
        let judged = |ours: f64| {
            let text = line("grep_1gib_rare_files", ours) + &line("rg_1gib_rare_files", 100.0);
            let run = Run::read(&text).and(Run::read(&line("compaction_warm_10k", 1.1)));
            let rows = judge(GOALS, &run, &run.beside(BESIDE));
            let verdict = |name| rows.iter().find(|row| row.name == name).unwrap().verdict;
            [verdict("grep_1gib_rare_files"), verdict("compaction_warm_10k"), verdict("turn_0_all_hooks")]
        };
        assert_eq!(judged(120.0), [Verdict::Met, Verdict::NotMet, Verdict::NoGoal]);
        assert_eq!(judged(130.0), [Verdict::NotMet, Verdict::NotMet, Verdict::NoGoal]);
    }

    #[test]
    fn everything_that_is_compared_is_a_row() {
        for (compared, _) in BESIDE {
            assert!(GOALS.iter().any(|goal| goal.name == *compared), "{compared}");
        }
    }
}
