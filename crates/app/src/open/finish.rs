//! The end of a session that is open, for every front end.

use amplifier_core::error::chain;
use amplifier_protocol::ids::SessionId;

use super::OpenSession;
use crate::paths::Home;
use crate::sessions;
use crate::store::SessionStore;

impl OpenSession {
    /// Lets the modules go and brings what is shown of the session up to its journal; gives what went wrong with that.
    pub async fn finish(&self) -> Vec<String> {
        let mut problems = self.let_go().await;
        if let Err(error) = self.update_views().await {
            // Whether the journal is whole is told by whoever writes it.
            problems.push(format!("{}; it is made again from the journal", chain(&error)));
        }
        problems
    }

    /// Lets the modules go; gives what went wrong with that.
    pub(crate) async fn let_go(&self) -> Vec<String> {
        self.session.cleanup().await.failed.iter().map(|failed| format!("cleanup of {failed}")).collect()
    }

    /// Whether nobody ever said anything in it: a new session without a word is not worth keeping.
    pub fn is_silent(&self) -> bool {
        // Not by its status, which counts from the last opening on: the session may have been opened again since.
        self.session.coordinator().turn() == 0
    }
}

/// Removes a session in which nothing was said, and which nobody has open any more; gives what went wrong with that.
pub fn forget(home: Home, id: &SessionId) -> Option<String> {
    let removed = sessions::delete(&SessionStore::new(home), std::slice::from_ref(id));
    removed.err().map(|error| chain(&error))
}
