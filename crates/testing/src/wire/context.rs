//! The context contract over a wire: `context.add_message` and its four siblings.
//!
//! The same methods are callbacks of a loop elsewhere; then they name the turn they belong to.

use std::sync::Arc;

use amplifier_core::contracts::{ContextError, ContextManager, RequestBudget};
use amplifier_protocol::message::{Message, Messages};
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::line::Line;
use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Nothing, Serve, outcome, own_error};

/// The same context, at the other end of a wire.
pub fn context(context: Arc<dyn ContextManager>) -> Arc<dyn ContextManager> {
    at(Line::whole(Peer::connect(Arc::new(Nothing), served(context))))
}

/// The context that is served there.
pub(super) fn at(line: Line) -> Arc<dyn ContextManager> {
    Arc::new(RemoteContext { line, turn: None })
}

/// Serves a context.
pub(super) fn served(context: Arc<dyn ContextManager>) -> Arc<dyn Serve> {
    Arc::new(Server(context))
}

/// A context that is asked over a wire.
pub(super) struct RemoteContext {
    pub(super) line: Line,
    pub(super) turn: Option<u64>,
}

// Plain structs and no flattened parts: flattening buffers, and a buffer loses the bytes of unknown blocks.
#[derive(Serialize, Deserialize)]
struct AddMessage {
    turn: Option<u64>,
    message: Arc<Message>,
}

#[derive(Serialize, Deserialize)]
struct ForRequest {
    turn: Option<u64>,
    budget: RequestBudget,
}

#[derive(Serialize, Deserialize)]
struct SetMessages {
    turn: Option<u64>,
    messages: Messages,
}

#[derive(Serialize, Deserialize)]
struct Bare {
    turn: Option<u64>,
}

impl RemoteContext {
    async fn ask<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, ContextError> {
        let answer = self.line.call(method, params, Watch::default()).await;
        answer.map_err(|error| own_error(error, |message| ContextError::NoAnswer { message }))
    }
}

#[async_trait]
impl ContextManager for RemoteContext {
    async fn add_message(&self, message: Arc<Message>) -> Result<(), ContextError> {
        self.ask("context.add_message", &AddMessage { turn: self.turn, message }).await
    }

    async fn messages_for_request(&self, budget: RequestBudget) -> Result<Messages, ContextError> {
        self.ask("context.messages_for_request", &ForRequest { turn: self.turn, budget }).await
    }

    async fn messages(&self) -> Result<Messages, ContextError> {
        self.ask("context.messages", &Bare { turn: self.turn }).await
    }

    async fn set_messages(&self, messages: Messages) -> Result<(), ContextError> {
        self.ask("context.set_messages", &SetMessages { turn: self.turn, messages }).await
    }

    async fn clear(&self) -> Result<(), ContextError> {
        self.ask("context.clear", &Bare { turn: self.turn }).await
    }
}

/// Answers one call of the context contract.
pub(super) async fn serve(context: &dyn ContextManager, call: &Incoming) -> Answer {
    match call.method.as_str() {
        "context.add_message" => outcome(context.add_message(call.read::<AddMessage>()?.message).await),
        "context.messages_for_request" => {
            outcome(context.messages_for_request(call.read::<ForRequest>()?.budget).await)
        }
        "context.messages" => outcome(context.messages().await),
        "context.set_messages" => outcome(context.set_messages(call.read::<SetMessages>()?.messages).await),
        "context.clear" => outcome(context.clear().await),
        _ => call.unknown(),
    }
}

struct Server(Arc<dyn ContextManager>);

#[async_trait]
impl Serve for Server {
    async fn serve(&self, call: Incoming) -> Answer {
        serve(&*self.0, &call).await
    }
}
