//! The picture of the README: the screen of a real run, drawn as SVG. The model follows a script; the loop, the tools, the
//! question and the screen are real. `DRAW=1 cargo test -p amplifier-cli picture` draws it anew.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use crate::desk::{Desk, read};
use crate::terminal::Terminal;

const SIZE: (u16, u16) = (84, 32);
/// The size of a cell.
const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 14.0;
const PAPER: &str = "#11151c";
const INK: &str = "#d5dae3";
/// The sixteen colours that have names.
const COLORS: [&str; 16] = [
    "#2b303b", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf", "#7f8795",
    "#ff7b86", "#b5e890", "#ffd98f", "#7cc4ff", "#dd9bf0", "#6fd6e3", "#ffffff",
];

/// A small project with a fault that the model of the script finds and mends.
fn desk() -> Desk {
    let desk = Desk::new();
    let edit = json!({"file_path": "garden.py", "old_string": "return day > 121", "new_string": "return day >= 121"});
    let end = "Planting begins on **day 121**, and `may_plant` says so now:\n\n```python\ndef may_plant(day: int) -> bool:\n    return day >= 121\n```\n";
    desk.file(
        "garden.py",
        "def may_plant(day: int) -> bool:\n    \"\"\"From the first of May on.\"\"\"\n    return day > 121\n",
    );
    desk.file("notes.md", "Plant from day 121 on, not before.\n");
    desk.plan(
        "plan.json",
        &json!({
            // One call after the other: which of two is done first differs from run to run.
            "session": {
                "orchestrator": {"module": "loop-streaming", "config": {"max_parallel_tools": 1}},
                "context": {"module": "context-simple"},
            },
            "providers": [{"module": "provider-mock", "config": {"responses": [
                {"text": "I look at the notes and at the code.", "tool_calls": [
                    {"name": "read_file", "arguments": {"file_path": "notes.md"}},
                    {"name": "grep", "arguments": {"pattern": "may_plant"}},
                ]},
                {"tool_calls": [{"name": "read_file", "arguments": {"file_path": "garden.py"}}]},
                {"tool_calls": [{"name": "edit_file", "arguments": edit}]},
                end,
            ]}}],
            // It shows its diff and asks by itself, as in the built-in bundle.
            "tools": [
                {"module": "tool-filesystem", "config": {"require_approval": true}},
                {"module": "tool-search"},
            ],
        }),
    );
    desk
}

/// The colour of a cell's letters.
fn color(color: vt100::Color) -> String {
    match color {
        vt100::Color::Default => INK.to_owned(),
        vt100::Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        vt100::Color::Idx(index @ 0..16) => COLORS[usize::from(index)].to_owned(),
        vt100::Color::Idx(index @ 16..232) => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            format!("#{:02x}{:02x}{:02x}", level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        vt100::Color::Idx(index) => {
            let level = 8 + 10 * (index - 232);
            format!("#{level:02x}{level:02x}{level:02x}")
        }
    }
}

/// One row as runs of cells that look the same.
fn draw_row(svg: &mut String, screen: &vt100::Screen, row: u16) {
    let y = MARGIN + CELL.1 * (f64::from(row) + 0.75);
    let (mut run, mut from, mut look) = (String::new(), 0, None);
    let mut flush = |run: &mut String, from: u16, look: &Option<(String, bool, bool)>| {
        if let Some((fill, bold, italic)) = look
            && !run.trim().is_empty()
        {
            let x = MARGIN + CELL.0 * f64::from(from);
            let weight = if *bold { " font-weight=\"bold\"" } else { "" };
            let slant = if *italic { " font-style=\"italic\"" } else { "" };
            let text = run.trim_end().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{fill}\"{weight}{slant}>{text}</text>")
                .unwrap();
        }
        run.clear();
    };
    for column in 0..SIZE.0 {
        let Some(cell) = screen.cell(row, column) else { continue };
        let fill = if cell.dim() { COLORS[8].to_owned() } else { color(cell.fgcolor()) };
        let now = Some((fill, cell.bold(), cell.italic()));
        if now != look {
            flush(&mut run, from, &look);
            (from, look) = (column, now);
        }
        run.push_str(if cell.has_contents() { cell.contents() } else { " " });
    }
    flush(&mut run, from, &look);
}

fn draw(screen: &vt100::Screen, rows: u16) -> String {
    let (width, height) =
        (2.0 * MARGIN + CELL.0 * f64::from(SIZE.0), 2.0 * MARGIN + CELL.1 * f64::from(rows));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\" \
         aria-label=\"A chat in a terminal: a question, tool calls, a diff that is approved, an answer\">\n<rect \
         width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n<g xml:space=\"preserve\" font-family=\"ui-monospace, \
         Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n"
    );
    (0..rows).for_each(|row| draw_row(&mut svg, screen, row));
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Times, sizes and ids differ from run to run.
fn steady(svg: &str) -> String {
    let texts = svg.lines().filter_map(|line| line.split_once('>')?.1.strip_suffix("</text>"));
    texts.map(|text| text.replace(|c: char| c.is_ascii_digit(), "0") + "\n").collect()
}

#[test]
fn the_picture_of_the_readme_is_of_a_real_run() {
    let desk = desk();
    let terminal = Terminal::open(&desk, &["--plan", "plan.json"], SIZE, "xterm-256color");
    terminal.prompt();
    terminal.types("may_plant is wrong, isn't it? Look at my notes.\r");
    terminal.sees("day >= 121");
    terminal.question();
    terminal.types("y\r");
    terminal.sees("Planting begins");
    terminal.prompt();
    let svg = terminal.with_screen(|screen| {
        let rows = u16::try_from(screen.contents().trim_end().lines().count()).unwrap();
        draw(screen, rows)
    });
    assert!(read(&desk.work().join("garden.py")).contains(">= 121"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/chat.svg");
    #[expect(clippy::disallowed_methods, reason = "whoever draws says so")]
    if std::env::var("DRAW").is_ok() {
        std::fs::write(&path, &svg).unwrap();
    }
    assert_eq!(
        steady(&svg),
        steady(&read(&path)),
        "`DRAW=1 cargo test -p amplifier-cli picture` draws it anew"
    );
}
