//! What the model reads of it. Pure: the same facts give the same text.

use std::fmt::Write as _;
use std::path::Path;

use amplifier_protocol::ids::SessionId;
use amplifier_protocol::time::Timestamp;
use jiff::tz::TimeZone;

use super::Config;
use super::git::{Entry, Repo};
use super::look::Seen;
use super::paths::{Sieve, Tier};
use crate::reminder::one_line;

/// The longest line about a file or commit, in characters.
const LINE: usize = 200;

/// Everything that is told about.
pub(super) struct Facts<'a> {
    pub(super) config: &'a Config,
    pub(super) dir: Option<&'a Path>,
    pub(super) session: &'a SessionId,
    pub(super) parent: Option<&'a SessionId>,
    pub(super) time: Timestamp,
    pub(super) zone: &'a TimeZone,
    pub(super) seen: &'a Seen,
}

pub(super) fn told(facts: &Facts<'_>) -> String {
    let mut lines = vec![
        "Where you work, as far as it is known now; use it where it matters and do not speak of it unasked."
            .to_owned(),
        "<env>".to_owned(),
    ];
    lines.extend(
        facts.dir.map(|dir| format!("Working directory: {}", one_line(&dir.display().to_string(), 1_000))),
    );
    if facts.config.include_session {
        lines.push(format!("Session ID: {}", facts.session));
        lines.extend(facts.parent.map(|parent| format!("Parent Session ID: {parent}")));
        lines.push(format!("Is sub-session: {}", if facts.parent.is_some() { "Yes" } else { "No" }));
    }
    let repo = facts.seen.repo.as_deref().filter(|_| facts.config.include_git);
    lines.extend(
        repo.map(|repo| format!("Is directory a git repo: {}", if repo.exists { "Yes" } else { "No" })),
    );
    lines.push(format!("Platform: {}", std::env::consts::OS));
    let system = facts.seen.system.as_ref().filter(|system| !system.is_empty());
    lines.extend(system.map(|system| format!("OS Version: {system}")));
    if facts.config.include_datetime {
        lines.push(format!("Date and time when this turn began: {}", time(facts)));
    }
    lines.push("</env>".to_owned());
    if let Some(repo) = repo.filter(|repo| repo.exists) {
        tell_git(&mut lines, repo, facts);
    }
    lines.join("\n")
}

/// To the minute: seconds would make every request end differently.
fn time(facts: &Facts<'_>) -> String {
    let stamp = jiff::Timestamp::from_microsecond(facts.time.as_micros()).unwrap_or(jiff::Timestamp::MAX);
    let civil = stamp.to_zoned(facts.zone.clone());
    let form =
        if facts.config.datetime_include_timezone { "%Y-%m-%d %H:%M %Z (%:z)" } else { "%Y-%m-%d %H:%M" };
    civil.strftime(form).to_string()
}

fn tell_git(lines: &mut Vec<String>, repo: &Repo, facts: &Facts<'_>) {
    let config = facts.config;
    lines.push(String::new());
    let age = match (&repo.fault, facts.seen.late) {
        (Some(fault), _) => format!(" (the last look failed: {})", one_line(fault, LINE)),
        (None, true) => " (a newer look is under way)".to_owned(),
        (None, false) => String::new(),
    };
    lines.push(format!("Git{age}:"));
    if let Some(branch) = repo.branch.as_ref().filter(|_| config.git_include_branch) {
        lines.push(format!("Current branch: {}", one_line(branch, LINE)));
    }
    lines.extend(repo.main_branch.as_ref().map(|main| format!("Main branch: {}", one_line(main, LINE))));
    if let Some(entries) = &repo.entries {
        lines.push("Status:".to_owned());
        tell_status(lines, entries, config);
    }
    if !repo.commits.is_empty() {
        lines.push("Recent commits:".to_owned());
        lines.extend(repo.commits.iter().map(|commit| one_line(commit, LINE)));
    }
}

