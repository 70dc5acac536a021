//! `amplifier` alone and `amplifier chat`: a conversation.

use std::path::PathBuf;

use amplifier_app::library::Access;
use amplifier_app::sessions::resolve;
use amplifier_app::store::SessionStore;
use amplifier_protocol::ids::SessionId;

use super::start::Terms;
use super::{load, session, start};
use crate::args::ChatArgs;
use crate::chat::{self, Past};
use crate::exit::Exit;

/// `amplifier chat`, also of a session that exists.
pub fn chat(args: &ChatArgs, home: Option<PathBuf>) -> Exit {
    let access = match load::session_access(home, start::mode(&args.start)) {
        Ok(access) => access,
        Err(exit) => return exit,
    };
    let store = SessionStore::new(access.home.clone());
    match args.resume.as_ref().map(|text| resolve(&store, text)).transpose() {
        Ok(resumed) => open(&Terms::of(&args.start), resumed, access, Past::Shown),
        Err(error) => session::refuse(&error, &store),
    }
}

/// Opens the chat, with a new session or with one that exists.
pub fn open(terms: &Terms, resumed: Option<SessionId>, access: Access, past: Past) -> Exit {
    load::block_on(chat::run(terms, resumed, access, past))
}
