//! Programs of this machine that sessions may need, and this one. Each is asked for its version; nothing else is run.

use std::process::Stdio;
use std::sync::Arc;

use amplifier_core::clock::Clock;
use amplifier_core::loader::Loader;
use amplifier_core::session::SessionBuilder;
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::mount_plan::{ModuleSpec, MountPlan};
use serde_json::json;
use tokio::process::Command;

use super::{Check, Finding, Patient, chain};
use crate::about;
use crate::clock::SystemClock;

/// The oldest git with everything that fetching asks of it.
const GIT: (u32, u32) = (2, 31);
/// The oldest Python that public modules are written for.
const PYTHON: (u32, u32) = (3, 11);

pub(super) fn version() -> Finding {
    let about = about::About::new();
    let commit = about.commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    Check::Version.ok(format!("amplifier {}{commit} for {}", about.version, about.platform))
}

/// What builds modules written in Rust. Nothing that comes with this program has to be built.
pub(super) async fn toolchain(patient: &Patient) -> Finding {
    let (cargo, rustc) = tokio::join!(ask("cargo", patient), ask("rustc", patient));
    let told = match (cargo, rustc) {
        (Ok(cargo), Ok(rustc)) => format!("{cargo}, {rustc}"),
        (Ok(_), Err(why)) => format!("cargo is there, but rustc {why}"),
        (Err(why), _) => format!("cargo {why}"),
    };
    Check::Toolchain.ok(format!("{told}; only who writes modules in Rust needs it"))
}

pub(super) async fn git(patient: &Patient) -> Finding {
    let check = Check::Git;
    let cure = format!("install git {}.{} or newer", GIT.0, GIT.1);
    match ask("git", patient).await {
        Err(why) => check
            .warning(format!("git {why}; bundles and collections from repositories cannot be fetched"))
            .cure(cure),
        Ok(told) => match numbers(&told) {
            Some(found) if found < GIT => check.warning(format!("{told} is old")).cure(cure),
            _ => check.ok(told),
        },
    }
}

pub(super) async fn python(patient: &Patient) -> Vec<Finding> {
    let check = Check::Python;
    let (python, uv) = tokio::join!(ask("python3", patient), ask("uv", patient));
    let cure = format!("install Python {}.{} or newer; nothing else needs it", PYTHON.0, PYTHON.1);
    let uv = match uv {
        Ok(told) => told,
        Err(_) => "uv is not there, so environments are made with venv and pip, which is slower".to_owned(),
    };
    vec![match python {
        Err(why) => check.warning(format!("python3 {why}; modules written in Python cannot run")).cure(cure),
        Ok(told) if numbers(&told).is_some_and(|found| found < PYTHON) => {
            check.warning(format!("{told} is old; modules written in Python may not run")).cure(cure)
        }
        Ok(told) => check.ok(format!("{told}; {uv}")),
    }]
}

pub(super) async fn node(patient: &Patient) -> Finding {
    Check::Node.ok(match ask("node", patient).await {
        Ok(told) => format!("Node {told}"),
        Err(why) => format!("node {why}; only MCP servers written for it need it"),
    })
}

/// The first line a program says about its version, or why it says nothing.
async fn ask(program: &str, patient: &Patient) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().envs(patient.access.environment.all()).kill_on_drop(true);
    // Some of them start what a file in the working directory names, such as the toolchain of a Rust project.
    command.current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let output = command.output().await.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "is not installed".to_owned(),
        _ => format!("does not start: {error}"),
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default().trim();
    match output.status.success() && !line.is_empty() {
        true => Ok(line.chars().take(60).collect()),
        false => Err(format!("does not tell its version ({})", output.status)),
    }
}

/// The first two numbers of a version.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let digits = text.find(|c: char| c.is_ascii_digit())?;
    let mut parts = text.get(digits..)?.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The module that would need it says whether there is one.
pub(super) async fn sandbox() -> Finding {
    let check = Check::Sandbox;
    let bash = ModuleId::fixed("tool-bash");
    let mut spec = ModuleSpec::new(bash.clone());
    spec.config.insert("sandbox".to_owned(), json!("workspace-write"));
    spec.config.insert("sandbox_required".to_owned(), json!(false));
    let mut plan = MountPlan::new(ModuleId::fixed("loop-basic"), ModuleId::fixed("context-simple"));
    plan.tools.push(spec);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let loader = Arc::new(Loader::new().finder(Arc::new(BuiltIns)));
    let session = match SessionBuilder::new(plan, loader, clock).open().await {
        Ok(session) => session,
        Err(error) => return check.warning(format!("it cannot be tried: {}", chain(&error))),
    };
    let entry = session.report().modules.iter().find(|entry| entry.module == bash);
    let warnings = entry.map(|entry| entry.warnings.clone()).unwrap_or_default();
    // It holds nothing but an empty bench; what it says while it is let go changes no answer.
    drop(session.cleanup().await);
    match warnings.into_iter().next() {
        None => check.ok("bubblewrap works; `sandbox` in the config of `tool-bash` puts it around commands"),
        Some(told) if told.starts_with("sandbox: ") => check.ok(told.replacen("sandbox: ", "", 1)),
        Some(told) => check.warning(told).cure("install bubblewrap (`bwrap`), where namespaces are allowed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_programs_tell_them() {
        assert_eq!(numbers("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(numbers("Python 3.11.2"), Some((3, 11)));
        assert_eq!(numbers("v20.1.0"), Some((20, 1)));
        assert_eq!(numbers("unknown"), None);
    }
}
