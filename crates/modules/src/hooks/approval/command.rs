//! Patterns on shell commands, read with distrust: what a shell could read in more than one way fits no permission, and
//! every part of a command that could run by itself fits a prohibition.

use crate::hooks::wildcard::fits;

/// Characters with which a shell does more than run one program with the words that stand there.
const SPECIAL: [char; 22] = [
    ';', '|', '&', '<', '>', '$', '`', '\\', '(', ')', '{', '}', '[', ']', '*', '?', '!', '#', '~', '\n',
    '\r', '\0',
];

/// Whether the command is one plain program call and fits the pattern as a whole.
pub(super) fn is_plainly(command: &str, pattern: &str) -> bool {
    let command = command.trim();
    if command.contains(SPECIAL) || command.chars().any(char::is_control) {
        return false;
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    // `A=1 ls` is not `ls`: the variable may change what runs.
    words.first().is_some_and(|first| !first.contains('=')) && words_fit(&words, pattern)
}

/// Whether anything in the command could be what the pattern names.
pub(super) fn may_hold(command: &str, pattern: &str) -> bool {
    let unquoted: String = command.chars().filter(|c| !matches!(c, '\\' | '\'' | '"')).collect();
    // A pattern that may begin anywhere is meant for the whole text.
    if pattern.starts_with('*') && fits(pattern, command.trim()) {
        return true;
    }
    let parts = unquoted.split([';', '|', '&', '\n', '\r', '(', ')', '{', '}', '`', '$', '<', '>']);
    for part in parts {
        let words: Vec<&str> = part.split_whitespace().collect();
        // From every word on: `sudo rm`, `env A=1 rm` and `xargs rm` run `rm` as well.
        for at in 0..words.len() {
            let rest = words.get(at..).unwrap_or_default();
            let first = rest.first().map(|word| word.rsplit('/').next().unwrap_or(word));
            let named: Vec<&str> = first.into_iter().chain(rest.iter().skip(1).copied()).collect();
            if words_fit(rest, pattern) || words_fit(&named, pattern) {
                return true;
            }
        }
    }
    false
}

/// Compares word by word. A star at the end, glued or alone, stands for any further words, never for more of a word.
fn words_fit(words: &[&str], pattern: &str) -> bool {
    let (pattern, open_ended) = match pattern.trim().strip_suffix('*') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let wanted: Vec<&str> = pattern.split_whitespace().collect();
    let enough = if open_ended { words.len() >= wanted.len() } else { words.len() == wanted.len() };
    enough && !words.is_empty() && wanted.iter().zip(words).all(|(wanted, word)| fits(wanted, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_fits_one_plain_call_only() {
        for (command, pattern) in [
            ("ls", "ls*"),
            ("ls -la src", "ls*"),
            ("pwd", "pwd"),
            ("git status -s", "git status *"),
            ("echo 'a b'", "echo*"),
        ] {
            assert!(is_plainly(command, pattern), "{command}");
        }
        for (command, pattern) in [
            ("ls; rm -rf ~", "ls*"),
            ("lsof", "ls*"),
            ("echo x > /etc/passwd", "echo*"),
            ("echo $(rm x)", "echo*"),
            ("echo `rm x`", "echo*"),
            ("ls\nrm x", "ls*"),
            ("ls && rm x", "ls*"),
            ("ls | sh", "ls*"),
            ("PATH=/tmp ls", "ls*"),
            ("LD_PRELOAD=x ls", "*"),
            ("pwd -P", "pwd"),
            ("", "*"),
            ("git statusx", "git status*"),
            ("\\rm x", "*"),
        ] {
            assert!(!is_plainly(command, pattern), "{command:?} must not fit `{pattern}`");
        }
    }

    #[test]
    fn a_prohibition_fits_every_part_that_could_run() {
        for command in [
            "rm -rf /",
            "ls; rm -rf /",
            "ls && sudo rm x",
            "echo $(rm x)",
            "echo `rm x`",
            "/bin/rm x",
            "r\\m x",
            "'rm' x",
            "find . | xargs rm",
            "env A=1 rm x",
            "{ rm x; }",
        ] {
            assert!(may_hold(command, "rm*"), "{command}");
        }
        for command in ["ls", "rmdir x", "farm x"] {
            assert!(!may_hold(command, "rm*"), "{command}");
        }
    }
}
