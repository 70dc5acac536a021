//! What the own files of a repository make git start: hooks, and settings that name programs, other files or addresses.
//! Settings that are known to name none are harmless; any other counts, also one that this file does not know. Reads files,
//! runs nothing.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::repository::{Repository, has_head};

/// The longest configuration that is read, in bytes.
const MOST: u64 = 1 << 20;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Configured {
    Setting { key: String, value: String },
    Hook(PathBuf),
}

/// Sections all of whose settings are harmless. An alias is no command of git's own, and never takes the place of one.
const SECTIONS: &[&str] = &[
    "advice",
    "alias",
    "blame",
    "color",
    "column",
    "extensions",
    "feature",
    "fetch",
    "gitflow",
    "index",
    "maintenance",
    "pack",
    "pull",
    "push",
    "rerere",
    "stash",
    "status",
    "user",
    "versionsort",
];
/// Harmless settings of other sections.
const SETTINGS: &[&str] = &[
    "checkout.defaultremote",
    "checkout.guess",
    "checkout.workers",
    "commit.cleanup",
    "commit.gpgsign",
    "commit.status",
    "commit.verbose",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.commentchar",
    "core.commitgraph",
    "core.compression",
    "core.eol",
    "core.filemode",
    "core.fscache",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.longpaths",
    "core.multipackindex",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.splitindex",
    "core.symlinks",
    "core.trustctime",
    "core.untrackedcache",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renames",
    "init.defaultbranch",
    "lfs.repositoryformatversion",
    "log.date",
    "log.decorate",
    "log.follow",
    "merge.conflictstyle",
    "merge.ff",
    "merge.log",
    "merge.renames",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.updaterefs",
    "tag.gpgsign",
    "tag.sort",
];
/// The same in sections of one remote or submodule.
const OF_REMOTES: &[&str] = &[
    "fetch",
    "followremotehead",
    "gh-resolved",
    "mirror",
    "partialclonefilter",
    "promisor",
    "prune",
    "prunetags",
    "push",
    "pushurl",
    "skipdefaultupdate",
    "skipfetchall",
    "tagopt",
    "url",
];
const OF_SUBMODULES: &[&str] =
    &["active", "branch", "fetchrecursesubmodules", "ignore", "path", "recurse", "shallow", "url"];

impl Repository {
    /// What its own files make git start.
    pub fn configured(&self) -> Vec<Configured> {
        let files = [self.common_dir().join("config"), self.git_dir().join("config.worktree")];
        let mut found: Vec<_> = files.iter().flat_map(|path| settings(path)).collect();
        found.extend(hooks(&self.common_dir().join("hooks")));
        found
    }
}

/// Whether git that runs in a directory starts what a repository names: the one that it finds there, which need not be one
/// that [`Repository::at`] knows.
pub fn starts_programs(directory: &Path) -> bool {
    for folder in directory.ancestors() {
        if let Some(repository) = Repository::at(folder) {
            return !repository.configured().is_empty();
        }
        let is_bare =
            folder.join("HEAD").is_file() && folder.join("objects").exists() && folder.join("refs").exists();
        if is_bare || has_head(folder) {
            return true;
        }
    }
    false
}

/// Hooks that are not the samples that git puts there.
fn hooks(directory: &Path) -> impl Iterator<Item = Configured> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let paths = entries.map(|entry| entry.path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_none_or(|end| end != "sample")).collect();
    paths.sort();
    paths.into_iter().map(Configured::Hook)
}

