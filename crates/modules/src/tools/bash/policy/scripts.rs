//! Short programs in other languages: what `sed`, `awk`, `python -c` and `node -e` are given. What is not plainly harmless
//! is code that nobody has seen.

use super::Risk;
use super::programs::{flagged, targets};
use super::walk::Walk;
use crate::tools::bash::shell::Word;

/// Names that a short program may use without reaching out of itself. Others are unknown, those of one letter are its own.
const PLAIN: &[&str] = &[
    "import",
    "from",
    "as",
    "json",
    "sys",
    "math",
    "re",
    "print",
    "load",
    "loads",
    "dump",
    "dumps",
    "stdin",
    "stdout",
    "argv",
    "read",
    "readlines",
    "write",
    "for",
    "in",
    "if",
    "else",
    "elif",
    "and",
    "or",
    "not",
    "is",
    "None",
    "True",
    "False",
    "lambda",
    "def",
    "return",
    "len",
    "range",
    "sum",
    "min",
    "max",
    "sorted",
    "sort",
    "list",
    "dict",
    "set",
    "tuple",
    "str",
    "int",
    "float",
    "bool",
    "round",
    "abs",
    "enumerate",
    "zip",
    "map",
    "filter",
    "join",
    "split",
    "strip",
    "replace",
    "upper",
    "lower",
    "keys",
    "values",
    "items",
    "append",
    "indent",
    "version",
    "version_info",
    "sqrt",
    "pi",
    "console",
    "log",
    "JSON",
    "parse",
    "stringify",
    "Math",
    "const",
    "let",
    "var",
    "function",
    "null",
    "true",
    "false",
    "undefined",
    "typeof",
    "length",
    "Object",
    "Array",
    "Number",
    "String",
    "of",
    "new",
    "Date",
    "now",
    "toISOString",
    "reduce",
    "forEach",
    "push",
    "slice",
    "floor",
    "ceil",
    "pow",
    "random",
    "line",
    "row",
    "data",
    "key",
    "value",
    "name",
    "result",
    "total",
    "count",
    "item",
    "while",
    "break",
    "continue",
    "any",
    "all",
    "get",
    "isinstance",
    "type",
    "format",
    "startswith",
    "endswith",
    "platform",
    "executable",
    "path",
];

/// Whether a short program of Python or JavaScript plainly stays in itself.
pub(super) fn stays_inside(code: &str) -> bool {
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    !code.contains(['`', '\\'])
        && !code.contains("import(")
        && words.all(|word| {
            word.is_empty()
                || word.chars().count() == 1
                || word.chars().all(|c| c.is_ascii_digit() || "._ex".contains(c))
                || PLAIN.contains(&word)
        })
}

impl Walk<'_> {
    pub(super) fn sed(&mut self, words: &[String], arguments: &[Word], shown: &str) {
        let mut scripts: Vec<Option<String>> = Vec::new();
        let mut hidden = false;
        for (at, word) in arguments.iter().enumerate() {
            let text = word.literal().unwrap_or_default();
            let short = text.starts_with('-') && !text.starts_with("--");
            if let Some(script) = text.strip_prefix("--expression=") {
                scripts.push(Some(script.to_owned()));
            } else if text == "--expression" || (short && text.ends_with('e')) {
                scripts.push(arguments.get(at + 1).and_then(Word::literal));
            } else if let Some(script) = text.strip_prefix("-e") {
                scripts.push(Some(script.to_owned()));
            }
            hidden |= text.starts_with("--file") || (short && !text.starts_with("-i") && text.contains('f'));
        }
        let mut files = targets(arguments);
        files.retain(|word| word.literal().is_none_or(|text| !scripts.contains(&Some(text))));
        if scripts.is_empty() && !files.is_empty() {
            scripts.push(files.remove(0).literal());
        }
        if flagged(words, 'i') || words.iter().any(|word| word.starts_with("--in-place")) {
            self.all_written(&files, shown);
        }
        if hidden || !scripts.iter().all(|script| script.as_deref().is_some_and(is_plain_sed)) {
            self.found.push((Risk::Opaque, shown.to_owned()));
        }
    }

    pub(super) fn awk(&mut self, arguments: &[Word], shown: &str) {
        let option = |start: &str| {
            arguments.iter().filter_map(Word::literal).any(|text| text.starts_with(start) && text.len() > 1)
        };
        let hidden = [
            "-f",
            "-i",
            "-l",
            "-E",
            "--file",
            "--include",
            "--load",
            "--exec",
            "-o",
            "-p",
            "-d",
            "-D",
            "--d",
            "--p",
        ];
        let mut rest = arguments;
        while let Some((word, after)) = rest.split_first() {
            match word.literal() {
                Some(text) if text == "-v" || text == "-F" => rest = after.get(1..).unwrap_or_default(),
                Some(text) if text.starts_with('-') && text.len() > 1 => rest = after,
                _ => break,
            }
        }
        let plain = rest.first().and_then(Word::literal).is_some_and(|program| is_plain_awk(&program));
        if (!plain && !rest.is_empty()) || hidden.iter().any(|start| option(start)) {
            self.found.push((Risk::Opaque, shown.to_owned()));
        }
    }
}

