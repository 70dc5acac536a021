//! What begins with a slash, done.

use super::paint::{Hue, Style};
use super::slash::{self, Word};
use super::view::{Thinking, thought_lines};
use super::{Chat, Next, view};

impl Chat {
    /// Does what a command says.
    pub(super) async fn obey(&mut self, word: Word, argument: &str) -> Next {
        match word {
            Word::Quit => return Next::Leave,
            Word::Help => self.say(&slash::help(argument), Style::PLAIN),
            Word::Think => self.think(argument),
            Word::Expand => self.expand(argument),
            _ => self.say("not yet", Style::PLAIN),
        }
        Next::Prompt
    }

    fn think(&mut self, argument: &str) {
        match argument {
            "on" => {
                self.memory.thinking = Thinking::Shown;
                self.say("thoughts are shown as they come", Style::DIM);
            }
            "off" => {
                self.memory.thinking = Thinking::Folded;
                self.say("thoughts are folded to one line", Style::DIM);
            }
            _ => match &self.memory.last_thought {
                Some(thought) => {
                    let lines = thought_lines(thought, view::room(&self.screen));
                    self.show(&lines);
                }
                None => self.say("nothing was thought yet", Style::DIM),
            },
        }
    }

    fn expand(&mut self, argument: &str) {
        let number = argument.trim_start_matches('#');
        let call = match (number, number.parse()) {
            ("", _) => self.memory.calls.find(None),
            (_, Ok(number)) => self.memory.calls.find(Some(number)),
            (_, Err(_)) => None,
        };
        match call {
            Some(call) => {
                let lines = call.whole(view::room(&self.screen));
                self.show(&lines);
            }
            None => self.say("there is no such tool call", Style::of(Hue::Yellow)),
        }
    }
}
