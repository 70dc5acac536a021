//! The orchestrator contract over a wire: `orchestrator.execute`, with the kernel's callbacks inside the call.

use std::sync::Arc;

use amplifier_core::contracts::{Orchestrator, Prompt, TurnCx, TurnError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::callbacks::Callbacks;
use super::client::Client;
use super::line::Line;
use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Serve, outcome, own_error};
use crate::kernel::{KernelLoop, LocalKernel};

/// A loop that runs at the other end of a wire and calls back by name.
pub fn orchestrator(far: Arc<dyn KernelLoop>) -> Arc<dyn Orchestrator> {
    let callbacks = Arc::new(Callbacks::default());
    let line = Line::whole(Peer::connect(callbacks.clone(), served(far)));
    at(line, callbacks)
}

/// The loop that is served there; it calls back what is served here.
pub(super) fn at(line: Line, callbacks: Arc<Callbacks>) -> Arc<dyn Orchestrator> {
    Arc::new(Proxy { line, callbacks })
}

/// Serves a loop.
pub(super) fn served(far: Arc<dyn KernelLoop>) -> Arc<dyn Serve> {
    Arc::new(Server(far))
}

#[derive(Serialize, Deserialize)]
struct Execute {
    turn: u64,
    prompt: Prompt,
}

struct Proxy {
    line: Line,
    callbacks: Arc<Callbacks>,
}

#[async_trait]
impl Orchestrator for Proxy {
    async fn execute(&self, prompt: Prompt, cx: &TurnCx) -> Result<String, TurnError> {
        let open = self.callbacks.open(LocalKernel(cx.clone()));
        let watch = Watch { cancel: cx.coordinator.cancel().clone(), ..Watch::default() };
        let answer =
            self.line.call("orchestrator.execute", &Execute { turn: open.turn, prompt }, watch).await;
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
