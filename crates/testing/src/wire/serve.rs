//! The serving side of a wire: a call that came in, and how it is answered.

use std::fmt::Display;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::Pulse;
use amplifier_protocol::frame::{RequestId, RpcError, code};
use amplifier_protocol::stream::StreamEvent;
use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::peer::Peer;

/// How often a running call is looked at for signs of life.
const BEAT: Duration = Duration::from_millis(50);

/// The answer to a call, still text.
pub(super) type Answer = Result<Box<RawValue>, RpcError>;

/// Answers calls.
#[async_trait]
pub(super) trait Serve: Send + Sync + 'static {
    async fn serve(&self, call: Incoming) -> Answer;
}

/// Answers no call: for the end that only calls.
pub(super) struct Nothing;

#[async_trait]
impl Serve for Nothing {
    async fn serve(&self, call: Incoming) -> Answer {
        call.unknown()
    }
}

/// A call that came in.
pub(super) struct Incoming {
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: Box<RawValue>,
    pub(super) cancel: CancelToken,
    pub(super) peer: Arc<Peer>,
}

impl Incoming {
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        serde_json::from_str(self.params.get()).map_err(|error| {
            RpcError::new(code::INVALID_PARAMS, format!("`{}` does not take this: {error}", self.method))
        })
    }

    pub(super) fn unknown(&self) -> Answer {
        Err(RpcError::new(code::METHOD_NOT_FOUND, format!("nobody serves `{}`", self.method)))
    }

    /// Runs a call and passes its pieces and beats back while it runs.
    pub(super) async fn attend<T>(
        &self,
        pulse: &Pulse,
        mut pieces: mpsc::Receiver<StreamEvent>,
        call: impl Future<Output = T>,
    ) -> T {
        let mut call = pin!(call);
        let mut beats = pulse.count();
        let answer = loop {
            tokio::select! {
                biased;
                Some(event) = pieces.recv() => self.peer.send_piece(&self.id, event),
                answer = call.as_mut() => break answer,
                () = tokio::time::sleep(BEAT) => {}
            }
            if pulse.count() != beats {
                beats = pulse.count();
                self.peer.send_beat(&self.id);
            }
        };
        while let Ok(event) = pieces.try_recv() {
            self.peer.send_piece(&self.id, event);
        }
        answer
    }
}

/// A value as raw text, without a detour that would lose bytes.
pub(super) fn raw(value: &impl Serialize) -> Answer {
    serde_json::value::to_raw_value(value)
        .map_err(|error| RpcError::new(code::INTERNAL, format!("this cannot be written: {error}")))
}

/// The answer of a contract, its own error included.
pub(super) fn outcome<T: Serialize, E: Serialize + Display>(answer: Result<T, E>) -> Answer {
    match answer {
        Ok(value) => raw(&value),
        Err(error) => {
            let data = serde_json::to_value(&error).ok();
            Err(RpcError { data, ..RpcError::new(code::FAILED, error.to_string()) })
        }
    }
}

/// The error of a contract as it was raised at the other end, or what became of the wire in its words.
pub(super) fn own_error<E: DeserializeOwned>(error: RpcError, broken: impl FnOnce(String) -> E) -> E {
    let own = error.data.as_ref().filter(|_| error.code == code::FAILED);
    let own = own.and_then(|data| serde_json::from_value(data.clone()).ok());
    own.unwrap_or_else(|| broken(error.to_string()))
}

/// No pieces: for calls that send none.
pub(super) fn no_pieces() -> mpsc::Receiver<StreamEvent> {
    mpsc::channel(1).1
}
