//! Landlock by trying it; with bubblewrap at hand the tests through the tool never come to it.

use std::collections::BTreeMap;
use std::net::TcpListener;

use tempfile::TempDir;

use super::*;
use crate::tools::bash::process::{self, Ended, Launch};

/// Runs a command behind Landlock and returns its exit code.
#[expect(clippy::unwrap_used, reason = "the exemption for tests does not reach their helper functions")]
async fn code(level: Level, folders: &Folders, command: &str) -> Ended {
    let sandbox = Sandbox::Fenced { level, fence: Fence::Landlock { because: String::new() } };
    let arguments = vec!["-c".into(), command.into()];
    let (program, arguments, confinement) =
        sandbox.command_line("/bin/bash".into(), arguments, &folders.workspace, folders);
    let launch = Launch {
        program,
        arguments,
        folder: folders.workspace.clone(),
        variables: BTreeMap::new(),
        mark: "landlock-test.1;".to_owned(),
        limit: 1_000,
        confinement,
    };
    process::start(launch).await.unwrap().finished().await
}

#[tokio::test]
async fn landlock_keeps_writes_inside_and_read_only_cuts_connections() {
    for level in [Level::WorkspaceWrite, Level::ReadOnly] {
        if let Err(why) = landlock::tried(level).await {
            return eprintln!("SKIPPED: {why}");
        }
    }
    let (work, own, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let folders = Folders {
        workspace: work.path().to_path_buf(),
        notes: own.path().to_path_buf(),
        temporary: own.path().to_path_buf(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let write = |folder: &TempDir| format!("echo x 2>/dev/null > {}/x", folder.path().display());
    for (level, command, expected) in [
        (Level::WorkspaceWrite, write(&work), 0),
        (Level::WorkspaceWrite, write(&own), 0),
        (Level::WorkspaceWrite, write(&outside), 1),
        (Level::WorkspaceWrite, "echo x > /dev/stdout; echo x > /dev/stderr".to_owned(), 0),
        (Level::WorkspaceWrite, connect.clone(), 0),
        (Level::ReadOnly, "cat x".to_owned(), 0),
        (Level::ReadOnly, write(&work), 1),
        (Level::ReadOnly, write(&own), 0),
        (Level::ReadOnly, connect, 1),
    ] {
        assert_eq!(code(level, &folders, &command).await, Ended::With(expected), "{level:?} {command}");
    }
    assert!(!outside.path().join("x").exists());
    // The fence ends with the thread that put it up.
    std::fs::write(outside.path().join("y"), "").unwrap();
}
