//! `amplifier doctor`.

use serde_json::Value;

use crate::desk::Desk;

fn level<'v>(told: &'v Value, check: &str) -> &'v Value {
    let findings = told["findings"].as_array().unwrap();
    &findings.iter().find(|finding| finding["check"] == check).unwrap()["level"]
}

#[test]
fn everything_is_looked_at_and_told_in_80_columns() {
    let desk = Desk::new();
    let ran = desk.with_git(&["doctor", "--offline"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let word_fits = |line: &str| line.chars().count() <= 80 || !line.trim().contains(' ');
    assert_eq!(ran.stdout.lines().find(|line| !word_fits(line)), None, "{}", ran.stdout);
    assert!(ran.stdout.starts_with("  ok      version       amplifier "), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n  ok      home          `"), "{}", ran.stdout);
    assert!(ran.stdout.lines().last().unwrap().starts_with("no problems, "), "{}", ran.stdout);
    assert!(!desk.home().exists(), "looking makes nothing");
}

#[test]
fn a_problem_is_told_with_its_cure_and_an_exit_code() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home()).unwrap();
    std::fs::write(desk.home().join("settings.yaml"), "a: [\n").unwrap();
    let ran = desk.with_git(&["doctor", "--offline"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(ran.stdout.contains("\n  problem settings      "), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n                        cure: `amplifier config edit`"), "{}", ran.stdout);
    assert!(ran.stdout.lines().last().unwrap().starts_with("one problem, "), "{}", ran.stdout);
    let told = desk.with_git(&["doctor", "--offline", "--output", "json"]);
    assert_eq!((told.code, &told.json()["passed"]), (1, &Value::Bool(false)));
    assert_eq!(level(&told.json(), "settings"), "problem");
    assert_eq!(level(&told.json(), "git"), "ok");
}

#[test]
fn nobody_takes_the_demo_for_a_key() {
    let desk = Desk::new();
    let told = desk.with_git(&["doctor", "--offline", "--output", "json"]).json();
    let message = |check: &str| {
        let findings = told["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["check"] == check).unwrap()["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(message("keys"), "no key of a model service is set");
    assert!(message("toolchain").contains("Rust"), "{}", message("toolchain"));
    let listed = crate::provider::with(&desk, &[], &["provider", "list"]);
    let end = listed.stdout.split("\n\n").last().unwrap().replace('\n', " ");
    assert!(
        end.contains("the built-in demo answers") && end.contains("`amplifier init`"),
        "{}",
        listed.seen()
    );
}

#[test]
fn a_machine_without_a_home_is_a_wrong_call() {
    let desk = Desk::new();
    let mut command = desk.command(&["doctor"]);
    let output = command.env_remove("AMPLIFIER_HOME").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

/// What is told about one check, on one line.
fn told(desk: &Desk, check: &str) -> Vec<String> {
    let ran = desk.with_git(&["doctor", "--offline", "--output", "json"]).json();
    let findings = ran["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    findings
        .map(|finding| {
            let cure = finding["cure"].as_str().unwrap_or_default();
            format!(
                "{} {} | {cure}",
                finding["level"].as_str().unwrap(),
                finding["message"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn settings_that_have_no_effect_are_told_here_and_by_every_command() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home()).unwrap();
    let text = "overrides:\n  tool-bash:\n    config:\n      timeot: 5\n  tool-nope:\n    config: {a: 1}\n";
    std::fs::write(desk.home().join("settings.yaml"), text).unwrap();
    let found = told(&desk, "settings");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("settings.yaml:4:7: `tool-bash` has no `timeot`"), "{found:?}");
    assert!(found[0].ends_with("did you mean `timeout`?"), "{found:?}");
    assert!(
        found[1].contains("settings.yaml:5:3: `overrides.tool-nope` is for no built-in module"),
        "{found:?}"
    );
    let shown = desk.amplifier(&["config", "show"]);
    assert!(shown.stderr.contains("settings.yaml:4:7: ") && shown.stderr.contains("`overrides.tool-nope`"));
}

#[cfg(unix)]
#[test]
fn keys_that_others_can_read_are_told_once_with_what_helps() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home()).unwrap();
    let file = desk.home().join("keys.env");
    std::fs::write(&file, "OPENAI_API_KEY=k\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(told(&desk, "permissions")[0].contains("chmod go="), "{:?}", told(&desk, "permissions"));
    assert_eq!(told(&desk, "keys").len(), 1, "{:?}", told(&desk, "keys"));
}

#[test]
fn a_bundle_that_is_not_there_and_a_model_that_is_not_connected_have_cures() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home()).unwrap();
    std::fs::write(desk.home().join("settings.yaml"), "bundle:\n  active: nope\n").unwrap();
    let found = &told(&desk, "bundle")[0];
    assert!(found.starts_with("problem `nope`") && found.contains("settings.yaml:2:11"), "{found}");
    assert!(found.contains("`amplifier bundle use NAME`"), "{found}");
    assert!(found.contains("`amplifier config unset bundle.active`"), "{found}");
    let home = desk.home().display().to_string();
    let cures = desk.amplifier(&["--home", &home, "doctor", "--offline", "--output", "json"]).stdout;
    assert!(cures.contains(&format!("`amplifier --home {home} bundle use NAME`")), "{cures}");
    assert!(!cures.contains("`amplifier bundle"), "{cures}");
    let found = &told(&desk, "servers")[0];
    assert!(
        found.starts_with("warning no model is connected") && found.contains("`amplifier init`"),
        "{found}"
    );
}

/// What is told about sessions to somebody who is not root.
#[cfg(target_os = "linux")]
fn told_to_nobody(desk: &Desk) -> String {
    let mut doctor = crate::wrong::as_nobody(desk, &["doctor", "--offline", "--output", "json"]);
    let found = crate::desk::Ran::of(doctor.output().unwrap()).json();
    let findings = found["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["check"] == "sessions").map(|finding| format!("{finding}\n")).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_that_may_not_be_read_is_not_called_damaged_and_an_index_that_may_not_be_written_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    desk.plan("a.json", &crate::desk::says("one"));
    let ran = desk.amplifier(&["run", "--plan", "a.json", "hi"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let folder = desk.sessions().remove(0);
    let (state, sessions) = (desk.home().join("state"), folder.parent().unwrap());
    let set = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    for open in [&desk.home(), &state, sessions] {
        set(open, 0o777);
    }
    for index in ["sessions.idx", "sessions.lock"] {
        set(&state.join(index), 0o666);
    }
    set(&folder, 0o000);
    let id = folder.file_name().unwrap().to_str().unwrap();
    let words = ["cannot be read: cannot enter `", id, "ermission denied", folder.to_str().unwrap()];
    let found = told_to_nobody(&desk);
    assert!(words.iter().all(|word| found.contains(word)), "{found}");
    assert!(found.contains("chown -R ") || found.contains("chmod u+rwx"), "{found}");
    assert!(!found.contains("damaged") && !found.contains("session delete"), "{found}");
    // Who wants to see it is told the same, and not that there is nothing.
    for command in [&["session", "show", id][..], &["session", "delete", id, "--yes"]] {
        let ran = crate::desk::Ran::of(crate::wrong::as_nobody(&desk, command).output().unwrap());
        assert_eq!(ran.code, 1, "{}", ran.seen());
        let cures = ["makes it yours", "opens it for you"];
        assert!(ran.stderr.contains("ermission denied"), "{}", ran.seen());
        assert!(cures.iter().any(|cure| ran.stderr.contains(cure)), "{}", ran.seen());
    }
    set(&folder, 0o755);
    assert!(!told_to_nobody(&desk).contains("the index of sessions"), "{}", told_to_nobody(&desk));
    for index in ["sessions.idx", "sessions.lock"] {
        let path = state.join(index);
        set(&path, 0o444);
        let found = told_to_nobody(&desk);
        let cure = format!("`rm -f {}`", path.display());
        assert!(found.contains("the index of sessions cannot be written: `"), "{found}");
        assert!(found.contains("ermission denied") && found.contains(&cure), "{found}");
        set(&path, 0o666);
    }
    set(&state, 0o555);
    let found = told_to_nobody(&desk);
    assert!(found.contains("the index of sessions cannot be written: `") && found.contains("chmod u+rwx"));
    set(&state, 0o755);
}
