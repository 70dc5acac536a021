//! What may run: a command is read, every simple command in it is judged, the worst verdict counts.
//!
//! This is a policy and not a boundary: a program that is started can do what it likes. The boundary is the sandbox.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shell;
use crate::workspace::Workspace;

mod code;
mod git;
mod known;
mod pattern;
mod places;
mod programs;
mod reading;
mod remote;
mod scripts;
mod walk;
mod wrappers;

/// How much is let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Profile {
    /// Asks before anything leaves the workspace or the machine; `allowed_commands` cannot lift a denial.
    #[default]
    Strict,
    /// Asks before what cannot be undone or seen through.
    Standard,
    /// Asks before what touches the system; denies only what destroys it.
    Permissive,
    /// Judges nothing but `denied_commands`.
    Unrestricted,
}

impl Profile {
    fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Standard => "standard",
            Self::Permissive => "permissive",
            Self::Unrestricted => "unrestricted",
        }
    }
}

/// What happens to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// Why a command is not simply let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Risk {
    Catastrophe,
    Privilege,
    System,
    HiddenCode,
    Secret,
    /// A file that only the shell can name.
    Unseen,
    /// Code of a directory that the user does not trust.
    Project,
    Opaque,
    Destructive,
    Persistence,
    Send,
    Share,
    Outside,
    Install,
    Listed,
}

impl Risk {
    fn title(self) -> &'static str {
        match self {
            Self::Catastrophe => "Destroying the system, a device or a home folder",
            Self::Privilege => "Privilege escalation",
            Self::System => "Changing the system",
            Self::HiddenCode => "Running downloaded or hidden code",
            Self::Secret => "Reading keys and secrets",
            Self::Unseen => "Reading what cannot be seen beforehand",
            Self::Project => "Running code of a directory that is not trusted",
            Self::Opaque => "Running what cannot be seen beforehand",
            Self::Destructive => "Destroying work that cannot be brought back",
            Self::Persistence => "Changing what runs later",
            Self::Send => "Sending data to another machine",
            Self::Share => "Changing something on another machine",
            Self::Outside => "Writing outside the workspace",
            Self::Install => "Installing software",
            Self::Listed => "This command",
        }
    }

    fn way_out(self) -> &'static str {
        match self {
            Self::Catastrophe => "name exactly the files inside the workspace that are meant",
            Self::Privilege => "run it without more rights, or ask the person to run it",
            Self::System => "keep to the workspace, or ask the person to run it",
            Self::HiddenCode => "save it to a file, read it, then run the file",
            Self::Secret => "work without the secret, or let the person pass it on",
            Self::Unseen => "write the path out",
            Self::Project => "read the files instead, or ask the user to run `amplifier trust` there",
            Self::Opaque => "write the command out, or put the code into a file and run that",
            Self::Destructive => "say exactly what goes, or ask the person",
            Self::Persistence => "make the change in the workspace only",
            Self::Send | Self::Share => "let the person send it",
            Self::Outside => "write inside the workspace or the temporary folder",
            Self::Install => "use what is installed, or ask the person",
            Self::Listed => "use another command; this one is named in `denied_commands`",
        }
    }

    fn verdict(self, profile: Profile) -> Verdict {
        use Profile::{Permissive, Standard, Strict, Unrestricted};
        match (self, profile) {
            (Self::Listed, _) => Verdict::Deny,
            (_, Unrestricted) => Verdict::Allow,
            (Self::Catastrophe, _) => Verdict::Deny,
            (Self::Privilege | Self::System | Self::HiddenCode, Strict | Standard) => Verdict::Deny,
            (Self::Privilege | Self::System | Self::HiddenCode, Permissive) => Verdict::Ask,
            (_, Permissive) => Verdict::Allow,
            (_, Strict) => Verdict::Ask,
            (Self::Share | Self::Outside | Self::Install | Self::Unseen, Standard) => Verdict::Allow,
            (_, Standard) => Verdict::Ask,
        }
    }
}

/// One reason, with the simple command it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) risk: Risk,
    pub(crate) verdict: Verdict,
    /// The simple command.
    pub(crate) command: String,
}

/// What a command comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    /// Everything that is not let through, the worst first.
    pub(crate) findings: Vec<Finding>,
    profile: Profile,
}

impl Judgement {
    /// The worst reason, in words for the model.
    pub(crate) fn refusal(&self) -> String {
        let Some(worst) = self.findings.first() else { return "Command denied for safety".to_owned() };
        let (title, hint, mode) = (worst.risk.title(), worst.risk.way_out(), self.profile.as_str());
        let title = match worst.risk {
            Risk::Listed => format!("{title} is not allowed here"),
            _ => format!("{title} not allowed in {mode} mode"),
        };
        format!("Command denied for safety: {title}\n  Hint: `{}`: {hint}", shortened(&worst.command))
    }

