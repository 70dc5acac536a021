//! What Tab offers: commands after `/`, files after `@`, agents, sessions, models and tools where a command takes one.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_app::paths::Home;
use amplifier_app::sessions::{self, Listed, Scope};
use amplifier_app::store::SessionStore;
use reedline::{Completer, CompletionResult, Span, Suggestion};

use super::calls::one_line;
use super::slash::{COMMANDS, Takes};
use crate::harmless::plain;

/// How many things are offered at a time.
const MOST: usize = 100;
/// How many sessions are offered.
const SESSIONS: usize = 30;

/// What is known about the open session; the chat writes it, the editor reads it.
#[derive(Debug, Default)]
pub struct Known {
    pub agents: Vec<String>,
    pub tools: Vec<String>,
    pub models: Vec<String>,
    pub providers: Vec<String>,
}

/// The same, on both sides.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<Known>>);

impl Shared {
    pub fn set(&self, known: Known) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    fn read<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Finds what can be typed next.
pub struct Completion {
    pub known: Shared,
    pub folder: PathBuf,
    pub home: Home,
    pub scope: Scope,
}

/// One thing that is offered.
#[derive(Debug, PartialEq, Eq)]
struct Offer {
    value: String,
    about: Option<String>,
    /// Whether more of the same word may follow, as in a folder.
    open: bool,
}

impl Offer {
    fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), about: None, open: false }
    }
}

impl Completer for Completion {
    fn complete(&mut self, line: &str, at: usize) -> CompletionResult {
        let (start, offers) = self.offers(line.get(..at).unwrap_or_default());
        // What could not be shown as it is cannot be completed: the line would not be what it seems.
        let suggestions: Vec<Suggestion> = offers
            .into_iter()
            .filter(|offer| plain(&offer.value) == offer.value)
            .take(MOST)
            .map(|offer| Suggestion {
                value: offer.value,
                description: offer.about.map(|about| plain(&about).into_owned()),
                span: Span { start, end: at.max(start) },
                append_whitespace: !offer.open,
                ..Suggestion::default()
            })
            .collect();
        // Of nothing the editor would say so in capitals; of what is not known yet it says nothing.
        if suggestions.is_empty() { CompletionResult::Pending } else { CompletionResult::fresh(suggestions) }
    }
}

impl Completion {
    /// Where the word begins that is to be completed, and what it could become.
    fn offers(&self, before: &str) -> (usize, Vec<Offer>) {
        if let Some((start, path)) = open_quote(before) {
            return (start, files(&self.folder, path, Quoted::Yes));
        }
        let start = before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        let word = before.get(start..).unwrap_or_default();
        if let Some(path) = word.strip_prefix('@') {
            let agents = self.known.read(|known| known.agents.clone());
            let agents = agents.iter().map(|name| format!("@agent:{name}"));
            let agents = agents.filter(|offer| !path.is_empty() && offer.starts_with(word)).map(Offer::new);
            let mut offers = files(&self.folder, path, Quoted::No);
            offers.extend(agents);
            return (start, offers);
        }
        if start == 0 && word.starts_with('/') {
            return (0, commands(word));
        }
        let name = before.split_whitespace().next().filter(|name| name.starts_with('/'));
        let takes =
            name.and_then(|name| COMMANDS.iter().find(|command| format!("/{}", command.name) == name));
        // Only the first word after a command is of the command's kind.
        match takes.filter(|_| before.get(..start).unwrap_or_default().split_whitespace().count() == 1) {
            Some(command) => (start, self.arguments(command.takes, word)),
            None => (start, Vec::new()),
        }
    }

    fn arguments(&self, takes: Takes, word: &str) -> Vec<Offer> {
        let list = match takes {
            Takes::Nothing | Takes::Text => return Vec::new(),
            Takes::OneOf(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            Takes::Agent => self.known.read(|known| known.agents.clone()),
            Takes::Tool => self.known.read(|known| known.tools.clone()),
            Takes::Model => self.known.read(|known| known.models.clone()),
            Takes::Provider => self.known.read(|known| known.providers.clone()),
            Takes::Command => COMMANDS.iter().map(|command| command.name.to_owned()).collect(),
            Takes::Session => return self.sessions(word),
            Takes::File => {
                let path =
                    |offer: Offer| Offer { value: offer.value.trim_start_matches('@').to_owned(), ..offer };
                // A command takes a name as it is, with its blanks, but this word ends at one.
                let offers = files(&self.folder, word, Quoted::No).into_iter();
                return offers.filter(|offer| !offer.value.starts_with(QUOTE)).map(path).collect();
            }
        };
        fitting(&list, word).map(Offer::new).collect()
    }

    fn sessions(&self, word: &str) -> Vec<Offer> {
        // Those of this project that a person began, the last used first: what `/sessions` lists.
        let store = SessionStore::new(self.home.clone());
        let Ok(listing) = sessions::list(&store, &self.scope) else { return Vec::new() };
        let fits = |listed: &Listed| listed.metadata.session_id.as_str().starts_with(word);
        let offer = |listed: Listed| {
            let about = Some(one_line(listed.metadata.label()));
            Offer { value: listed.metadata.session_id.to_string(), about, open: false }
        };
        listing.sessions.into_iter().filter(fits).take(SESSIONS).map(offer).collect()
    }
}

fn fitting<'a>(list: &'a [String], word: &'a str) -> impl Iterator<Item = &'a str> {
    list.iter().map(String::as_str).filter(move |item| item.starts_with(word))
}

fn commands(word: &str) -> Vec<Offer> {
    let known = COMMANDS.iter().map(|command| (format!("/{}", command.name), command.about));
    let fits = known.filter(|(name, _)| name.starts_with(word));
    fits.map(|(value, about)| Offer { value, about: Some(about.to_owned()), open: false }).collect()
}

/// How a mention begins that may have blanks in it.
const QUOTE: &str = "@\"";

/// Whether the mention that is completed began with a quote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    No,
    Yes,
}

