//! What is spent here, told to the sessions above: limits on a whole tree must outlive the process that counted.

use std::sync::Mutex;

use amplifier_protocol::event::SessionChildSpent;
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::spend::Amounts;

use super::Coordinator;
use crate::journal::JournalError;
use crate::sync::lock;

/// The hub above, and what it knows.
pub(super) struct Above {
    hub: Coordinator,
    told: Mutex<Amounts>,
}

impl Above {
    pub(super) fn new(hub: Coordinator, told: Amounts) -> Self {
        Self { hub, told: Mutex::new(told) }
    }
}

impl Coordinator {
    /// Writes what was spent since the last time into the journals above. Nothing to do for a root.
    pub(crate) fn tell_spending(&self) {
        let Some(above) = &self.0.above else { return };
        let spent = {
            let mut told = lock(&above.told);
            let total = self.ledger().total();
            let news = total.minus(&told);
            *told = total;
            news
        };
        if spent != Amounts::default() {
            above.hub.note(|| SessionChildSpent { child: self.session_id().clone(), spent });
            above.hub.tell_spending();
        }
    }

    pub(super) fn has_parent(&self) -> bool {
        self.0.above.is_some()
    }

    /// Makes what was told above durable, before more is spent: a kill loses the account of one call at most.
    pub(super) async fn sync_above(&self) -> Result<(), JournalError> {
        let mut next = &self.0.above;
        while let Some(above) = next {
            above.hub.sync_journal().await?;
            next = &above.hub.0.above;
        }
        Ok(())
    }

    /// Writes down that a child was started.
    pub(crate) fn note_spawn(&self, child: &SessionId) {
        let spent = Amounts { spawns: 1, ..Amounts::default() };
        self.note(|| SessionChildSpent { child: child.clone(), spent });
    }
}
