//! The approval contract over a wire: `approval.request`.

use std::sync::Arc;

use amplifier_core::contracts::{ApprovalError, ApprovalSystem};
use amplifier_protocol::hook::Question;
use async_trait::async_trait;

use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Nothing, Serve, outcome, own_error};

/// The same approval system, at the other end of a wire.
pub fn approval(approval: Arc<dyn ApprovalSystem>) -> Arc<dyn ApprovalSystem> {
    Arc::new(Proxy(Peer::connect(Arc::new(Nothing), Arc::new(Server(approval)))))
}

struct Proxy(Arc<Peer>);

#[async_trait]
impl ApprovalSystem for Proxy {
    async fn request_approval(&self, question: Question) -> Result<String, ApprovalError> {
        let answer = self.0.call("approval.request", &question, Watch::default()).await;
        answer.map_err(|error| own_error(error, |message| ApprovalError::Unavailable { message }))
    }
}

struct Server(Arc<dyn ApprovalSystem>);

#[async_trait]
impl Serve for Server {
    async fn serve(&self, call: Incoming) -> Answer {
        match call.method.as_str() {
            "approval.request" => outcome(self.0.request_approval(call.read()?).await),
            _ => call.unknown(),
        }
    }
}
