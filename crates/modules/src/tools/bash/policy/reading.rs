//! What a command may read: every word that could be a path is worked out as the shell would, with the variables that the
//! command itself sets and the files that its patterns fit. A word that cannot be worked out is asked about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Risk;
use super::programs::flagged;
use super::walk::Walk;
use crate::tools::bash::shell::{Command, Part, Script, Word};

/// The values that a variable may have; `None` when only the shell knows them.
pub(super) type Variables = BTreeMap<String, Option<Vec<String>>>;

/// Characters of a file name pattern that are in force, apart from the same ones in quotes.
const ANY: char = '\u{e000}';
const ONE: char = '\u{e001}';
const SET: char = '\u{e002}';
/// More texts than this are as good as unknown.
const MOST_TEXTS: usize = 64;
/// More folder entries than this are not looked through.
const MOST_ENTRIES: usize = 4_096;

/// Programs that show names and attributes at most, so that a folder above a secret place is no secret to them.
const NAMES_ONLY: &[&str] = &[
    "ls", "dir", "tree", "du", "df", "stat", "test", "[", "cd", "pushd", "popd", "pwd", "readlink",
    "realpath", "basename", "dirname", "echo", "printf", "mkdir", "rmdir", "touch", "rm", "chmod", "chown",
    "chgrp", "which", "find", "fd", "fdfind", "unlink",
];
/// Programs that open nothing they are given, so that an unknown word is no harm to them.
const OPENS_NOTHING: &[&str] = &[
    "ls", "test", "[", "cd", "pushd", "popd", "pwd", "basename", "dirname", "echo", "printf", "mkdir",
    "rmdir", "touch", "rm", "unlink", "chmod", "which", ":", "true", "false", "exit", "return", "export",
    "declare", "local", "readonly", "typeset", "unset", "shift", "set", "read", "kill", "sleep", "seq",
    "date", "expr", "let", "wait", "trap", "break", "continue", "ps", "pgrep", "eval", "env", "command",
    "type", "hash", "alias", "sh", "bash", "dash", "zsh", "timeout", "nice", "nohup", "xargs", "parallel",
    "exec", "tee", "truncate", "sudo", "time", "stdbuf", "setsid", "builtin", "flock", "watch", "shopt",
    "ulimit", "umask", "tput", "clear", "jobs", "fg", "bg", "disown", "getopts", "find", "fd", "fdfind",
];
/// Commands of git whose words are names and messages.
const NAMES_OF_GIT: &[&str] = &[
    "commit",
    "tag",
    "branch",
    "checkout",
    "switch",
    "merge",
    "rebase",
    "push",
    "fetch",
    "pull",
    "log",
    "rev-parse",
    "stash",
    "cherry-pick",
    "revert",
    "reset",
    "add",
    "rm",
    "mv",
    "restore",
    "config",
    "remote",
];
/// What sets variables out of sight.
const SETTERS: &[&str] = &[
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "let",
    "eval",
    "source",
    ".",
    "printf",
    "trap",
];

/// What a program does with a file that it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It may open it.
    Opens,
    Names,
}

/// The variables that a script sets, with every value they may have. When it sets some out of sight, none is known.
pub(super) fn variables(script: &Script) -> Variables {
    let mut known = Variables::new();
    if collect(script, &mut known).is_none() {
        known.values_mut().for_each(|values| *values = None);
    }
    known
}

fn collect(script: &Script, known: &mut Variables) -> Option<()> {
    for command in script.pipelines.iter().flat_map(|pipeline| &pipeline.commands) {
        match command {
            Command::Simple(simple) => {
                for (name, value) in &simple.assignments {
                    add(known, name, value);
                    inside(value, known)?;
                }
                simple.words.iter().try_for_each(|word| inside(word, known))?;
                let program = simple.words.first().and_then(Word::name);
                if program.is_some_and(|program| SETTERS.contains(&program.as_str())) {
                    return None;
                }
            }
            Command::Group(group) => {
                group.words.iter().try_for_each(|word| inside(word, known))?;
                if let [name, is, values @ ..] = group.words.as_slice()
                    && is.literal().as_deref() == Some("in")
                    && let Some(name) = name.literal()
                {
                    values.iter().for_each(|value| add(known, &name, value));
                }
                collect(&group.body, known)?;
            }
            Command::Function { body, .. } => collect(body, known)?,
        }
    }
    Some(())
}

fn inside(word: &Word, known: &mut Variables) -> Option<()> {
    word.scripts().try_for_each(|script| collect(script, known))
}

fn add(known: &mut Variables, name: &str, value: &Word) {
    let texts = texts(value, &Variables::new());
    match (known.entry(name.to_owned()).or_insert_with(|| Some(Vec::new())), texts) {
        (Some(values), Some(texts)) => values.extend(texts),
        (values, _) => *values = None,
    }
}

