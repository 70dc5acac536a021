//! Patterns on shell commands, read with distrust: what a shell could read in more than one way fits no permission, and
//! every part of a command that could run by itself fits a prohibition. The reading is that of `tool-bash`, so that what
//! is asked about and what is judged there is the same.

use crate::hooks::wildcard::fits;
use crate::tools::bash::policy;
use crate::tools::bash::shell::{self, Command, Part, Word};

/// Whether the command is one plain program call and fits the pattern as a whole.
pub(super) fn is_plainly(command: &str, pattern: &str) -> bool {
    if command.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return false;
    }
    let Ok(script) = shell::parse(command) else { return false };
    let [pipeline] = script.pipelines.as_slice() else { return false };
    let [Command::Simple(simple)] = pipeline.commands.as_slice() else { return false };
    // `A=1 ls` is not `ls`: the variable may change what runs. And what is written to a file is no plain call.
    if pipeline.background || !simple.assignments.is_empty() || !simple.redirects.is_empty() {
        return false;
    }
    let words: Option<Vec<String>> = simple.words.iter().map(fixed).collect();
    words.is_some_and(|words| words_fit(&words.iter().map(String::as_str).collect::<Vec<_>>(), pattern))
}

/// The word, when nothing in it is left for the shell to fill in.
fn fixed(word: &Word) -> Option<String> {
    let home =
        matches!(word.parts.first(), Some(Part::Text { text, quoted: false }) if text.starts_with('~'));
    word.name().filter(|_| !home)
}

/// Whether anything in the command could be what the pattern names.
pub(super) fn may_hold(command: &str, pattern: &str) -> bool {
    // A pattern that may begin anywhere is meant for the whole text.
    if pattern.starts_with('*') && fits(pattern, command.trim()) {
        return true;
    }
    // What cannot be read could be anything.
    let Ok(commands) = policy::simple_commands(command) else { return true };
    commands.iter().any(|words| may_be(words, pattern))
}

fn may_be(words: &[Word], pattern: &str) -> bool {
    let Some(program) = words.first() else { return false };
    // A program whose name only the shell knows could be any, and a word it knows could be every word.
    let Some(program) = program.name() else { return true };
    let open = words.iter().map(|word| word.literal().unwrap_or_else(|| "*".to_owned())).collect::<Vec<_>>();
    let program = program.rsplit('/').next().unwrap_or(&program).to_owned();
    let named: Vec<&str> =
        std::iter::once(program.as_str()).chain(open.iter().skip(1).map(String::as_str)).collect();
    if could_fit(&named, pattern) {
        return true;
    }
    let shown: Vec<String> = words.iter().map(Word::shown).collect();
    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
    // From every word on: a program nobody here knows may run what follows it.
    (0..shown.len()).any(|at| words_fit(shown.get(at..).unwrap_or_default(), pattern))
}

/// Like [`words_fit`], where a word `*` is one that could be any.
fn could_fit(words: &[&str], pattern: &str) -> bool {
    words_match(words, pattern, |wanted, word| word == "*" || fits(wanted, word))
}

/// Compares word by word. A star at the end, glued or alone, stands for any further words, never for more of a word.
fn words_fit(words: &[&str], pattern: &str) -> bool {
    words_match(words, pattern, fits)
}

fn words_match(words: &[&str], pattern: &str, alike: impl Fn(&str, &str) -> bool) -> bool {
    let (pattern, open_ended) = match pattern.trim().strip_suffix('*') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let wanted: Vec<&str> = pattern.split_whitespace().collect();
    let enough = if open_ended { words.len() >= wanted.len() } else { words.len() == wanted.len() };
    enough && !words.is_empty() && wanted.iter().zip(words).all(|(wanted, word)| alike(wanted, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_fits_one_plain_call_only() {
        for (command, pattern) in [
            ("ls", "ls*"),
            ("ls -la src", "ls*"),
            ("  ls  ", "ls*"),
            ("pwd", "pwd"),
            ("git status -s", "git status *"),
            ("echo 'a b'", "echo*"),
            // Quoted, these are words like others.
            ("echo 'a;b' \"c|d\" '$(e)' 'f > g'", "echo*"),
            ("git commit -m 'one\ntwo'", "git commit*"),
            ("git 'status'", "git status"),
            ("ls # a remark", "ls"),
            ("\\ls x", "ls*"),
        ] {
            assert!(is_plainly(command, pattern), "{command}");
        }
        for (command, pattern) in [
            ("ls; rm -rf ~", "ls*"),
            ("lsof", "ls*"),
            ("echo x > /etc/passwd", "echo*"),
            ("echo x >&2", "echo*"),
            ("cat < /etc/passwd", "cat*"),
            ("echo $(rm x)", "echo*"),
            ("echo \"$(rm x)\"", "echo*"),
            ("echo `rm x`", "echo*"),
            ("echo $HOME", "echo*"),
            ("echo ${X:-$(rm x)}", "echo*"),
            ("ls <(rm x)", "ls*"),
            ("ls\nrm x", "ls*"),
            ("ls && rm x", "ls*"),
            ("ls || rm x", "ls*"),
            ("ls & rm x", "ls*"),
            ("ls &", "ls*"),
            ("ls | sh", "ls*"),
            ("(ls)", "*"),
            ("{ ls; }", "*"),
            ("if ls; then rm x; fi", "*"),
            ("ls() { rm x; }", "*"),
            ("PATH=/tmp ls", "ls*"),
            ("LD_PRELOAD=x ls", "*"),
            ("$X ls", "*"),
            ("l* x", "*"),
            ("ls ~", "ls*"),
            ("ls *", "ls*"),
            ("echo {a,b}c*", "echo*"),
            ("pwd -P", "pwd"),
            ("", "*"),
            ("git statusx", "git status*"),
            ("'git status'", "git status*"),
            ("ls 'unclosed", "ls*"),
            ("ls \u{1b}[0m", "ls*"),
            ("ls \0", "ls*"),
            ("cat <<E\nx\nE", "cat*"),
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
            "echo \"a $(rm x)\"",
            "echo `rm x`",
            "cat <(rm x)",
            "/bin/rm x",
            "r\\m x",
            "'rm' x",
            "r''m x",
            "$'\\x72m' x",
            "rm${IFS}x",
            "{rm,x}",
            "find . | xargs rm",
            "find . -exec rm {} \\;",
            "env A=1 rm x",
            "sh -c 'rm x'",
            "bash -c \"ls; rm x\"",
            "eval rm x",
            "nohup nice -n 5 rm x",
            "{ rm x; }",
            "if true; then rm x; fi",
            "for f in *; do rm $f; done",
            "f() { rm x; }; f",
            "unknown-runner rm x",
            "$CMD x",
            "$(echo rm) x",
            "rm 'unclosed",
        ] {
            assert!(may_hold(command, "rm*"), "{command}");
        }
        for command in
            ["ls", "rmdir x", "farm x", "echo 'rm x'", "ls # rm x", "ls \"$X\"", "grep -- '; rm x' a"]
        {
            assert!(!may_hold(command, "rm*"), "{command}");
        }
        for command in ["git push", "git push -f", "git $X", "/usr/bin/git push", "ls | git push"] {
            assert!(may_hold(command, "git push*"), "{command}");
        }
        assert!(!may_hold("git status", "git push*") && !may_hold("git stash push", "git push*"));
        assert!(may_hold("git push --force", "*--force*"));
    }
}
