//! What begins with a slash, done. What only looks is in `obey/look.rs`, what changes the session in `obey/change.rs`, what
//! has to do with other sessions and files in `obey/sessions.rs`.

use std::error::Error;

use super::paint::{Hue, Style};
use super::slash::{self, Word};
use super::{Chat, Next};
use crate::exit::Exit;

mod change;
pub mod look;
mod sessions;

impl Chat {
    /// Does what a command says.
    pub(super) async fn obey(&mut self, word: Word, argument: &str) -> Next {
        let command = slash::COMMANDS.iter().find(|command| command.word == word);
        if let Some(told) = command.and_then(|command| command.refuses(argument)) {
            self.refuse(&told);
            self.ended(Exit::Usage);
            return Next::Prompt;
        }
        match word {
            Word::Quit => return Next::Leave(self.exit),
            Word::Help => self.help(argument),
            Word::Status => self.status(),
            Word::Tools => self.tools(argument),
            Word::Agents => self.agents(argument),
            Word::Config => self.config(),
            Word::Cost => self.cost(),
            Word::Think => self.think(argument),
            Word::Expand => self.expand(argument),
            Word::Model => return self.model(argument).await,
            Word::Provider => return self.provider(argument),
            Word::Bundle => return self.bundle(argument).await,
            Word::Compact => return self.compact(argument).await,
            Word::Clear => self.clear().await,
            Word::Mode => self.mode(argument),
            Word::Allow => self.allow(argument),
            Word::Save => self.save(argument).await,
            Word::Export => self.export(argument),
            Word::Fork => return self.fork(argument).await,
            Word::Rewind => self.rewind(argument).await,
            Word::Sessions => self.sessions(),
            Word::Resume => return self.resume(argument).await,
            Word::Rename => self.rename(argument).await,
        }
        Next::Prompt
    }

    /// Tells that something was not done, and why.
    fn refuse(&mut self, text: &str) {
        self.ended(Exit::Failure);
        self.say(text, Style::of(Hue::Red));
    }

    /// Tells about an error with its causes, and what can be done about it.
    fn fault(&mut self, error: &(dyn Error + 'static), hint: Option<String>) {
        self.refuse(&format!("error: {}", amplifier_app::chain(error)));
        if let Some(hint) = hint {
            self.say(&format!("  hint: {}", crate::render::typed(&hint)), Style::DIM);
        }
    }

    /// Says that something is done.
    fn done(&mut self, text: &str) {
        self.say(text, Style::of(Hue::Green));
    }
}
