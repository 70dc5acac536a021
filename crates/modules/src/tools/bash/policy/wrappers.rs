//! Programs that run other programs: what they run is judged as if it stood alone.

use super::Risk;
use super::code::{self, Source};
use super::programs::Extent;
use super::scripts;
use super::walk::{Input, Walk};
use crate::tools::bash::shell::{Command, Word};

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash"];
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("python2", &["-c"]),
    ("python3", &["-c"]),
    ("pypy3", &["-c"]),
    ("perl", &["-e", "-E", "-ne", "-pe", "-i", "-pi", "-lne", "-nle"]),
    ("ruby", &["-e"]),
    ("node", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("nodejs", &["-e", "--eval", "-p", "--print"]),
    ("bun", &["-e", "--eval"]),
    ("deno", &["eval"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
    ("Rscript", &["-e"]),
    ("osascript", &["-e"]),
    ("tclsh", &[]),
    ("expect", &["-c"]),
    ("pwsh", &["-c", "-Command", "-EncodedCommand", "-enc"]),
    ("powershell", &["-c", "-Command", "-EncodedCommand", "-enc"]),
];

/// How the options of a wrapper are passed over: which take a value, and how many words come before the command.
fn wrapper(program: &str) -> Option<(&'static [&'static str], usize)> {
    Some(match program {
        "env" => (&["-u", "-C", "--unset", "--chdir"], 0),
        "command" | "builtin" | "nohup" | "setsid" | "busybox" | "toybox" | "caffeinate" | "then" | "do" => {
            (&[], 0)
        }
        "exec" => (&["-a"], 0),
        "nice" => (&["-n"], 0),
        "ionice" => (&["-c", "-n", "-p"], 0),
        "timeout" => (&["-k", "-s"], 1),
        "taskset" | "chrt" => (&["-p"], 1),
        "flock" => (&["-w", "-E"], 1),
        "stdbuf" => (&["-i", "-o", "-e"], 0),
        "strace" | "ltrace" => (&["-o", "-e", "-p", "-s"], 0),
        "watch" => (&["-n"], 0),
        "xargs" => (&["-I", "-n", "-P", "-L", "-d", "-E", "-s", "-a"], 0),
        "parallel" => (&["-j", "-I", "-a"], 0),
        "sudo" => (&["-u", "-g", "-h", "-p", "-C", "-T", "-U", "-r", "-t", "-D", "-R"], 0),
        "doas" => (&["-u", "-C"], 0),
        "pkexec" => (&["--user"], 0),
        "chroot" => (&[], 1),
        "time" => (&["-f", "-o"], 0),
        "unshare" | "nsenter" | "systemd-run" | "runuser" => (&["-t", "-u", "-p"], 0),
        _ => return None,
    })
}

impl Walk<'_> {
    /// Judges one program with its arguments.
    pub(super) fn program(&mut self, program: &str, arguments: &[Word], input: Input<'_>, shown: &str) {
        if matches!(
            program,
            "sudo" | "su" | "doas" | "pkexec" | "chroot" | "nsenter" | "runuser" | "sudoedit" | "systemd-run"
        ) {
            self.found.push((Risk::Privilege, shown.to_owned()));
        }
        if SHELLS.contains(&program) {
            return self.shell(arguments, input, shown);
        }
        if let Some((_, flags)) = INTERPRETERS.iter().find(|(name, _)| versioned(program, name)) {
            return self.interpreter(flags, arguments, input, shown);
        }
        if let Some((valued, before)) = wrapper(program) {
            return self.wrapped(program, arguments, (valued, before), input);
        }
        match program {
            "eval" => self.code(Source::Words(arguments), shown),
            "source" | "." => self.sourced(arguments, input, shown),
            "trap" => self.first_as_code(arguments, shown),
            "alias" => self.aliases(arguments, shown),
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declared(arguments, shown),
            "su" | "script" | "ssh" => self.flagged_code(arguments, &["-c", "--command"], shown),
            "find" | "fd" | "fdfind" => self.find(arguments, shown),
            _ => self.plain(program, arguments, shown),
        }
    }

    fn wrapped(
        &mut self,
        program: &str,
        arguments: &[Word],
        (valued, before): (&[&str], usize),
        input: Input<'_>,
    ) {
        let (mut rest, mut before) = (arguments, before);
        while let Some((word, after)) = rest.split_first() {
            let text = word.literal().unwrap_or_default();
            if program == "env" && (text == "-S" || text == "--split-string") {
                return self.code(Source::Words(after), "env -S");
            }
            if hides(program, &text) {
                self.found.push((Risk::Opaque, format!("{program} {text}")));
            }
            if program == "time" && text.starts_with("-o") {
                self.all_written(after.get(..1).unwrap_or_default(), program);
            }
            if program == "command" && (text == "-v" || text == "-V") {
                return;
            }
            if (program == "watch" || program == "flock") && text == "-c" {
                return self.first_as_code(after, program);
            }
            if text == "--" {
                rest = after;
                break;
            }
            if program == "env"
                && let Some((name, _)) = word.shown().split_once('=')
            {
                self.assigned(name, word, program);
                rest = after;
            } else if text.len() > 1 && text.starts_with('-') {
                rest =
                    if valued.contains(&text.as_str()) { after.get(1..).unwrap_or_default() } else { after };
            } else if before > 0 {
                before -= 1;
                rest = after;
            } else {
                break;
            }
        }
        let mut words = rest.to_vec();
        if words.is_empty() {
            return;
        }
        if program == "xargs" || program == "parallel" {
            self.added(&mut words, arguments, input);
        }
        if program == "watch" {
            return self.code(Source::Words(rest), program);
        }
        self.words(&words, input);
    }

    /// What `xargs` adds comes from elsewhere.
    fn added(&mut self, words: &mut Vec<Word>, arguments: &[Word], input: Input<'_>) {
        match self.listed(input) {
            Some(added) => words.extend(added),
            None => words.push(Word::unknown()),
        }
        if self.is_foreign() && !arguments.iter().any(|word| word.literal().as_deref() == Some("-0")) {
            // A name with a blank in it would become two.
            words.push(Word::unknown());
        }
        let shell = words
            .first()
            .and_then(Word::name)
            .is_some_and(|name| SHELLS.contains(&name.rsplit('/').next().unwrap_or_default()));
        if let (true, Input::Piped(stages)) = (shell, input) {
            self.found
                .push((piped_risk(stages), words.iter().map(Word::shown).collect::<Vec<_>>().join(" ")));
        }
    }

    /// The folders whose files a pipeline lists, when it lists no others: what `xargs` adds is inside them.
    fn listed(&self, input: Input<'_>) -> Option<Vec<Word>> {
        let Input::Piped(stages) = input else { return None };
        let (first, filters) = stages.split_first()?;
        let simple = |command: &Command| match command {
            Command::Simple(simple) => Some(simple.words.clone()),
            _ => None,
        };
        for filter in filters {
            let name = simple(filter)?.first().and_then(Word::name)?;
            if !["sort", "head", "tail", "uniq", "grep"].contains(&name.as_str()) {
                return None;
            }
        }
        if filters.is_empty()
            && let Some(text) = code::printed(first)
        {
            return Some(text.split_whitespace().map(Word::text).collect());
        }
        let words = simple(first)?;
        let (name, arguments) = words.split_first()?;
        let options: Vec<String> = arguments.iter().map(Word::literal).collect::<Option<_>>()?;
        let has = |flags: &[&str]| options.iter().any(|option| flags.contains(&option.as_str()));
        let lists = match name.name()?.as_str() {
            "find" => {
                !options.iter().any(|option| option.contains("printf"))
                    && (!self.is_foreign() || has(&["-type"]))
            }
            "ls" => true,
            "rg" => has(&["-l", "--files", "--files-with-matches"]),
            "grep" => options.iter().any(|option| option.starts_with('-') && option.contains('l')),
            "git" => options.first().is_some_and(|command| command == "ls-files"),
            _ => false,
        };
        let roots = arguments.iter().filter(|word| !word.shown().starts_with('-')).cloned();
        lists.then(|| roots.chain([Word::text(".")]).collect())
    }

    /// A shell: its code is a string, a file, or what comes in.
    fn shell(&mut self, arguments: &[Word], input: Input<'_>, shown: &str) {
        let mut rest = arguments;
        while let Some((word, after)) = rest.split_first() {
            let text = word.literal().unwrap_or_default();
            if text == "-s" || text == "-" {
                break;
            }
            if !text.starts_with(['-', '+']) || text.len() < 2 {
                return match word.literal() {
                    Some(file) if ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains(&file.as_str()) => {
                        self.fed(input, shown);
                    }
                    _ => self.sourced(std::slice::from_ref(word), input, shown),
                };
            }
            if !text.starts_with("--") && text.starts_with('-') && text.contains('c') {
                let code =
                    after.iter().find(|word| !word.literal().is_some_and(|text| text.starts_with('-')));
                return match code {
                    Some(code) => self.code(Source::Words(std::slice::from_ref(code)), shown),
                    None => self.found.push((Risk::Opaque, shown.to_owned())),
                };
            }
            if matches!(text.as_str(), "--rcfile" | "--init-file") {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
            let valued = matches!(text.as_str(), "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file");
            rest = if valued { after.get(1..).unwrap_or_default() } else { after };
        }
        self.fed(input, shown);
    }

    /// Code on the standard input of a shell.
    fn fed(&mut self, input: Input<'_>, shown: &str) {
        match input {
            Input::Nothing | Input::File => {}
            Input::Text(text) => self.code(Source::Words(std::slice::from_ref(text)), shown),
            Input::Piped(stages) => match stages {
                [only] if code::printed(only).is_some() => {
                    self.code(Source::Text(code::printed(only).unwrap_or_default()), shown);
                }
                _ => self.found.push((piped_risk(stages), shown.to_owned())),
            },
        }
    }

    fn interpreter(&mut self, flags: &[&str], arguments: &[Word], input: Input<'_>, shown: &str) {
        let inline = arguments.iter().enumerate().find(|(_, word)| {
            word.literal().is_some_and(|text| flags.iter().any(|flag| text == *flag || glued(&text, flag)))
        });
        if let Some((at, flag)) = inline {
            let glued = flag.literal().filter(|text| !flags.contains(&text.as_str()));
            let code = glued.or_else(|| arguments.get(at + 1).and_then(Word::literal));
            let plain = code.is_some_and(|code| knows(shown) && scripts::stays_inside(&code));
            if !plain {
                self.found.push((Risk::Opaque, shown.to_owned()));
            }
            return;
        }
        let named = arguments
            .iter()
            .find(|word| !word.literal().is_some_and(|text| text.starts_with('-') && text.len() > 1));
        match (named.map(Word::literal), input) {
            (Some(Some(file)), _) if file != "-" => {
                self.sourced(&[Word::text(file)], Input::Nothing, shown);
            }
            (Some(None), _) => self.found.push((named.map_or(Risk::Opaque, code::risk_of), shown.to_owned())),
            (_, Input::Text(text))
                if text.literal().is_some_and(|code| knows(shown) && scripts::stays_inside(&code)) => {}
            (_, Input::Piped(stages))
                if !arguments.iter().any(|word| word.literal().as_deref() == Some("-m")) =>
            {
                match stages {
                    [only]
                        if code::printed(only)
                            .is_some_and(|code| knows(shown) && scripts::stays_inside(&code)) => {}
                    _ => self.found.push((piped_risk(stages), shown.to_owned())),
                }
            }
            (_, Input::Text(_)) => self.found.push((Risk::Opaque, shown.to_owned())),
            _ => {}
        }
    }

    /// A file of code. One that this very command downloads is hidden code.
    fn sourced(&mut self, arguments: &[Word], input: Input<'_>, shown: &str) {
        let Some(word) = arguments.first() else { return };
        match word.path() {
            Some(file) if file == "/dev/stdin" => self.fed(input, shown),
            Some(file) => {
                let name = file.rsplit('/').next().unwrap_or(&file).to_owned();
                if self.is_foreign() {
                    self.found.push((Risk::Project, shown.to_owned()));
                }
                if self.fetched.contains(&name) || file.starts_with("/dev/tcp") {
                    self.found.push((Risk::HiddenCode, shown.to_owned()));
                }
            }
            None if word.scripts().next().is_some() => {
                self.found.push((code::risk_of(word), shown.to_owned()));
            }
            None => self.found.push((Risk::Opaque, shown.to_owned())),
        }
    }

    pub(super) fn first_as_code(&mut self, arguments: &[Word], shown: &str) {
        let code = arguments.iter().find(|word| !word.literal().is_some_and(|text| text.starts_with('-')));
        if let Some(code) = code {
            self.code(Source::Words(std::slice::from_ref(code)), shown);
        }
    }

    fn aliases(&mut self, arguments: &[Word], shown: &str) {
        for word in arguments {
            match word.literal() {
                Some(text) => {
                    if let Some((_, code)) = text.split_once('=') {
                        self.code(Source::Text(code.to_owned()), shown);
                    }
                }
                None => self.found.push((code::risk_of(word), shown.to_owned())),
            }
        }
    }

    fn declared(&mut self, arguments: &[Word], shown: &str) {
        for word in arguments {
            if let Some((name, _)) = word.shown().split_once('=') {
                self.assigned(name, word, shown);
            }
        }
    }

    fn flagged_code(&mut self, arguments: &[Word], flags: &[&str], shown: &str) {
        let at = arguments
            .iter()
            .position(|word| word.literal().is_some_and(|text| flags.contains(&text.as_str())));
        if let Some(code) = at.and_then(|at| arguments.get(at + 1)) {
            self.code(Source::Words(std::slice::from_ref(code)), shown);
        }
        if shown.starts_with("ssh") {
            self.found.push((Risk::Send, shown.to_owned()));
        }
    }

    /// `find … -exec`, and `fd -x`.
    fn find(&mut self, arguments: &[Word], shown: &str) {
        let is =
            |word: &Word, flags: &[&str]| word.literal().is_some_and(|text| flags.contains(&text.as_str()));
        let option = |word: &&Word| word.literal().is_some_and(|text| text.starts_with(['-', '(', '!']));
        let roots: Vec<Word> = arguments.iter().take_while(|word| !option(word)).cloned().collect();
        let deletes = |program: &str| matches!(program, "rm" | "unlink" | "shred" | "rmdir" | "truncate");
        let mut deleted = arguments.iter().any(|word| is(word, &["-delete"]));
        for (at, _) in arguments.iter().enumerate().filter(|(_, word)| {
            is(word, &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"])
        }) {
            let end = |word: &&Word| !is(word, &[";", "+"]);
            let mut words: Vec<Word> = arguments.iter().skip(at + 1).take_while(end).cloned().collect();
            deleted |= words
                .first()
                .and_then(Word::name)
                .is_some_and(|name| deletes(name.rsplit('/').next().unwrap_or("")));
            for word in &mut words {
                if word.shown().contains("{}") {
                    *word = roots.first().cloned().unwrap_or_else(|| Word::text("."));
                }
            }
            self.words(&words, Input::Nothing);
        }
        if arguments.iter().any(|word| is(word, &["-files0-from"])) {
            self.found.push((Risk::Opaque, shown.to_owned()));
        }
        if is_write(arguments) {
            self.found.push((Risk::Outside, shown.to_owned()));
        }
        if deleted {
            self.removed(&roots, Extent::Whole, shown);
            self.found.push((Risk::Destructive, shown.to_owned()));
        }
    }
}

/// Whether an option of a wrapper makes it run, read or watch what its words do not show.
fn hides(program: &str, option: &str) -> bool {
    let options: &[&str] = match program {
        "env" => &["-S", "--split", "-C", "--chdir", "-vS"],
        "strace" | "ltrace" => &["-p", "-o"],
        "xargs" | "parallel" => &["-a", "--arg-file"],
        _ => &[],
    };
    options.iter().any(|start| option.starts_with(start))
}

/// Of these languages enough is known to judge a short program.
fn knows(shown: &str) -> bool {
    let program = shown.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or(program);
    ["python", "node", "bun", "deno", "pypy"].iter().any(|name| program.starts_with(name))
}

fn is_write(arguments: &[Word]) -> bool {
    arguments
        .iter()
        .any(|word| word.literal().is_some_and(|text| text.starts_with("-fprint") || text == "-fls"))
}

fn piped_risk(stages: &[Command]) -> Risk {
    code::risk_of_stages(stages)
}

/// `-cprint(1)` is `-c` with its code.
fn glued(text: &str, flag: &str) -> bool {
    flag.len() == 2 && !text.starts_with("--") && text.len() > 2 && text.starts_with(flag)
}

/// `python3.12` is `python3`.
fn versioned(program: &str, name: &str) -> bool {
    program.strip_prefix(name).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}
