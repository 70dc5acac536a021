//! Looks at everything a session needs and says what is wrong and what to do about it. It changes nothing and fetches
//! nothing: folders are looked at, programs asked for their version, servers on this machine for their models. All it leaves
//! is a note beside a journal that it found to be damaged, for lists.
//!
//! All checks run side by side, each within its time. How findings look on a screen is the front end's business.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;

mod house;
mod people;
mod permissions;
mod programs;
mod records;

pub use people::Terminal;

use crate::detect::Places;
use crate::library::Access;

/// How long one check may take.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How long nothing is said about those that still run.
const SILENCE: Duration = Duration::from_millis(700);

/// What is looked at, in the order in which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// This program.
    Version,
    /// The home folder is there and can be written.
    Home,
    /// Nobody else can read what is private or change what is ours.
    Permissions,
    /// There is room for sessions.
    Disk,
    /// The settings files can be read.
    Settings,
    /// The names of bundles can be read and lead somewhere.
    Registry,
    /// The bundle in use makes a session.
    Bundle,
    /// Collections and their profiles can be read.
    Collections,
    /// Sessions can be listed, none was left in the middle, and journals are what was written.
    Sessions,
    /// What was fetched is on record.
    Cache,
    /// Rust, for modules written in it; git, Python and Node, which modules may need too, have checks of their own.
    Toolchain,
    /// Git, for sources that come with it.
    Git,
    /// Python, for modules written in it.
    Python,
    /// Node, for MCP servers written for it.
    Node,
    /// A boundary around shell commands.
    Sandbox,
    /// The providers of the settings can be used.
    Providers,
    /// Keys of model services.
    Keys,
    /// Model servers on this machine.
    Servers,
    /// What the terminal can show.
    Terminal,
    /// The clock tells a time that can be.
    Clock,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Version,
        Self::Home,
        Self::Permissions,
        Self::Disk,
        Self::Settings,
        Self::Registry,
        Self::Bundle,
        Self::Collections,
        Self::Sessions,
        Self::Cache,
        Self::Toolchain,
        Self::Git,
        Self::Python,
        Self::Node,
        Self::Sandbox,
        Self::Providers,
        Self::Keys,
        Self::Servers,
        Self::Terminal,
        Self::Clock,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Home => "home",
            Self::Permissions => "permissions",
            Self::Disk => "disk",
            Self::Settings => "settings",
            Self::Registry => "registry",
            Self::Bundle => "bundle",
            Self::Collections => "collections",
            Self::Sessions => "sessions",
            Self::Cache => "cache",
            Self::Toolchain => "toolchain",
            Self::Git => "git",
            Self::Python => "python",
            Self::Node => "node",
            Self::Sandbox => "sandbox",
            Self::Providers => "providers",
            Self::Keys => "keys",
            Self::Servers => "servers",
            Self::Terminal => "terminal",
            Self::Clock => "clock",
        }
    }

    async fn run(self, patient: &Patient) -> Vec<Finding> {
        let on_disk = match self {
            Self::Version => return vec![programs::version()],
            Self::Bundle => return house::bundle(patient).await,
            Self::Toolchain => return vec![programs::toolchain(patient).await],
            Self::Git => return vec![programs::git(patient).await],
            Self::Python => return programs::python(patient).await,
            Self::Node => return vec![programs::node(patient).await],
            Self::Sandbox => return vec![programs::sandbox().await],
            Self::Providers => return people::providers(patient).await,
            Self::Keys => return people::keys(patient).await,
            Self::Servers => return people::servers(patient).await,
            Self::Terminal => return people::terminal(patient),
            Self::Home => house::home,
            Self::Permissions => permissions::look,
            Self::Disk => house::disk,
            Self::Settings => house::settings,
            Self::Registry => house::registry,
            Self::Collections => house::collections,
            Self::Sessions => records::sessions,
            Self::Cache => records::cache,
            Self::Clock => records::clock,
        };
        let patient = patient.clone();
        match tokio::task::spawn_blocking(move || on_disk(&patient)).await {
            Ok(findings) => findings,
            Err(error) => vec![self.problem(format!("the check broke off: {error}"))],
        }
    }

    fn ok(self, message: impl Into<String>) -> Finding {
        Finding { check: self, level: Level::Ok, message: message.into(), cure: None }
    }

    fn warning(self, message: impl Into<String>) -> Finding {
        Finding { level: Level::Warning, ..self.ok(message) }
    }

    fn problem(self, message: impl Into<String>) -> Finding {
        Finding { level: Level::Problem, ..self.ok(message) }
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// All is well.
    Ok,
    /// Something is missing that not everybody needs.
    Warning,
    /// Sessions will fail, or something private is open to others.
    Problem,
}

impl Level {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}

impl Finding {
    fn cure(self, cure: impl Into<String>) -> Self {
        Self { cure: Some(cure.into()), ..self }
    }
}

/// Whether servers are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Those on this machine, or where a variable says.
    Servers,
    /// None.
    Nothing,
}

/// What is looked at.
#[derive(Clone)]
pub struct Patient {
    /// The home, the environment and the working folder.
    pub access: Access,
    /// Where servers are looked for.
    pub places: Places,
    pub reach: Reach,
    pub terminal: Terminal,
    /// How long one check may take; [`PATIENCE`] is usual.
    pub patience: Duration,
}

/// Hears which checks take long.
pub trait Watcher {
    /// These still run.
    fn waits_for(&self, checks: &[Check]);
}

/// Looks at everything; findings come in the order of [`Check::ALL`].
pub async fn examine(patient: &Patient, watcher: &dyn Watcher) -> Vec<Finding> {
    let mut running = JoinSet::new();
    for check in Check::ALL {
        let patient = patient.clone();
        running.spawn(async move {
            let found = tokio::time::timeout(patient.patience, check.run(&patient)).await;
            let late = format!("no answer within {:.1} s", patient.patience.as_secs_f64());
            let late = |_| vec![check.warning(late).cure("a slow disk or program; try again")];
            (check, found.unwrap_or_else(late))
        });
    }
    let mut open = BTreeSet::from(Check::ALL);
    let mut found = BTreeMap::new();
    loop {
        match tokio::time::timeout(SILENCE, running.join_next()).await {
            Ok(None) => break,
            Ok(Some(Ok((check, findings)))) => {
                open.remove(&check);
                found.insert(check, findings);
            }
            // Which check it was is told below, since it stays open.
            Ok(Some(Err(_))) => {}
            Err(_) => watcher.waits_for(&open.iter().copied().collect::<Vec<_>>()),
        }
    }
    for check in open {
        found.insert(check, vec![check.problem("the check broke off")]);
    }
    found.into_values().flatten().collect()
}

/// Whether a session can be expected to work.
pub fn is_well(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.level != Level::Problem)
}

/// Some names and how many more there are.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<_> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// How many of something, in words.
fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        0 => format!("no {many}"),
        1 => format!("one {one}"),
        number => format!("{number} {many}"),
    }
}

/// The cause of an error with every cause below it.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    amplifier_core::error::chain(error)
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
