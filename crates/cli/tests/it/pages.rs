//! `amplifier version`, `amplifier completions` and `amplifier man`.

use serde_json::Value;

use crate::desk::Desk;

#[test]
fn the_version_is_told_with_what_the_program_writes() {
    let desk = Desk::new();
    let ran = desk.amplifier(&["version"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.starts_with("amplifier 0.1.0\n  platform    "), "{}", ran.stdout);
    assert!(ran.stdout.contains("journal 1, registry 1, bundle.lock 1, profile.lock 1"), "{}", ran.stdout);
    let told = desk.amplifier(&["version", "--json"]).json();
    assert_eq!(told, desk.amplifier(&["version", "--output", "json"]).json());
    assert_eq!(told["home"].as_str(), desk.home().to_str());
    assert_eq!(told["formats"]["journal"], 1);
    let mut homeless = desk.command(&["version", "--json"]);
    let output = homeless.env_remove("AMPLIFIER_HOME").output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["home"], Value::Null, "a machine without a home has a version too");
}

#[test]
fn every_shell_gets_completions_of_every_command() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = desk.amplifier(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{shell}");
        for word in ["doctor", "bundle", "validate", "strict"] {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(desk.amplifier(&["completions", "dos"]).code, 2);
}

#[test]
fn bash_reads_its_completions() {
    let desk = Desk::new();
    desk.file("c.bash", desk.amplifier(&["completions", "bash"]).stdout);
    let script = "source ./c.bash; COMP_WORDS=(amplifier bundle up); COMP_CWORD=2; _amplifier amplifier up bundle; \
                  echo \"${COMPREPLY[@]}\"";
    let output = std::process::Command::new("bash").args(["-c", script]).current_dir(desk.work()).output();
    let output = output.expect("bash is needed for this test; install it");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "update\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let desk = Desk::new();
    let page = desk.amplifier(&["man"]);
    assert_eq!(page.code, 0);
    assert!(page.stdout.contains(".TH amplifier 1") && page.stdout.contains("doctor"), "{}", page.stdout);
    let ran = desk.amplifier(&["man", "--dir", "pages/man1"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let dir = desk.work().join("pages/man1");
    for name in ["amplifier.1", "amplifier-run.1", "amplifier-bundle-update.1", "amplifier-tool-invoke.1"] {
        let text = std::fs::read_to_string(dir.join(name)).unwrap();
        assert!(text.contains(".SH NAME"), "{name}: {text}");
    }
    for part in [".SH \"EXIT STATUS\"", ".SH \"ENVIRONMENT\"", "AMPLIFIER_HOME", ".SH \"FILES\"", "124"] {
        assert!(page.stdout.contains(part), "{part}: {}", page.stdout);
    }
    let of_one = desk.amplifier(&["man", "session", "export"]);
    assert!(of_one.stdout.contains(".TH amplifier-session-export 1"), "{}", of_one.seen());
    assert!(of_one.stdout.contains("\"amplifier 0.1.0\""), "{}", of_one.stdout);
    assert_eq!(desk.amplifier(&["man", "nobody"]).code, 2);
    let run = std::fs::read_to_string(dir.join("amplifier-run.1")).unwrap();
    assert!(run.contains("\\-\\-offline"), "{run}");
    desk.file("taken", "");
    let failed = desk.amplifier(&["man", "--dir", "taken"]);
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.starts_with("error: `taken` cannot be written: "), "{}", failed.stderr);
}