/// The texts that a word may become; patterns in it are marked.
pub(super) fn texts(word: &Word, known: &Variables) -> Option<Vec<String>> {
    if let [Part::Stream(_)] = word.parts.as_slice() {
        return Some(Vec::new());
    }
    let mut texts = vec![String::new()];
    for part in &word.parts {
        let values = match part {
            Part::Text { text, quoted: true } => vec![text.clone()],
            Part::Text { text, quoted: false } => vec![marked(text)?],
            Part::Variable(name) if name == "HOME" && texts.iter().all(String::is_empty) => {
                vec!["~".to_owned()]
            }
            Part::Variable(name) if name == "PWD" && texts.iter().all(String::is_empty) => {
                vec![".".to_owned()]
            }
            // The environment has names in capitals.
            Part::Variable(name) if name.chars().any(|c| c.is_ascii_lowercase()) => {
                known.get(name)?.clone()?
            }
            _ => return None,
        };
        let joined = texts.iter().flat_map(|text| values.iter().map(move |value| format!("{text}{value}")));
        texts = joined.take(MOST_TEXTS + 1).collect();
        if texts.len() > MOST_TEXTS {
            return None;
        }
    }
    // A variable outside quotes falls apart at blanks, and what is in it may be a pattern.
    let expanded = word.parts.iter().any(|part| matches!(part, Part::Variable(_)));
    if expanded {
        let pieces: Vec<String> =
            texts.iter().flat_map(|text| text.split_whitespace().map(marked)).collect::<Option<_>>()?;
        texts.extend(pieces);
    }
    Some(texts)
}

/// Unquoted text with its patterns marked; nothing for a list in braces that is still there.
fn marked(text: &str) -> Option<String> {
    let list = text.find('{').and_then(|at| text.get(at..));
    if list.is_some_and(|list| list.contains('}') && (list.contains(',') || list.contains(".."))) {
        return None;
    }
    let (mut marked, mut rest) = (String::new(), text.chars());
    while let Some(c) = rest.next() {
        marked.push(match c {
            '*' => ANY,
            '?' => ONE,
            '[' if rest.as_str().contains(']') => {
                rest.by_ref().find(|c| *c == ']');
                SET
            }
            c => c,
        });
    }
    Some(marked)
}

impl Walk<'_> {
    /// What speaks against reading what the arguments of a program name.
    pub(super) fn arguments_read(&mut self, program: &str, arguments: &[Word], shown: &str) {
        let names_of_git = program == "git"
            && arguments
                .first()
                .and_then(Word::literal)
                .is_some_and(|name| NAMES_OF_GIT.contains(&name.as_str()));
        let names = OPENS_NOTHING.contains(&program) || names_of_git || self.functions.contains(program);
        let used = if names { Use::Names } else { Use::Opens };
        for word in arguments {
            match texts(word, &self.variables) {
                Some(texts) => {
                    for text in texts.iter().flat_map(|text| pieces(text)) {
                        self.path_read(program, text, used, shown);
                    }
                }
                None if used == Use::Opens => self.found.push((Risk::Unseen, shown.to_owned())),
                None => {}
            }
        }
        if self.is_foreign() && follows_links(program, arguments) {
            self.found.push((Risk::Unseen, shown.to_owned()));
        }
        // What goes through a folder goes through everything in it.
        let wide = |text: String| {
            matches!(text.as_str(), "--recursive" | "--hidden" | "--unrestricted" | "--dereference-recursive")
                || (text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R', 'u', '.']))
        };
        if matches!(program, "grep" | "egrep" | "fgrep" | "rg" | "ag" | "git")
            && arguments.iter().filter_map(Word::literal).any(wide)
            && self.folder.as_ref().is_some_and(|folder| self.policy.is_above_secrets(folder))
        {
            self.found.push((Risk::Secret, shown.to_owned()));
        }
    }

    /// A redirect that reads.
    pub(super) fn redirect_read(&mut self, target: &Word, shown: &str) {
        match texts(target, &self.variables) {
            Some(texts) => texts.iter().for_each(|text| self.path_read("<", text, Use::Opens, shown)),
            None => self.found.push((Risk::Unseen, shown.to_owned())),
        }
    }

    fn path_read(&mut self, program: &str, text: &str, used: Use, shown: &str) {
        let folder = self.folder.clone();
        let absolute = text.starts_with(['/', '~']);
        let Some(base) = folder.as_deref().or_else(|| absolute.then_some(Path::new("/"))) else {
            // Nobody can tell which file it is.
            if used == Use::Opens && !text.starts_with('-') && !text.is_empty() {
                self.found.push((Risk::Unseen, shown.to_owned()));
            }
            return;
        };
        if text.starts_with("~-") || (text.starts_with('~') && text.contains(ANY) && !text.contains('/')) {
            return self.found.push((Risk::Unseen, shown.to_owned()));
        }
        if !like_a_path(text, base) {
            return;
        }
        let names_only = NAMES_ONLY.contains(&program);
        match self.policy.files(text, base) {
            None => self.found.push((Risk::Unseen, shown.to_owned())),
            Some(files) => {
                for file in files {
                    let place = match used {
                        Use::Opens => self.policy.followed_place(&file, Some(base)),
                        Use::Names => self.policy.place(&file, Some(base)),
                    };
                    self.read(place, shown);
                    if !names_only && self.policy.is_above_secrets(Path::new(&file)) {
                        self.found.push((Risk::Secret, shown.to_owned()));
                    }
                }
            }
        }
    }
}

