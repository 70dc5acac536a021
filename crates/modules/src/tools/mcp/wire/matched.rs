//! Errors that do not say which request they answer. A server that was started anew refuses sessions of before that way,
//! and the library would wait for the answer until the call is out of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::RoleClient;
use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport that gives such an error to the one request that waits, and then ends the connection: a new one is made for
/// the next request. When several wait, it cannot be known whose error it is, and the connection ends at once.
pub(super) struct Matched<T> {
    inner: T,
    waiting: Vec<RequestId>,
    // A handshake is refused that way by servers that then take the older one on the same connection.
    is_handshake: bool,
    refused: Arc<AtomicBool>,
}

impl<T> Matched<T> {
    /// `refused` becomes true when such an error has come.
    pub(super) fn new(inner: T, refused: Arc<AtomicBool>) -> Self {
        Self { inner, waiting: Vec::new(), is_handshake: false, refused }
    }

    fn answered(&mut self, id: &RequestId) {
        self.waiting.retain(|waiting| waiting != id);
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Matched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match &item {
            JsonRpcMessage::Request(request) => {
                self.is_handshake = matches!(
                    request.request,
                    ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)
                );
                self.waiting.push(request.id.clone());
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.waiting.retain(|waiting| waiting != id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let mut message = self.inner.receive().await?;
        match &mut message {
            JsonRpcMessage::Response(response) => {
                let id = response.id.clone();
                self.answered(&id);
            }
            JsonRpcMessage::Error(error) => match (&error.id, self.waiting.as_slice()) {
                (Some(id), _) => {
                    let id = id.clone();
                    self.answered(&id);
                }
                (None, [only]) => {
                    error.id = Some(only.clone());
                    self.waiting.clear();
                    self.refused.store(!self.is_handshake, Ordering::Relaxed);
                }
                (None, []) => {}
                (None, _) => return None,
            },
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
