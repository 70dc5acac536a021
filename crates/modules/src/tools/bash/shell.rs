//! A shell command as a tree: what would run, where its output goes, and which parts only the shell can know.
//!
//! It reads the language of `bash -c` well enough to judge it. It expands nothing but quotes, braces and `$IFS`, and it
//! refuses what it does not understand: a reader that guesses would be a way around the policy.

mod ansi;
mod compound;
mod expand;
mod parser;
mod redirect;
mod words;

pub(crate) use parser::parse;

/// The longest command that is read, in bytes.
pub(crate) const LONGEST: usize = 128 * 1024;

/// Commands in the order they are written.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Script {
    pub(crate) pipelines: Vec<Pipeline>,
}

/// Commands joined by `|`; one alone is a pipeline too.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pipeline {
    pub(crate) commands: Vec<Command>,
    /// Ended with `&`.
    pub(crate) background: bool,
}

/// One stage of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Simple(Simple),
    Group(Group),
    Function { name: String, body: Script },
}

/// Words, with what is set before them and where their streams go.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<(String, Word)>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
}

/// Braces, parentheses, loops and conditions: only what is inside them counts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Group {
    pub(crate) body: Script,
    /// In parentheses: what it does to the working folder ends with it.
    pub(crate) isolated: bool,
    /// Words of the construct itself, such as the list of a `for`.
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Redirect {
    pub(crate) kind: RedirectKind,
    /// A path, a descriptor, or for [`RedirectKind::Here`] the text itself.
    pub(crate) target: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    Read,
    Write,
    Duplicate,
    Here,
}

/// One word before the shell expands it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Text {
        text: String,
        quoted: bool,
    },
    /// `$NAME` or `${NAME}`.
    Variable(String),
    /// `$(…)` and backticks.
    Code(Script),
    /// `<(…)` and `>(…)`: a pipe, whatever the code does.
    Stream(Script),
    /// An expansion whose value is not looked into; the code in it is.
    Unknown(Vec<Script>),
}

/// Why a command cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    #[error("it is nested too deeply")]
    TooDeep,
    #[error("`{0}` is never closed")]
    Unclosed(&'static str),
    #[error("`{0}` stands where it means nothing")]
    Unexpected(String),
    #[error("a here-document is not where it can be followed")]
    HereDocument,
    #[error("it holds a NUL character")]
    Nul,
}

impl Word {
    /// The word when the shell would change nothing in it but file name patterns.
    pub(crate) fn literal(&self) -> Option<String> {
        let mut whole = String::new();
        for part in &self.parts {
            match part {
                Part::Text { text, .. } => whole.push_str(text),
                _ => return None,
            }
        }
        Some(whole)
    }

    /// The word as the name of a program: nothing in it may be left for the shell to decide.
    pub(crate) fn name(&self) -> Option<String> {
        let open = |c: char| matches!(c, '*' | '?' | '[' | '{');
        let fixed = self.parts.iter().all(|part| match part {
            Part::Text { text, quoted } => *quoted || text == "[" || text == "[[" || !text.contains(open),
            _ => false,
        });
        if fixed { self.literal() } else { None }
    }

    /// The word as a path: `$HOME` and `$PWD` are known, other variables are not.
    pub(crate) fn path(&self) -> Option<String> {
        let mut whole = String::new();
        for part in &self.parts {
            match part {
                Part::Text { text, .. } => whole.push_str(text),
                Part::Variable(name) if name == "HOME" && whole.is_empty() => whole.push('~'),
                Part::Variable(name) if name == "PWD" && whole.is_empty() => whole.push('.'),
                _ => return None,
            }
        }
        Some(whole)
    }