fn settings(path: &Path) -> Vec<Configured> {
    let unreadable = |value: String| vec![Configured::Setting { key: path.display().to_string(), value }];
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(MOST + 1).read_to_string(&mut text)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return unreadable(error.to_string()),
        Ok(length) if length as u64 > MOST => return unreadable("too large to be checked".to_owned()),
        Ok(_) => {}
    }
    let (mut found, mut section) = (Vec::new(), Section::default());
    for line in logical_lines(&text) {
        let mut rest = line.trim();
        if let Some(inside) = rest.strip_prefix('[') {
            let Some((head, after)) = Section::read(inside) else { return unreadable(line) };
            (section, rest) = (head, after.trim());
        }
        if rest.is_empty() {
            continue;
        }
        let (name, value) = rest.split_once('=').unwrap_or((rest, "true"));
        let (name, value) = (name.trim().to_lowercase(), value.trim());
        if !section.is_harmless(&name, value) {
            found.push(Configured::Setting { key: section.key(&name), value: value.to_owned() });
        }
    }
    found
}

/// Lines without comments, each with those that continue it.
fn logical_lines(text: &str) -> Vec<String> {
    let (mut lines, mut open, mut is_quoted) = (Vec::new(), String::new(), false);
    'lines: for line in text.lines() {
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            match c {
                // Nothing continues a comment.
                '#' | ';' if !is_quoted => break,
                '\\' => match rest.next() {
                    Some(escaped) => open.extend([c, escaped]),
                    None => continue 'lines,
                },
                c => {
                    is_quoted ^= c == '"';
                    open.push(c);
                }
            }
        }
        is_quoted = false;
        lines.push(std::mem::take(&mut open));
    }
    lines.push(open);
    lines
}

/// A section, such as `[remote "origin"]`.
#[derive(Default)]
struct Section {
    name: String,
    of: Option<String>,
}

impl Section {
    /// From what follows the bracket; gives the rest of the line too.
    fn read(inside: &str) -> Option<(Self, &str)> {
        match inside.split_once('"').filter(|(before, _)| !before.contains(']')) {
            None => {
                let (name, rest) = inside.split_once(']')?;
                let (name, of) =
                    name.split_once('.').map_or((name, None), |(name, of)| (name, Some(of.to_owned())));
                Some((Self { name: name.trim().to_lowercase(), of }, rest))
            }
            Some((name, quoted)) => {
                let mut is_escaped = false;
                let end = quoted.find(|c| {
                    let is_end = c == '"' && !is_escaped;
                    is_escaped = c == '\\' && !is_escaped;
                    is_end
                })?;
                let (of, rest) = quoted.split_at(end);
                let rest = rest.strip_prefix('"')?.trim_start().strip_prefix(']')?;
                Some((Self { name: name.trim().to_lowercase(), of: Some(of.to_owned()) }, rest))
            }
        }
    }

    fn key(&self, name: &str) -> String {
        match &self.of {
            Some(of) => format!("{}.{of}.{name}", self.name),
            None => format!("{}.{name}", self.name),
        }
    }

