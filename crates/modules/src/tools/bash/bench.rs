//! What the tools of one session share: the rules, the working folder, the jobs, and the duty to end them all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use amplifier_core::contracts::ToolFailure;
use amplifier_core::coordinator::Coordinator;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::config::Config;
use super::gate::Asked;
use super::policy::{Judgement, Policy};
use super::process::{self, Launch, Running};
use super::sandbox::{Folders, Sandbox};
use super::scratch::Scratch;
use crate::environment;
use crate::watchdog::{self, Watched};
use crate::workspace::Workspace;

/// The variable that tells a command where to leave word of its working folder.
const FOLDER_NOTE: &str = "AMPLIFIER_BASH_FOLDER";
/// The longest path that is believed.
const LONGEST_PATH: usize = 8 * 1024;
/// Ended background jobs that are still remembered.
const REMEMBERED: usize = 32;

pub(super) struct Bench {
    pub(super) config: Config,
    pub(super) asked: Asked,
    coordinator: Coordinator,
    sandbox: Sandbox,
    shell: &'static str,
    /// Holds what commands leave and what they see as `/tmp`; made for the first command, gone with the session.
    scratch: Mutex<Option<(Scratch, Watched)>>,
    places: Option<Arc<Semaphore>>,
    /// The base and the folder that `cd` led to from there.
    moved: Mutex<Option<(PathBuf, PathBuf)>>,
    live: Mutex<Vec<Weak<Running>>>,
    jobs: Mutex<BTreeMap<u64, Arc<Job>>>,
    started: AtomicU64,
    closed: AtomicBool,
}

/// A command in the background.
pub(super) struct Job {
    pub(super) id: String,
    pub(super) command: String,
    pub(super) running: Arc<Running>,
}

