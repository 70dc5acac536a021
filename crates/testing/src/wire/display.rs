//! The display contract over a wire: `display.show`.

use std::sync::Arc;

use amplifier_core::contracts::{DisplayMessage, DisplaySystem};
use async_trait::async_trait;

use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Nothing, Serve, raw};

/// The same display, at the other end of a wire.
pub fn display(display: Arc<dyn DisplaySystem>) -> Arc<dyn DisplaySystem> {
    Arc::new(Proxy(Peer::connect(Arc::new(Nothing), Arc::new(Server(display)))))
}

struct Proxy(Arc<Peer>);

#[async_trait]
impl DisplaySystem for Proxy {
    async fn show_message(&self, message: DisplayMessage) {
        // A display that cannot be reached is silent, as the contract says.
        drop(self.0.call::<()>("display.show", &message, Watch::default()).await);
    }
}

struct Server(Arc<dyn DisplaySystem>);

#[async_trait]
impl Serve for Server {
    async fn serve(&self, call: Incoming) -> Answer {
        match call.method.as_str() {
            "display.show" => {
                self.0.show_message(call.read()?).await;
                raw(&())
            }
            _ => call.unknown(),
        }
    }
}
