//! Programs of which name and words alone say what they are up to.

use super::Risk;
use super::programs::flagged;

const SYSTEM: &[&str] = &[
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "init",
    "telinit",
    "useradd",
    "userdel",
    "usermod",
    "adduser",
    "deluser",
    "groupadd",
    "groupdel",
    "passwd",
    "chpasswd",
    "visudo",
    "vipw",
    "chsh",
    "mount",
    "umount",
    "insmod",
    "modprobe",
    "rmmod",
    "iptables",
    "ip6tables",
    "nft",
    "ufw",
    "setenforce",
    "update-rc.d",
    "chattr",
    "setcap",
    "swapoff",
    "swapon",
    "service",
    "launchctl",
    "kexec",
    "hostnamectl",
    "timedatectl",
    "dpkg-divert",
];
const DESTROYERS: &[&str] = &[
    "fdisk",
    "sfdisk",
    "cfdisk",
    "parted",
    "wipefs",
    "mkswap",
    "blkdiscard",
    "cryptsetup",
    "sgdisk",
    "hdparm",
];
const DATABASES: &[&str] =
    &["psql", "mysql", "mariadb", "sqlite3", "redis-cli", "mongosh", "mongo", "clickhouse-client", "cqlsh"];
const CLOUDS: &[&str] = &["kubectl", "terraform", "aws", "gcloud", "az", "helm", "gh", "heroku"];
const EDITORS: &[&str] = &["vim", "vi", "nvim", "ex", "ed", "emacs", "man", "less"];

/// Programs that run no code, and read no settings, of the folder they stand in.
const PLAIN: &[&str] = &[
    ":",
    "[",
    "ag",
    "alias",
    "awk",
    "base64",
    "basename",
    "bash",
    "bg",
    "break",
    "builtin",
    "cal",
    "cat",
    "cd",
    "chmod",
    "cksum",
    "clear",
    "cmp",
    "column",
    "comm",
    "command",
    "continue",
    "cp",
    "curl",
    "cut",
    "dash",
    "date",
    "dd",
    "declare",
    "df",
    "diff",
    "dir",
    "dirname",
    "disown",
    "du",
    "echo",
    "egrep",
    "env",
    "eval",
    "exec",
    "exit",
    "expand",
    "export",
    "expr",
    "false",
    "fd",
    "fdfind",
    "fg",
    "fgrep",
    "file",
    "find",
    "fmt",
    "fold",
    "free",
    "gawk",
    "getopts",
    "git",
    "grep",
    "gsed",
    "hash",
    "head",
    "hexdump",
    "hostname",
    "iconv",
    "id",
    "install",
    "jobs",
    "join",
    "jq",
    "kill",
    "less",
    "let",
    "ln",
    "local",
    "ls",
    "mapfile",
    "mawk",
    "md5sum",
    "mkdir",
    "mktemp",
    "more",
    "mv",
    "nice",
    "nl",
    "nohup",
    "nproc",
    "numfmt",
    "od",
    "parallel",
    "paste",
    "pgrep",
    "popd",
    "printenv",
    "printf",
    "ps",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readlink",
    "readonly",
    "realpath",
    "return",
    "rev",
    "rg",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "set",
    "setsid",
    "sh",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "shift",
    "shopt",
    "shuf",
    "sleep",
    "sort",
    "stat",
    "stdbuf",
    "strings",
    "sum",
    "tac",
    "tail",
    "tee",
    "test",
    "time",
    "timeout",
    "touch",
    "tr",
    "trap",
    "tree",
    "true",
    "truncate",
    "tsort",
    "tty",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "uname",
    "unexpand",
    "uniq",
    "unset",
    "uptime",
    "vdir",
    "wait",
    "wc",
    "wget",
    "which",
    "who",
    "whoami",
    "xargs",
    "xxd",
    "yes",
    "zsh",
];