/// A command that has been started.
pub(super) struct Started {
    pub(super) running: Arc<Running>,
    pub(super) folder: PathBuf,
    note: PathBuf,
    /// Something the model should know.
    pub(super) remark: Option<String>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Bench {
    pub(super) fn new(config: Config, sandbox: Sandbox, coordinator: Coordinator) -> Self {
        let shells = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
        let shell = shells.into_iter().find(|shell| Path::new(shell).exists()).unwrap_or("/bin/sh");
        Self {
            places: config.max_concurrent.map(|most| Arc::new(Semaphore::new(most))),
            config,
            asked: Asked::default(),
            coordinator,
            sandbox,
            shell,
            scratch: Mutex::default(),
            moved: Mutex::default(),
            live: Mutex::default(),
            jobs: Mutex::default(),
            started: AtomicU64::new(1),
            closed: AtomicBool::new(false),
        }
    }

    /// The folder in which work is done.
    fn workspace(&self) -> Result<PathBuf, ToolFailure> {
        let of_session = self.coordinator.capability_text("session.working_dir").map(PathBuf::from);
        let folder = match (&self.config.working_dir, of_session) {
            (Some(own), Some(session)) => session.join(own),
            (Some(own), None) => PathBuf::from(own),
            (None, Some(session)) => session,
            (None, None) => PathBuf::new(),
        };
        if folder.is_absolute() {
            return Ok(folder.components().collect());
        }
        let message = "there is no folder to work in: the session has none; set an absolute `working_dir` in the config of `tool-bash`";
        Err(ToolFailure::new(message).of_kind("NoWorkingFolder"))
    }

    /// Where the next command begins.
    pub(super) fn folder(&self) -> Result<PathBuf, ToolFailure> {
        let base = self.workspace()?;
        Ok(match &*lock(&self.moved) {
            Some((of, folder)) if *of == base => folder.clone(),
            _ => base,
        })
    }

    pub(super) fn judge(&self, command: &str) -> Judgement {
        let together = |one: &[String], other: &[String]| one.iter().chain(other).cloned().collect();
        let policy = Policy {
            profile: self.config.safety_profile,
            allowed: together(&self.config.allowed_commands, &self.config.safety_overrides.allow),
            denied: together(&self.config.denied_commands, &self.config.safety_overrides.block),
            workspace: self.workspace().ok(),
            home: self.coordinator.capability_text("user.home_dir").map(PathBuf::from),
            secrets: self
                .coordinator
                .capability_text("amplifier.home")
                .map(PathBuf::from)
                .into_iter()
                .collect(),
            trust: Workspace::of(&self.coordinator),
        };
        policy.judge(command, self.folder().ok().as_deref())
    }

    /// Starts a command that may run.
    pub(super) async fn start(&self, command: &str) -> Result<Started, ToolFailure> {
        let refused = |message: String, kind: &str| Err(ToolFailure::new(message).of_kind(kind));
        if self.closed.load(Ordering::Acquire) {
            return refused("the session has ended; nothing is started any more".to_owned(), "Closed");
        }
        if let Sandbox::Missing { why } = &self.sandbox
            && self.config.sandbox_required
        {
            return refused(
                format!("Command rejected: it must run in a sandbox, and {why}"),
                "SandboxMissing",
            );
        }
        let place = self.place()?;
        let workspace = self.workspace()?;
        let (mut folder, mut remark) = (self.folder()?, None);
        if !folder.is_dir() && folder != workspace {
            remark = Some(format!(
                "the folder {} is gone; the command ran in {}",
                folder.display(),
                workspace.display()
            ));
            folder.clone_from(&workspace);
        }
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let started = match self.scratch() {
            Ok(scratch) => {
                let folders =
                    Folders { workspace, notes: scratch.join("notes"), temporary: scratch.join("tmp") };
                let note = folders.notes.join(number.to_string());
                let mark = format!("{}{number};", mark(&scratch));
                let launch = self.launch(command, mark, &folder, &note, folders);
                process::start(launch).await.map(|running| (running, note))
            }
            Err(error) => Err(error),
        };
        let (running, note) = match started {
            Ok(started) => started,
            Err(error) => {
                return refused(
                    format!("the shell does not start in {}: {error}", folder.display()),
                    "OSError",
                );
            }
        };
        let mut live = lock(&self.live);
        live.retain(|known| known.strong_count() > 0);
        live.push(Arc::downgrade(&running));
        drop(live);
        // A close that ran meanwhile did not see it.
        if self.closed.load(Ordering::Acquire) {
            running.kill();
        }
        Ok(Started { running, folder, note, remark, _place: place })
    }

    /// A place among the commands that may run side by side.
    fn place(&self) -> Result<Option<OwnedSemaphorePermit>, ToolFailure> {
        let Some(places) = &self.places else { return Ok(None) };
        Arc::clone(places).try_acquire_owned().map(Some).map_err(|_| {
            let most = self.config.max_concurrent.unwrap_or_default();
            let message = format!("Command rejected: concurrent command limit of {most} reached");
            ToolFailure::new(message).of_kind("TooMany")
        })
    }

    fn launch(&self, command: &str, mark: String, folder: &Path, note: &Path, folders: Folders) -> Launch {
        let mut variables = environment::sifted(environment::own(), &self.config.pass_env, &self.config.env);
        // On the same line, so that line numbers in messages stay those of the command.
        let script = format!("trap 'pwd -P >|\"${FOLDER_NOTE}\" 2>/dev/null' EXIT; {command}");
        let arguments = vec!["-c".into(), script.into()];
        let (program, arguments, confinement) =
            self.sandbox.command_line(self.shell.into(), arguments, folder, &folders);
        variables.insert(FOLDER_NOTE.into(), note.into());
        match &self.sandbox {
            Sandbox::Fenced { fence: super::sandbox::Fence::Bubblewrap(_), .. } => {
                variables.insert("TMPDIR".into(), "/tmp".into());
            }
            Sandbox::Fenced { .. } => {
                variables.insert("TMPDIR".into(), folders.temporary.into());
            }
            Sandbox::Off | Sandbox::Missing { .. } => {}
        }
        Launch {
            program,
            arguments,
            folder: folder.to_path_buf(),
            variables,
            mark,
            limit: self.config.max_output_bytes,
            confinement,
        }
    }

    fn scratch(&self) -> std::io::Result<PathBuf> {
        let mut scratch = lock(&self.scratch);
        if let Some((made, _)) = &*scratch {
            return Ok(made.path().to_path_buf());
        }
        let made = Scratch::make()?;
        let path = made.path().to_path_buf();
        *scratch = Some((made, watchdog::mark(process::marked(&mark(&path)))));
        Ok(path)
    }

    /// Takes over the folder that a command ended in. One that did not move moves nobody else.
    pub(super) async fn follow(&self, started: &Started) {
        let (note, from) = (started.note.clone(), started.folder.clone());
        let read = tokio::task::spawn_blocking(move || {
            use std::io::Read;
            let mut text = String::new();
            let file = std::fs::File::open(&note).ok()?;
            file.take(LONGEST_PATH as u64).read_to_string(&mut text).ok()?;
            std::fs::remove_file(&note).ok()?;
            let folder = PathBuf::from(text.trim_end_matches('\n'));
            let moved = folder.is_absolute() && from.canonicalize().ok()? != folder && folder.is_dir();
            moved.then_some(folder)
        });
        if let Ok(Some(folder)) = read.await
            && let Ok(base) = self.workspace()
        {
            *lock(&self.moved) = Some((base, folder));
        }
    }

    /// Keeps a started command as a background job, unless there are too many.
    pub(super) fn keep(&self, started: &Started, command: &str) -> Result<Arc<Job>, ToolFailure> {
        let mut jobs = lock(&self.jobs);
        let running = jobs.values().filter(|job| job.running.ended().is_none()).count();
        if running >= self.config.max_background {
            started.running.kill();
            let message =
                format!("Command rejected: {running} background jobs run already; end one with `bash_kill`");
            return Err(ToolFailure::new(message).of_kind("TooMany"));
        }
        let ended: Vec<u64> =
            jobs.iter().filter(|(_, job)| job.running.ended().is_some()).map(|(number, _)| *number).collect();
        for number in ended.iter().take(ended.len().saturating_sub(REMEMBERED)) {
            jobs.remove(number);
        }
        let number = jobs.last_key_value().map_or(1, |(last, _)| last + 1);
        let running = Arc::clone(&started.running);
        let job = Arc::new(Job { id: format!("bash_{number}"), command: command.to_owned(), running });
        jobs.insert(number, Arc::clone(&job));
        Ok(job)
    }

    pub(super) fn job(&self, id: &str) -> Result<Arc<Job>, ToolFailure> {
        let jobs = lock(&self.jobs);
        if let Some(job) = jobs.values().find(|job| job.id == id) {
            return Ok(Arc::clone(job));
        }
        let known: Vec<_> = jobs.values().map(|job| format!("`{}`", job.id)).collect();
        let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
        Err(ToolFailure::new(format!("no background job `{id}`; jobs: {known}")).of_kind("NotFound"))
    }

    /// Ends everything and starts nothing more.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let live: Vec<_> = lock(&self.live).drain(..).filter_map(|running| running.upgrade()).collect();
        let mut stopping = tokio::task::JoinSet::new();
        for running in live.into_iter().filter(|running| running.ended().is_none()) {
            stopping.spawn(async move { running.stop(Duration::from_millis(500)).await });
        }
        while stopping.join_next().await.is_some() {}
        let scratch = lock(&self.scratch).take();
        // Whatever left its group is found by its mark; then nothing writes to the folder any more.
        drop(
            tokio::task::spawn_blocking(move || {
                if let Some((scratch, _watched)) = scratch {
                    watchdog::sweep(&process::marked(&mark(scratch.path())));
                }
            })
            .await,
        );
    }
}

/// Names every process of this session and no other.
fn mark(scratch: &Path) -> String {
    let name = scratch.file_name().map(|name| name.to_string_lossy().into_owned());
    format!("{}.", name.unwrap_or_default())
}

impl Drop for Bench {
    fn drop(&mut self) {
        for running in lock(&self.live).drain(..).filter_map(|running| running.upgrade()) {
            if running.ended().is_none() {
                running.kill();
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
