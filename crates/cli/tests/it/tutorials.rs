//! Runs the tutorials as a reader would: every command of `docs/tutorials/*.md`, in order, in an empty folder.
//!
//! A block with `file=NAME` behind its language is written to that file. In a `console` block a line that begins with
//! `$ ` is a command for the shell; the lines below it are what it prints. `…` stands for anything on a line, and a line of its
//! own for any lines. A command must end with exit code 0 unless `# exit N` stands behind it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::desk::{Desk, Ran, git_variables, read};

/// One thing to do.
enum Step {
    File { name: String, text: String },
    Command { line: String, exit: i32, shown: Vec<String> },
}

/// The steps of a page, each with its line.
fn steps(page: &str) -> Vec<(usize, Step)> {
    let (mut steps, mut lines) = (Vec::new(), page.lines().enumerate());
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let block: Vec<_> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        if let Some((_, name)) = info.split_once("file=") {
            // Pages that are shown to people leave the name out.
            let before = page.lines().take(number).filter(|line| !line.is_empty()).last().unwrap_or_default();
            assert!(before.contains(&format!("`{name}`")), "line {number} does not name `{name}`");
            let text = block.iter().map(|line| format!("{line}\n")).collect();
            steps.push((number + 1, Step::File { name: name.to_owned(), text }));
        } else if info == "console" {
            for (offset, line) in block.iter().enumerate() {
                match (line.strip_prefix("$ "), steps.last_mut()) {
                    (Some(command), _) => {
                        let (line, exit) = match command.rsplit_once("  # exit ") {
                            Some((line, exit)) => (line, exit.parse().unwrap()),
                            None => (command, 0),
                        };
                        let step = Step::Command { line: line.to_owned(), exit, shown: Vec::new() };
                        steps.push((number + 2 + offset, step));
                    }
                    (None, Some((_, Step::Command { shown, .. }))) => shown.push((*line).to_owned()),
                    _ => panic!("line {}: a console block begins with a command", number + 2),
                }
            }
        }
    }
    steps
}

/// Whether a line is as shown.
fn fits(shown: &str, line: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether what was printed is as shown, `…` on a line of its own standing for any lines.
fn prints(shown: &[&str], printed: &[&str]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), _) => (0..=printed.len()).any(|skipped| prints(rest, &printed[skipped..])),
        (Some((first, rest)), Some((line, after))) => fits(first, line) && prints(rest, after),
        _ => false,
    }
}

/// What a command prints, both streams as a terminal would show them.
fn run(desk: &Desk, line: &str) -> Ran {
    let binary = Path::new(env!("CARGO_BIN_EXE_amplifier"));
    let mut variables = git_variables(&desk.path("user"));
    for (name, value) in &mut variables {
        if name == "PATH" {
            *value = format!("{}:{value}", binary.parent().unwrap().display());
        }
    }
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {line}")])
        .current_dir(desk.work())
        .env_clear()
        .envs(variables)
        .env("AMPLIFIER_HOME", desk.home())
        .env("COLUMNS", "80")
        // No local server is looked for: what runs on the reader's machine is not part of a tutorial.
        .env("OLLAMA_HOST", "http://127.0.0.1:1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran::of(output)
}

fn follow(path: &Path) {
    let desk = Desk::new();
    for (number, step) in steps(&read(path)) {
        let place = format!("{}:{number}", path.display());
        match step {
            Step::File { name, text } => drop(desk.file(&name, text)),
            Step::Command { line, exit, shown } => {
                let ran = run(&desk, &line);
                let printed = ran.stdout.replace(&desk.path("work").display().to_string(), "~/work");
                assert_eq!(ran.code, exit, "{place}: `{line}` printed\n{printed}");
                let shown: Vec<_> = shown.iter().map(|line| line.trim_end()).collect();
                let lines: Vec<_> = printed.lines().map(str::trim_end).collect();
                assert!(
                    shown.is_empty() || prints(&shown, &lines),
                    "{place}: `{line}` is shown with\n{}\nand prints\n{printed}",
                    shown.join("\n")
                );
            }
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials")
}

#[test]
fn what_the_tutorials_show_is_what_happens() {
    let mut pages: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.file_name().is_some_and(|name| name != "README.md"));
    pages.sort();
    assert!(!pages.is_empty());
    std::thread::scope(|scope| {
        let runs: Vec<_> = pages.iter().map(|page| scope.spawn(move || follow(page))).collect();
        let failed = runs.into_iter().filter_map(|run| run.join().err()).count();
        assert_eq!(failed, 0, "tutorials failed; see above");
    });
}

#[test]
fn a_tutorial_that_shows_something_else_is_noticed() {
    assert!(prints(&["a", "…", "z"], &["a", "b", "c", "z"]));
    assert!(!prints(&["a", "…", "z"], &["a", "b"]));
    assert!(fits("session … has … turns", "session 1 has 2 turns"));
    assert!(!fits("session … has … turns", "session 1 has 2 turns!"));
    assert!(!fits("exact", "exactly"));
}
