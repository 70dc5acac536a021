//! Programs that a test writes and starts.
//!
//! A file cannot be started while any process has it open for writing, and a thread that forks just then has a copy of every
//! open file until its child starts something. So another process writes the file, and this one never has it open.

#![expect(clippy::expect_used, reason = "a test that cannot write its program is broken and must say so")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a script that can be started at once.
///
/// # Panics
///
/// When it cannot be written.
pub fn write_program(path: &Path, text: &str) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell starts");
    shell.stdin.take().expect("it has an input").write_all(text.as_bytes()).expect("it reads");
    assert!(shell.wait().expect("it ends").success(), "{} cannot be written", path.display());
}

/// Copies a program so that the copy can be started at once.
///
/// # Panics
///
/// When it cannot be copied.
pub fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("/bin/cp").arg(from).arg(to).status().expect("`cp` starts");
    assert!(status.success(), "{} cannot be copied to {}", from.display(), to.display());
}
