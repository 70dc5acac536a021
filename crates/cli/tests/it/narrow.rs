//! Lists on narrow terminals: lines end between words and fit, and nothing is shortened where no terminal is.

use unicode_width::UnicodeWidthStr;

use crate::desk::{Desk, says};
use crate::provider::closed;
use crate::terminal::Terminal;

const TITLE: &str = "Please look into why the nightly build of the documentation fails offline";

/// The lines that a command sends to a terminal of this width, before the terminal wraps any.
fn lines(desk: &Desk, args: &[&str], columns: u16) -> Vec<String> {
    let nobody = closed().to_string();
    let variables = [
        ("TERM", "xterm-256color"),
        ("NO_COLOR", "1"),
        ("OLLAMA_HOST", nobody.as_str()),
        ("LLAMA_CPP_HOST", nobody.as_str()),
    ];
    let mut terminal = Terminal::open_with(desk, args, (columns, 24), &variables);
    let code = terminal.end();
    assert!(code < 2, "{args:?}: {}", terminal.screen());
    String::from_utf8(terminal.bytes()).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn lists_end_their_lines_between_words() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes"));
    assert_eq!(desk.amplifier(&["run", "--plan", "a.json", TITLE]).code, 0);
    for args in [
        &["doctor", "--offline"][..],
        &["provider", "list"],
        &["tool", "list"],
        &["config", "keys"],
        &["module", "list"],
        &["bundle", "list"],
        &["agents", "list"],
        &["version"],
        &["session", "list"],
        &["session", "list", "--all"],
    ] {
        for columns in [40, 60, 80] {
            let lines = lines(&desk, args, columns);
            assert!(lines.len() > 1 || args[0] == "session", "{args:?}: {lines:?}");
            // A word that is longer than the line, such as a path, is not torn by us.
            let wide = lines.iter().find(|line| line.width() > columns.into() && line.trim().contains(' '));
            assert_eq!(wide, None, "{args:?} in {columns} columns");
        }
    }
}

#[test]
fn titles_are_cut_on_a_terminal_and_whole_elsewhere() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes"));
    assert_eq!(desk.amplifier(&["run", "--plan", "a.json", TITLE]).code, 0);
    let wide = lines(&desk, &["session", "list"], 80);
    assert!(
        matches!(wide.as_slice(), [row] if row.contains("Please look into why") && row.ends_with('…')),
        "{wide:?}"
    );
    let narrow = lines(&desk, &["session", "list"], 40);
    assert!(
        matches!(narrow.as_slice(), [id, title] if id.width() < 40 && title.starts_with("  1 turn  Please look")),
        "{narrow:?}"
    );
    let piped = desk.amplifier(&["session", "list"]).stdout;
    assert!(piped.trim_end().ends_with(TITLE) && piped.lines().count() == 1, "{piped}");
}

#[test]
fn the_picker_of_sessions_fits() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes"));
    assert_eq!(desk.amplifier(&["run", "--plan", "a.json", TITLE]).code, 0);
    for columns in [40_u16, 80] {
        let mut terminal = Terminal::open(&desk, &["resume"], (columns, 24), "xterm-256color");
        terminal.sees("which one?");
        let bytes = String::from_utf8(terminal.bytes()).unwrap();
        terminal.types("q\r");
        assert_eq!(terminal.end(), 3, "{}", terminal.screen());
        assert!(bytes.contains("Please look"), "{bytes}");
        assert_eq!(bytes.lines().find(|line| line.width() > columns.into()), None, "{bytes}");
    }
}

#[test]
fn errors_end_their_lines_between_words() {
    let desk = Desk::new();
    let mut terminal = Terminal::open(&desk, &["run", "--plan", "none.json", "hi"], (40, 24), "dumb");
    assert_eq!(terminal.end(), 2);
    let bytes = String::from_utf8(terminal.bytes()).unwrap();
    assert_eq!(bytes.lines().find(|line| line.width() > 40), None, "{bytes}");
    assert!(bytes.lines().count() > 2, "{bytes}");
}
