//! Runs other programs: streamed to the terminal, or captured with a deadline. It knows no program but cargo.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::output::TaskError;

/// What a captured program printed and how it ended.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) stdout: String,
    /// Empty when standard error went to the terminal.
    pub(crate) stderr: String,
    status: ExitStatus,
}

impl Captured {
    pub(crate) fn succeeded(&self) -> bool {
        self.status.success()
    }

    fn or_status_error(self, command: &Command) -> Result<Self, TaskError> {
        if self.succeeded() {
            return Ok(self);
        }
        let last = self.stderr.lines().rfind(|text| !text.trim().is_empty()).unwrap_or("");
        let said = last.trim().to_owned();
        Err(TaskError::Status { command: line(command), status: self.status.to_string(), said })
    }
}

/// Cargo, as a person would start it. What the cargo that runs this program set for it would make build scripts that watch
/// it run again, and everything behind them be built again.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    #[expect(
        clippy::disallowed_methods,
        reason = "only the names, and only to hand them on without their values"
    )]
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program whose output goes straight to the terminal.
pub(crate) fn stream(command: &mut Command) -> Result<(), TaskError> {
    let status = command.status().map_err(|source| TaskError::Start { program: program(command), source })?;
    if status.success() {
        return Ok(());
    }
    Err(TaskError::Status { command: line(command), status: status.to_string(), said: String::new() })
}

/// Runs a program, keeps its standard output, and stops it after `limit`. Standard error goes to the terminal.
pub(crate) fn capture(command: &mut Command, limit: Duration) -> Result<Captured, TaskError> {
    run(command.stderr(Stdio::inherit()), limit)?.or_status_error(command)
}

/// Like [`capture`], but keeps standard error quiet and puts its last line into the error.
pub(crate) fn capture_quietly(command: &mut Command, limit: Duration) -> Result<Captured, TaskError> {
    run(command.stderr(Stdio::piped()), limit)?.or_status_error(command)
}

/// Like [`capture_quietly`], but ending badly is not an error: the caller wants to know what was said.
pub(crate) fn capture_any(command: &mut Command, limit: Duration) -> Result<Captured, TaskError> {
    run(command.stderr(Stdio::piped()), limit)
}

fn run(command: &mut Command, limit: Duration) -> Result<Captured, TaskError> {
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|source| TaskError::Start { program: program(command), source })?;
    // A thread per pipe: reading one after the other would let a full second pipe block the program for good.
    let stdout = child.stdout.take().map(read_in_background);
    let stderr = child.stderr.take().map(read_in_background);
    let mut texts = [String::new(), String::new()];
    for (pipe, text) in [stdout, stderr].into_iter().zip(&mut texts) {
        let Some(pipe) = pipe else { continue };
        match pipe.recv_timeout(limit.saturating_sub(started.elapsed())) {
            Ok(read) => *text = read,
            Err(_) => {
                child.kill().map_err(|source| TaskError::Start { program: program(command), source })?;
                child.wait().map_err(|source| TaskError::Start { program: program(command), source })?;
                return Err(TaskError::Deadline { command: line(command), seconds: limit.as_secs() });
            }
        }
    }
    let status = child.wait().map_err(|source| TaskError::Start { program: program(command), source })?;
    let [stdout, stderr] = texts;
    Ok(Captured { stdout, stderr, status })
}

fn read_in_background<R: Read + Send + 'static>(mut pipe: R) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A pipe that breaks half way still gave us what it gave; the exit status tells the rest.
        pipe.read_to_end(&mut bytes).unwrap_or(0);
        // The receiver is gone only when the deadline has passed, and then nobody wants the text.
        sender.send(String::from_utf8_lossy(&bytes).into_owned()).unwrap_or(());
    });
    receiver
}

fn program(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn line(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program(command)).chain(arguments).collect::<Vec<_>>().join(" ")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failing_program_is_quoted_with_its_last_words() {
        let error =
            capture_quietly(&mut shell("echo first >&2; echo last >&2; exit 3"), Duration::from_secs(20));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("exit status: 3: last"), "{text}");
    }

    #[test]
    fn a_program_that_hangs_is_stopped_at_its_deadline() {
        let started = Instant::now();
        let error = capture_quietly(&mut shell("exec sleep 30"), Duration::from_millis(100)).unwrap_err();
        assert!(matches!(error, TaskError::Deadline { .. }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn much_output_on_both_pipes_does_not_block() {
        let script = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; \
                      echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done";
        let captured = capture_quietly(&mut shell(script), Duration::from_secs(60)).unwrap();
        assert_eq!(captured.stdout.lines().count(), 3000);
    }
}