fn is_plain_awk(program: &str) -> bool {
    let reaching = ["system", "getline", "ARGV", "@", "fflush", "close"];
    if reaching.iter().any(|word| program.contains(word)) {
        return false;
    }
    // What is printed may go to a file or a program.
    let statements = program.replace("||", "  ");
    !statements.split(['{', '}', ';', '\n']).any(|statement| {
        statement
            .find("print")
            .and_then(|at| statement.get(at..))
            .is_some_and(|printed| printed.contains(['|', '>']))
    })
}

/// Whether a script of `sed` only edits text: nothing is read, written or run.
fn is_plain_sed(script: &str) -> bool {
    let mut rest = script.chars().peekable();
    loop {
        while rest
            .next_if(|c| {
                c.is_whitespace() || ";{}!,".contains(*c) || c.is_ascii_digit() || "$~+".contains(*c)
            })
            .is_some()
        {}
        let Some(command) = rest.next() else { return true };
        let plain = match command {
            '/' => skip_to(&mut rest, '/'),
            '\\' => rest.next().is_some_and(|end| skip_to(&mut rest, end)),
            'I' | 'M' | 'p' | 'd' | 'D' | 'P' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | 'q' | 'Q' | 'l'
            | 'z' | '=' => true,
            // Text, up to the end of the line.
            'b' | 't' | 'T' | ':' => {
                while rest.next_if(|c| !";}\n".contains(*c)).is_some() {}
                true
            }
            '#' | 'a' | 'i' | 'c' => {
                while let Some(c) = rest.next() {
                    match c {
                        '\\' => drop(rest.next()),
                        '\n' => break,
                        _ => {}
                    }
                }
                true
            }
            's' | 'y' => match rest.next() {
                Some(end)
                    if !end.is_whitespace()
                        && end != '\\'
                        && skip_to(&mut rest, end)
                        && skip_to(&mut rest, end) =>
                {
                    while rest.next_if(|c| c.is_ascii_digit() || "gpiImM".contains(*c)).is_some() {}
                    rest.peek().is_none_or(|c| c.is_whitespace() || ";}".contains(*c))
                }
                _ => false,
            },
            _ => false,
        };
        if !plain {
            return false;
        }
    }
}

fn skip_to(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, end: char) -> bool {
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            c if c == end => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_editing_is_plain() {
        for script in [
            "1,20p",
            "s/old/new/g",
            "s|a/b|c|",
            "/x/d",
            "/a/,/b/p",
            "$!N;s/\\n/ /",
            "3a text; w x",
            "$!{h;b};p",
            "s/a\\/b/c/gI;p",
        ] {
            assert!(is_plain_sed(script), "{script}");
        }
        for script in [
            "1e id",
            "e",
            "s/a/id/e",
            "w x",
            "1w x",
            "s/a/b/w x",
            "s/a/b/;w x",
            "r x",
            "/a/e id",
            "s/a/b/gw x",
            "s,a,id,e",
            "b;w x",
            "p;e",
        ] {
            assert!(!is_plain_sed(script), "{script}");
        }
        for program in
            ["{print $1}", "$3 > 5 {print $1}", "/a|b/ {print}", "NR==1 || NR==2", "{s+=$1} END {print s}"]
        {
            assert!(is_plain_awk(program), "{program}");
        }
        for program in
            ["{print > $2}", "{print|$1}", "{printf \"x\" | \"sh\"}", "BEGIN{ARGV[1]=\"x\"}", "@load \"x\""]
        {
            assert!(!is_plain_awk(program), "{program}");
        }
    }

    #[test]
    fn short_programs_use_known_names_only() {
        assert!(
            stays_inside("import json,sys; print(json.load(sys.stdin)['a'])")
                && stays_inside("console.log(1)")
        );
        for code in [
            "import posix; posix.execv(a, b)",
            "exec(x)",
            "__import__('x')",
            "print(open('x'))",
            "import('fs')",
        ] {
            assert!(!stays_inside(code), "{code}");
        }
    }
}
