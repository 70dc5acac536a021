//! The hook contract over a wire: `hook.handle`.

use std::sync::Arc;

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler};
use amplifier_protocol::hook::HookResult;
use async_trait::async_trait;

use super::line::Line;
use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Nothing, Serve, outcome, own_error};

/// The same handler, at the other end of a wire.
pub fn hook(handler: Arc<dyn HookHandler>) -> Arc<dyn HookHandler> {
    at(Line::whole(Peer::connect(Arc::new(Nothing), served(handler))))
}

/// The handler that is served there.
pub(super) fn at(line: Line) -> Arc<dyn HookHandler> {
    Arc::new(Proxy(line))
}

/// Serves a handler.
pub(super) fn served(handler: Arc<dyn HookHandler>) -> Arc<dyn Serve> {
    Arc::new(Server(handler))
}

struct Proxy(Line);

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
