//! Variables that a provider may read. The application reads the environment and offers what providers may know as the
//! capability `environment.variable`; without it no variable is set.

use std::path::PathBuf;
use std::sync::Arc;

use amplifier_core::contracts::Capability;
use amplifier_core::coordinator::Coordinator;
use amplifier_core::loader::MountCx;
use serde_json::{Value, json};

use super::exchange::Proxies;
use super::settings::REPLAY;
use super::tape::{Player, Recorder, Run, Tape};

const CAPABILITY: &str = "environment.variable";
/// Under this name the application takes out the keys that it knows.
pub(super) const KEYS: &str = "secrets.hide";

/// The value of a variable, if it is offered and not empty.
pub(crate) async fn variable(coordinator: &Coordinator, name: &str) -> Option<String> {
    let Some(Capability::Call(_)) = coordinator.capability(CAPABILITY) else { return None };
    match coordinator.call_capability(CAPABILITY, json!({"name": name})).await {
        Ok(Value::String(value)) if !value.trim().is_empty() => Some(value),
        // A capability that fails is a variable that is not set; the provider then says which one it wanted.
        _ => None,
    }
}

/// Where calls are recorded or played from, as the variables say.
pub(super) async fn tape(cx: &MountCx) -> Result<Tape, String> {
    let record = variable(&cx.coordinator, "AMPLIFIER_RECORD").await;
    let replay = variable(&cx.coordinator, REPLAY).await;
    let run = || Run {
        folder: cx.coordinator.capability_text("session.working_dir"),
        hide: match cx.coordinator.capability(KEYS) {
            Some(Capability::Call(hide)) => Some(hide),
            _ => None,
        },
    };
    match (record, replay) {
        (None, None) => Ok(Tape::Off),
        (Some(folder), None) => {
            Ok(Tape::Record(Arc::new(Recorder { folder: PathBuf::from(folder), run: run() })))
        }
        (None, Some(folder)) => Ok(Tape::Play(Player::open(PathBuf::from(folder), run()).await?)),
        (Some(_), Some(_)) => {
            Err("`AMPLIFIER_RECORD` and `AMPLIFIER_REPLAY` are both set; choose one".to_owned())
        }
    }
}

/// The proxies that the usual variables name.
pub(super) async fn proxies(cx: &MountCx) -> Proxies {
    let first = async |names: &[&str]| {
        for name in names {
            if let Some(value) = variable(&cx.coordinator, name).await {
                return Some(value);
            }
        }
        None
    };
    Proxies {
        http: first(&["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]).await,
        https: first(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]).await,
        except: first(&["NO_PROXY", "no_proxy"]).await,
    }
}
