//! Goes through a command and gathers what speaks against it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::code::{self, Source};
use super::places::Place;
use super::reading::{self, Variables};
use super::{Policy, Risk, known, pattern};
use crate::tools::bash::shell::{
    Command, Group, Part, Pipeline, Redirect, RedirectKind, Script, Simple, Word,
};

const DEEPEST: usize = 16;
/// Variables that make programs run something else, or look for it elsewhere.
const TELLING: &[&str] = &[
    "ENV",
    "PROMPT_COMMAND",
    "PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "IFS",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "HOME",
    "PWD",
    "OLDPWD",
    "CDPATH",
    "GLOBIGNORE",
    "GCONV_PATH",
    "LOCPATH",
    "TERMINFO",
    "SSH_ASKPASS",
    "ZDOTDIR",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "OPENSSL_CONF",
    "CURL_HOME",
    "WGETRC",
    "GNUPGHOME",
    "INPUTRC",
    "TAR_OPTIONS",
    "RIPGREP_CONFIG_PATH",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "RUSTC",
    "RUSTC_WRAPPER",
    "CC",
    "CXX",
    "LD",
    "AR",
    "NODE_OPTIONS",
    "NODE_PATH",
    "RUBYOPT",
    "RUBYLIB",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "AMPLIFIER_HOME",
    "FPATH",
    "ANSIBLE_CONFIG",
    "SHELL",
    "BC_ENV_ARGS",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "PYTHONUSERBASE",
    "PYTHONPYCACHEPREFIX",
    "CARGO_HOME",
];
const TELLING_STARTS: &[&str] =
    &["LD_", "DYLD_", "BASH_", "GIT_", "PERL", "LESS", "AWK", "npm_config_", "NPM_CONFIG_", "CARGO_BUILD_"];
/// Of those with such a start, the ones that only say who and where.
const QUIET: &[&str] =
    &["GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_TERMINAL_PROMPT", "CARGO_BUILD_JOBS", "LESSCHARSET"];

/// Everything that speaks against a script, with the simple command it is about.
/// The second list is about redirects and variables, which no pattern for the command covers.
pub(super) fn walk(policy: &Policy, script: &Script, folder: Option<&Path>) -> (Reasons, Reasons) {
    let mut walk = Walk { variables: reading::variables(script), ..Walk::new(policy, folder) };
    walk.functions.extend(functions(script));
    walk.script(script);
    (walk.found, walk.fixed)
}

pub(super) type Reasons = Vec<(Risk, String)>;

/// The functions that a script defines at its top.
fn functions(script: &Script) -> impl Iterator<Item = String> + '_ {
    script.pipelines.iter().flat_map(|pipeline| &pipeline.commands).filter_map(|command| match command {
        Command::Function { name, .. } => Some(name.clone()),
        _ => None,
    })
}

/// Every simple command of a script, also those inside others.
pub(super) fn simple_commands(policy: &Policy, script: &Script) -> Vec<Vec<Word>> {
    let mut walk = Walk { seen: Some(Vec::new()), ..Walk::new(policy, None) };
    walk.script(script);
    walk.seen.unwrap_or_default()
}

pub(super) struct Walk<'a> {
    pub(super) policy: &'a Policy,
    pub(super) found: Reasons,
    fixed: Reasons,
    pub(super) variables: Variables,
    pub(super) functions: BTreeSet<String>,
    /// Where relative paths lead; `None` once nobody can tell.
    pub(super) folder: Option<PathBuf>,
    /// Files that this command downloads.
    pub(super) fetched: Vec<String>,
    pub(super) depth: usize,
    /// The simple commands on the way, when somebody wants them.
    seen: Option<Vec<Vec<Word>>>,
}

