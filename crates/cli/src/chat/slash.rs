//! What begins with a slash: a word to the chat and never to the model. The table is what `/help` and Tab show.

/// One command.
pub struct Command {
    pub name: &'static str,
    /// What stands behind the name.
    pub form: &'static str,
    pub about: &'static str,
    pub takes: Takes,
    pub word: Word,
}

/// What a command takes, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Text,
    OneOf(&'static [&'static str]),
    Agent,
    Tool,
    Model,
    Provider,
    Session,
    Command,
    File,
}

/// Which command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Help,
    Status,
    Tools,
    Agents,
    Model,
    Provider,
    Bundle,
    Config,
    Cost,
    Compact,
    Clear,
    Save,
    Fork,
    Rewind,
    Sessions,
    Resume,
    Export,
    Rename,
    Think,
    Expand,
    Mode,
    Allow,
    Quit,
}

const fn command(
    word: Word,
    name: &'static str,
    form: &'static str,
    takes: Takes,
    about: &'static str,
) -> Command {
    Command { name, form, about, takes, word }
}

pub static COMMANDS: &[Command] = &[
    command(Word::Help, "help", "[COMMAND]", Takes::Command, "what can be typed here"),
    command(Word::Status, "status", "", Takes::Nothing, "session, model, folder and what was used"),
    command(Word::Tools, "tools", "[NAME|last]", Takes::Tool, "the tools, one of them, or the last calls"),
    command(Word::Agents, "agents", "[NAME]", Takes::Agent, "the agents work can be handed to"),
    command(Word::Model, "model", "[NAME]", Takes::Model, "show or change the model"),
    command(Word::Provider, "provider", "[NAME]", Takes::Provider, "show or change who is asked"),
    command(Word::Bundle, "bundle", "[NAME]", Takes::Text, "show the bundle, or go on with another one"),
    command(Word::Config, "config", "", Takes::Nothing, "the mount plan of this session"),
    command(Word::Cost, "cost", "", Takes::Nothing, "tokens and money, by who spent them"),
    command(Word::Compact, "compact", "[WISH]", Takes::Text, "put a summary in place of the conversation"),
    command(Word::Clear, "clear", "", Takes::Nothing, "forget the conversation; the journal keeps it"),
    command(Word::Save, "save", "[FILE] [--force]", Takes::File, "write the conversation to a file, as JSON"),
    command(Word::Fork, "fork", "[TURN]", Takes::Text, "go on in a copy that ends here or at a turn"),
    command(Word::Rewind, "rewind", "[TURN]", Takes::Text, "go back to the end of a turn"),
    command(Word::Sessions, "sessions", "", Takes::Nothing, "the last sessions"),
    command(Word::Resume, "resume", "SESSION", Takes::Session, "go on with another session"),
    command(
        Word::Export,
        "export",
        "[FILE] [--force]",
        Takes::File,
        "write the session as .md, .json or .html",
    ),
    command(Word::Rename, "rename", "TITLE", Takes::Text, "give the session a title"),
    command(
        Word::Think,
        "think",
        "[on|off]",
        Takes::OneOf(&["on", "off"]),
        "show the last thought, or all that come",
    ),
    command(Word::Expand, "expand", "[NUMBER]", Takes::Text, "everything about a tool call, or the last one"),
    command(
        Word::Mode,
        "mode",
        "[plan|normal]",
        Takes::OneOf(&["normal", "plan"]),
        "in `plan` nothing is changed or run",
    ),
    command(Word::Allow, "allow", "[TOOL|forget]", Takes::Tool, "what needs no question any more"),
    command(Word::Quit, "quit", "", Takes::Nothing, "leave; `exit` and Ctrl-D do the same"),
];

