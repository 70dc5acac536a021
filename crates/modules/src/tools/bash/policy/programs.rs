//! What is known about single programs.

use super::Risk;
use super::code;
use super::places::Place;
use super::walk::Walk;
use crate::tools::bash::shell::Word;

const SYSTEM: &[&str] = &[
    "shutdown", "reboot", "halt", "poweroff", "init", "telinit", "useradd", "userdel", "usermod", "adduser",
    "deluser", "groupadd", "groupdel", "passwd", "chpasswd", "visudo", "vipw", "chsh", "mount", "umount",
    "insmod", "modprobe", "rmmod", "iptables", "ip6tables", "nft", "ufw", "setenforce", "update-rc.d", "chattr",
    "setcap", "swapoff", "swapon", "service", "launchctl", "kexec", "hostnamectl", "timedatectl", "dpkg-divert",
];
const DESTROYERS: &[&str] =
    &["fdisk", "sfdisk", "cfdisk", "parted", "wipefs", "mkswap", "blkdiscard", "cryptsetup", "sgdisk", "hdparm"];
const DATABASES: &[&str] =
    &["psql", "mysql", "mariadb", "sqlite3", "redis-cli", "mongosh", "mongo", "clickhouse-client", "cqlsh"];

impl Walk<'_> {
    /// Judges a program that runs no other.
    pub(super) fn plain(&mut self, program: &str, arguments: &[Word], shown: &str) {
        let words: Vec<String> = arguments.iter().map(|word| word.literal().unwrap_or_default()).collect();
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        let first = words.iter().map(String::as_str).find(|word| !word.is_empty() && !word.starts_with('-'));
        match program {
            "cd" | "pushd" | "popd" => self.moved(arguments),
            "rm" | "rmdir" | "unlink" | "shred" | "srm" => {
                if has(&["--no-preserve-root"]) {
                    self.found.push((Risk::Catastrophe, shown.to_owned()));
                }
                let whole = program == "rm" && (flagged(&words, 'r') || flagged(&words, 'R') || has(&["--recursive"]));
                self.removed(&targets(arguments), whole, shown);
            }
            "cp" | "mv" | "install" | "ln" | "rsync" | "scp" => self.copied(program, arguments, shown),
            "tee" | "touch" | "mkdir" | "truncate" | "mkfifo" => self.all_written(&targets(arguments), shown),
            "sed" | "gsed" if flagged(&words, 'i') || words.iter().any(|word| word.starts_with("--in-place")) => {
                self.all_written(&targets(arguments).get(1..).unwrap_or_default().to_vec(), shown);
                self.sed(&words, shown);
            }
            "sed" | "gsed" => self.sed(&words, shown),
            "awk" | "gawk" | "mawk" if words.iter().any(|word| word.contains("system(") || word.contains("| \"") || word.contains("getline") || word.contains("> \"/")) || unknown_first(arguments) => {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
            "chmod" | "chown" | "chgrp" => self.permissions(&words, arguments, shown),
            "dd" => self.dd(arguments, shown),
            "git" => self.git(&words, shown),
            "curl" | "wget" => self.download(program, &words, arguments, shown),
            "nc" | "ncat" | "netcat" | "socat" | "telnet" => {
                let runs = flagged(&words, 'e') || flagged(&words, 'c') || shown.to_lowercase().contains("exec:");
                self.found.push((if runs { Risk::HiddenCode } else { Risk::Send }, shown.to_owned()));
            }
            "ssh-copy-id" | "sftp" | "ftp" | "mail" | "sendmail" => self.found.push((Risk::Send, shown.to_owned())),
            "kill" | "pkill" | "killall" | "skill" => self.kill(program, &words, shown),
            "crontab" | "at" | "batch" if !has(&["-l"]) => self.found.push((Risk::Persistence, shown.to_owned())),
            "systemctl" if !matches!(first, None | Some("status" | "show" | "list-units" | "is-active" | "cat")) => {
                self.found.push((Risk::System, shown.to_owned()));
            }
            "sysctl" if has(&["-w", "-p"]) || shown.contains('=') => self.found.push((Risk::System, shown.to_owned())),
            "docker" | "podman" | "nerdctl" => self.container(&words, first, shown),
            "kubectl" | "terraform" | "aws" | "gcloud" | "az" | "helm" | "gh" | "heroku" => {
                if has(&["delete", "destroy", "apply", "rm", "rb", "uninstall", "drain", "terminate-instances"]) {
                    self.found.push((Risk::Destructive, shown.to_owned()));
                }
            }
            "gpg" if shown.contains("secret-key") => self.found.push((Risk::Secret, shown.to_owned())),
            "enable" | "hash" if has(&["-f", "-p"]) => self.found.push((Risk::Opaque, shown.to_owned())),
            "tar" | "bsdtar" if words.iter().any(|word| word.starts_with("--checkpoint-action") || word.starts_with("--to-command") || word.starts_with("--use-compress-program")) || has(&["-I"]) => {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
            "vim" | "vi" | "nvim" | "ex" | "ed" | "emacs" | "gdb" | "man" | "less" if shown.contains('!') || has(&["-c", "-ex", "-P", "--eval"]) => {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
            _ if program == "mkfs" || program.starts_with("mkfs.") || DESTROYERS.contains(&program) => {
                self.found.push((Risk::Catastrophe, shown.to_owned()));
            }
            _ if SYSTEM.contains(&program) => self.found.push((Risk::System, shown.to_owned())),
            _ if DATABASES.contains(&program) => self.database(shown),
            _ => self.packages(program, first, shown),
        }
    }

    fn moved(&mut self, arguments: &[Word]) {
        let to = arguments.iter().find(|word| !word.literal().is_some_and(|text| text.starts_with("--")));
        self.folder = match to.map(Word::path) {
            None => self.policy.home.clone(),
            Some(Some(text)) if !text.starts_with('-') && !text.contains(['*', '?', '[']) => {
                match text.strip_prefix('~') {
                    Some(rest) => self.policy.home.as_ref().map(|home| home.join(rest.trim_start_matches('/'))),
                    None if text.starts_with('/') => Some(text.into()),
                    None => self.folder.as_ref().map(|folder| folder.join(text)),
                }
            }
            Some(_) => None,
        };
    }

    /// What speaks against removing these.
    pub(super) fn removed(&mut self, targets: &[Word], whole: bool, shown: &str) {
        for word in targets {
            let place = match word.path() {
                Some(path) => self.policy.place(&path, self.folder.as_deref()),
                None => Place::Unknown,
            };
            let risk = match place {
                Place::Whole | Place::System | Place::Device if whole => Risk::Catastrophe,
                Place::Whole | Place::System | Place::Device => Risk::System,
                Place::Workspace | Place::Temporary | Place::Harmless => continue,
                _ => Risk::Destructive,
            };
            self.found.push((risk, shown.to_owned()));
        }
    }

    fn all_written(&mut self, targets: &[Word], shown: &str) {
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
        let remote = |word: &Word| word.literal().is_some_and(|text| {
            text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
        });
        if matches!(program, "scp" | "rsync") && targets.iter().any(remote) {
            return self.found.push((Risk::Send, shown.to_owned()));
        }
        let Some((last, sources)) = targets.split_last() else { return };
        if program == "mv" {
            self.removed(sources, true, shown);
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
            self.removed(&targets, true, shown);
        }
        self.all_written(&targets, shown);
        let fetched = targets.iter().filter_map(Word::literal).any(|file| {
            self.fetched.iter().any(|known| file.rsplit('/').next() == Some(known))
        });
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

    fn kill(&mut self, program: &str, words: &[String], shown: &str) {
        let all = program == "kill" && words.iter().skip(1).any(|word| word == "-1" || word == "1" || word == "0");
        let first = program == "kill" && words.first().is_some_and(|word| word == "1");
        match program {
            _ if all || first => self.found.push((Risk::Catastrophe, shown.to_owned())),
            "kill" => {}
            _ => self.found.push((Risk::Destructive, shown.to_owned())),
        }
    }

    fn sed(&mut self, words: &[String], shown: &str) {
        let program = words.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
        let flags = program.rsplit(['/', '|', '#', ',']).next().unwrap_or_default();
        let runs = program.starts_with('s') && program.len() > 3 && flags.len() < 4 && flags.contains('e');
        let line = program.trim_start_matches(|c: char| c.is_ascii_digit() || c == '$' || c == ',');
        if runs || line == "e" || line.starts_with("e ") {
            self.found.push((Risk::Opaque, shown.to_owned()));
        }
    }

    fn database(&mut self, shown: &str) {
        let upper = shown.to_uppercase();
        if ["DROP ", "TRUNCATE ", "DELETE FROM", "FLUSHALL", "FLUSHDB", ".SHELL", "\\!"].iter().any(|word| upper.contains(word)) {
            self.found.push((Risk::Destructive, shown.to_owned()));
        }
    }

    fn container(&mut self, words: &[String], first: Option<&str>, shown: &str) {
        let wide = |word: &String| {
            word.starts_with("--privileged")
                || word.starts_with("/:")
                || word.contains("=/:")
                || word.contains("docker.sock")
                || word.ends_with("=host")
        };
        if words.iter().any(wide) {
            self.found.push((Risk::Privilege, shown.to_owned()));
        }
        let ends = words.iter().any(|word| matches!(word.as_str(), "prune" | "rm" | "rmi" | "kill"));
        if ends && first != Some("run") {
            self.found.push((Risk::Destructive, shown.to_owned()));
        }
    }

    fn packages(&mut self, program: &str, first: Option<&str>, shown: &str) {
        let risk = match (program, first.unwrap_or_default()) {
            ("npm" | "yarn" | "pnpm" | "cargo" | "poetry" | "twine" | "gem", "publish" | "unpublish" | "yank" | "push" | "upload") => Risk::Send,
            ("apt" | "apt-get" | "yum" | "dnf" | "pacman" | "apk" | "brew", "remove" | "purge" | "autoremove" | "uninstall") => Risk::Destructive,
            (
                "pip" | "pip3" | "pipx" | "npm" | "yarn" | "pnpm" | "gem" | "apt" | "apt-get" | "yum" | "dnf" | "apk"
                | "brew" | "cargo" | "go" | "snap" | "flatpak",
                "install" | "add" | "i" | "upgrade",
            ) => Risk::Install,
            ("npx" | "uvx" | "bunx", _) => Risk::Install,
            _ => return,
        };
        self.found.push((risk, shown.to_owned()));
    }

    fn download(&mut self, program: &str, words: &[String], arguments: &[Word], shown: &str) {
        let local = words.iter().any(|word| ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| word.contains(host)));
        let data = |word: &String| matches!(word.as_str(), "-d" | "--data" | "--data-raw" | "--data-binary" | "--json" | "-X" | "--request" | "--post-data" | "-F" | "--form");
        let file = |word: &String| word.starts_with('@') || word.contains("=@") || word.starts_with("--post-file");
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
        let saves = program == "wget" || words.iter().any(|word| word == "-O" || word == "--remote-name" || word == "-LO");
        if let Some(to) = &to {
            self.all_written(&[Word::text(to.clone())], shown);
        }
        let name = to.or_else(|| if saves { of_url() } else { None });
        self.fetched.extend(name.and_then(|name| name.rsplit('/').next().map(str::to_owned)));
        if arguments.iter().any(|word| code::risk_of(word) == Risk::HiddenCode) {
            self.found.push((Risk::Send, shown.to_owned()));
        }
    }

    fn git(&mut self, words: &[String], shown: &str) {
        let mut rest = words;
        while let Some((word, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
            let value = after.first().map(|value| value.to_lowercase()).unwrap_or_default();
            let runs = ["alias.", "core.", "diff.external", "credential.helper", "filter.", "include", "sequence.editor", "gpg."];
            if word == "-c" && runs.iter().any(|key| value.starts_with(key)) || word.starts_with("--config-env") {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
            rest = if word == "-c" || word == "-C" { after.get(1..).unwrap_or_default() } else { after };
        }
        let Some((command, rest)) = rest.split_first() else { return };
        let has = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(&word.as_str()));
        let forced = || rest.iter().any(|word| word.starts_with("--force") || word.starts_with('+') || (word.starts_with(':') && word.len() > 1));
        let risk = match command.as_str() {
            "push" if forced() || flagged(rest, 'f') || flagged(rest, 'd') || has(&["--mirror", "--delete", "--prune"]) => Risk::Destructive,
            "push" | "send-email" => Risk::Share,
            "reset" if has(&["--hard", "--merge"]) => Risk::Destructive,
            "clean" if flagged(rest, 'f') || has(&["--force"]) => Risk::Destructive,
            "checkout" | "restore" | "switch" if has(&["--", ".", "-f", "--force", "--discard-changes"]) => Risk::Destructive,
            "branch" | "tag" if has(&["-D", "-d", "--delete"]) => Risk::Destructive,
            "stash" if has(&["drop", "clear"]) => Risk::Destructive,
            "filter-branch" | "filter-repo" | "update-ref" => Risk::Destructive,
            "reflog" | "gc" | "worktree" if has(&["expire", "delete", "--prune=now", "remove"]) => Risk::Destructive,
            "config" if has(&["--global", "--system"]) => Risk::Persistence,
            "config" if rest.iter().any(|word| ["alias.", "core.hookspath", "core.sshcommand", "core.pager", "core.fsmonitor", "core.editor"].iter().any(|key| word.to_lowercase().starts_with(key))) => Risk::Persistence,
            "rebase" | "bisect" if has(&["-x", "--exec", "run"]) => Risk::Opaque,
            _ if rest.iter().any(|word| word.starts_with("ext::") || word.starts_with("--upload-pack")) => Risk::HiddenCode,
            _ => return,
        };
        self.found.push((risk, shown.to_owned()));
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
fn flagged(words: &[String], letter: char) -> bool {
    words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
}

fn unknown_first(arguments: &[Word]) -> bool {
    arguments.iter().find(|word| !word.literal().is_some_and(|text| text.starts_with('-'))).is_some_and(|word| word.literal().is_none())
}