fn tell_status(lines: &mut Vec<String>, entries: &[Entry], config: &Config) {
    if entries.is_empty() {
        lines.push("(clean)".to_owned());
        return;
    }
    let sieve = Sieve::of(config);
    let (mut tracked, mut untracked, mut side, mut shown) = (0, 0, 0, 0);
    let (mut made, mut made_tracked, mut left_out) = (0_usize, 0_usize, 0_usize);
    for entry in entries {
        let tier = sieve.tier(&entry.path);
        if tier == Tier::Made {
            made += 1;
            made_tracked += usize::from(!entry.is_untracked());
            continue;
        }
        let (count, most) = match (tier, entry.is_untracked()) {
            (Tier::Side, _) => (&mut side, config.git_status_tier2_limit),
            (_, true) => (&mut untracked, config.git_status_max_untracked),
            (_, false) => (&mut tracked, config.git_status_max_tracked),
        };
        if *count >= most || shown >= config.git_status_max_lines {
            left_out += 1;
            continue;
        }
        *count += 1;
        shown += 1;
        // The two letters are kept as they are: the first may be a space, and it means something.
        lines.push(format!("{} {}", entry.code, one_line(&entry.path, LINE)));
    }
    if config.git_status_show_filter_summary {
        lines.extend(summary(made, made_tracked, left_out));
    } else if shown == 0 {
        lines.push("(nothing to list)".to_owned());
    }
}

fn summary(made: usize, made_tracked: usize, left_out: usize) -> Option<String> {
    let mut text = String::new();
    if left_out > 0 {
        write!(text, "{left_out} more").ok()?;
    }
    if made > 0 {
        let and = if text.is_empty() { "" } else { ", " };
        write!(text, "{and}{made} in folders of dependencies or build results").ok()?;
    }
    if made_tracked > 0 {
        write!(text, ", {made_tracked} of them tracked by git (usually a mistake)").ok()?;
    }
    (!text.is_empty()).then(|| format!("(not listed: {text})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn entry(code: &str, path: &str) -> Entry {
        Entry { code: code.to_owned(), path: path.to_owned() }
    }

    fn tell(config: &Config, repo: Repo) -> String {
        let (session, seen) = ("s".parse().unwrap(), Seen { repo: Some(Arc::new(repo)), ..Seen::default() });
        let (time, zone) = (Timestamp::from_micros(1_735_689_659_999_999), TimeZone::UTC);
        told(&Facts { config, dir: None, session: &session, parent: None, time, zone: &zone, seen: &seen })
    }

    #[test]
    fn the_time_has_no_seconds_and_the_zone_is_told_when_asked_for() {
        let text = tell(&Config::default(), Repo::default());
        assert!(text.contains("turn began: 2025-01-01 00:00\n"), "{text}");
        let config = Config { datetime_include_timezone: true, ..Config::default() };
        assert!(tell(&config, Repo::default()).contains("2025-01-01 00:00 UTC (+00:00)"));
    }

    #[test]
    fn limits_hold_and_what_is_left_out_is_counted() {
        let entries = vec![
            entry(" M", "a.rs"),
            entry("M ", "b.rs"),
            entry("??", "c.rs"),
            entry("??", "d.rs"),
            entry(" M", "node_modules/x.js"),
            entry(" M", "Cargo.lock"),
        ];
        let repo = Repo { exists: true, entries: Some(entries), ..Repo::default() };
        let config = Config {
            git_status_max_tracked: 1,
            git_status_max_untracked: 1,
            git_status_tier2_limit: 0,
            ..Config::default()
        };
        let text = tell(&config, repo.clone());
        assert!(text.contains("\n M a.rs\n?? c.rs\n"), "{text}");
        assert!(
            text.contains("3 more, 1 in folders of dependencies or build results, 1 of them tracked"),
            "{text}"
        );
        let quiet = Config { git_status_show_filter_summary: false, ..config };
        assert!(!tell(&quiet, repo).contains("not listed"));
    }
}
