//! The orchestrator contract over a wire: `orchestrator.execute`, with the kernel's callbacks inside the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use amplifier_core::contracts::{Orchestrator, Prompt, TurnCx, TurnError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::callbacks::Callbacks;
use super::client::Client;
use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Serve, outcome, own_error};
use crate::kernel::{KernelLoop, LocalKernel};

/// A loop that runs at the other end of a wire and calls back by name.
pub fn orchestrator(far: Arc<dyn KernelLoop>) -> Arc<dyn Orchestrator> {
    let callbacks = Arc::new(Callbacks::default());
    let peer = Peer::connect(callbacks.clone(), Arc::new(Server(far)));
    Arc::new(Proxy { peer, callbacks, next: AtomicU64::new(1) })
}

#[derive(Serialize, Deserialize)]
struct Execute {
    turn: u64,
    prompt: Prompt,
}

struct Proxy {
    peer: Arc<Peer>,
    callbacks: Arc<Callbacks>,
    next: AtomicU64,
}

#[async_trait]
impl Orchestrator for Proxy {
    async fn execute(&self, prompt: Prompt, cx: &TurnCx) -> Result<String, TurnError> {
        // One loop may serve many sessions, so turns have numbers of their own on the wire.
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let _open = self.callbacks.open(turn, LocalKernel(cx.clone()));
        let watch = Watch { cancel: cx.coordinator.cancel().clone(), ..Watch::default() };
        let answer = self.peer.call("orchestrator.execute", &Execute { turn, prompt }, watch).await;
        answer.map_err(|error| own_error(error, |message| TurnError::Broken { message }))
    }
}

struct Server(Arc<dyn KernelLoop>);

#[async_trait]
impl Serve for Server {
    async fn serve(&self, call: Incoming) -> Answer {
        match call.method.as_str() {
            "orchestrator.execute" => {
                let Execute { turn, prompt } = call.read()?;
                let client = Client::new(Arc::clone(&call.peer), turn, call.cancel.clone());
                outcome(self.0.run(prompt, &client).await)
            }
            _ => call.unknown(),
        }
    }
}
