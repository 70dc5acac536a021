//! Code that a command runs without showing it: where it comes from, and whether a short program looks dangerous.

use super::Risk;
use crate::tools::bash::shell::{Command, Script, Word};

/// Shell code that is about to run.
pub(super) enum Source<'a> {
    Text(String),
    Words(&'a [Word]),
}

/// Programs that bring text from elsewhere.
const FETCHERS: &[&str] = &[
    "curl", "wget", "nc", "ncat", "netcat", "socat", "fetch", "aria2c", "http", "https", "lynx", "ftp",
    "scp", "ssh", "dig", "nslookup", "openssl",
];
/// Programs that make text look like something else.
const DECODERS: &[&str] = &[
    "base64", "base32", "basenc", "xxd", "od", "hexdump", "rev", "tr", "uudecode", "gunzip", "zcat",
    "bunzip2", "xz", "gzip", "printf", "sed", "awk", "perl", "python", "python3", "ruby", "openssl", "gpg",
    "dd", "cut",
];
/// Whether code that a word stands for is hidden on purpose or merely unknown.
pub(super) fn risk_of(word: &Word) -> Risk {
    let hidden = word.scripts().any(|script| programs(script).iter().any(|program| hides(program)));
    if hidden { Risk::HiddenCode } else { Risk::Opaque }
}

/// Whether code from these stages is hidden on purpose or merely unknown.
pub(super) fn risk_of_stages(stages: &[Command]) -> Risk {
    let mut names = Vec::new();
    stages.iter().for_each(|stage| collect(stage, &mut names));
    if names.iter().any(|name| hides(name)) { Risk::HiddenCode } else { Risk::Opaque }
}

fn hides(program: &str) -> bool {
    FETCHERS.contains(&program) || DECODERS.contains(&program)
}

/// The names of all programs in a script, also of those inside others.
pub(super) fn programs(script: &Script) -> Vec<String> {
    let mut names = Vec::new();
    for command in script.pipelines.iter().flat_map(|pipeline| &pipeline.commands) {
        collect(command, &mut names);
    }
    names
}

fn collect(command: &Command, names: &mut Vec<String>) {
    let scripts = |words: &[Word], names: &mut Vec<String>| {
        for script in words.iter().flat_map(Word::scripts) {
            names.extend(programs(script));
        }
    };
    match command {
        Command::Simple(simple) => {
            for word in &simple.words {
                if let Some(name) = word.name() {
                    names.push(name.rsplit('/').next().unwrap_or(&name).to_owned());
                    // What a wrapper starts is one of its next words; a name among arguments does no harm here.
                    if !["env", "sudo", "xargs", "nohup", "timeout", "command", "exec"]
                        .contains(&name.as_str())
                    {
                        break;
                    }
                }
            }
            scripts(&simple.words, names);
        }
        Command::Group(group) => {
            names.extend(programs(&group.body));
            scripts(&group.words, names);
        }
        Command::Function { body, .. } => names.extend(programs(body)),
    }
}

/// What a pipeline stage prints, when it prints what it is given.
pub(super) fn printed(command: &Command) -> Option<String> {
    let Command::Simple(simple) = command else { return None };
    let (first, arguments) = simple.words.split_first()?;
    if !matches!(first.name().as_deref(), Some("echo" | "printf")) {
        return None;
    }
    let text = arguments.iter().map(Word::literal).collect::<Option<Vec<_>>>()?.join(" ");
    let text = text.strip_prefix("-n ").unwrap_or(&text);
    // Escapes and formats would have to be worked out to be judged.
    if text.starts_with("-e") || text.contains(['\\', '%']) { None } else { Some(text.to_owned()) }
}
