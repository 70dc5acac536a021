//! What is known about single programs.

use super::Risk;
use super::known;
use super::places::Place;
use super::walk::Walk;
use crate::tools::bash::shell::Word;

/// Whether a folder goes with everything in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Single,
}

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
            "chmod" | "chown" | "chgrp" => self.permissions(&words, arguments, shown),
            "dd" => self.dd(arguments, shown),
            "git" => self.git(&words, shown),
            "curl" | "wget" => self.download(program, &words, arguments, shown),
            "awk" | "gawk" | "mawk" if unknown_first(arguments) => {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
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
            let place = match word.path() {
                Some(path) => self.policy.place(&path, self.folder.as_deref()),
                None => Place::Unknown,
            };
            self.written(place, shown);
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

    fn sed(&mut self, words: &[String], arguments: &[Word], shown: &str) {
        if flagged(words, 'i') || words.iter().any(|word| word.starts_with("--in-place")) {
            self.all_written(targets(arguments).get(1..).unwrap_or_default(), shown);
        }
        let program = words.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
        let flags = program.rsplit(['/', '|', '#', ',']).next().unwrap_or_default();
        let runs = program.starts_with('s') && program.len() > 3 && flags.len() < 4 && flags.contains('e');
        let line = program.trim_start_matches(|c: char| c.is_ascii_digit() || c == '$' || c == ',');
        if runs || line == "e" || line.starts_with("e ") {
            self.found.push((Risk::Opaque, shown.to_owned()));
        }
    }
}

/// The words that are not options; after `--` every word counts.
fn targets(arguments: &[Word]) -> Vec<Word> {
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

fn unknown_first(arguments: &[Word]) -> bool {
    arguments
        .iter()
        .find(|word| !word.literal().is_some_and(|text| text.starts_with('-')))
        .is_some_and(|word| word.literal().is_none())
}
