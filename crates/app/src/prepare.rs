//! From a file to a checked mount plan, and from a bundle to one (`prepare/bundle.rs`). No module is loaded here.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_core::contracts::ModuleSourceResolver;
use amplifier_core::validate::{Check, MountPlanValidator, Severity, Validation};
use amplifier_protocol::locate::{Position, locate_nearest};
use amplifier_protocol::mount_plan::{MountPlan, PlanError};
use amplifier_protocol::run::RunPlace;
use serde_json::Value;

use crate::credentials::{self, Credentials, Hidden};
use crate::files::open_regular;
use crate::library::Access;
use crate::open;
use crate::plain::Plain;
use crate::resolver;
use crate::settings::Settings;
use crate::spelling::quoted;

mod bundle;
mod fault;
pub(crate) mod modules;
mod numbers;

pub use bundle::{
    Locking, PrepareOptions, PreparedBundle, Unavailable, complaints, current, prepare_bundle, rendered,
};
pub use fault::BundleFault;

/// The largest plan file we read. Real ones are a few kilobytes; agents embedded in them make some larger.
pub const MAX_PLAN_BYTES: u64 = 16 * 1024 * 1024;

/// A plan file that was read and checked, whatever the checks said.
pub struct PlanFile {
    /// The file.
    pub path: PathBuf,
    /// What the checks said.
    pub validation: Validation,
    text: String,
    value: Value,
    credentials: Credentials,
    settings: Arc<Settings>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The file cannot be read.
    #[error("plan file `{}` cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is too large to be a plan.
    #[error("plan file `{}` has more than {MAX_PLAN_BYTES} bytes, the most a plan has", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file says nothing.
    #[error("{}:1:1: the file is empty, and a plan is a JSON object", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is not JSON.
    #[error("{}:{line}:{column}: not JSON: {message}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the parser said.
        message: String,
    },
    /// The plan did not pass its checks.
    #[error("{}", problems.join("\n"))]
    Invalid {
        /// One line for each failed check, with its place.
        problems: Vec<String>,
        /// The place of the first.
        place: RunPlace,
        /// The file.
        path: PathBuf,
    },
    /// The plan passed its checks and still cannot be read.
    #[error("plan file `{}` cannot be read as a mount plan", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: PlanError,
    },
}

impl PrepareError {
    /// Where it is, as exactly as that is known.
    pub fn place(&self) -> RunPlace {
        let file = |path: &Path| RunPlace { file: path.display().to_string(), line: None, column: None };
        match self {
            Self::Read { path, .. } | Self::TooLarge { path } | Self::Plan { path, .. } => file(path),
            Self::Json { path, line, column, .. } => {
                RunPlace { line: Some(*line), column: Some(*column), ..file(path) }
            }
            Self::Empty { path } => RunPlace { line: Some(1), column: Some(1), ..file(path) },
            Self::Invalid { place, .. } => place.clone(),
        }
    }

    /// What the person can do about it.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                "check the path; `examples/minimal.json` in the sources is a plan to start from"
            }
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::IsADirectory => {
                "a plan is a file; a folder that holds a bundle is given with `--bundle`"
            }
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::InvalidInput => {
                "name a file; a plan may also be piped in with `--plan /dev/stdin`"
            }
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::InvalidData => {
                "save the file as UTF-8"
            }
            Self::Read { .. } => "make the file readable for you, or name another one",
            Self::TooLarge { .. } => "a plan names modules; large texts belong into files that it mentions",
            Self::Empty { path } => {
                return format!(
                    "`amplifier plan show --bundle foundation > {}` writes one to start from",
                    quoted(path)
                );
            }
            Self::Json { .. } => "mend it at that place",
            Self::Invalid { path, .. } | Self::Plan { path, .. } => {
                return format!("`amplifier plan validate {}` lists every check", quoted(path));
            }
        };
        hint.to_owned()
    }
}

