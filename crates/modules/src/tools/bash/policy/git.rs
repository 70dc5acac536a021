//! `git`: a program that runs what the configuration of its repository names, and changes history here and elsewhere.

use super::Risk;
use super::programs::flagged;
use super::walk::Walk;

/// Commands of git itself; another name is an alias or a program of its own.
const KNOWN: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "help",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "notes",
    "pull",
    "push",
    "range-diff",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "switch",
    "symbolic-ref",
    "tag",
    "var",
    "verify-commit",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
    "update-ref",
    "update-index",
    "filter-branch",
    "filter-repo",
    "send-email",
    "submodule",
];
/// Options before the command that change nothing about what runs.
const PLAIN: &[&str] = &[
    "--no-pager",
    "-P",
    "--version",
    "-v",
    "--no-optional-locks",
    "--literal-pathspecs",
    "--no-replace-objects",
    "--glob-pathspecs",
    "--icase-pathspecs",
    "--help",
];
/// Options that run a program, write a file or send something.
const TELLING: &[&str] = &[
    "--ext-diff",
    "--textconv",
    "--output",
    "--open-files-in-pager",
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--template",
    "--config",
    "--separate-git-dir",
    "--remote",
    "--no-index",
    "--output-directory",
    "--show-signature",
    "--rsh",
    "--smtp",
    "--gpg-sign",
    "--bundle-uri",
    "--index-filter",
    "--tree-filter",
    "--git-dir",
    "--work-tree",
    "--outpu",
    "--ext",
    "--textc",
    "--upload",
    "--receive",
    "--templ",
    "--conf",
    "--open",
    "--show-sig",
    "--no-ind",
    "--outp",
];

impl Walk<'_> {
    pub(super) fn git(&mut self, words: &[String], shown: &str) {
        if self.is_foreign() || self.is_in_a_repository_that_starts_programs() {
            self.found.push((Risk::Project, shown.to_owned()));
        }
        let mut rest = words;
        while let Some((word, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
            if !PLAIN.contains(&word.as_str()) {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
            let valued = ["-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env"]
                .contains(&word.as_str());
            rest = if valued { after.get(1..).unwrap_or_default() } else { after };
        }
        let Some((command, rest)) = rest.split_first() else { return };
        let options: Vec<String> = rest.iter().take_while(|word| *word != "--").cloned().collect();
        let runs = options.iter().any(|word| {
            TELLING.iter().any(|name| {
                word == name || word.strip_prefix(name).is_some_and(|value| value.starts_with('='))
            })
        }) || match command.as_str() {
            "grep" => options.iter().any(|word| word.starts_with("-O")),
            "format-patch" | "archive" => options.iter().any(|word| word.starts_with("-o")),
            "clone" | "ls-remote" | "fetch" | "pull" => options
                .iter()
                .any(|word| word.starts_with("-u") || word.starts_with("-c") || word.contains("::")),
            "rebase" => options.iter().any(|word| word.starts_with("-x")),
            "submodule" => options.iter().any(|word| word == "foreach"),
            "bisect" => options.iter().any(|word| word == "run" || word == "visualize"),
            "help" => true,
            _ => !KNOWN.contains(&command.as_str()),
        };
        if command == "credential" {
            self.found.push((Risk::Secret, shown.to_owned()));
        } else if runs {
            self.found.push((Risk::Opaque, shown.to_owned()));
        }
        if matches!(command.as_str(), "init" | "clone" | "worktree" | "bundle" | "archive" | "format-patch") {
            let paths: Vec<_> = options.iter().map(crate::tools::bash::shell::Word::text).collect();
            self.outside(&paths, shown);
        }
        self.found.extend(git_risk(command, rest).map(|risk| (risk, shown.to_owned())));
    }

    /// Whether git would start what the repository around the working folder names: one that the user does not trust, or
    /// one that begins below the workspace, whose configuration came with its files.
    fn is_in_a_repository_that_starts_programs(&self) -> bool {
        let (Some(folder), Some(workspace)) = (&self.folder, &self.policy.workspace) else { return false };
        let below = |folder: &&std::path::Path| *folder != workspace && folder.starts_with(workspace);
        let is_nested = folder.ancestors().take_while(below).any(|folder| {
            folder.join(".git").symlink_metadata().is_ok() || folder.join("HEAD").symlink_metadata().is_ok()
        });
        (is_nested || self.policy.trust.is_untrusted(folder)) && amplifier_git::starts_programs(folder)
    }
}

fn git_risk(command: &str, rest: &[String]) -> Option<Risk> {
    let has = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(&word.as_str()));
    let begins =
        |start: &str| rest.iter().any(|word| word.len() > 1 && word.to_lowercase().starts_with(start));
    let loses = match command {
        "push" => {
            let letters = flagged(rest, 'f') || flagged(rest, 'd');
            letters
                || begins("--force")
                || begins("+")
                || begins(":")
                || has(&["--mirror", "--delete", "--prune"])
        }
        "reset" => has(&["--hard", "--merge"]),
        "clean" => flagged(rest, 'f') || has(&["--force"]),
        "checkout" | "restore" | "switch" => has(&["--", ".", "-f", "--force", "--discard-changes"]),
        "branch" | "tag" => has(&["-D", "-d", "--delete"]),
        "stash" => has(&["drop", "clear"]),
        "reflog" | "gc" | "worktree" => has(&["expire", "delete", "--prune=now", "remove"]),
        "filter-branch" | "filter-repo" | "update-ref" => true,
        _ => false,
    };
    match command {
        _ if loses => Some(Risk::Destructive),
        "push" | "send-email" => Some(Risk::Share),
        "config" if has(&["--global", "--system", "-e", "--edit"]) || sets_more_than_names(rest) => {
            Some(Risk::Persistence)
        }
        "rebase" | "bisect" if has(&["-x", "--exec", "run"]) => Some(Risk::Opaque),
        _ if begins("ext::") || begins("--upload-pack") => Some(Risk::HiddenCode),
        _ => None,
    }
}

/// Whether `git config` sets anything but who commits and how text is shown: most keys can name a program.
fn sets_more_than_names(rest: &[String]) -> bool {
    let words: Vec<String> = rest
        .iter()
        .filter(|word| !word.starts_with('-') && !matches!(word.as_str(), "set" | "get" | "unset" | "list"))
        .map(|word| word.to_lowercase())
        .collect();
    let reads = rest.iter().any(|word| {
        word.starts_with("--get")
            || word.starts_with("--list")
            || matches!(word.as_str(), "get" | "list" | "-l")
    });
    let plain = [
        "user.",
        "color.",
        "advice.",
        "branch.",
        "init.defaultbranch",
        "pull.rebase",
        "push.default",
        "core.autocrlf",
    ];
    !reads
        && words.len() > 1
        && !words.first().is_some_and(|key| plain.iter().any(|start| key.starts_with(start)))
}
