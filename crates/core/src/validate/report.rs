//! What the checks found, and how it is shown to people and to programs.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// How bad a failed check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The plan cannot be used.
    Error,
    /// The plan works, but probably not as meant.
    Warning,
    /// Nothing to do; recorded so that a reader sees what was looked at.
    Info,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}

/// One check and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Which check, such as `providers[0]_module_required`; stable.
    pub name: String,
    /// Whether the plan stood it.
    pub passed: bool,
    /// What was found, for people.
    pub message: String,
    /// What failing means.
    pub severity: Severity,
    /// JSON pointer to the place; of a missing value, to where it belongs.
    pub pointer: String,
}

/// Every check that was made, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validation {
    /// The checks.
    pub checks: Vec<Check>,
}

impl Validation {
    /// Whether no error was found; warnings do not count.
    pub fn passed(&self) -> bool {
        self.errors().next().is_none()
    }

    /// The failed checks that make the plan unusable.
    pub fn errors(&self) -> impl Iterator<Item = &Check> {
        self.failed(Severity::Error)
    }

    /// The failed checks that a person should look at.
    pub fn warnings(&self) -> impl Iterator<Item = &Check> {
        self.failed(Severity::Warning)
    }

    /// The outcome in a line: `PASSED: 3/3 checks passed (0 errors, 0 warnings)`.
    pub fn summary(&self) -> String {
        let outcome = if self.passed() { "PASSED" } else { "FAILED" };
        let passed = self.checks.iter().filter(|check| check.passed).count();
        let (errors, warnings) =
            (counted(self.errors().count(), "error"), counted(self.warnings().count(), "warning"));
        format!("{outcome}: {passed}/{} checks passed ({errors}, {warnings})", self.checks.len())
    }

    /// The errors as a numbered list with a total, or `No errors`.
    pub fn format_errors(&self) -> String {
        let total = self.errors().count();
        if total == 0 {
            return "No errors".to_owned();
        }
        let mut text = String::from("Mount Plan Validation Failed\n");
        for (number, check) in (1_usize..).zip(self.errors()) {
            text.push_str(&format!("  {number}. [{}] {}\n", check.name, check.message));
        }
        text.push_str(&format!("Total: {}", counted(total, "error")));
        text
    }

    /// The report for programs: `passed`, `summary`, `errors`, `warnings`, `checks`, in this order.
    pub fn to_json(&self) -> Value {
        json!({
            "passed": self.passed(),
            "summary": self.summary(),
            "errors": self.errors().map(Check::to_json).collect::<Vec<_>>(),
            "warnings": self.warnings().map(Check::to_json).collect::<Vec<_>>(),
            "checks": self.checks.iter().map(Check::to_json).collect::<Vec<_>>(),
        })
    }

    fn failed(&self, severity: Severity) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| !check.passed && check.severity == severity)
    }

    pub(super) fn pass(&mut self, name: &str, pointer: &str, message: &str) {
        self.checks.push(Check {
            name: name.to_owned(),
            passed: true,
            message: message.to_owned(),
            severity: Severity::Info,
            pointer: pointer.to_owned(),
        });
    }

    pub(super) fn error(&mut self, name: &str, pointer: &str, message: String) {
        self.fail(Severity::Error, name, pointer, message);
    }

    pub(super) fn warning(&mut self, name: &str, pointer: &str, message: String) {
        self.fail(Severity::Warning, name, pointer, message);
    }

    fn fail(&mut self, severity: Severity, name: &str, pointer: &str, message: String) {
        self.checks.push(Check {
            name: name.to_owned(),
            passed: false,
            message,
            severity,
            pointer: pointer.to_owned(),
        });
    }
}

impl Check {
    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "passed": self.passed,
            "message": self.message,
            "severity": self.severity,
            "pointer": self.pointer,
        })
    }
}

impl Serialize for Validation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

/// A number of things in words.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
