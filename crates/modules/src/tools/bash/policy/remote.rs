//! Programs that talk to other machines or change history: `curl`, `wget`, `git`.

use super::Risk;
use super::code;
use super::programs::flagged;
use super::walk::Walk;
use crate::tools::bash::shell::Word;

/// Settings of git that name programs.
const RUNNING: &[&str] = &[
    "alias.",
    "core.",
    "diff.external",
    "credential.helper",
    "filter.",
    "include",
    "sequence.editor",
    "gpg.",
];

impl Walk<'_> {
    pub(super) fn download(&mut self, program: &str, words: &[String], arguments: &[Word], shown: &str) {
        let local = words
            .iter()
            .any(|word| ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| word.contains(host)));
        let data = |word: &String| {
            matches!(
                word.as_str(),
                "-d" | "--data"
                    | "--data-raw"
                    | "--data-binary"
                    | "--json"
                    | "-X"
                    | "--request"
                    | "--post-data"
                    | "-F"
                    | "--form"
            )
        };
        let file =
            |word: &String| word.starts_with('@') || word.contains("=@") || word.starts_with("--post-file");
        if words.iter().any(|word| word == "-T" || word == "--upload-file" || file(word)) {
            self.found.push((Risk::Send, shown.to_owned()));
        } else if words.iter().any(data) && !local {
            self.found.push((Risk::Share, shown.to_owned()));
        }
        let mut names = words.iter().zip(words.iter().skip(1));
        let flag = if program == "curl" { ["-o", "--output"] } else { ["-O", "--output-document"] };
        let to = names.find(|(name, _)| flag.contains(&name.as_str())).map(|(_, to)| to.clone());
        let last = words.iter().rfind(|word| word.contains("://") || word.contains('.'));
        let of_url = || last.and_then(|url| url.rsplit('/').next()).map(str::to_owned);
        let saves = program == "wget"
            || words.iter().any(|word| word == "-O" || word == "--remote-name" || word == "-LO");
        if let Some(to) = &to {
            self.all_written(&[Word::text(to.clone())], shown);
        }
        let name = to.or_else(|| if saves { of_url() } else { None });
        self.fetched.extend(name.and_then(|name| name.rsplit('/').next().map(str::to_owned)));
        if arguments.iter().any(|word| code::risk_of(word) == Risk::HiddenCode) {
            self.found.push((Risk::Send, shown.to_owned()));
        }
    }

    pub(super) fn git(&mut self, words: &[String], shown: &str) {
        let mut rest = words;
        while let Some((word, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
            let value = after.first().map(|value| value.to_lowercase()).unwrap_or_default();
            if word == "-c" && RUNNING.iter().any(|key| value.starts_with(key))
                || word.starts_with("--config-env")
            {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
            rest = if word == "-c" || word == "-C" { after.get(1..).unwrap_or_default() } else { after };
        }
        let Some((command, rest)) = rest.split_first() else { return };
        self.found.extend(git_risk(command, rest).map(|risk| (risk, shown.to_owned())));
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
    let later =
        ["alias.", "core.hookspath", "core.sshcommand", "core.pager", "core.fsmonitor", "core.editor"];
    match command {
        _ if loses => Some(Risk::Destructive),
        "push" | "send-email" => Some(Risk::Share),
        "config" if has(&["--global", "--system"]) || later.iter().any(|key| begins(key)) => {
            Some(Risk::Persistence)
        }
        "rebase" | "bisect" if has(&["-x", "--exec", "run"]) => Some(Risk::Opaque),
        _ if begins("ext::") || begins("--upload-pack") => Some(Risk::HiddenCode),
        _ => None,
    }
}
