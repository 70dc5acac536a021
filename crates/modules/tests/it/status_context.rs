//! `hooks-status-context` with real repositories.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use amplifier_core::contracts::Capability;
use amplifier_protocol::message::Role;
use amplifier_testing::{Step, TestSession, copy_program, write_program};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{calls, script, session, texts};

fn git(dir: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]);
    let output = command.args(arguments).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn repository() -> TempDir {
    let dir = TempDir::new().unwrap();
    git(dir.path(), &["init", "-q", "-b", "main"]);
    std::fs::write(dir.path().join("a.txt"), "one").unwrap();
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "-q", "-m", "first commit"]);
    dir
}

/// A session in the folder; git gets all the time a slow machine may need.
async fn open(
    dir: &Path,
    steps: Vec<Step>,
    more: Value,
) -> (TestSession, std::sync::Arc<amplifier_testing::ScriptedProvider>) {
    let provider = script(steps);
    let mut config = json!({"git_wait_ms": 20_000, "git_timeout_ms": 20_000});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let modules = [("tool-echo", json!({})), ("hooks-status-context", config)];
    let dir = Capability::Value(json!(dir.display().to_string()));
    let builder = session(&provider, &modules).await;
    let builder = builder.configure(|builder| builder.capability("session.working_dir", dir));
    (builder.open().await.unwrap(), provider)
}

/// Golden case 11.8: status-context speaks as the user, for one request, in a message of its own.
#[tokio::test]
async fn the_model_learns_where_it_works_with_each_request() {
    let dir = repository();
    std::fs::write(dir.path().join("a.txt"), "two").unwrap();
    std::fs::write(dir.path().join("new file.txt"), "x").unwrap();
    let steps = vec![calls("1", "echo", json!({"text": "x"})), Step::say("done"), Step::say("again")];
    let (session, provider) = open(dir.path(), steps, json!({})).await;
    session.execute("go").await.unwrap();
    let requests = provider.requests();
    let last = requests[0].messages.last().unwrap();
    let text = last.content.visible_text().into_owned();
    assert_eq!(last.role, Role::User);
    for part in [
        "<system-reminder source=\"hooks-status-context\">",
        &format!("Working directory: {}", dir.path().display()),
        "Session ID: test-session",
        "Is sub-session: No",
        "Is directory a git repo: Yes",
        "Current branch: main",
        "Main branch: main",
        "\n M a.txt\n?? new file.txt\n",
        "first commit",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    // A message of its own, also behind a tool result; and the same while the time goes on within a turn.
    session.clock().advance(Duration::from_secs(61));
    assert_eq!(texts(&requests[1]).last(), texts(&requests[0]).last());
    assert_eq!(requests[1].messages.iter().rev().nth(1).unwrap().role, Role::Tool);

    let stored = session.coordinator().context().unwrap().messages().await.unwrap();
    assert!(stored.iter().all(|message| !message.content.visible_text().contains("system-reminder")));

    // A new turn looks again, also at what git's own files do not tell.
    std::fs::write(dir.path().join("third.txt"), "x").unwrap();
    session.execute("once more").await.unwrap();
    assert!(texts(&provider.requests()[2]).last().unwrap().contains("?? third.txt"));
}

#[tokio::test]
async fn settings_take_effect() {
    let dir = repository();
    std::fs::write(dir.path().join("new.txt"), "x").unwrap();
    let all_off = json!({
        "git_include_status": false, "git_include_commits": 0, "git_include_branch": false,
        "git_include_main_branch": false, "include_datetime": false, "include_session": false
    });
    for (config, absent) in [
        (json!({"include_git": false}), vec!["git repo", "Git", "new.txt"]),
        (json!({"git_status_include_untracked": false}), vec!["new.txt"]),
        (all_off, vec!["Status:", "commits", "branch", "Date", "Session ID", "sub-session"]),
    ] {
        let (session, provider) = open(dir.path(), vec![Step::say("done")], config.clone()).await;
        session.execute("go").await.unwrap();
        let text = texts(&provider.requests()[0]).pop().unwrap();
        assert!(text.contains("<env>"), "{text}");
        for absent in absent {
            assert!(!text.contains(absent), "{config}: {absent:?} is in {text}");
        }
    }
}

#[tokio::test]
async fn a_folder_without_a_repository_and_one_without_commits_are_told_as_they_are() {
    let plain = TempDir::new().unwrap();
    let (session, provider) = open(plain.path(), vec![Step::say("done")], json!({})).await;
    session.execute("go").await.unwrap();
    assert!(texts(&provider.requests()[0]).pop().unwrap().contains("Is directory a git repo: No"));

    git(plain.path(), &["init", "-q", "-b", "trunk"]);
    let (session, provider) = open(plain.path(), vec![Step::say("done")], json!({})).await;
    session.execute("go").await.unwrap();
    let text = texts(&provider.requests()[0]).pop().unwrap();
    assert!(text.contains("Current branch: trunk (no commits yet)") && text.contains("(clean)"), "{text}");
}

/// Whether a git runs that was started for this directory.
#[cfg(target_os = "linux")]
fn runs(dir: &Path) -> bool {
    let variable = format!("GIT_WORK_TREE={}\0", dir.canonicalize().unwrap().display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let variables = processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
    variables.into_iter().any(|of_one| String::from_utf8_lossy(&of_one).contains(&variable))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_git_that_hangs_is_stopped_and_holds_up_nothing() {
    let dir = repository();
    // Git waits for somebody to write what is ignored.
    let made = Command::new("mkfifo").arg(dir.path().join(".gitignore")).status().unwrap();
    assert!(made.success());
    let config = json!({"git_wait_ms": 50, "git_timeout_ms": 300});
    let steps = (0..200).map(|_| Step::say("done")).collect();
    let (session, provider) = open(dir.path(), steps, config).await;
    let began = std::time::Instant::now();
    session.execute("go").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!texts(&provider.requests()[0]).pop().unwrap().contains("Git"));
    // The look ends by itself; then it is said that it failed.
    let told = loop {
        session.execute("go").await.unwrap();
        let text = texts(provider.requests().last().unwrap()).pop().unwrap();
        if text.contains("the last look failed") {
            break text;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(told.contains("git did not answer within 300 ms"), "{told}");
    // Another look may be on its way by now; it ends like the first.
    assert!(began.elapsed() < Duration::from_secs(60));
    session.cleanup().await;
    let gone = async {
        while runs(dir.path()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
}

#[tokio::test]
async fn looking_at_a_repository_runs_nothing_it_configures() {
    let dir = repository();
    let mark = dir.path().join("ran");
    let program = dir.path().join("evil.sh");
    write_program(&program, &format!("#!/bin/sh\ntouch {}\n", mark.display()));
    let path = program.display().to_string();
    for key in ["core.fsmonitor", "core.pager", "diff.external", "gpg.program"] {
        git(dir.path(), &["config", key, &path]);
    }
    git(dir.path(), &["config", "log.showSignature", "true"]);
    let hooks = dir.path().join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    copy_program(&program, &hooks.join("post-index-change"));
    let (session, provider) = open(dir.path(), vec![Step::say("done")], json!({})).await;
    session.execute("go").await.unwrap();
    assert!(texts(&provider.requests()[0]).pop().unwrap().contains("first commit"));
    assert!(!mark.exists());
}
