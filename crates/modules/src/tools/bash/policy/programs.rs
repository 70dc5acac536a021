//! What is known about single programs.

use super::Risk;
use super::known;
use super::places::Place;
use super::reading;
use super::walk::Walk;
use crate::tools::bash::shell::Word;

/// Whether a folder goes with everything in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Single,
}

/// Programs that write what they are given, or beside it.
const WRITERS: &[&str] = &[
    "tar",
    "bsdtar",
    "gzip",
    "gunzip",
    "bzip2",
    "bunzip2",
    "xz",
    "unxz",
    "zstd",
    "unzip",
    "zip",
    "7z",
    "split",
    "csplit",
    "patch",
    "cpio",
    "ar",
    "sqlite3",
    "gcc",
    "cc",
    "g++",
    "c++",
    "clang",
    "ld",
    "rustc",
    "openssl",
    "ffmpeg",
    "convert",
    "pandoc",
    "objcopy",
    "strip",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "nano",
    "mktemp",
    "logger",
    "fallocate",
    "setfacl",
    "iconv",
    "setfattr",
    "chattr",
];

impl Walk<'_> {
    /// Judges a program that runs no other.
    pub(super) fn plain(&mut self, program: &str, arguments: &[Word], shown: &str) {
        let words: Vec<String> = arguments.iter().map(|word| word.literal().unwrap_or_default()).collect();
        match program {
            "cd" | "pushd" | "popd" => self.moved(arguments),
            "rm" | "rmdir" | "unlink" | "shred" | "srm" => self.removal(program, &words, arguments, shown),
            "cp" | "mv" | "install" | "ln" | "rsync" | "scp" => self.copied(program, arguments, shown),
            "tee" | "touch" | "mkdir" | "truncate" | "mkfifo" => self.all_written(&targets(arguments), shown),
            "sed" | "gsed" => self.sed(&words, arguments, shown),
            "awk" | "gawk" | "mawk" | "nawk" => self.awk(arguments, shown),
            "chmod" | "chown" | "chgrp" => self.permissions(&words, arguments, shown),
            "dd" => self.dd(arguments, shown),
            "git" => self.git(&words, shown),
            "sort" => self.sort(arguments, shown),
            "tree" | "script" => self.option_written(arguments, &["-o", "--output"], shown),
            "uniq" | "xxd" => self.all_written(targets(arguments).get(1..).unwrap_or_default(), shown),
            "read" | "mapfile" | "readarray" | "unset" | "getopts" | "let" | "test" | "[" | "wait"
            | "printf" => {
                self.names_set(program, arguments, shown);
            }
            _ if WRITERS.contains(&program) => {
                self.outside(arguments, shown);
                let risk = known::risk(program, &words, shown);
                self.found.extend(risk.map(|risk| (risk, shown.to_owned())));
            }
            "curl" | "wget" => self.download(program, &words, arguments, shown),
            _ => {
                let risk = known::risk(program, &words, shown);
                self.found.extend(risk.map(|risk| (risk, shown.to_owned())));
            }
        }
    }

    fn removal(&mut self, program: &str, words: &[String], arguments: &[Word], shown: &str) {
        let named = |name: &str| words.iter().any(|word| word == name);
        if named("--no-preserve-root") {
            self.found.push((Risk::Catastrophe, shown.to_owned()));
        }
        let whole = flagged(words, 'r') || flagged(words, 'R') || named("--recursive");
        let extent = if program == "rm" && whole { Extent::Whole } else { Extent::Single };
        self.removed(&targets(arguments), extent, shown);
    }

    fn moved(&mut self, arguments: &[Word]) {
        let to = arguments.iter().find(|word| !word.literal().is_some_and(|text| text.starts_with("--")));
        self.folder = match to.map(Word::path) {
            None => self.policy.home.clone(),
            Some(Some(text)) if !text.starts_with('-') && !text.contains(['*', '?', '[']) => {
                match text.strip_prefix('~') {
                    Some(rest) => {
                        self.policy.home.as_ref().map(|home| home.join(rest.trim_start_matches('/')))
                    }
                    None if text.starts_with('/') => Some(text.into()),
                    None => self.folder.as_ref().map(|folder| folder.join(text)),
                }
            }
            Some(_) => None,
        };
    }

    /// What speaks against removing these.
    pub(super) fn removed(&mut self, targets: &[Word], extent: Extent, shown: &str) {
        for word in targets {
            let place = match word.path() {
                Some(path) => self.policy.place(&path, self.folder.as_deref()),
                None => Place::Unknown,
            };
            let risk = match place {
                Place::Whole | Place::System | Place::Device if extent == Extent::Whole => Risk::Catastrophe,
                Place::Whole | Place::System | Place::Device => Risk::System,
                Place::Workspace | Place::Temporary | Place::Harmless => continue,
                _ => Risk::Destructive,
            };
            self.found.push((risk, shown.to_owned()));
        }
    }

    pub(super) fn all_written(&mut self, targets: &[Word], shown: &str) {
        for word in targets {
            for place in self.written_places(word) {
                self.written(place, shown);
            }
        }
    }

    /// Where writing to a word may lead, over links too.
    fn written_places(&self, word: &Word) -> Vec<Place> {
        let texts = reading::texts(word, &self.variables);
        let texts = texts.or_else(|| word.path().map(|path| vec![path]));
        let place = |text: &String| self.policy.followed_place(text, self.folder.as_deref());
        texts.map_or_else(|| vec![Place::Unknown], |texts| texts.iter().map(place).collect())
    }

    /// Asks about words that lead out of the workspace, for programs whose words may all be written to.
    pub(super) fn outside(&mut self, arguments: &[Word], shown: &str) {
        for word in arguments {
            let text = word.path().unwrap_or_default();
            let path = match text.strip_prefix('-') {
                Some(_) => text.find(['/', '~']).and_then(|at| text.get(at..)),
                None => Some(text.as_str()),
            };
            let Some(path) = path.filter(|path| path.contains('/') || path.starts_with('~') || *path == "..")
            else {
                continue;
            };
            if path.contains("://") {
                continue;
            }
            let place = self.policy.followed_place(path, self.folder.as_deref());
            if matches!(place, Place::Outside | Place::Startup | Place::System | Place::Whole | Place::Device)
            {
                self.found.push((Risk::Outside, shown.to_owned()));
            }
        }
    }

    /// The file behind an option, glued to it or not.
    fn option_written(&mut self, arguments: &[Word], names: &[&str], shown: &str) {
        for (at, word) in arguments.iter().enumerate() {
            let text = word.path().unwrap_or_default();
            for name in names {
                if text == *name {
                    self.all_written(arguments.get(at + 1..at + 2).unwrap_or_default(), shown);
                } else if let Some(path) = text.strip_prefix(name) {
                    self.all_written(&[Word::text(path.trim_start_matches('='))], shown);
                }
            }
        }
    }

    fn sort(&mut self, arguments: &[Word], shown: &str) {
        self.option_written(arguments, &["-o", "--output"], shown);
        let cluster = |text: String| text.starts_with('-') && !text.starts_with("--") && text.contains('o');
        let hidden = |text: String| {
            text.starts_with("--comp")
                || text.starts_with("--files")
                || text.starts_with("--ou") && !text.starts_with("--output")
        };
        for word in arguments {
            let text = word.literal().unwrap_or_default();
            if hidden(text.clone()) {
                self.found.push((Risk::Opaque, shown.to_owned()));
            } else if cluster(text.clone()) && !text.starts_with("-o") {
                self.found.push((Risk::Outside, shown.to_owned()));
            }
        }
    }

    /// Variables that a builtin sets, and the places in lists that it counts out.
    fn names_set(&mut self, program: &str, arguments: &[Word], shown: &str) {
        let words: Vec<String> = arguments.iter().map(|word| word.literal().unwrap_or_default()).collect();
        let has = |option: &str| words.iter().any(|word| word.starts_with(option));
        if program == "printf" && !has("-v") || matches!(program, "test" | "[") && !has("-v") {
            return;
        }
        if matches!(program, "mapfile" | "readarray") && flagged(&words, 'C') {
            self.found.push((Risk::Opaque, shown.to_owned()));
        }
        for word in arguments {
            self.counted(word, program);
            let name = word.literal().unwrap_or_default();
            if self.is_telling(name.trim_start_matches("-v"), &Word::default())
                && !matches!(program, "test" | "[")
            {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
        }
    }

    fn copied(&mut self, program: &str, arguments: &[Word], shown: &str) {
        let targets = targets(arguments);
        let remote = |word: &Word| {
            word.literal().is_some_and(|text| {
                text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
            })
        };
        if matches!(program, "scp" | "rsync") && targets.iter().any(remote) {
            return self.found.push((Risk::Send, shown.to_owned()));
        }
        if matches!(program, "rsync" | "scp")
            && arguments.iter().any(|word| {
                word.literal().is_some_and(|text| {
                    text.starts_with("-e")
                        || text.starts_with("-S")
                        || text.starts_with("--rsh")
                        || text.starts_with("--rsync-path")
                })
            })
        {
            self.found.push((Risk::Opaque, shown.to_owned()));
        }
        if program == "ln" {
            self.linked(&targets, arguments, shown);
        }
        if program == "install" {
            self.all_written(&targets, shown);
        }
        // With the folder in front every other word is a source.
        self.option_written(arguments, &["-t", "--target-directory"], shown);
        let Some((last, sources)) = targets.split_last() else { return };
        if program == "mv" {
            self.removed(sources, Extent::Whole, shown);
            if last.path().as_deref() == Some("/dev/null") {
                self.found.push((Risk::Destructive, shown.to_owned()));
            }
        }
        self.all_written(std::slice::from_ref(last), shown);
        if program == "rsync" && shown.contains("--delete") {
            self.found.push((Risk::Destructive, shown.to_owned()));
        }
    }

    /// A link makes another place look like one of the workspace.
    fn linked(&mut self, targets: &[Word], arguments: &[Word], shown: &str) {
        let sources = if targets.len() > 1 {
            targets.split_last().map_or(targets, |(_, sources)| sources)
        } else {
            targets
        };
        let words: Vec<String> = arguments.iter().filter_map(Word::literal).collect();
        let soft = flagged(&words, 's') || words.iter().any(|word| word == "--symbolic");
        for word in sources {
            let up = word.path().is_some_and(|path| path.split('/').any(|part| part == ".."));
            let out = self
                .written_places(word)
                .iter()
                .any(|place| !matches!(place, Place::Workspace | Place::Temporary | Place::Harmless));
            if out || (soft && up) {
                self.found.push((Risk::Outside, shown.to_owned()));
            }
        }
    }

    fn permissions(&mut self, words: &[String], arguments: &[Word], shown: &str) {
        let targets = targets(arguments).get(1..).unwrap_or_default().to_vec();
        let whole = flagged(words, 'R') || words.iter().any(|word| word == "--recursive");
        if words.iter().any(|word| (word.contains('s') && word.contains('+')) || word.starts_with("47")) {
            self.found.push((Risk::Privilege, shown.to_owned()));
        }
        if whole {
            self.removed(&targets, Extent::Whole, shown);
        }
        self.all_written(&targets, shown);
        let fetched = targets
            .iter()
            .filter_map(Word::literal)
            .any(|file| self.fetched.iter().any(|known| file.rsplit('/').next() == Some(known)));
        if fetched {
            self.found.push((Risk::HiddenCode, shown.to_owned()));
        }
    }

    fn dd(&mut self, arguments: &[Word], shown: &str) {
        for word in arguments {
            let text = word.path().unwrap_or_default();
            if let Some(to) = text.strip_prefix("of=") {
                self.written(self.policy.place(to, self.folder.as_deref()), shown);
            } else if let Some(from) = text.strip_prefix("if=")
                && self.policy.place(from, self.folder.as_deref()) == Place::Device
            {
                self.found.push((Risk::Secret, shown.to_owned()));
            } else if word.path().is_none() {
                self.found.push((Risk::Destructive, shown.to_owned()));
            }
        }
    }
}

/// The words that are not options; after `--` every word counts.
pub(super) fn targets(arguments: &[Word]) -> Vec<Word> {
    let mut targets = Vec::new();
    let mut plain = false;
    for word in arguments {
        match word.literal() {
            Some(text) if !plain && text == "--" => plain = true,
            Some(text) if !plain && text.starts_with('-') && text.len() > 1 => {}
            _ => targets.push(word.clone()),
        }
    }
    targets
}

/// Whether a letter stands among the short options.
pub(super) fn flagged(words: &[String], letter: char) -> bool {
    words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
}
