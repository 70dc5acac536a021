//! `cargo xtask fuzz`: builds `fuzz/` with coverage on the pinned stable toolchain and runs each target for a bounded time.
//!
//! No nightly and no cargo-fuzz: the compiler flags below switch on what libFuzzer needs. Without AddressSanitizer this
//! finds panics, hangs and broken promises, which is what safe code can have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Outcome;
use crate::output::{TaskError, say};
use crate::process::{Captured, capture_any, capture_quietly, cargo, stream};
use crate::workspace::{Workspace, rust_files};

const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=1";

/// Longer inputs only make runs slower; every rule of the readers shows within this.
const MAX_INPUT_BYTES: u32 = 8192;

/// One input that takes this long counts as a hang.
const SECONDS_PER_INPUT: u32 = 5;

/// Reading the corpus comes before the clock of a run starts, and takes its own time.
const GRACE_SECONDS: u64 = 120;

/// Builds the targets and runs all of them, or one.
pub(crate) fn run(workspace: &Workspace, seconds: u64, only: Option<&str>) -> Result<Outcome, TaskError> {
    let folder = workspace.root.join("fuzz");
    let known = targets(&folder)?;
    let chosen: Vec<_> = known.iter().filter(|name| only.is_none_or(|only| only == name.as_str())).collect();
    if let (true, Some(name)) = (chosen.is_empty(), only) {
        return Err(TaskError::UnknownTarget { name: name.to_owned(), known });
    }
    let output = workspace.target.join("fuzz");
    let binaries = build(&folder, &output)?;

    let mut outcome = Outcome::Clean;
    for name in chosen {
        let run = run_target(&folder, &binaries, &output, name, seconds)?;
        if run.succeeded() {
            let inputs = statistic(&run.stderr, "number_of_executed_units").unwrap_or("an unknown number of");
            say(&format!("fuzz target `{name}`: {inputs} inputs in {seconds} s, nothing found"))?;
            continue;
        }
        outcome = Outcome::Found;
        let kept = workspace.relative(&output.join("artifacts").join(name));
        say(&format!(
            "{}\nfuzz target `{name}`: an input broke it; it is kept in `{kept}`\n  \
             cure: mend the reader and put the input into `fuzz/seeds/{name}/`",
            last_lines(&run.stderr, 40)
        ))?;
    }
    Ok(outcome)
}

/// A number from libFuzzer's closing statistics.
fn statistic<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    said.lines()
        .find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines.get(lines.len().saturating_sub(count)..).unwrap_or(&[]).join("\n")
}

/// The targets by the names of their files.
fn targets(folder: &Path) -> Result<Vec<String>, TaskError> {
    let files = rust_files(&folder.join("targets"))?;
    Ok(files
        .iter()
        .filter_map(|path| path.file_stem())
        .map(|name| name.to_string_lossy().into_owned())
        .collect())
}

/// Builds all targets; returns the folder with the binaries.
fn build(folder: &Path, output: &Path) -> Result<PathBuf, TaskError> {
    let triple = host_triple()?;
    let mut command = cargo();
    // With `--target`, build scripts and derive macros are built without the flags; instrumented they would not link.
    command
        .args(["build", "--quiet", "--locked", "--release", "--target", &triple])
        .arg("--target-dir")
        .arg(output);
    command.current_dir(folder).env("RUSTFLAGS", RUSTFLAGS).env_remove("CARGO_ENCODED_RUSTFLAGS");
    stream(&mut command)?;
    Ok(output.join(triple).join("release"))
}

fn run_target(
    folder: &Path,
    binaries: &Path,
    output: &Path,
    name: &str,
    seconds: u64,
) -> Result<Captured, TaskError> {
    let corpus = output.join("corpus").join(name);
    let artifacts = output.join("artifacts").join(name);
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).map_err(|source| TaskError::Write { path: folder.clone(), source })?;
    }
    let mut command = Command::new(binaries.join(name));
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-max_len={MAX_INPUT_BYTES}")).arg(format!("-timeout={SECONDS_PER_INPUT}"));
    command.args(["-rss_limit_mb=2048", "-verbosity=0", "-print_final_stats=1"]);
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    // libFuzzer writes what it learns into the first folder and only reads the second.
    command.arg(corpus).arg(folder.join("seeds").join(name));
    // Captured, because libFuzzer talks a lot and means little by it unless something was found.
    capture_any(&mut command, Duration::from_secs(seconds + GRACE_SECONDS))
}

fn host_triple() -> Result<String, TaskError> {
    let mut command = Command::new("rustc");
    command.arg("-vV");
    let captured = capture_quietly(&mut command, Duration::from_secs(60))?;
    let host = captured.stdout.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned);
    host.ok_or_else(|| TaskError::Status {
        command: "rustc -vV".into(),
        status: "success".into(),
        said: "no line `host:`".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_statistics_are_read() {
        let said = "INFO: x\nstat::number_of_executed_units: 790794\nstat::peak_rss_mb:              34\n";
        assert_eq!(statistic(said, "number_of_executed_units"), Some("790794"));
        assert_eq!(statistic(said, "number"), None);
        assert_eq!(last_lines("a\nb\nc", 2), "b\nc");
    }

    #[test]
    fn targets_are_the_files_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("targets")).unwrap();
        for name in ["b.rs", "a.rs", "notes.md"] {
            fs::write(folder.path().join("targets").join(name), "").unwrap();
        }
        assert_eq!(targets(folder.path()).unwrap(), ["a", "b"]);
    }
}
