//! What every command says about itself: a snapshot each, found by walking the help, in a terminal of 80 columns.

use insta::assert_snapshot;

use crate::desk::{Desk, Ran};

fn help(desk: &Desk, path: &[String], flag: &str) -> String {
    let words: Vec<_> = path.iter().map(String::as_str).chain([flag]).collect();
    let ran = Ran::of(desk.command(&words).env("COLUMNS", "80").output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
    ran.stdout
}

/// The names under `Commands:`.
fn commands(help: &str) -> Vec<String> {
    let rows =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // What is wrapped is indented further than a name.
    let names = rows.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn every_command_says_what_it_does_in_80_columns() {
    let desk = Desk::new();
    let mut open = vec![Vec::new()];
    let mut walked = 0;
    while let Some(path) = open.pop() {
        let text = help(&desk, &path, "--help");
        let wide = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{path:?}");
        let lone = text.lines().find(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            matches!(words.as_slice(), [flag] if flag.starts_with("--") && !flag.contains('<'))
        });
        // A flag that says nothing about itself has only its name on its line and no text below.
        if let Some(flag) = lone {
            let after = text.lines().skip_while(|line| *line != flag).nth(1).unwrap_or_default();
            assert!(after.starts_with("    "), "{path:?}: `{flag}` says nothing");
        }
        // What prints something to read prints it for programs too; a schema is JSON already.
        let reads =
            ["list", "show", "info", "explain", "hash", "validate", "diff", "tree", "current", "keys", "get"];
        let reads =
            reads.iter().chain(&["path", "search", "models", "test", "doctor", "version", "check", "verify"]);
        if path.last().is_some_and(|command| reads.clone().any(|name| name == command)) {
            assert!(text.contains("--output"), "{path:?} prints nothing for programs:\n{text}");
        }
        let name = if path.is_empty() { "amplifier".to_owned() } else { path.join("_") };
        assert_snapshot!(name, text);
        for command in commands(&text) {
            open.push([path.clone(), vec![command]].concat());
        }
        walked += 1;
    }
    assert!(walked > 40, "only {walked} commands");
    assert!(!desk.home().exists());
}

#[test]
fn a_wrong_word_is_told_with_the_nearest_right_one() {
    let desk = Desk::new();
    assert_snapshot!("wrong_command", desk.amplifier(&["docter"]).seen());
    assert_snapshot!("wrong_flag", desk.amplifier(&["doctor", "--ofline"]).seen());
    assert_snapshot!("wrong_value", desk.amplifier(&["doctor", "--output", "xml"]).seen());
    assert_snapshot!("missing_value", desk.amplifier(&["tool", "info"]).seen());
}
