//! Ends the children of this process when it is killed.
//!
//! A process that gets SIGKILL cannot end what it started. So the first child brings a helper with it: this program once
//! more, which reads from a pipe what runs. The pipe closes with this process, however it ends; the helper then kills what
//! still runs, the whole process group of each child and everything that carries a mark, and ends too.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The argument that starts this program as the helper.
const ARGUMENT: &str = "--end-children";
/// The variable that marks a child.
const MARK: &str = "AMPLIFIER_CHILD";
/// How often marked processes are looked for at most: one may start another while it is being looked for.
const ROUNDS: usize = 20;
const BETWEEN: Duration = Duration::from_millis(50);

/// Whether this program can be started as the helper. Others, such as tests, cannot.
static IS_AVAILABLE: AtomicBool = AtomicBool::new(false);
static HELPER: Mutex<Helper> = Mutex::new(Helper { watched: BTreeSet::new(), process: None });

/// The first thing a program does that can be the helper: as the helper it serves until its parent has ended, and returns
/// true; otherwise it may start itself as one from now on.
pub fn serves() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let is_helper = arguments.next().is_some_and(|first| first == ARGUMENT) && arguments.next().is_none();
    match is_helper {
        true => end(&read(io::stdin().lock())),
        false => IS_AVAILABLE.store(true, Ordering::Relaxed),
    }
    is_helper
}

/// What is left when the pipe closes.
fn read(pipe: impl BufRead) -> BTreeSet<String> {
    let mut watched = BTreeSet::new();
    for line in pipe.lines().map_while(Result::ok) {
        match line.split_at_checked(1) {
            Some(("+", item)) => drop(watched.insert(item.to_owned())),
            Some(("-", item)) => drop(watched.remove(item)),
            _ => {}
        }
    }
    watched
}

fn end(watched: &BTreeSet<String>) {
    let (groups, marks): (Vec<_>, Vec<_>) = watched.iter().partition(|item| !item.contains('='));
    // Never 1: as a group it would be every process there is.
    let groups = groups.iter().filter_map(|item| item.parse().ok()).filter(|id| *id > 1);
    for group in groups.filter_map(Pid::from_raw) {
        // Gone already is as good.
        kill_process_group(group, Signal::KILL).ok();
    }
    let mut is_clean = marks.is_empty();
    for _ in 0..ROUNDS {
        if is_clean {
            return;
        }
        // Twice nothing: what was being started at the first look is seen at the second.
        is_clean = marks.iter().map(|mark| sweep(mark)).sum::<usize>() == 0;
        std::thread::sleep(BETWEEN);
        is_clean = is_clean && marks.iter().map(|mark| sweep(mark)).sum::<usize>() == 0;
    }
}

/// Kills every process with a variable that begins like this, wherever it has gone; gives how many. Only Linux shows the
/// environment of processes.
pub(crate) fn sweep(mark: &str) -> usize {
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let mut killed = 0;
    for process in processes.flatten() {
        let id = process.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(id) = id else { continue };
        let Ok(variables) = std::fs::read(process.path().join("environ")) else { continue };
        if variables.split(|byte| *byte == 0).any(|variable| variable.starts_with(mark.as_bytes())) {
            killed += usize::from(kill_process(id, Signal::KILL).is_ok());
        }
    }
    killed
}

/// What ends with this process as long as this value lives.
pub(crate) struct Watched(Vec<String>);

/// A process group.
pub(crate) fn group(group: Pid) -> Watched {
    let mut watched = Watched(Vec::new());
    watched.group(group);
    watched
}

/// Every process with a variable that begins like this, `NAME=beginning`.
pub(crate) fn mark(mark: String) -> Watched {
    let mut watched = Watched(Vec::new());
    watched.add(mark);
    watched
}

/// A child that is about to be started, with a mark for its environment. So it ends also when this process is killed before
/// the process group is known, and so does what leaves the group.
pub(crate) fn child() -> ((&'static str, String), Watched) {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    static PROCESS: OnceLock<u64> = OnceLock::new();
    // Process ids are not enough: those of a container are seen outside of it too.
    let process = PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
    let value = format!("{process:x}.{};", STARTED.fetch_add(1, Ordering::Relaxed));
    let watched = mark(format!("{MARK}={value}"));
    ((MARK, value), watched)
}

impl Watched {
    /// And this process group.
    pub(crate) fn group(&mut self, group: Pid) {
        self.add(group.as_raw_nonzero().to_string());
    }

    fn add(&mut self, item: String) {
        if IS_AVAILABLE.load(Ordering::Relaxed) {
            helper().add(&item);
            self.0.push(item);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        for item in &self.0 {
            helper().remove(item);
        }
    }
}

fn helper() -> MutexGuard<'static, Helper> {
    HELPER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The helper as its parent knows it.
struct Helper {
    watched: BTreeSet<String>,
    process: Option<(Child, ChildStdin)>,
}

impl Helper {
    fn add(&mut self, item: &str) {
        self.watched.insert(item.to_owned());
        if self.tell(&format!("+{item}\n")).is_err() {
            // There is none, or it was killed. Without one children are ended as long as this process is not killed.
            self.start().ok();
        }
    }

    fn remove(&mut self, item: &str) {
        if self.watched.remove(item) {
            // One that was killed is noticed when something is added.
            self.tell(&format!("-{item}\n")).ok();
        }
    }

    fn tell(&mut self, line: &str) -> io::Result<()> {
        match &mut self.process {
            Some((_, pipe)) => pipe.write_all(line.as_bytes()),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn start(&mut self) -> io::Result<()> {
        if let Some((mut killed, _)) = self.process.take() {
            killed.wait()?;
        }
        // The running program, also when the file has been replaced since.
        #[cfg(target_os = "linux")]
        let program = std::path::Path::new("/proc/self/exe");
        #[cfg(not(target_os = "linux"))]
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.arg0("amplifier").arg(ARGUMENT).env_clear().current_dir("/");
        // In a group of its own: a Ctrl-C at the terminal is not for it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let mut pipe = process.stdin.take().ok_or(io::ErrorKind::NotConnected)?;
        let all: String = self.watched.iter().map(|item| format!("+{item}\n")).collect();
        pipe.write_all(all.as_bytes())?;
        self.process = Some((process, pipe));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_is_not_left_when_the_pipe_closes() {
        let left = read("+12\n+A=b\n+13\n-12\n\nx\n-99\n+14".as_bytes());
        assert_eq!(left.iter().map(String::as_str).collect::<Vec<_>>(), ["13", "14", "A=b"]);
    }
}
