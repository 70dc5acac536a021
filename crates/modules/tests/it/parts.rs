//! Real programs the tests run against, installed by the tests themselves: npm and PyPI packages in a folder below the
//! target directory, once for each list of packages, also when several tests or processes want them at the same time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// A folder whose `node_modules` holds these packages, such as `left-pad@1.3.0`.
pub(crate) fn npm(packages: &[&str]) -> PathBuf {
    installed("npm", packages, |folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"]);
        run(npm.arg(folder).args(packages), "Node.js with npm (the commands `node` and `npm`)");
    })
}

/// A Python interpreter that can import these packages, such as `requests==2.32.0`.
pub(crate) fn python(packages: &[&str]) -> PathBuf {
    let folder = installed("python", packages, |folder| {
        let need = "Python 3.10 or newer with `venv` (the command `python3`)";
        run(Command::new("python3").args(["-m", "venv"]).arg(folder), need);
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        run(pip.args(packages), need);
    });
    folder.join("bin/python")
}

/// The folder for a list of packages; whoever comes first fills it, the others wait.
fn installed(kind: &str, packages: &[&str], install: impl FnOnce(&Path)) -> PathBuf {
    let mut sorted = packages.to_vec();
    sorted.sort_unstable();
    let key: String =
        Sha256::digest(sorted.join("\n")).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parts");
    std::fs::create_dir_all(&root).unwrap();
    let (folder, ready) = (root.join(format!("{kind}-{key}")), root.join(format!("{kind}-{key}.ready")));
    let lock = File::create(root.join(format!("{kind}-{key}.lock"))).unwrap();
    // Freed when the file is closed, also by a crash.
    lock.lock().unwrap();
    if !ready.exists() {
        // What an interrupted install left behind is not to be trusted.
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        std::fs::create_dir_all(&folder).unwrap();
        install(&folder);
        std::fs::write(&ready, sorted.join("\n")).unwrap();
    }
    folder
}

fn run(command: &mut Command, need: &str) {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?} cannot be started ({error}): this test needs {need}; install it"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed; this test needs {need}:\n{said}");
}