/// A line, understood.
#[derive(Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// Nothing at all.
    Nothing,
    /// For the model.
    Prompt(&'a str),
    /// For the chat.
    Command(Word, &'a str),
    /// No command, and what was perhaps meant.
    Unknown { name: &'a str, nearest: Option<&'static str> },
}

pub fn read(line: &str) -> Said<'_> {
    let line = line.trim();
    if line.is_empty() {
        return Said::Nothing;
    }
    if matches!(line, "exit" | "quit") {
        return Said::Command(Word::Quit, "");
    }
    let Some(rest) = line.strip_prefix('/') else { return Said::Prompt(line) };
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    // A path is no command: `/etc/hosts has what?` is a question.
    if name.contains('/') {
        return Said::Prompt(line);
    }
    match find(name) {
        Some(command) => Said::Command(command.word, argument.trim()),
        None => Said::Unknown { name, nearest: nearest(name) },
    }
}

pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// The command that was perhaps meant; of two that are equally near, the one of the same length.
fn nearest(name: &str) -> Option<&'static str> {
    let away = |known: &str| (strsim::damerau_levenshtein(known, name), known.len().abs_diff(name.len()));
    let best = COMMANDS.iter().min_by_key(|command| away(command.name))?;
    (away(best.name).0 <= name.len() / 3 + 1 && name.len() > 1).then_some(best.name)
}

/// What is said below the list of commands.
pub const HELP: &str = "  Enter sends, Ctrl-J or Alt-Enter begins a new line, Tab completes, Ctrl-R searches.
  `@file` brings a file along, `@agent:NAME` has an agent do it. What you type while a turn runs is taken up at its next step.
  Ctrl-C stops a turn, a second one stops it at once. Ctrl-D leaves, Ctrl-Z gives the shell the terminal until `fg`.";

impl Command {
    /// Why an argument is none of this command; nothing where it may be one.
    pub fn refuses(&self, argument: &str) -> Option<String> {
        let name = self.name;
        match self.takes {
            Takes::Nothing if !argument.is_empty() => {
                Some(format!("`/{name}` takes nothing behind it; `/{name}` alone does it"))
            }
            Takes::OneOf(words) if !argument.is_empty() && !words.contains(&argument) => {
                let known: Vec<_> = words.iter().map(|word| format!("`/{name} {word}`")).collect();
                Some(format!(
                    "`{argument}` is nothing that `/{name}` knows; it is {} or alone",
                    known.join(", ")
                ))
            }
            _ => None,
        }
    }

    /// How it is written.
    pub fn form(&self) -> String {
        format!("/{} {}", self.name, self.form).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_prompts_commands_or_mistakes() {
        assert_eq!(read("  hi there "), Said::Prompt("hi there"));
        assert_eq!(read("/model  gpt x "), Said::Command(Word::Model, "gpt x"));
        assert_eq!(read("exit"), Said::Command(Word::Quit, ""));
        assert_eq!(read("/"), Said::Unknown { name: "", nearest: None });
        assert_eq!(read("/modle"), Said::Unknown { name: "modle", nearest: Some("model") });
        assert_eq!(read("/xyzzy"), Said::Unknown { name: "xyzzy", nearest: None });
        assert_eq!(read("/etc/hosts has what?"), Said::Prompt("/etc/hosts has what?"));
        assert_eq!(read(" \n"), Said::Nothing);
    }

    #[test]
    fn what_a_command_does_not_take_is_refused_with_what_is_right() {
        let refused = |name: &str, argument: &str| find(name).unwrap().refuses(argument);
        let told = "`/quit` takes nothing behind it; `/quit` alone does it";
        assert_eq!(refused("quit", "now").as_deref(), Some(told));
        let told = "`maybe` is nothing that `/think` knows; it is `/think on`, `/think off` or alone";
        assert_eq!(refused("think", "maybe").as_deref(), Some(told));
        let fine = [refused("quit", ""), refused("think", "on"), refused("think", ""), refused("model", "x")];
        assert_eq!(fine, [None, None, None, None]);
    }

    #[test]
    fn every_command_has_its_own_name_and_word() {
        for (at, command) in COMMANDS.iter().enumerate() {
            assert!(
                !COMMANDS[..at].iter().any(|other| other.name == command.name || other.word == command.word)
            );
        }
        assert_eq!(find("fork").map(Command::form).as_deref(), Some("/fork [TURN]"));
    }
}
