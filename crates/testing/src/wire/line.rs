//! The way to one thing at the other end of a wire, which may serve many.

use std::sync::Arc;

use amplifier_protocol::frame::RpcError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::peer::{Peer, Watch};
use super::serve::raw;

/// The method that carries a call to a part.
pub(super) const TO_PART: &str = "part.call";

/// What is called at the other end: all that is there, or one of the parts a mount left.
#[derive(Clone)]
pub(super) struct Line {
    peer: Arc<Peer>,
    part: Option<u64>,
}

/// A call for a part: its own method and parameters, not looked into on the way.
#[derive(Serialize, Deserialize)]
pub(super) struct PartCall {
    pub(super) part: u64,
    pub(super) method: String,
    pub(super) params: Box<RawValue>,
}

impl Line {
    /// Calls whatever is served at the other end of a wire of its own.
    pub(super) fn whole(peer: Arc<Peer>) -> Self {
        Self { peer, part: None }
    }

    /// Calls one part.
    pub(super) fn to_part(peer: &Arc<Peer>, part: u64) -> Self {
        Self { peer: Arc::clone(peer), part: Some(part) }
    }

    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        watch: Watch,
    ) -> Result<R, RpcError> {
        match self.part {
            None => self.peer.call(method, params, watch).await,
            Some(part) => {
                let call = PartCall { part, method: method.to_owned(), params: raw(params)? };
                self.peer.call(TO_PART, &call, watch).await
            }
        }
    }
}
