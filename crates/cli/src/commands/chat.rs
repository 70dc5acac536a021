//! `amplifier` alone and `amplifier chat`: a conversation.

use std::path::PathBuf;

use amplifier_protocol::ids::SessionId;

use super::load;
use crate::args::{ChatArgs, StartArgs};
use crate::chat::{self, ColourWish};
use crate::exit::Exit;
use crate::render;

/// `amplifier chat`, also of a session that exists.
pub fn chat(args: &ChatArgs, home: Option<PathBuf>) -> Exit {
    let resumed = match args.resume.as_ref().map(|id| id.parse::<SessionId>()).transpose() {
        Ok(resumed) => resumed,
        Err(error) => {
            render::error(&error, None);
            return Exit::Usage;
        }
    };
    open(&args.start, resumed, home, wish(args))
}

/// Opens the chat, with a new session or with one that exists.
pub fn open(start: &StartArgs, resumed: Option<SessionId>, home: Option<PathBuf>, wish: ColourWish) -> Exit {
    match load::access(home) {
        Ok(access) => load::block_on(chat::run(start, resumed, access, wish)),
        Err(exit) => exit,
    }
}

fn wish(args: &ChatArgs) -> ColourWish {
    if args.no_color { ColourWish::Never } else { ColourWish::Usual }
}
