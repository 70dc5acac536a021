//! What the shell runs without a question in `strict`, and what it asks about: without an answer nothing of it runs. Issue 25.

use serde_json::{Value, json};

use crate::desk::{Desk, Ran, plan, read};

/// Runs the command that a model asks for; a question stays unanswered.
fn bash(desk: &Desk, config: Value, command: &str, flags: &[&str]) -> Ran {
    let call = json!({"tool_calls": [{"name": "bash", "arguments": {"command": command}}]});
    let mut whole = plan(json!({"responses": [call, "ok"]}));
    whole["tools"] = json!([{"module": "tool-bash", "config": config}]);
    desk.plan("plan.json", &whole);
    let ran = desk.with_git(&[&["run", "--plan", "plan.json", "hi"], flags].concat());
    assert_eq!(ran.code, 0, "{}", ran.seen());
    ran
}

#[test]
fn a_pattern_for_a_command_lifts_no_redirect() {
    let desk = Desk::new();
    let startup = desk.path("user").join(".bashrc");
    let config = json!({"allowed_commands": ["echo *"]});
    let attack = format!("echo x >> {}", startup.display());
    for command in [&attack, "echo x >> ~/.bashrc", "echo x; echo y >> \"$HOME/.bashrc\""] {
        bash(&desk, config.clone(), command, &[]);
        assert!(!startup.exists(), "{command}");
    }
    bash(&desk, config.clone(), "echo in > in.txt", &[]);
    assert_eq!(read(&desk.work().join("in.txt")), "in\n");
    bash(&desk, config, &attack, &["--approve", "all"]);
    assert_eq!(read(&startup), "x\n", "after a yes it runs");
}

#[test]
fn keys_are_read_by_no_spelling_without_a_question() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home()).unwrap();
    std::fs::create_dir_all(desk.path("user/.amplifierd")).unwrap();
    for file in ["home/keys.env", "user/.amplifierd/keys.env"] {
        std::fs::write(desk.path(file), "KEY=secret\n").unwrap();
    }
    desk.file("note.md", "hello\n");
    std::os::unix::fs::symlink(desk.path("home/keys.env"), desk.work().join("link.md")).unwrap();
    let got = desk.work().join("got.txt");
    let home = desk.path("home").display().to_string();
    for command in [
        "cat HOME/keys.env",
        "cat 'HOME'/k''eys.env",
        "cat HOME/*.env",
        "cat ../home/keys.env",
        "cd ../home && cat keys.env",
        "cat link.md",
        "cat l*.md",
        "cat ~/.amplifierd/keys.env",
        "cat ~/.a*/keys.env",
        "x=HOME; cat $x/keys.env",
        "cat \"$AMPLIFIER_HOME/keys.env\" HOME/keys.env",
        "grep -r . HOME/..",
        "cat /proc/$PPID/environ",
        "cat /proc/self/environ",
    ] {
        bash(
            &desk,
            json!({}),
            &format!(
                "{} > {}",
                command
                    .replace("HOME/", &format!("{home}/"))
                    .replace("=HOME", &format!("={home}"))
                    .replace("'HOME'", &home),
                got.display()
            ),
            &[],
        );
        assert!(!got.exists(), "{command}");
    }
    for command in ["cat note.md", "cat n*.md", "grep -rn hello note.md", "head -1 ./note.md"] {
        bash(&desk, json!({}), &format!("{command} > got.txt"), &[]);
        assert!(read(&got).contains("hello"), "{command}");
        std::fs::remove_file(&got).unwrap();
    }
}

#[test]
fn programs_of_a_repository_run_only_where_it_is_trusted() {
    let desk = Desk::new();
    let git = |args: &[&str]| {
        let variables = crate::desk::git_variables(&desk.path("user"));
        let done = std::process::Command::new("git")
            .current_dir(desk.work())
            .args(args)
            .env_clear()
            .envs(variables)
            .output();
        assert!(done.unwrap().status.success(), "{args:?}");
    };
    git(&["init", "--quiet"]);
    desk.file("note.md", "hello\n").file("Makefile", "all:\n\ttouch mark\n");
    git(&["add", "note.md"]);
    git(&["commit", "--quiet", "--message=x"]);
    let mark = desk.work().join("mark");
    git(&["config", "core.fsmonitor", &format!("touch {}; false", mark.display())]);
    let commands = [
        "git status",
        "git diff",
        "timeout 60 git status -s",
        "sh -c 'git status'",
        "bash s.sh",
        "./s.sh",
        "echo $(./s.sh)",
    ];
    amplifier_testing::write_program(
        &desk.work().join("s.sh"),
        &format!("#!/bin/sh\ntouch {}\n", mark.display()),
    );
    for command in commands {
        bash(&desk, json!({"allowed_commands": ["git *"]}), command, &[]);
        assert!(!mark.exists(), "{command}");
    }
    bash(
        &desk,
        json!({}),
        "ls -la && cat note.md && grep -rn hello . && wc -l *.md && head -20 note.md && pwd > seen",
        &[],
    );
    assert!(desk.work().join("seen").exists());
    assert_eq!(desk.with_git(&["trust"]).code, 0);
    for command in commands {
        bash(&desk, json!({}), command, &[]);
        assert!(mark.exists(), "{command}");
        std::fs::remove_file(&mark).unwrap();
    }
}

#[test]
fn git_of_a_clean_repository_runs_without_a_question() {
    let desk = Desk::new();
    let git = |args: &[&str]| {
        let variables = crate::desk::git_variables(&desk.path("user"));
        let mut git = std::process::Command::new("git");
        let done = git.current_dir(desk.work()).args(args).env_clear().envs(variables).output().unwrap();
        assert!(done.status.success(), "{args:?}");
    };
    git(&["init", "--quiet"]);
    git(&["remote", "add", "origin", "https://example.invalid/a.git"]);
    desk.file("note.md", "hello\n");
    amplifier_testing::write_program(&desk.work().join("s.sh"), "#!/bin/sh\necho ran\n");
    for (command, prints) in
        [("git status --short", "note.md"), ("git log -1 || echo none", "none"), ("./s.sh", "ran")]
    {
        let ran = bash(&desk, json!({}), &format!("({command}) > seen 2>&1"), &[]);
        assert!(read(&desk.work().join("seen")).contains(prints), "{command}: {}", ran.seen());
        assert_eq!(ran.stderr, "", "nothing is said about a clean repository");
        std::fs::remove_file(desk.work().join("seen")).unwrap();
    }
}
