//! Real programs the tests run against, installed by the tests themselves into a folder below the target directory: once,
//! also when several tests or processes want them at the same time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python interpreter that can import these packages, and nothing that they depend on.
pub fn python_alone(name: &str, packages: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parts");
    std::fs::create_dir_all(&root).unwrap();
    let (folder, ready) = (root.join(name), root.join(format!("{name}.ready")));
    let lock = File::create(root.join(format!("{name}.lock"))).unwrap();
    // Freed when the file is closed, also by a crash.
    lock.lock().unwrap();
    let wanted = packages.join("\n");
    if !std::fs::read_to_string(&ready).is_ok_and(|installed| installed == wanted) {
        // What an interrupted install left behind is not to be trusted.
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]);
        run(pip.arg("--disable-pip-version-check").args(packages));
        std::fs::write(&ready, wanted).unwrap();
    }
    folder.join("bin/python")
}

fn run(command: &mut Command) {
    let need =
        "this test needs Python 3.10 or newer with `venv` and `pip` (the command `python3`); install it";
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?} cannot be started ({error}): {need}"),
    };
    assert!(
        output.status.success(),
        "{command:?} failed: {need}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