impl PlanFile {
    /// Reads and checks a plan file.
    pub fn read(path: &Path) -> Result<Self, PrepareError> {
        let failed = |source| PrepareError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        // What a file says about its length is no bound: a pipe has none.
        let read =
            open_regular(path).and_then(|file| file.take(MAX_PLAN_BYTES + 1).read_to_string(&mut text));
        if text.len() as u64 > MAX_PLAN_BYTES {
            return Err(PrepareError::TooLarge { path: path.to_owned() });
        }
        read.map_err(failed)?;
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Err(PrepareError::Empty { path: path.to_owned() });
        }
        let mut value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let full = error.to_string();
            let place = format!(" at line {line} column {column}");
            let message = full.strip_suffix(&place).unwrap_or(&full).to_owned();
            // The end of a text that ends with a line end is no place in it.
            let (line, column) = match column {
                0 => (line.saturating_sub(1), text.lines().last().map_or(0, |last| last.chars().count())),
                _ => (line, column),
            };
            PrepareError::Json { path: path.to_owned(), line, column, message }
        })?;
        let (mut credentials, mut hidden) = (Credentials::default(), Vec::new());
        credentials.hide_json(&mut value, "", &mut hidden);
        let mut validation = MountPlanValidator::validate(&value);
        validation.checks.extend(hidden.into_iter().map(hidden_check));
        validation.checks.extend(numbers::checks(&text));
        let (path, settings) = (path.to_owned(), Arc::default());
        Ok(Self { path, validation, text, value, credentials, settings })
    }

    /// The same file; what it leaves open is filled in from settings.
    #[must_use]
    pub fn with_settings(mut self, settings: &Arc<Settings>) -> Self {
        self.settings = Arc::clone(settings);
        self.credentials.plain_mut().adopt(&settings.plain());
        self
    }

    /// The same file with a look for the modules it names. Who opens a session needs none: it finds them itself, and goes on
    /// without those that it can do without.
    #[must_use]
    pub fn with_modules_looked_for(mut self) -> Self {
        self.validation.checks.extend(modules::checks(&self.value));
        self
    }

    /// What a look for its modules left open, a line for each.
    pub fn not_looked_at(&self) -> impl Iterator<Item = String> {
        let checks =
            self.validation.checks.iter().filter(|check| check.name.ends_with(modules::NOT_LOOKED_AT));
        checks.map(|check| self.placed(check))
    }

    /// The keys that stand in it in plain text.
    pub fn plain(&self) -> &Plain {
        self.credentials.plain()
    }

    /// The typed plan, if it passed its checks.
    pub fn plan(&self) -> Result<MountPlan, PrepareError> {
        if !self.validation.passed() {
            let problems = self.validation.errors().map(|check| self.placed(check)).collect();
            let at = self.validation.errors().next().and_then(|check| self.position(check));
            let (line, column) = at.map(|at| (at.line, at.column)).unzip();
            let place = RunPlace { file: self.path.display().to_string(), line, column };
            return Err(PrepareError::Invalid { problems, place, path: self.path.clone() });
        }
        let mut plan = MountPlan::read(&self.value)
            .map_err(|source| PrepareError::Plan { path: self.path.clone(), source })?;
        self.settings.complete(&mut plan);
        // What the settings gave may hold what the file did not.
        Ok(self.credentials.clone().hide_plan(plan))
    }

    /// Where its modules come from, when that takes the credentials of addresses; else whoever opens a session knows.
    pub fn resolver(&self, plan: &MountPlan, access: &Access) -> Option<Arc<dyn ModuleSourceResolver>> {
        if self.credentials.is_empty() {
            return None;
        }
        let sources = open::sources(&access.home, &access.environment, &access.base);
        resolver::for_plan(plan, sources.with_written(self.credentials.written().clone()), &access.home)
    }

    /// The plan as it was written, but for credentials.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Where in the file the value at a JSON pointer stands.
    pub fn position_of(&self, pointer: &str) -> Option<Position> {
        locate_nearest(&self.text, pointer)
    }

    /// Where in the file a check looked.
    pub fn position(&self, check: &Check) -> Option<Position> {
        locate_nearest(&self.text, &check.pointer)
    }

    /// One line about a check: place, weight, name, message.
    pub fn describe(&self, check: &Check) -> String {
        format!("{}: {}: [{}] {}", self.place_of(check), check.severity, check.name, check.message)
    }

    /// The same for who says how much it weighs.
    fn placed(&self, check: &Check) -> String {
        format!("{}: [{}] {}", self.place_of(check), check.name, check.message)
    }

    fn place_of(&self, check: &Check) -> String {
        match self.position(check) {
            Some(Position { line, column }) => format!("{}:{line}:{column}", self.path.display()),
            None => self.path.display().to_string(),
        }
    }
}

/// A check of our own: what the kernel gets holds no credential any more.
fn hidden_check(hidden: Hidden) -> Check {
    let (name, pointer, message) = match hidden {
        Hidden::Address { pointer } => {
            let told = "the address holds a credential; it is used now and kept nowhere";
            ("source_credentials", pointer, format!("{told}. {}", credentials::HINT))
        }
        Hidden::Plain { pointer, message } => ("plain_keys", pointer, message),
    };
    Check { name: name.to_owned(), passed: false, message, severity: Severity::Warning, pointer }
}