/// Where the standard input of a command comes from.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    Nothing,
    Piped(&'a [Command]),
    Text(&'a Word),
    File,
}

impl<'a> Walk<'a> {
    fn new(policy: &'a Policy, folder: Option<&Path>) -> Self {
        let folder = folder.map(Path::to_path_buf);
        Self {
            policy,
            found: Vec::new(),
            fixed: Vec::new(),
            variables: Variables::new(),
            functions: BTreeSet::new(),
            folder,
            fetched: Vec::new(),
            depth: 0,
            seen: None,
        }
    }
}

impl Walk<'_> {
    pub(super) fn script(&mut self, script: &Script) {
        for pipeline in &script.pipelines {
            self.pipeline(pipeline);
        }
    }

    /// A script with a working folder of its own.
    pub(super) fn apart(&mut self, script: &Script) {
        if self.depth >= DEEPEST {
            return self.found.push((Risk::Opaque, "code in code in code".to_owned()));
        }
        let folder = self.folder.clone();
        self.depth += 1;
        self.script(script);
        self.depth -= 1;
        self.folder = folder;
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        let alone = pipeline.commands.len() == 1 && !pipeline.background;
        let folder = self.folder.clone();
        for (at, command) in pipeline.commands.iter().enumerate() {
            let input = match pipeline.commands.get(..at) {
                Some([]) | None => Input::Nothing,
                Some(before) => Input::Piped(before),
            };
            match command {
                Command::Simple(simple) => self.simple(simple, input),
                Command::Group(group) => self.group(group),
                Command::Function { name, body } => self.function(name, body),
            }
            if !alone {
                // Every stage runs in a shell of its own.
                self.folder.clone_from(&folder);
            }
        }
    }

    fn group(&mut self, group: &Group) {
        for word in &group.words {
            self.inside(word);
            self.counted(word, "[[ … ]]");
        }
        for redirect in &group.redirects {
            self.redirect(redirect, "(…)");
        }
        if group.isolated { self.apart(&group.body) } else { self.script(&group.body) }
    }

    fn function(&mut self, name: &str, body: &Script) {
        let calls = code::programs(body).iter().filter(|program| *program == name).count();
        let spreads = body.pipelines.iter().any(spreads);
        if calls > 1 || (calls == 1 && spreads) {
            self.found.push((Risk::Catastrophe, format!("{name}() that starts itself without end")));
        }
        self.apart(body);
    }

    fn simple(&mut self, simple: &Simple, input: Input<'_>) {
        let shown = simple.shown();
        for (name, value) in &simple.assignments {
            self.assigned(name, value, &shown);
        }
        for word in &simple.words {
            self.inside(word);
        }
        let mut input = input;
        for redirect in &simple.redirects {
            self.redirect(redirect, &shown);
            match redirect.kind {
                RedirectKind::Here => input = Input::Text(&redirect.target),
                RedirectKind::Read => input = Input::File,
                _ => {}
            }
        }
        self.words(&simple.words, input);
    }

    /// Judges the words of a simple command; wrappers call it again with what they wrap.
    pub(super) fn words(&mut self, words: &[Word], input: Input<'_>) {
        let Some((first, arguments)) = words.split_first() else { return };
        if let Some(seen) = &mut self.seen {
            seen.push(words.to_vec());
        }
        let shown = words.iter().map(Word::shown).collect::<Vec<_>>().join(" ");
        if pattern::mentioned(&self.policy.denied, &shown) {
            self.found.push((Risk::Listed, shown.clone()));
        }
        let Some(name) = first.name().filter(|name| !name.is_empty()) else {
            let risk = code::risk_of(first);
            return self.found.push((risk, shown));
        };
        let program = name.rsplit('/').next().unwrap_or(&name).to_owned();
        self.arguments_read(&program, arguments, &shown);
        if self.is_foreign() && !self.functions.contains(&name) && !known::runs_nothing_of_a_project(&name) {
            self.found.push((Risk::Project, shown.clone()));
        }
        if pattern::mentioned(
            &self.policy.denied,
            &format!("{program} {}", shown.split_once(' ').map_or("", |(_, rest)| rest)),
        ) {
            self.found.push((Risk::Listed, shown.clone()));
        }
        if self.fetched.contains(&program) && (name.contains('/') || program == name) {
            self.found.push((Risk::HiddenCode, shown.clone()));
        }
        if self.depth >= DEEPEST {
            return self.found.push((Risk::Opaque, shown));
        }
        self.depth += 1;
        self.program(&program, arguments, input, &shown);
        self.depth -= 1;
    }

    pub(super) fn assigned(&mut self, name: &str, value: &Word, shown: &str) {
        self.inside(value);
        self.counted(value, name);
        if self.is_telling(name, value) {
            self.fixed.push((Risk::Opaque, format!("{name}={} {shown}", value.shown())));
        }
    }

    /// Whether a variable decides which programs run and which files they read. Something may be added behind `PATH`.
    pub(super) fn is_telling(&self, name: &str, value: &Word) -> bool {
        let name = name.split(['[', '+']).next().unwrap_or(name);
        let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        let telling = || {
            let value = value.literal().unwrap_or_default();
            let value = value.rsplit('=').next().unwrap_or_default();
            let shows = name.ends_with("PAGER") || name.ends_with("EDITOR");
            if begins(QUIET) || (shows && ["", "cat", "true", ":"].contains(&value)) {
                return false;
            }
            TELLING.contains(&name)
                || begins(TELLING_STARTS)
                || (name.starts_with("CARGO_TARGET_") && name != "CARGO_TARGET_DIR")
        };
        match name {
            "PATH" => {
                let mut parts = value
                    .parts
                    .iter()
                    .filter(|part| !matches!(part, Part::Text { text, .. } if text.is_empty()));
                let begins = match parts.next() {
                    Some(Part::Variable(name)) => name == "PATH",
                    // A word of `env` or `export`.
                    Some(Part::Text { text, .. }) if text == "PATH=" => {
                        matches!(parts.next(), Some(Part::Variable(name)) if name == "PATH")
                    }
                    _ => false,
                };
                !begins || self.is_foreign()
            }
            _ => telling(),
        }
    }

    /// Whether code around the working folder is of a directory whose files ask for the user's trust and do not have it, or of
    /// one outside the workspace.
    pub(super) fn is_foreign(&self) -> bool {
        let Some(folder) = &self.folder else { return self.policy.workspace.is_some() };
        self.policy.trust.is_suspect(folder)
            || (self.policy.workspace.is_some() && !self.policy.is_workspace(folder))
    }

    /// Where the shell counts, it runs code in the text of a word, even in quotes: `[[ 'a[$(x)]' -eq 1 ]]`.
    pub(super) fn counted(&mut self, word: &Word, shown: &str) {
        let code = |part: &Part| matches!(part, Part::Text { text, .. } if text.contains("$(") || text.contains('`'));
        if word.parts.iter().any(code) {
            self.found.push((Risk::Opaque, format!("{shown} {}", word.shown())));
        }
    }

    /// The code inside a word runs too.
    fn inside(&mut self, word: &Word) {
        for script in word.scripts() {
            self.apart(script);
        }
    }

    fn redirect(&mut self, redirect: &Redirect, shown: &str) {
        self.inside(&redirect.target);
        let shown = format!("{shown} > {}", redirect.target.shown());
        let before = self.found.len();
        match redirect.kind {
            RedirectKind::Here | RedirectKind::Duplicate => {}
            RedirectKind::Write => self.all_written(std::slice::from_ref(&redirect.target), &shown),
            RedirectKind::Read => self.redirect_read(&redirect.target, &shown),
        }
        self.fixed.extend(self.found.drain(before..));
    }

    pub(super) fn read(&mut self, place: Place, shown: &str) {
        match place {
            Place::Secret | Place::Variables | Place::Device => {
                self.found.push((Risk::Secret, shown.to_owned()))
            }
            Place::Socket => self.found.push((Risk::HiddenCode, shown.to_owned())),
            _ => {}
        }
    }

    /// What speaks against writing to a place.
    pub(super) fn written(&mut self, place: Place, shown: &str) {
        let risk = match place {
            Place::Device => Risk::Catastrophe,
            Place::Whole | Place::System | Place::Secret => Risk::System,
            Place::Startup => Risk::Persistence,
            Place::Socket => Risk::HiddenCode,
            Place::Outside | Place::Unknown => Risk::Outside,
            Place::Workspace
            | Place::WholeWorkspace
            | Place::Variables
            | Place::Temporary
            | Place::Harmless => return,
        };
        self.found.push((risk, shown.to_owned()));
    }

    /// Code that is known word for word is judged like the command itself; other code by where it comes from.
    pub(super) fn code(&mut self, source: Source<'_>, shown: &str) {
        match source {
            Source::Text(text) => match crate::tools::bash::shell::parse(&text) {
                Ok(script) => self.apart(&script),
                Err(_) => self.found.push((Risk::Opaque, shown.to_owned())),
            },
            Source::Words(words) => {
                if let Some(text) = words.iter().map(Word::literal).collect::<Option<Vec<_>>>() {
                    return self.code(Source::Text(text.join(" ")), shown);
                }
                let worst = words.iter().map(code::risk_of).find(|risk| *risk == Risk::HiddenCode);
                self.found.push((worst.unwrap_or(Risk::Opaque), shown.to_owned()));
                let text = words.iter().map(Word::shown).collect::<Vec<_>>().join(" ");
                if let Ok(script) = crate::tools::bash::shell::parse(&text) {
                    self.apart(&script);
                }
            }
        }
    }
}

fn spreads(pipeline: &Pipeline) -> bool {
    let inside = |command: &Command| match command {
        Command::Group(group) => group.body.pipelines.iter().any(spreads),
        Command::Function { body, .. } => body.pipelines.iter().any(spreads),
        Command::Simple(_) => false,
    };
    pipeline.background || pipeline.commands.len() > 1 || pipeline.commands.iter().any(inside)
}
