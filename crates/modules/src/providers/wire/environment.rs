//! Variables that a provider may read. The application reads the environment and offers what providers may know as the
//! capability `environment.variable`; without it no variable is set.

use amplifier_core::contracts::Capability;
use amplifier_core::coordinator::Coordinator;
use serde_json::{Value, json};

const CAPABILITY: &str = "environment.variable";

/// The value of a variable, if it is offered and not empty.
pub(crate) async fn variable(coordinator: &Coordinator, name: &str) -> Option<String> {
    let Some(Capability::Call(_)) = coordinator.capability(CAPABILITY) else { return None };
    match coordinator.call_capability(CAPABILITY, json!({"name": name})).await {
        Ok(Value::String(value)) if !value.trim().is_empty() => Some(value),
        // A capability that fails is a variable that is not set; the provider then says which one it wanted.
        _ => None,
    }
}
