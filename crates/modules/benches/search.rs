//! What searching and changing files costs: `grep` over a generated tree beside the `rg` program where there is one, and
//! `read_file` and `edit_file` on files of one size.
//!
//! The tree has 1 GiB in files of many sizes; it is read once before anything is measured, so that disks do not count.
//! Options: `--json` (one object a line), `--quick` (a tree of 64 MiB), `--rg FILE` (which `rg`, else the usual one).

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use amplifier_core::contracts::{Capability, ToolCx};
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::BuiltIns;
use amplifier_testing::TestCoordinator;
use serde_json::{Value, json};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// How often a search is timed; the best time counts, for everything else on the machine only adds to it.
const ROUNDS: usize = 3;
/// How often a small call is timed.
const CALLS: usize = 100;
/// In one file of a thousand.
const RARE: &str = "needle_in_the_stack";

fn main() -> Outcome {
    let quick = std::env::args().any(|option| option == "--quick");
    let json = std::env::args().any(|option| option == "--json");
    let rg = std::env::args_os().skip_while(|option| option != "--rg").nth(1).unwrap_or_else(|| "rg".into());
    let (megabytes, name) = if quick { (64, "64mib") } else { (1_024, "1gib") };
    let folder = tempfile::tempdir()?;
    let files = plant(folder.path(), megabytes)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let report = Report { json };
    report.note(&format!("tree of {megabytes} MiB in {files} files"))?;
    runtime.block_on(searches(folder.path(), name, &rg, &report))?;
    runtime.block_on(changes(folder.path(), &report))
}

struct Report {
    json: bool,
}

impl Report {
    fn time(&self, name: &str, took: Duration) -> Outcome {
        let micros = took.as_secs_f64() * 1e6;
        let line = match self.json {
            true => json!({"name": name, "value": micros, "unit": "us"}).to_string(),
            false => format!("{name:<28} {:>12.1} ms", micros / 1e3),
        };
        Ok(writeln!(std::io::stdout(), "{line}")?)
    }

    fn note(&self, text: &str) -> Outcome {
        let line =
            if self.json { json!({"name": "note", "text": text}).to_string() } else { text.to_owned() };
        Ok(writeln!(std::io::stdout(), "{line}")?)
    }
}

/// Writes the tree: the same on every machine.
fn plant(root: &Path, megabytes: u64) -> Outcome<usize> {
    let words =
        ["fn", "let", "value", "result", "context", "session", "module", "=", "(", ")", "{", "}", "return"];
    let (mut seed, mut written, mut files) = (42_u64, 0_u64, 0_usize);
    let mut text = String::new();
    while written < megabytes * 1024 * 1024 {
        let folder = root.join(format!("d{}/e{}", files / 512, files / 32 % 16));
        std::fs::create_dir_all(&folder)?;
        seed = next(seed);
        let size = 2_000 + usize::try_from(seed >> 33)? % 120_000;
        text.clear();
        while text.len() < size {
            seed = next(seed);
            let word = words.get(usize::try_from(seed >> 33)? % words.len()).copied().unwrap_or_default();
            let end = if (seed >> 40).is_multiple_of(9) { '\n' } else { ' ' };
            write!(text, "{word}{end}")?;
        }
        if files.is_multiple_of(1_000) {
            write!(text, "\n{RARE}\n")?;
        }
        std::fs::write(folder.join(format!("f{files}.rs")), &text)?;
        written += u64::try_from(text.len())?;
        files += 1;
    }
    Ok(files)
}

fn next(seed: u64) -> u64 {
    seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

async fn hub(module: &str, root: &Path) -> Outcome<TestCoordinator> {
    let hub = TestCoordinator::new();
    hub.register_capability("session.working_dir", Capability::Value(json!(root)));
    let module = BuiltIns.find(&module.parse()?).await?.ok_or("no such module")?;
    hub.mount(&*module, json!({})).await?;
    Ok(hub)
}

async fn call(hub: &TestCoordinator, tool: &str, input: Value) -> Outcome<Value> {
    Ok(hub.tool(tool).ok_or("no such tool")?.execute(input, &ToolCx::default()).await?)
}

async fn searches(root: &Path, size: &str, rg: &OsStr, report: &Report) -> Outcome {
    let hub = hub("tool-search", root).await?;
    let kinds: [(&str, Value, &[&str]); 4] = [
        ("rare_files", json!({"pattern": RARE}), &["-l", RARE]),
        ("rare_lines", json!({"pattern": RARE, "output_mode": "content"}), &["-n", RARE]),
        (
            "regex_count",
            json!({"pattern": r"session\s+\w+\s+module", "output_mode": "count"}),
            &["-c", r"session\s+\w+\s+module"],
        ),
        ("ignore_case", json!({"pattern": "NEEDLE_in_the", "-i": true}), &["-l", "-i", "NEEDLE_in_the"]),
    ];
    call(&hub, "grep", json!({"pattern": "x", "output_mode": "count"})).await?;
    for (name, input, arguments) in kinds {
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            call(&hub, "grep", input.clone()).await?;
            best = best.min(began.elapsed());
        }
        report.time(&format!("grep_{size}_{name}"), best)?;
        match ripgrep(rg, root, arguments) {
            Ok(took) => report.time(&format!("rg_{size}_{name}"), took)?,
            Err(error) => report.note(&format!("rg was not measured: {error}"))?,
        }
    }
    let began = Instant::now();
    call(&hub, "glob", json!({"pattern": "**/*.rs"})).await?;
    report.time(&format!("glob_{size}_all"), began.elapsed())
}

fn ripgrep(rg: &OsStr, root: &Path, arguments: &[&str]) -> Outcome<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let mut command = Command::new(rg);
        command.args(arguments).arg("--no-config").arg(root).stdout(Stdio::null());
        let began = Instant::now();
        if !command.status()?.success() {
            return Err("it found nothing or failed".into());
        }
        best = best.min(began.elapsed());
    }
    Ok(best)
}

async fn changes(root: &Path, report: &Report) -> Outcome {
    let hub = hub("tool-filesystem", root).await?;
    let body = "a line of some text, as files have them\n".repeat(1024 * 1024 / 40);
    std::fs::write(root.join("edited.txt"), format!("{body}state 0\n"))?;
    let began = Instant::now();
    for _ in 0..CALLS {
        call(&hub, "read_file", json!({"file_path": "edited.txt", "offset": 100, "limit": 200})).await?;
    }
    report.time("read_file_1mib", began.elapsed() / u32::try_from(CALLS)?)?;
    let began = Instant::now();
    for n in 0..CALLS {
        let (old, new) = (format!("state {n}\n"), format!("state {}\n", n + 1));
        let input = json!({"file_path": "edited.txt", "old_string": old, "new_string": new});
        call(&hub, "edit_file", input).await?;
    }
    report.time("edit_file_1mib", began.elapsed() / u32::try_from(CALLS)?)
}
