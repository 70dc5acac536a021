//! What a bundle with fifty includes costs: a cold process, a warm load, the composition alone, and the least any
//! program could do with the same files.
//!
//! `cargo xtask bench bundles` runs it. Options: `--json` (one object a line), `--quick` (fewer samples). With
//! `--once FOLDER` it loads that bundle once and ends: that is the cold process it starts and times. `--write FOLDER`
//! leaves the files there for other tools.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_bundle::disk::Disk;
use amplifier_bundle::front_matter;
use amplifier_bundle::include::{self, LoadOptions};
use amplifier_bundle::load::{LoadedBundle, load_bundle};
use amplifier_bundle::origin::SourceFile;
use amplifier_bundle::{compose, yaml};
use serde_json::json;

const INCLUDES: usize = 50;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<_> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1);
    if let Some(folder) = after("--once") {
        return runtime.block_on(load(Path::new(folder))).map(|_| ());
    }
    if let Some(folder) = after("--write") {
        return write_files(Path::new(folder));
    }
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let bench = Bench { is_json: has("--json"), samples: if has("--quick") { 20 } else { 200 } };
    let folder = tempfile::TempDir::new()?;
    write_files(folder.path())?;
    bench.run(&runtime, folder.path())
}

struct Bench {
    is_json: bool,
    samples: usize,
}

impl Bench {
    fn run(&self, runtime: &tokio::runtime::Runtime, folder: &Path) -> Outcome {
        let loaded = runtime.block_on(load(folder))?;
        // A bundle that lost its parts would be fast for the wrong reason.
        if loaded.graph.files.len() != INCLUDES + 1 || !loaded.notices().is_empty() {
            return Err(format!("{} files, {:?}", loaded.graph.files.len(), loaded.notices()).into());
        }
        self.report("bundle_floor_parse", self.median(|| floor(folder))?)?;
        self.report("bundle_load_warm", self.median(|| runtime.block_on(load(folder)).map(|_| ()))?)?;
        let options = LoadOptions::default();
        let graph = runtime.block_on(include::load(&Disk::default(), ".", folder, &options))?;
        let compose = || Ok(compose::compose(&graph, &options.limits).map(|_| ())?);
        self.report("bundle_compose", self.median(compose)?)?;
        let program = std::env::current_exe()?;
        let cold = || {
            let status = Command::new(&program).arg("--once").arg(folder).status()?;
            if status.success() {
                Ok(())
            } else {
                Err(format!("the cold process ended with {status}").into())
            }
        };
        self.report("bundle_load_cold", self.median(cold)?)
    }

    fn median(&self, mut work: impl FnMut() -> Outcome) -> Result<Duration, Box<dyn Error>> {
        let mut times = Vec::with_capacity(self.samples);
        for _ in 0..self.samples {
            let began = Instant::now();
            work()?;
            times.push(began.elapsed());
        }
        times.sort();
        times.get(times.len() / 2).copied().ok_or_else(|| "no samples".into())
    }

    fn report(&self, name: &str, time: Duration) -> Outcome {
        let value = time.as_secs_f64() * 1e6;
        let mut out = std::io::stdout().lock();
        if self.is_json {
            writeln!(out, "{}", json!({"name": name, "value": value, "unit": "us"}))?;
        } else {
            writeln!(out, "{name:>24} {value:>12.1} us")?;
        }
        Ok(())
    }
}

async fn load(folder: &Path) -> Result<LoadedBundle, Box<dyn Error>> {
    let loaded = load_bundle(&Disk::default(), ".", folder, &LoadOptions::default()).await?;
    loaded.plan.mount_plan()?;
    Ok(loaded)
}

/// Reads, splits and parses every file, and does nothing with it.
fn floor(folder: &Path) -> Outcome {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|suffix| suffix != "md") {
            continue;
        }
        let file = Arc::new(SourceFile::new(&path, fs::read_to_string(&path)?));
        let parts = front_matter::split(&file.text);
        yaml::read_part(
            &file,
            parts.yaml.unwrap_or_default(),
            parts.yaml_line,
            &yaml::YamlLimits::default(),
        )?;
    }
    Ok(())
}

/// A root and fifty bundles of the size people write, some of them touching the same modules.
fn write_files(folder: &Path) -> Outcome {
    fs::create_dir_all(folder.join("agents"))?;
    let mut root = String::from("---\nbundle:\n  name: root\n  version: 1.0.0\nincludes:\n");
    for number in 0..INCLUDES {
        root.push_str(&format!("  - bundle: ./part-{number}.md\n"));
        fs::write(folder.join(format!("part-{number}.md")), part(number))?;
        let agent =
            format!("---\nmeta:\n  name: agent-{number}\n  description: Does part {number}.\n---\nWork.\n");
        fs::write(folder.join(format!("agents/agent-{number}.md")), agent)?;
        fs::write(folder.join(format!("context-{number}.txt")), "Rules.\n")?;
    }
    root.push_str(
        "session:\n  orchestrator: {module: loop-streaming}\n  context: {module: context-simple}\n",
    );
    root.push_str("---\n\nYou are the whole.\n");
    fs::write(folder.join("bundle.md"), root)?;
    Ok(())
}

fn part(number: usize) -> String {
    let shared = number % 7;
    format!(
        "---
bundle:
  name: part-{number}
  version: 1.0.{number}
  description: Part {number} of a large bundle, as people write them.
session:
  orchestrator:
    module: loop-streaming
    source: git+https://example.invalid/modules/loop-streaming@main
    config: {{extended_thinking: true, max_iterations: {number}}}
tools:
  - module: tool-own-{number}
    source: git+https://example.invalid/modules/tool-own-{number}@v1.0.{number}
    config:
      allowed_paths: [./src, ./docs, ./tests]
      limits: {{lines: 2000, bytes: 100000, depth: {number}}}
      patterns:
        - \"**/*.rs\"
        - \"**/*.md\"
  - module: tool-shared-{shared}
    config:
      skills: [skill-{number}, skill-common]
      options:
        verbose: false
        retries: {number}
hooks:
  - module: hooks-logging
    config:
      level: info
      additional_events: [part-{number}:started, part-{number}:ended]
  - module: hooks-own-{number}
    config: {{priority: {number}, enabled: true}}
agents:
  include:
    - part-{number}:agent-{number}
context:
  include:
    - part-{number}:context-{number}.txt
spawn:
  exclude_tools: [tool-own-{number}]
---

# Part {number}

Instructions of part {number}, a few lines long, which the root replaces with its own.
They mention @part-{number}:context-{number}.txt once.
"
    )
}