/// Whether a program goes through folders over links, which may lead anywhere.
fn follows_links(program: &str, arguments: &[Word]) -> bool {
    let words: Vec<String> = arguments.iter().filter_map(Word::literal).collect();
    let long = |name: &str| words.iter().any(|word| word.starts_with(name));
    match program {
        "grep" | "egrep" | "fgrep" => flagged(&words, 'R') || long("--deref"),
        "rg" | "fd" | "fdfind" | "tree" => {
            flagged(&words, 'L') || flagged(&words, 'l') && program == "tree" || long("--follow")
        }
        "ag" => flagged(&words, 'f') || long("--follow"),
        "diff" => flagged(&words, 'r') || long("--recursive"),
        "cp" => flagged(&words, 'L') || long("--deref"),
        "find" => {
            let runs = words.iter().any(|word| word.starts_with("-exec") || word.starts_with("-ok"));
            runs && (words.iter().any(|word| word == "-L" || word == "-follow")
                || !words.iter().any(|word| word == "-type"))
        }
        _ => false,
    }
}

/// The parts of a word that may be paths: `--file=x`, `@x`, `if=x`, `host:x`, `-Ix`.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let glued = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| {
        let mut rest = rest.chars();
        rest.next().map(|_| rest.as_str())
    });
    let whole = if text.starts_with('-') { None } else { Some(text.trim_start_matches("file://")) };
    let after = |c: char| text.split_once(c).map(|(_, rest)| rest.trim_start_matches("//"));
    let last = text.rsplit_once(['=', '@', ':']).map(|(_, rest)| rest);
    let web = text.contains("://") && !text.starts_with("file:");
    let found = [whole, glued, after('='), after('@'), after(':'), last];
    found.into_iter().flatten().filter(move |piece| !web && !piece.is_empty())
}

fn like_a_path(text: &str, base: &Path) -> bool {
    let exists = || base.join(text).symlink_metadata().is_ok();
    if text.contains(char::is_whitespace) {
        return text.starts_with(['/', '~', '.']) || text.contains("../") || exists();
    }
    text.contains('/') || text.starts_with(['~', '.']) || text.contains([ANY, ONE, SET]) || exists()
}

impl super::Policy {
    /// The files that a text names, as absolute paths, with its patterns worked out; nothing when there are too many.
    fn files(&self, text: &str, base: &Path) -> Option<Vec<String>> {
        let text = match text.strip_prefix("~+") {
            Some(rest) => format!("{}{rest}", base.display()),
            None => text.to_owned(),
        };
        let path = self.absolute(&text, base);
        let written = path.to_string_lossy().into_owned();
        if !written.contains([ANY, ONE, SET]) {
            return Some(vec![written]);
        }
        let (mut found, mut seen) = (vec![PathBuf::from("/")], 0_usize);
        for part in path.components().skip(1) {
            let name = part.as_os_str().to_string_lossy().into_owned();
            if !name.contains([ANY, ONE, SET]) {
                found.iter_mut().for_each(|path| path.push(&name));
                continue;
            }
            let mut next = Vec::new();
            for folder in &found {
                // One that cannot be listed gives the shell no names either.
                for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                    seen += 1;
                    if seen > MOST_ENTRIES {
                        return None;
                    }
                    let entry_name = entry.file_name().to_string_lossy().into_owned();
                    if fits(&name, &entry_name) {
                        next.push(folder.join(entry_name));
                    }
                }
            }
            found = next;
        }
        Some(found.into_iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }
}

/// Whether a marked pattern fits a file name. Sets are read generously.
fn fits(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && pattern.starts_with([ANY, ONE]) {
        return false;
    }
    let any = |c: char| if c == ANY { '*' } else { c };
    let pattern: Vec<char> = pattern.chars().map(any).collect();
    let same = |p: char, c: char| p == c || p == ONE || p == SET;
    super::pattern::wild_with(&pattern, &name.chars().collect::<Vec<_>>(), same)
}