/// Whether a program, as it is named, runs nothing of the project around it. `git` and shells are judged by their words.
pub(super) fn runs_nothing_of_a_project(name: &str) -> bool {
    let program = match name.rsplit_once('/') {
        Some(("/bin" | "/usr/bin" | "/usr/local/bin", program)) => program,
        Some(_) => return false,
        None => name,
    };
    PLAIN.contains(&program) || SYSTEM.contains(&program) || DESTROYERS.contains(&program)
}

/// What speaks against a program.
pub(super) fn risk(program: &str, words: &[String], shown: &str) -> Option<Risk> {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let begins =
        |wanted: &[&str]| words.iter().any(|word| wanted.iter().any(|start| word.starts_with(start)));
    let first = words.iter().map(String::as_str).find(|word| !word.is_empty() && !word.starts_with('-'));
    Some(match program {
        // It decides what this program asks about.
        "amplifier" | "amplifierd" if !has(&["--version", "--help"]) => Risk::Persistence,
        "gh" if has(&["token"]) || shown.contains("--show-token") => Risk::Secret,
        "aws" | "gcloud" | "az" | "npm" | "kubectl" | "docker"
            if ["token", "credential", "secret", "--raw", "_auth", "print-access"]
                .iter()
                .any(|mark| shown.contains(mark)) =>
        {
            Risk::Secret
        }
        "security" | "secret-tool" | "pass" | "op" | "keyctl" | "kwallet-query" | "bw" | "vault" => {
            Risk::Secret
        }
        "gpg" | "gpg2" if begins(&["--export-secret", "-d", "--decrypt"]) => Risk::Secret,
        // Without a dash `e` shows the environment.
        "ps" if words.iter().any(|word| {
            word.contains("environ") || (word.contains('e') && word.chars().all(|c| c.is_ascii_alphabetic()))
        }) =>
        {
            Risk::Secret
        }
        "gcore" | "pmap" | "reptyr" | "pstack" => Risk::Secret,
        "rg" if begins(&["--pre", "--hostname-bin"]) => Risk::Opaque,
        "ag" if begins(&["--pager"]) => Risk::Opaque,
        "file" if flagged(words, 'C') || begins(&["--compile"]) => Risk::Outside,
        "date" if flagged(words, 's') || begins(&["--set"]) => Risk::System,
        "hostname" if first.is_some() => Risk::System,
        "shopt" if has(&["dotglob", "extglob", "expand_aliases"]) => Risk::Opaque,
        "set" if has(&["-o"]) && has(&["history"]) => Risk::Opaque,
        "split" if begins(&["--filter"]) => Risk::Opaque,
        "less" | "more" | "man"
            if words.iter().any(|word| word.starts_with('+'))
                || begins(&["-o", "-O", "--log", "-P", "--pager", "-k", "--lesskey", "-H", "--html"]) =>
        {
            Risk::Opaque
        }
        "gdb" | "lldb" | "tmux" | "screen" | "dbus-send" | "gdbus" | "busctl" | "systemd-run" => Risk::Opaque,
        _ if begins(&["--files0-from", "-files0-from", "--files-from", "--compress-program"]) => Risk::Opaque,
        "tar" | "bsdtar" | "cpio" | "zip" | "pax"
            if has(&["-T", "-@", "-P", "--absolute-names", "-F", "-TT"])
                || begins(&[
                    "--rsh",
                    "--to-comm",
                    "--info-script",
                    "--new-volume",
                    "--use-comp",
                    "--rmt",
                    "-I",
                ])
                || matches!(program, "cpio" | "pax") =>
        {
            Risk::Opaque
        }
        "nc" | "ncat" | "netcat" | "socat" | "telnet" => connection(words, shown),
        "ssh-copy-id" | "sftp" | "ftp" | "mail" | "sendmail" => Risk::Send,
        "kill" | "pkill" | "killall" | "skill" => return kill(program, words),
        "crontab" | "at" | "batch" if !has(&["-l"]) => Risk::Persistence,
        "systemctl"
            if matches!(first, None | Some("status" | "show" | "list-units" | "is-active" | "cat")) =>
        {
            return None;
        }
        "systemctl" => Risk::System,
        "sysctl" if has(&["-w", "-p"]) || shown.contains('=') => Risk::System,
        "docker" | "podman" | "nerdctl" => return container(words, first),
        "gpg" if shown.contains("secret-key") => Risk::Secret,
        "enable" | "hash" if has(&["-f", "-p"]) => Risk::Opaque,
        "tar" | "bsdtar"
            if has(&["-I"]) || begins(&["--checkpoint-action", "--to-command", "--use-compress-program"]) =>
        {
            Risk::Opaque
        }
        _ if EDITORS.contains(&program) && (shown.contains('!') || has(&["-c", "-ex", "-P", "--eval"])) => {
            Risk::Opaque
        }
        _ if CLOUDS.contains(&program) => {
            let ends =
                ["delete", "destroy", "apply", "rm", "rb", "uninstall", "drain", "terminate-instances"];
            return has(&ends).then_some(Risk::Destructive);
        }
        _ if program == "mkfs" || program.starts_with("mkfs.") || DESTROYERS.contains(&program) => {
            Risk::Catastrophe
        }
        _ if SYSTEM.contains(&program) => Risk::System,
        _ if DATABASES.contains(&program) => return database(shown),
        _ => return package(program, first.unwrap_or_default()),
    })
}

