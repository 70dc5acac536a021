//! What somebody wants of a session that is opened again, and whether it is so: a session that only opened is not yet the one
//! that was asked for.

use amplifier_core::report::LoadOutcome;
use serde_json::Value;

use crate::open::OpenSession;
use crate::providers;

/// What must be so when a session is open again; else it goes on as it was.
pub(super) enum Wants {
    Nothing,
    /// The first provider of the plan is asked.
    FirstProvider,
    /// This model is asked.
    Model(String),
}

impl Wants {
    /// Why a session is not what was wanted.
    pub(super) fn are_met(&self, opened: &OpenSession) -> Result<(), String> {
        match self {
            Self::Nothing => Ok(()),
            Self::FirstProvider => match providers::loaded(&opened.session).next() {
                Some(entry) if !matches!(entry.outcome, LoadOutcome::Mounted { .. }) => {
                    Err(entry.to_string())
                }
                _ => Ok(()),
            },
            Self::Model(wanted) => match model_of(opened) {
                // One that does not tell its model is believed.
                (provider, Some(model)) if model != *wanted => {
                    Err(format!("`{provider}` asks `{model}` and takes no other model"))
                }
                _ => Ok(()),
            },
        }
    }
}

pub(super) fn model_of(opened: &OpenSession) -> (String, Option<String>) {
    match providers::asked(opened.session.coordinator()) {
        Some((name, provider)) => {
            let model = provider.info().defaults.get("model").and_then(Value::as_str).map(str::to_owned);
            (name, model)
        }
        None => ("no provider".to_owned(), None),
    }
}
