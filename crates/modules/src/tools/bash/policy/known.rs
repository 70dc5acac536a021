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
    "losetup",
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
    shows_secrets(program, words, shown)
        .then_some(Risk::Secret)
        .or_else(|| hidden(program, words))
        .or_else(|| by_name(program, words, shown))
}

/// Programs that show keys without the name of a file.
fn shows_secrets(program: &str, words: &[String], shown: &str) -> bool {
    let begins =
        |wanted: &[&str]| words.iter().any(|word| wanted.iter().any(|start| word.starts_with(start)));
    match program {
        "security" | "secret-tool" | "pass" | "op" | "keyctl" | "kwallet-query" | "bw" | "vault" => true,
        "gcore" | "pmap" | "reptyr" | "pstack" => true,
        "gh" | "aws" | "gcloud" | "az" | "npm" | "kubectl" | "heroku" => {
            let marks = ["token", "credential", "secret", "--raw", "print-", "get-login", "auth"];
            let mark = |word: &String| {
                marks
                    .iter()
                    .any(|mark| word.trim_start_matches('-').starts_with(mark.trim_start_matches('-')))
            };
            words.iter().any(mark) || shown.contains("_auth")
        }
        "gpg" | "gpg2" => begins(&["--export-secret", "-d", "--decrypt"]),
        // Without a dash `e` shows the environment.
        "ps" => words.iter().any(|word| {
            word.contains("environ")
                || (word.starts_with('-') && !word.starts_with("--") && word.contains('E'))
                || (word.contains('e') && word.chars().all(|c| c.is_ascii_alphabetic()))
        }),
        _ => false,
    }
}

/// Programs that run others, or go by a list that nobody sees, with these options.
fn hidden(program: &str, words: &[String]) -> Option<Risk> {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let begins =
        |wanted: &[&str]| words.iter().any(|word| wanted.iter().any(|start| word.starts_with(start)));
    let opaque = match program {
        // It decides what this program asks about.
        "amplifier" | "amplifierd" if !has(&["--version", "--help"]) => return Some(Risk::Persistence),
        "file" if flagged(words, 'C') || begins(&["--compile"]) => return Some(Risk::Outside),
        "date" if flagged(words, 's') || begins(&["--set"]) => return Some(Risk::System),
        "hostname" if words.iter().any(|word| !word.starts_with('-')) => return Some(Risk::System),
        "gdb" | "lldb" | "tmux" | "screen" | "dbus-send" | "gdbus" | "busctl" | "cpio" | "pax" | "m4"
        | "fc" | "bind" | "complete" | "compgen" | "gsettings" | "dconf" | "defaults" | "loginctl"
        | "xdg-open" | "open" | "code" => true,
        "dc" | "bc" => words.iter().any(|word| word.contains('!')),
        "openssl" if has(&["s_client"]) => return Some(Risk::Send),
        "lp" | "lpr" | "gsutil" | "rclone" | "s3cmd" | "wall" | "write" => return Some(Risk::Send),
        "aws" if has(&["s3"]) && has(&["cp", "mv", "sync"]) => return Some(Risk::Send),
        "gh" if has(&[
            "api", "create", "comment", "merge", "edit", "close", "upload", "set", "run", "gist", "alias",
        ]) =>
        {
            return Some(Risk::Share);
        }
        "kubectl"
            if has(&["exec", "cp", "run", "create", "edit", "patch", "proxy", "port-forward", "attach"]) =>
        {
            return Some(Risk::Share);
        }
        "npm" | "yarn" | "pnpm" | "pip" | "pip3" | "go" | "cargo"
            if has(&["login", "adduser", "owner"])
                || (has(&["config", "env"]) && has(&["set", "-w", "edit"])) =>
        {
            return Some(Risk::Persistence);
        }
        "rg" => begins(&["--pre", "--hostname-bin"]),
        "ag" => begins(&["--pager"]),
        "shopt" => has(&["dotglob", "extglob", "expand_aliases"]),
        "split" => begins(&["--filter"]),
        "less" | "more" | "man" => {
            begins(&["+", "-o", "-O", "--log", "-P", "--pager", "-k", "--lesskey", "-H", "--html"])
        }
        "tar" | "bsdtar" | "zip" => {
            has(&["-T", "-@", "-P", "-F", "-TT"])
                || begins(&[
                    "--rsh",
                    "--to-comm",
                    "--info-script",
                    "--new-volume",
                    "--use-comp",
                    "--rmt",
                    "-I",
                    "--check",
                    "--abs",
                ])
        }
        _ => false,
    };
    let listed = ["--files0-from", "-files0-from", "--files-from", "--compress-program"];
    (opaque || begins(&listed)).then_some(Risk::Opaque)
}

fn by_name(program: &str, words: &[String], shown: &str) -> Option<Risk> {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let first = words.iter().map(String::as_str).find(|word| !word.is_empty() && !word.starts_with('-'));
    Some(match program {
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
        "enable" | "hash" if has(&["-f", "-p"]) => Risk::Opaque,
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
    if ends && first != Some("run") {
        return Some(Risk::Destructive);
    }
    // A container reaches whatever it is given, with the rights of root.
    let shows = ["ps", "images", "logs", "version", "info", "inspect", "stats", "top", "port", "diff"];
    first.is_some_and(|first| !shows.contains(&first)).then_some(Risk::Outside)
}

fn database(shown: &str) -> Option<Risk> {
    let upper = shown.to_uppercase();
    let reaching = [
        ".SHELL",
        "\\!",
        ".SYSTEM",
        ".LOAD",
        "LOAD_EXTENSION",
        "WRITEFILE",
        "READFILE",
        ".READ",
        ".IMPORT",
        ".OUTPUT",
        ".ONCE",
        ".BACKUP",
        ".SAVE",
        ".CD",
        "PROGRAM",
        "\\COPY",
        "\\O ",
        "\\I ",
        "\\G",
        "PG_READ",
        "OUTFILE",
        "DUMPFILE",
        "LOAD_FILE",
        "LOAD DATA",
        "SYSTEM ",
        "-INIT",
    ];
    if reaching.iter().any(|word| upper.contains(word)) {
        return Some(Risk::Opaque);
    }
    let ends = ["DROP ", "TRUNCATE ", "DELETE FROM", "FLUSHALL", "FLUSHDB"];
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
