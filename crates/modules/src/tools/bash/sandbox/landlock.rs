//! Landlock with a filter of system calls: a thread fences itself in, starts the command, and ends; the command inherits the fence.
//!
//! A thread, because code between fork and exec would have to be unsafe.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use tokio::sync::oneshot;

use super::{Filter, Folders, Level, seccomp};

/// Written to by every shell script. `/dev/stdout` and its like are none: they lead to what the command itself has open, a
/// pipe of ours, which needs no rule; here they would lead to what this process has open, for which there may be none.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

/// Rights of root that reach past the fence. Programs that are started get none of them; other users have none anyway.
const RIGHTS: &[CapabilitySet] = &[
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::NET_RAW,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::MKNOD,
    CapabilitySet::SYSLOG,
];

/// Whether the kernel enforces what the level promises, and which of the finer points it lacks.
pub(super) async fn tried(level: Level) -> Result<(Filter, Vec<String>), String> {
    let nowhere = PathBuf::from("/nonexistent");
    let folders = Folders { workspace: nowhere.clone(), notes: nowhere.clone(), temporary: nowhere };
    let mut gaps = on_thread(move || fence(level, &folders))
        .await
        .map_err(|error| format!("Landlock is not available: {error}"))?;
    let filter = match on_thread(move || seccomp::restrict(level)).await {
        Ok(()) => Filter::On,
        Err(error) => {
            let open = if level == Level::ReadOnly { "UDP, permissions and times" } else { "permissions" };
            gaps.push(format!("Unix sockets, {open} are open, because seccomp is not available: {error}"));
            Filter::Off
        }
    };
    Ok((filter, gaps))
}

/// Does something on a thread of its own, which nothing outlives but what it starts.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> std::io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::Builder::new().name("landlock".to_owned()).spawn(move || {
        let _inside = runtime.enter();
        // Whoever asked may have gone; what was started is killed with what it was kept in.
        drop(sender.send(work()));
    })?;
    receiver.await.map_err(std::io::Error::other)?.map_err(std::io::Error::other)
}

pub(super) async fn run<T: Send + 'static>(
    level: Level,
    filter: Filter,
    folders: Folders,
    spawn: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    let started = on_thread(move || {
        fence(level, &folders)?;
        if filter == Filter::On {
            seccomp::restrict(level)?;
        }
        Ok(spawn())
    });
    started.await?
}

/// Fences this thread in; returns what this kernel is too old for.
fn fence(level: Level, folders: &Folders) -> Result<Vec<String>, String> {
    for right in RIGHTS {
        // Only root may give rights away.
        remove_capability_from_bounding_set(*right).ok();
    }
    let write = AccessFs::from_write(ABI::V9);
    let told = |error: landlock::RulesetError| error.to_string();
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V3))
        .map_err(told)?;
    if level == Level::ReadOnly {
        rules = rules.handle_access(AccessNet::from_all(ABI::V4)).map_err(told)?;
    }
    let mut rules = rules
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(write)
        .map_err(told)?
        .scope(Scope::from_all(ABI::V6))
        .map_err(told)?
        .create()
        .map_err(told)?;
    let mut writable: Vec<&Path> = vec![&folders.notes, &folders.temporary];
    if level == Level::WorkspaceWrite {
        writable.push(&folders.workspace);
    }
    for folder in writable {
        rules = allowed(rules, folder, write)?;
    }
    for device in DEVICES {
        let access = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        rules = allowed(rules, Path::new(device), access)?;
    }
    let status = rules.restrict_self().map_err(told)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("not enforced".to_owned());
    }
    let scoped = matches!(status.landlock, LandlockStatus::Available { effective_abi, .. } if effective_abi >= ABI::V6);
    let gap = "signals reach processes outside, because the kernel is older than 6.12";
    Ok(if scoped { Vec::new() } else { vec![gap.to_owned()] })
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