    /// The code inside the word, outermost only.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = &Script> {
        self.parts.iter().flat_map(|part| match part {
            Part::Code(script) | Part::Stream(script) => std::slice::from_ref(script),
            Part::Unknown(scripts) => scripts.as_slice(),
            _ => &[],
        })
    }

    /// The word as a person would recognise it.
    pub(crate) fn shown(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text { text, .. } => text.clone(),
            Part::Variable(name) => format!("${name}"),
            Part::Code(_) => "$(…)".to_owned(),
            Part::Stream(_) => "<(…)".to_owned(),
            Part::Unknown(_) => "${…}".to_owned(),
        };
        self.parts.iter().map(part).collect()
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text { text: text.into(), quoted: true }] }
    }

    /// A word nobody knows, such as what `xargs` will add.
    pub(crate) fn unknown() -> Self {
        Self { parts: vec![Part::Unknown(Vec::new())] }
    }

    fn push(&mut self, c: char) {
        match self.parts.last_mut() {
            Some(Part::Text { text, quoted: false }) => text.push(c),
            _ => self.parts.push(Part::Text { text: c.to_string(), quoted: false }),
        }
    }

    fn push_quoted(&mut self, c: char) {
        match self.parts.last_mut() {
            Some(Part::Text { text, quoted: true }) => text.push(c),
            _ => self.parts.push(Part::Text { text: c.to_string(), quoted: true }),
        }
    }
}

impl Simple {
    /// The command as a person would recognise it.
    pub(crate) fn shown(&self) -> String {
        self.words.iter().map(Word::shown).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(command: &str) -> Vec<Vec<String>> {
        fn walk(script: &Script, found: &mut Vec<Vec<String>>) {
            for command in script.pipelines.iter().flat_map(|pipeline| &pipeline.commands) {
                match command {
                    Command::Simple(simple) => found.push(simple.words.iter().map(Word::shown).collect()),
                    Command::Group(group) => walk(&group.body, found),
                    Command::Function { body, .. } => walk(body, found),
                }
            }
        }
        let mut found = Vec::new();
        walk(&parse(command).unwrap(), &mut found);
        found
    }

    #[test]
    fn quotes_escapes_and_operators_are_read_as_the_shell_reads_them() {
        assert_eq!(simple(r#"r"m" -r\f '/tmp/a b' # no"#), [["rm", "-rf", "/tmp/a b"]]);
        assert_eq!(simple("a&&b||c;d&e\nf|g"), [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]);
        assert_eq!(simple(r"$'\x72\155' x"), [["rm", "x"]]);
        assert_eq!(simple("rm${IFS}-rf$IFS/"), [["rm", "-rf", "/"]]);
        assert_eq!(simple("{rm,-rf,/}"), [["rm", "-rf", "/"]]);
        assert_eq!(simple("echo a{b,c}d 2>&1 >x"), [["echo", "abd", "acd"]]);
        assert_eq!(simple("r\\\nm x"), [["rm", "x"]]);
    }

    #[test]
    fn compound_commands_give_up_their_insides() {
        let found = simple(
            "if a; then b; elif c; then d; else e; fi; for x in 1 2; do f $x; done; while g; do h; done; \
             case $x in a|b) i;; *) j;; esac; { k; }; (l); [[ -f x && $a < b ]]; ((1 + 2)); m() { n; }; function o { p; }",
        );
        let names: Vec<_> = found.iter().filter_map(|words| words.first()).map(String::as_str).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "n", "p"]);
        assert_eq!(simple("((a) ; b)"), [["a"], ["b"]]);
    }

    #[test]
    fn here_documents_hide_nothing_and_what_cannot_be_followed_is_refused() {
        assert_eq!(simple("cat <<'A' <<-B; x\nrm\nA\n\trm\n\tB\ny"), [vec!["cat"], vec!["x"], vec!["y"]]);
        for odd in ["cat <<E $(true\nrm -rf /\nE\n)", "cat <<E \\\nx\nE\n", "cat <<E \"\nE\n\"; rm -rf /"] {
            assert_eq!(parse(odd), Err(Unreadable::HereDocument), "{odd}");
        }
        for open in ["echo 'a", "echo \"a", "echo $(a", "echo `a", "(a", "{ a", "if a; then b", "cat <<E\nx"]
        {
            assert!(parse(open).is_err(), "{open}");
        }
        for odd in [")", "a ) b", "fi", ";; a", "a | | b", "a (b"] {
            assert!(parse(odd).is_err(), "{odd}");
        }
        let deep = format!("{}a{}", "( ".repeat(5_000), ")".repeat(5_000));
        assert_eq!(parse(&deep), Err(Unreadable::TooDeep));
        assert_eq!(parse(&"x".repeat(LONGEST + 1)), Err(Unreadable::TooLong));
    }
}
