//! Real programs the tests run against, installed by the tests themselves into a folder below the target directory: once,
//! also when several tests or processes want them at the same time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python interpreter that can import these packages, and nothing that they depend on.
pub fn python_alone(name: &str, packages: &[&str]) -> PathBuf {
    let folder = installed(name, packages, |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder), PYTHON);
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]);
        run(pip.arg("--disable-pip-version-check").args(packages), PYTHON);
    });
    folder.join("bin/python")
}

/// A folder like `/` with what these packages of the system, and whatever of their closure is not installed, hold. Nothing
/// is installed: the packages are fetched and unpacked.
pub fn apt(name: &str, packages: &[&str]) -> PathBuf {
    installed(name, packages, |folder| {
        std::fs::create_dir_all(folder.join("lists/partial")).unwrap();
        let lists = format!("Dir::State::lists={}", folder.join("lists").display());
        let cache = format!("Dir::Cache={}", folder.join("cache").display());
        let apt = || {
            let mut apt = Command::new("apt-get");
            apt.current_dir(folder).args(["--quiet", "-o", &lists, "-o", &cache]);
            // Root would fetch as somebody who may not write here.
            apt.args(["-o", "APT::Sandbox::User=root"]);
            apt
        };
        run(apt().arg("update"), APT);
        let planned =
            run(apt().args(["--simulate", "--no-install-recommends", "install"]).args(packages), APT);
        let missing = planned.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
        let missing: Vec<_> = missing.collect();
        if missing.is_empty() {
            return;
        }
        run(apt().arg("download").args(missing), APT);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "deb") {
                run(Command::new("dpkg").arg("--extract").arg(&path).arg(folder), APT);
            }
        }
    })
}

/// The folder for a list of packages; whoever comes first fills it, the others wait.
fn installed(name: &str, packages: &[&str], install: impl FnOnce(&Path)) -> PathBuf {
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
        std::fs::create_dir_all(&folder).unwrap();
        install(&folder);
        std::fs::write(&ready, wanted).unwrap();
    }
    folder
}

const PYTHON: &str =
    "this test needs Python 3.10 or newer with `venv` and `pip` (the command `python3`); install it";
const APT: &str = "this test needs `apt-get` and `dpkg`, or the programs it looked for; install them";

/// Runs it to its end and gives what it printed.
fn run(command: &mut Command, need: &str) -> String {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?} cannot be started ({error}): {need}"),
    };
    assert!(
        output.status.success(),
        "{command:?} failed: {need}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
