//! How the loop of a sub-session said its turn ended: `orchestrator:complete`, which loops may say more in than we know.

use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_core::hooks::{EventPattern, HandlerId, HookSpec};
use amplifier_core::session::Session;
use amplifier_protocol::event::OrchestratorComplete;
use amplifier_protocol::hook::HookResult;
use async_trait::async_trait;
use serde_json::{Map, Value};

/// After every handler that may still change what is said.
const LAST: i32 = 999;

/// Listens for the end of a turn until it is dropped.
pub(super) struct Ending {
    session: Session,
    handler: HandlerId,
    told: Arc<Told>,
}

#[derive(Default)]
struct Told(Mutex<Map<String, Value>>);

impl Ending {
    pub(super) fn watch(session: &Session) -> Self {
        let told = Arc::new(Told::default());
        let name = "_spawn_completion_capture";
        let spec = HookSpec::new(EventPattern::event::<OrchestratorComplete>(), name).priority(LAST);
        let heard: Arc<dyn HookHandler> = told.clone();
        let handler = session.coordinator().hooks().on(spec, heard);
        Self { session: session.clone(), handler, told }
    }

    /// The status, and what else the loop said.
    pub(super) fn told(&self) -> (Value, Map<String, Value>) {
        read(self.told.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// A loop that says nothing has succeeded.
fn read(mut told: Map<String, Value>) -> (Value, Map<String, Value>) {
    let status = told.shift_remove("status").unwrap_or_else(|| Value::from("success"));
    if let Some(Value::Object(more)) = told.shift_remove("metadata") {
        told.extend(more);
    }
    (status, told)
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.session.coordinator().hooks().unregister(self.handler);
    }
}

#[async_trait]
impl HookHandler for Told {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = event.data.clone();
        Ok(HookResult::proceed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_loop_may_say_more_than_we_know_or_nothing() {
        let told = |data: Value| read(data.as_object().unwrap().clone());
        let (status, metadata) =
            told(json!({"status": "incomplete", "turn_count": 3, "goal_final": true, "metadata": {"a": 1}}));
        assert_eq!(status, "incomplete");
        assert_eq!(Value::Object(metadata), json!({"turn_count": 3, "goal_final": true, "a": 1}));
        assert_eq!(told(json!({})), (json!("success"), Map::new()));
    }
}
