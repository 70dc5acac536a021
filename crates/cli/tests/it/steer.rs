//! Texts of others, such as those of a repository that somebody cloned, cannot steer the terminal: not the title of its
//! window, not the cursor, not the colours.

use crate::desk::{Desk, says};
use crate::terminal::Terminal;

/// A program that tells of something whose name sets the title of the window.
#[track_caller]
fn is_harmless(desk: &Desk, args: &[&str], words: &str) {
    let mut terminal = Terminal::open(desk, args, (120, 40), "xterm-256color");
    terminal.end();
    let bytes = terminal.bytes();
    let told = String::from_utf8_lossy(&bytes).into_owned();
    assert!(told.contains(words), "{args:?}: {told:?}");
    for steering in ["\u{1b}]", "\u{7}", "\u{9b}"] {
        assert!(!told.contains(steering), "{args:?}: {told:?}");
    }
}

#[test]
fn settings_of_a_project_cannot_steer_the_terminal() {
    let desk = Desk::new();
    desk.file(".amplifier/settings.yaml", "\"x\\e]0;pwned\\ay\": 1\n").plan("a.json", &says("hi"));
    is_harmless(&desk, &["session", "list"], "]0;pwned");
    is_harmless(&desk, &["run", "--plan", "a.json", "hi"], "]0;pwned");
    // The lines of a file that cannot be read are shown as well.
    desk.file(".amplifier/settings.yaml", "ui: {color: \u{1b}]0;pwned\u{7}\n");
    is_harmless(&desk, &["session", "list"], "]0;pwned");
}

#[test]
fn bundles_and_plans_cannot_steer_the_terminal() {
    let desk = Desk::new();
    let bundle = "---\nbundle: {name: far}\nincludes: [minimal]\n\"x\\e]0;pwned\\ay\": 1\n---\nFar.\n";
    let plan = r#"{"session": {"orchestrator": "loop-basic", "context": "context-simple"}, "x\u001b]0;pwned\u0007": 1}"#;
    desk.file("far.md", bundle).file("p.json", plan);
    is_harmless(&desk, &["run", "--bundle", "./far.md", "-p", "mock", "hi"], "]0;pwned");
    is_harmless(&desk, &["bundle", "validate", "./far.md"], "]0;pwned");
    is_harmless(&desk, &["plan", "validate", "p.json"], "]0;pwned");
    is_harmless(&desk, &["run", "--plan", "none\u{1b}]0;pwned\u{7}.json", "hi"], "]0;pwned");
}
