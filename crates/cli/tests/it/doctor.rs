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
