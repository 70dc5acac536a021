//! Programs run again and again, each time through `cargo xtask once`, and the middle of what they took.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::stage::Stage;
use crate::bench::measurement::Run;
use crate::once::Took;
use crate::output::TaskError;
use crate::process::capture_quietly;
use crate::workspace::read;

/// No program that is measured takes longer.
const SECONDS: u64 = 120;
/// What a failed program said, at most.
const SAID: usize = 300;

/// What was measured so far.
pub(super) struct Runs {
    output: PathBuf,
    run: Run,
}

impl Runs {
    pub(super) fn new(stage: &Stage) -> Self {
        Self { output: stage.output(), run: Run::default() }
    }

    pub(super) fn run(self) -> Run {
        self.run
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.run.note(text.into());
    }

    pub(super) fn bytes(&mut self, name: &str, bytes: u64) {
        self.run.add_bytes(name, bytes as f64);
    }

    /// Runs a program so often and keeps the middle values. It must say `expected` each time: a program that fails is
    /// fast for the wrong reason.
    pub(super) fn measure(
        &mut self,
        name: &str,
        times: usize,
        command: &mut Command,
        expected: &str,
    ) -> Result<(), TaskError> {
        self.measure_in_turn(times, &mut [(name, command, expected)])
    }

    /// The same for programs that are compared with each other: they take turns, so that a machine that is slower for a
    /// while is slower for all of them.
    pub(super) fn measure_in_turn(
        &mut self,
        times: usize,
        programs: &mut [(&str, &mut Command, &str)],
    ) -> Result<(), TaskError> {
        let mut took: Vec<Vec<Took>> = programs.iter().map(|_| Vec::with_capacity(times)).collect();
        // The first round reads the programs from the disk.
        for round in 0..=times {
            for ((_, command, expected), took) in programs.iter_mut().zip(&mut took) {
                let once = self.once(command, expected)?;
                if round > 0 {
                    took.push(once);
                }
            }
        }
        for ((name, ..), took) in programs.iter().zip(took) {
            let middle = |value: fn(&Took) -> f64| {
                let mut values: Vec<_> = took.iter().map(value).collect();
                values.sort_by(f64::total_cmp);
                values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
            };
            let (wall, cpu, peak) =
                (middle(|took| took.wall_ns), middle(|took| took.cpu_ns), middle(|took| took.peak_bytes));
            self.run.add_nanoseconds(&format!("{name}_wall"), wall);
            self.run.add_nanoseconds(&format!("{name}_cpu"), cpu);
            self.run.add_bytes(&format!("{name}_peak_bytes"), peak);
        }
        Ok(())
    }

    /// Takes over what a program that measures by itself printed.
    pub(super) fn launch(&mut self, name: &str, command: &mut Command) -> Result<(), TaskError> {
        let printed = Run::read(&capture_quietly(command, Duration::from_secs(SECONDS))?.stdout);
        match printed.find(name) {
            Some(_) => self.run = std::mem::take(&mut self.run).and(printed),
            None => return Err(TaskError::NoMeasurement { command: name.to_owned() }),
        }
        Ok(())
    }

    fn once(&self, command: &Command, expected: &str) -> Result<Took, TaskError> {
        let own = std::env::current_exe()
            .map_err(|source| TaskError::Start { program: "xtask".to_owned(), source })?;
        let mut once = Command::new(own);
        once.arg("once").arg("--seconds").arg(SECONDS.to_string()).arg("--output").arg(&self.output);
        once.arg("--").arg(command.get_program()).args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            once.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => once.env(name, value),
                None => once.env_remove(name),
            };
        }
        let printed = capture_quietly(&mut once, Duration::from_secs(SECONDS + 10))?.stdout;
        let took: Took = serde_json::from_str(&printed)
            .map_err(|source| TaskError::Printed { command: "cargo xtask once".to_owned(), source })?;
        let said = |end: &str| {
            let bytes = fs::read(self.output.with_extension(end));
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
        };
        let answer = read(&self.output.with_extension("out")).unwrap_or_default();
        if took.code == Some(0) && answer.contains(expected) {
            return Ok(took);
        }
        let shown = said("err").lines().chain(answer.lines()).collect::<Vec<_>>().join(" | ");
        Err(TaskError::Status {
            command: command.get_program().to_string_lossy().into_owned(),
            status: took.code.map_or("a signal".to_owned(), |code| format!("exit status {code}")),
            said: shown.chars().take(SAID).collect(),
        })
    }
}
