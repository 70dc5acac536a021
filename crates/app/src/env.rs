//! The environment, read here and nowhere else. Each variable the program knows is a constant below.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Moves the home folder (`~/.amplifierd`).
pub const AMPLIFIER_HOME: &str = "AMPLIFIER_HOME";
/// The person's own folder, under which the home folder is.
pub const HOME: &str = "HOME";

/// Where variables come from: this process, or a fixed set in tests.
#[derive(Debug, Clone, Default)]
pub enum Environment {
    /// The variables of this process.
    #[default]
    Process,
    /// These and no others.
    Fixed(BTreeMap<String, String>),
}

impl Environment {
    /// The value of a variable, if it is set and is text.
    pub fn get(&self, name: &str) -> Option<String> {
        match self {
            #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
            Self::Process => std::env::var(name).ok(),
            Self::Fixed(variables) => variables.get(name).cloned(),
        }
    }

    /// Every variable, for programs that are started with the person's own environment, such as git.
    pub fn all(&self) -> Vec<(OsString, OsString)> {
        match self {
            #[expect(clippy::disallowed_methods, reason = "handed on to programs, never read for a meaning")]
            Self::Process => std::env::vars_os().collect(),
            Self::Fixed(variables) => {
                variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
            }
        }
    }
}