    fn is_harmless(&self, name: &str, value: &str) -> bool {
        // The address of a transport that is a program.
        let is_plain = !value.contains("::");
        match (self.name.as_str(), &self.of) {
            ("remote", Some(_)) => OF_REMOTES.contains(&name) && is_plain,
            ("submodule", Some(_)) if name == "update" => {
                matches!(value, "checkout" | "rebase" | "merge" | "none")
            }
            ("submodule", _) => OF_SUBMODULES.contains(&name) && is_plain,
            ("lfs", Some(_)) => matches!(name, "access" | "locksverify"),
            ("core", None) if name == "fsmonitor" => {
                matches!(
                    value.to_lowercase().as_str(),
                    "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0"
                )
            }
            (section, None) if SETTINGS.contains(&format!("{section}.{name}").as_str()) => true,
            ("gc", _) => name != "recentobjectshook",
            ("branch", _) => name != "mergeoptions",
            (section, _) => SECTIONS.contains(&section),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config");
        std::fs::write(&path, text).unwrap();
        let key = |configured| match configured {
            Configured::Setting { key, .. } => key,
            Configured::Hook(path) => path.display().to_string(),
        };
        settings(&path).into_iter().map(key).collect()
    }

    #[test]
    fn what_git_writes_by_itself_is_harmless() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
                    \tfsmonitor = true\n[remote \"origin\"]\n\turl = https://github.com/a/b.git\n\
                    \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\
                    \tmerge = refs/heads/main\n# [filter \"x\"]\n[user]\n\tname = A # \\\n\temail = a@localhost\n\
                    [submodule \"s\"]\n\tactive = true\n\turl = ../s\n\tupdate = rebase\n[extensions]\n\tworktreeConfig = true\n";
        assert_eq!(keys(text), [""; 0]);
    }

    #[test]
    fn what_names_a_program_a_file_or_an_address_counts_however_it_is_written() {
        for (text, key) in [
            ("[core]\nfsmonitor = ./x\n", "core.fsmonitor"),
            ("[CORE] FSMonitor=./x", "core.fsmonitor"),
            ("[core]\nfsmon\\\nitor = ./x", "core.fsmonitor"),
            ("[core] # \\\nfsmonitor = x\n", "core.fsmonitor"),
            ("[user]\nname = a ; \\\n[core]\nfsmonitor = x\n", "core.fsmonitor"),
            ("[user]\nname = \"a # b\\\n; c\"\n[core]\nfsmonitor = x", "core.fsmonitor"),
            ("[core]\nhooksPath = .husky\n", "core.hookspath"),
            ("[core]\nsshCommand = x\n", "core.sshcommand"),
            ("[filter \"a\\\"]b\"] clean = x\n", "filter.a\\\"]b.clean"),
            ("[filter.a]\nclean = x\n", "filter.a.clean"),
            ("[diff \"x\"]\ntextconv = x\n", "diff.x.textconv"),
            ("[diff]\nexternal = x\n", "diff.external"),
            ("[include]\npath = x\n", "include.path"),
            ("[includeIf \"gitdir:/\"]\npath = x\n", "includeif.gitdir:/.path"),
            ("[remote \"o\"]\nurl = ext::sh -c x\n", "remote.o.url"),
            ("[remote \"o\"]\nuploadpack = x\n", "remote.o.uploadpack"),
            ("[submodule \"s\"]\nupdate = !x\n", "submodule.s.update"),
            ("[credential]\nhelper = x\n", "credential.helper"),
            ("[gpg]\nprogram = x\n", "gpg.program"),
            ("[gc]\nrecentObjectsHook = x\n", "gc.recentobjectshook"),
            ("[unheard]\nof = x\n", "unheard.of"),
        ] {
            let expected: Vec<_> = Some(key.to_owned()).filter(|key| !key.is_empty()).into_iter().collect();
            assert_eq!(keys(text), expected, "{text}");
        }
        assert_eq!(keys("[core\nx = y\n").len(), 1, "what cannot be read counts");
    }

    #[cfg(unix)]
    #[test]
    fn hooks_and_directories_that_pass_for_a_repository_count() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let made = |name: &str| {
            let done =
                std::process::Command::new("git").args(["init", "--quiet", name]).current_dir(&root).status();
            assert!(done.unwrap().success());
            root.join(name)
        };
        let clean = made("clean");
        std::fs::create_dir(clean.join("below")).unwrap();
        assert!(!starts_programs(&clean.join("below")));
        std::fs::write(clean.join(".git/hooks/post-index-change"), "#!/bin/sh\n").unwrap();
        assert!(starts_programs(&clean.join("below")));
        let linked = root.join("linked");
        std::fs::create_dir(&linked).unwrap();
        std::os::unix::fs::symlink(made("other").join(".git"), linked.join(".git")).unwrap();
        assert!(starts_programs(&linked));
        let bare = root.join("bare");
        std::fs::create_dir_all(bare.join("objects")).unwrap();
        std::fs::create_dir(bare.join("refs")).unwrap();
        std::fs::write(bare.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert!(starts_programs(&bare));
    }
}
