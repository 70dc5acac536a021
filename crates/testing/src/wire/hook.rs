//! The hook contract over a wire: `hook.handle`.

use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_protocol::hook::HookResult;
use async_trait::async_trait;

use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Nothing, Serve, outcome, own_error};

/// The same handler, at the other end of a wire.
pub fn hook(handler: Arc<dyn HookHandler>) -> Arc<dyn HookHandler> {
    Arc::new(Proxy(Peer::connect(Arc::new(Nothing), Arc::new(Server(handler)))))
}

struct Proxy(Arc<Peer>);

#[async_trait]
impl HookHandler for Proxy {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let answer = self.0.call("hook.handle", event, Watch::default()).await;
        answer.map_err(|error| own_error(error, HookFailure::new))
    }
}

struct Server(Arc<dyn HookHandler>);

#[async_trait]
impl Serve for Server {
    async fn serve(&self, call: Incoming) -> Answer {
        match call.method.as_str() {
            "hook.handle" => outcome(self.0.handle(&call.read()?).await),
            _ => call.unknown(),
        }
    }
}