    /// Why a person is asked, a line for each reason.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let line = |finding: &Finding| format!("{}: `{}`", finding.risk.title(), shortened(&finding.command));
        self.findings.iter().map(line).collect()
    }

    /// What is dangerous in it: why, and the simple command, each once.
    pub(crate) fn dangers(&self) -> Vec<Danger> {
        let danger =
            |finding: &Finding| Danger { why: finding.risk.title(), command: finding.command.clone() };
        self.findings.iter().map(danger).collect()
    }

    /// The way out of the worst reason.
    pub(crate) fn way_out(&self) -> &'static str {
        self.findings.first().map_or("", |finding| finding.risk.way_out())
    }
}

/// A part of a command that the policy does not simply let through, for front ends to mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Danger {
    /// What it does, in words.
    pub why: &'static str,
    /// The simple command, as far as it can be read.
    pub command: String,
}

/// What the strictest profile would ask about in a command, wherever it stands.
pub fn dangers(command: &str, workspace: &Path, home: Option<&Path>) -> Vec<Danger> {
    let (workspace, home) = (Some(workspace.to_owned()), home.map(Path::to_owned));
    let policy = Policy { profile: Profile::Strict, workspace: workspace.clone(), home, ..Policy::default() };
    policy.judge(command, workspace.as_deref()).dangers()
}

fn shortened(command: &str) -> String {
    let most = 200;
    let mut shown: String = command.chars().take(most).collect();
    if command.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

/// Every simple command that a command would run as far as it can be read: also what stands in substitutions, behind
/// wrappers and in code for another shell.
pub(crate) fn simple_commands(command: &str) -> Result<Vec<Vec<shell::Word>>, shell::Unreadable> {
    Ok(walk::simple_commands(&Policy::default(), &shell::parse(command)?))
}

/// The rules of one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy {
    pub(crate) profile: Profile,
    /// Patterns that lift what a simple command would be held up for.
    pub(crate) allowed: Vec<String>,
    /// Patterns that deny, whatever the profile.
    pub(crate) denied: Vec<String>,
    /// The folder in which work is done.
    pub(crate) workspace: Option<PathBuf>,
    /// The person's own folder.
    pub(crate) home: Option<PathBuf>,
    /// Folders of keys beside those that are known by name, such as the home of this program.
    pub(crate) secrets: Vec<PathBuf>,
    /// Which directories the user does not trust.
    pub(crate) trust: Workspace,
}

impl Policy {
    /// Judges a command that begins in `folder`.
    pub(crate) fn judge(&self, command: &str, folder: Option<&std::path::Path>) -> Judgement {
        let (mut found, fixed) = match shell::parse(command) {
            Ok(script) => walk::walk(self, &script, folder),
            Err(unreadable) => (vec![(Risk::Opaque, format!("{command} ({unreadable})"))], Vec::new()),
        };
        // The value of a variable as a prompt: the code in it runs.
        if command.contains("@P}") {
            found.push((Risk::Opaque, command.to_owned()));
        }
        if pattern::mentioned(&self.denied, command) {
            found.push((Risk::Listed, command.to_owned()));
        }
        let lifted = found.into_iter().map(|(risk, command)| {
            let verdict = self.lifted(risk, &command, risk.verdict(self.profile));
            Finding { risk, verdict, command }
        });
        let fixed = fixed.into_iter().map(|(risk, command)| {
            let verdict = risk.verdict(self.profile);
            Finding { risk, verdict, command }
        });
        let mut findings: Vec<Finding> = Vec::new();
        for finding in lifted.chain(fixed) {
            if finding.verdict != Verdict::Allow && !findings.contains(&finding) {
                findings.push(finding);
            }
        }
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        let verdict = findings.first().map_or(Verdict::Allow, |finding| finding.verdict);
        Judgement { verdict, findings, profile: self.profile }
    }

    /// What stands in `allowed_commands` needs no asking; what destroys the machine stays denied, and so does whatever
    /// the strict profile denies. A `*` stands for words that the user has not seen: it opens no secret, no place outside
    /// and no directory that is not trusted.
    fn lifted(&self, risk: Risk, command: &str, verdict: Verdict) -> Verdict {
        let kept = match risk {
            Risk::Catastrophe | Risk::Listed | Risk::Project => true,
            Risk::Secret | Risk::Unseen | Risk::Outside | Risk::Persistence
                if !pattern::matches_exactly(&self.allowed, command) =>
            {
                true
            }
            _ => self.profile == Profile::Strict && verdict == Verdict::Deny,
        };
        if !kept && pattern::matches_whole(&self.allowed, command) { Verdict::Allow } else { verdict }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
