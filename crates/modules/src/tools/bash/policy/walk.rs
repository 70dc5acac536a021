//! Goes through a command and gathers what speaks against it.

use std::path::{Path, PathBuf};

use super::code::{self, Source};
use super::places::Place;
use super::{Policy, Risk, pattern};
use crate::tools::bash::shell::{
    Command, Group, Part, Pipeline, Redirect, RedirectKind, Script, Simple, Word,
};

const DEEPEST: usize = 16;
/// Variables that make programs run something else.
const TELLING: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_EDITOR",
    "PAGER",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "NODE_OPTIONS",
    "IFS",
    "SHELLOPTS",
    "PS4",
];

/// Everything that speaks against a script, with the simple command it is about.
pub(super) fn walk(policy: &Policy, script: &Script, folder: Option<&Path>) -> Vec<(Risk, String)> {
    let mut walk = Walk::new(policy, folder);
    walk.script(script);
    walk.found
}

/// Every simple command of a script, also those inside others.
pub(super) fn simple_commands(policy: &Policy, script: &Script) -> Vec<Vec<Word>> {
    let mut walk = Walk { seen: Some(Vec::new()), ..Walk::new(policy, None) };
    walk.script(script);
    walk.seen.unwrap_or_default()
}

pub(super) struct Walk<'a> {
    pub(super) policy: &'a Policy,
    pub(super) found: Vec<(Risk, String)>,
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
        Self { policy, found: Vec::new(), folder, fetched: Vec::new(), depth: 0, seen: None }
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
        self.secrets(arguments, &shown);
        let program = name.rsplit('/').next().unwrap_or(&name).to_owned();
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
        let adds_to_path =
            value.parts.iter().any(|part| matches!(part, Part::Variable(name) if name == "PATH"));
        if TELLING.contains(&name) || (name == "PATH" && !adds_to_path) {
            self.found.push((Risk::Opaque, format!("{name}={} {shown}", value.shown())));
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
        let place = match (redirect.kind, redirect.target.path()) {
            (RedirectKind::Here | RedirectKind::Duplicate, _) => return,
            (_, Some(path)) => self.policy.place(&path, self.folder.as_deref()),
            (_, None) => Place::Unknown,
        };
        let shown = format!("{shown} > {}", redirect.target.shown());
        match redirect.kind {
            RedirectKind::Write => self.written(place, &shown),
            _ => self.read(place, &shown),
        }
    }

    pub(super) fn read(&mut self, place: Place, shown: &str) {
        match place {
            Place::Secret => self.found.push((Risk::Secret, shown.to_owned())),
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
            Place::Workspace | Place::WholeWorkspace | Place::Temporary | Place::Harmless => return,
        };
        self.found.push((risk, shown.to_owned()));
    }

    fn secrets(&mut self, arguments: &[Word], shown: &str) {
        for word in arguments {
            let Some(text) = word.path() else { continue };
            let text = text.rsplit(['=', '@', ':']).next().unwrap_or(&text);
            let like_a_path = text.contains('/') || text.starts_with('~') || text.starts_with('.');
            if like_a_path && !text.contains(char::is_whitespace) {
                self.read(self.policy.place(text, self.folder.as_deref()), shown);
            }
        }
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