fn connection(words: &[String], shown: &str) -> Risk {
    let runs = flagged(words, 'e') || flagged(words, 'c') || shown.to_lowercase().contains("exec:");
    if runs { Risk::HiddenCode } else { Risk::Send }
}

/// One process may be ended; all of them, the first of all, or those of a name are another matter.
fn kill(program: &str, words: &[String]) -> Option<Risk> {
    if program != "kill" {
        return Some(Risk::Destructive);
    }
    let all = words.iter().skip(1).any(|word| matches!(word.as_str(), "-1" | "1" | "0"));
    let first = words.first().is_some_and(|word| word == "1");
    (all || first).then_some(Risk::Catastrophe)
}

fn container(words: &[String], first: Option<&str>) -> Option<Risk> {
    let wide = |word: &String| {
        word.starts_with("--privileged")
            || word.starts_with("/:")
            || word.contains("=/:")
            || word.contains("docker.sock")
            || word.ends_with("=host")
    };
    if words.iter().any(wide) {
        return Some(Risk::Privilege);
    }
    let ends = words.iter().any(|word| matches!(word.as_str(), "prune" | "rm" | "rmi" | "kill"));
    (ends && first != Some("run")).then_some(Risk::Destructive)
}

fn database(shown: &str) -> Option<Risk> {
    let upper = shown.to_uppercase();
    let ends = ["DROP ", "TRUNCATE ", "DELETE FROM", "FLUSHALL", "FLUSHDB", ".SHELL", "\\!"];
    ends.iter().any(|word| upper.contains(word)).then_some(Risk::Destructive)
}

fn package(program: &str, first: &str) -> Option<Risk> {
    let system = ["apt", "apt-get", "yum", "dnf", "pacman", "apk", "brew", "snap", "flatpak"];
    let language =
        ["pip", "pip3", "pipx", "npm", "yarn", "pnpm", "gem", "cargo", "go", "poetry", "twine", "uv"];
    let (of_system, of_language) = (system.contains(&program), language.contains(&program));
    Some(match first {
        "publish" | "unpublish" | "yank" | "push" | "upload" if of_language => Risk::Send,
        "remove" | "purge" | "autoremove" | "uninstall" if of_system => Risk::Destructive,
        "install" | "add" | "i" | "upgrade" if of_system || of_language => Risk::Install,
        _ if matches!(program, "npx" | "uvx" | "bunx") => Risk::Install,
        _ => return None,
    })
}
