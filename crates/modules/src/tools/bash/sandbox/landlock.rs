//! Landlock: a thread fences itself in, starts the command, and ends; the command inherits the fence.
//!
//! A thread, because code between fork and exec would have to be unsafe.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus,
};
use tokio::sync::oneshot;

use super::{Folders, Level};

/// Written to by every shell script. `/dev/stdout` and its like are none: they lead to what the command itself has open, a
/// pipe of ours, which needs no rule; here they would lead to what this process has open, for which there may be none.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

/// Whether the kernel enforces what the level promises.
pub(super) async fn tried(level: Level) -> Result<(), String> {
    let nowhere = PathBuf::from("/nonexistent");
    let folders = Folders { workspace: nowhere.clone(), notes: nowhere.clone(), temporary: nowhere };
    run(level, folders, || Ok(())).await.map_err(|error| format!("Landlock is not to be had: {error}"))
}

pub(super) async fn run<T: Send + 'static>(
    level: Level,
    folders: Folders,
    spawn: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::Builder::new().name("landlock".to_owned()).spawn(move || {
        let _inside = runtime.enter();
        let started = fence(level, &folders).map_err(std::io::Error::other).and_then(|()| spawn());
        // Whoever asked may have gone; what was started is killed with what it was kept in.
        drop(sender.send(started));
    })?;
    receiver.await.map_err(std::io::Error::other)?
}

fn fence(level: Level, folders: &Folders) -> Result<(), String> {
    let write = AccessFs::from_write(ABI::V3);
    let told = |error: landlock::RulesetError| error.to_string();
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(write)
        .map_err(told)?;
    if level == Level::ReadOnly {
        rules = rules.handle_access(AccessNet::from_all(ABI::V4)).map_err(told)?;
    }
    let mut rules = rules.create().map_err(told)?;
    let mut writable: Vec<&Path> = vec![&folders.notes, &folders.temporary];
    if level == Level::WorkspaceWrite {
        writable.push(&folders.workspace);
    }
    for folder in writable {
        rules = allowed(rules, folder, write)?;
    }
    for device in DEVICES {
        rules = allowed(rules, Path::new(device), AccessFs::WriteFile | AccessFs::Truncate)?;
    }
    let status = rules.restrict_self().map_err(told)?;
    if status.ruleset == RulesetStatus::FullyEnforced { Ok(()) } else { Err("not fully enforced".to_owned()) }
}

fn allowed(
    rules: landlock::RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<landlock::RulesetCreated, String> {
    // What is not there cannot be written anyway.
    let Ok(open) = PathFd::new(path) else { return Ok(rules) };
    rules.add_rule(PathBeneath::new(open, access)).map_err(|error| error.to_string())
}