/// Where a mention begins whose quote is not closed yet, and its path so far.
fn open_quote(before: &str) -> Option<(usize, &str)> {
    let start = before.rfind(QUOTE)?;
    let begins = before.get(..start)?.chars().next_back().is_none_or(char::is_whitespace);
    let path = before.get(start + QUOTE.len()..)?;
    (begins && !path.contains('"')).then_some((start, path))
}

/// The files and folders whose names begin so. Hidden ones only where their dot was typed.
fn files(folder: &Path, path: &str, quoted: Quoted) -> Vec<Offer> {
    let (above, begun) = path.rsplit_once('/').map_or(("", path), |(above, begun)| (above, begun));
    let place = match (above, path.starts_with('/')) {
        ("", true) => PathBuf::from("/"),
        _ => folder.join(above),
    };
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut offers: Vec<Offer> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let seen = name.starts_with(begun) && (begun.starts_with('.') || !name.starts_with('.'));
            // Neither can be written in a mention.
            if !seen || name.contains(['"', '\n']) {
                return None;
            }
            let open = entry.path().is_dir();
            let head = path.strip_suffix(begun).unwrap_or_default();
            let end = if open { "/" } else { "" };
            // A blank would end the mention; the quote of a folder stays open for what is in it.
            let value = match quoted == Quoted::Yes || name.contains(char::is_whitespace) {
                true => format!("{QUOTE}{head}{name}{}", if open { end } else { "\"" }),
                false => format!("@{head}{name}{end}"),
            };
            Some(Offer { value, about: None, open })
        })
        .collect();
    offers.sort_by(|a, b| a.value.cmp(&b.value));
    offers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(line: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        std::fs::create_dir_all(dir.path().join("my dir")).unwrap();
        std::fs::write(dir.path().join("my dir/x.md"), "").unwrap();
        for name in ["src/main.rs", "src/.hidden", "setup.md", "a b"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let known = Shared::default();
        known.set(Known {
            agents: vec!["explorer".to_owned()],
            models: vec!["big".to_owned()],
            ..Known::default()
        });
        let completion = Completion {
            known,
            folder: dir.path().to_owned(),
            home: Home::new(dir.path().join("home")),
            scope: Scope::all(),
        };
        let (_, offers) = completion.offers(line);
        offers.into_iter().map(|offer| offer.value).collect()
    }

    #[test]
    fn commands_files_agents_and_models_are_offered_where_they_fit() {
        assert_eq!(offered("/comp"), ["/compact"]);
        assert_eq!(offered("look at @s"), ["@setup.md", "@src/"]);
        assert_eq!(offered("look at @src/"), ["@src/deep/", "@src/main.rs"]);
        assert_eq!(offered("@src/.h"), ["@src/.hidden"]);
        assert_eq!(offered("ask @agent:ex"), ["@agent:explorer"]);
        assert_eq!(offered("ask @ag"), ["@agent:explorer"]);
        assert_eq!(offered("/model b"), ["big"]);
        assert_eq!(offered("see @my"), ["@\"my dir/"]);
        assert_eq!(offered("see @\"my d"), ["@\"my dir/"]);
        assert_eq!(offered("see @\"my dir/"), ["@\"my dir/x.md\""]);
        assert_eq!(offered("see @\"my dir/x.md\" and @se"), ["@setup.md"]);
        assert!(offered("/save my").is_empty());
        assert_eq!(offered("/mode p"), ["plan"]);
        assert_eq!(offered("/help mod"), ["model", "mode"]);
        assert!(offered("no command here").is_empty());
        assert!(offered("look at a").is_empty());
    }
}
