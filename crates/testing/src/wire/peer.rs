//! One end of a wire: calls out, calls in, both at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use amplifier_core::cancel::{CancelLevel, CancelToken};
use amplifier_core::contracts::{DeltaSink, Pulse};
use amplifier_protocol::frame::{Frame, Notification, Request, RequestId, Response, RpcError, code};
use amplifier_protocol::stream::StreamEvent;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::serve::{Answer, Incoming, Serve, raw};
use crate::sync::lock;

/// One end of a wire. When the near one is dropped, the far one ends with everything it serves.
pub(super) struct Peer {
    out: mpsc::UnboundedSender<String>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    serving: Mutex<HashMap<RequestId, Serving>>,
    next: AtomicU64,
}

struct Waiting {
    answer: oneshot::Sender<Answer>,
    notes: mpsc::UnboundedSender<Note>,
}

struct Serving {
    cancel: CancelToken,
    abort: AbortHandle,
}

enum Note {
    Piece(StreamEvent),
    Beat,
}

/// What a caller passes on while it waits.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) cancel: CancelToken,
    pub(super) deltas: DeltaSink,
    pub(super) pulse: Pulse,
}

#[derive(Serialize, Deserialize)]
struct CancelWord {
    id: RequestId,
    level: CancelLevel,
}

#[derive(Serialize, Deserialize)]
struct PieceWord {
    id: RequestId,
    event: StreamEvent,
}

#[derive(Serialize, Deserialize)]
struct CallWord {
    id: RequestId,
}

impl Peer {
    /// A wire with these two servers at its ends; returns the near end.
    pub(super) fn connect(near: Arc<dyn Serve>, far: Arc<dyn Serve>) -> Arc<Self> {
        let (to_far, from_near) = mpsc::unbounded_channel();
        let (to_near, from_far) = mpsc::unbounded_channel();
        let (near_peer, far_peer) = (Arc::new(Self::new(to_far)), Arc::new(Self::new(to_near)));
        tokio::spawn(read(Arc::downgrade(&near_peer), from_far, near));
        let far_end = Arc::downgrade(&far_peer);
        tokio::spawn(async move {
            read(far_end, from_near, far).await;
            far_peer.end();
        });
        near_peer
    }

    fn new(out: mpsc::UnboundedSender<String>) -> Self {
        Self { out, waiting: Mutex::default(), serving: Mutex::default(), next: AtomicU64::new(1) }
    }

    /// Calls the other end and passes cancels there and pieces and beats here until it answers.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        watch: Watch,
    ) -> Result<R, RpcError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = RequestId::Number(number);
        let (answer, mut answered) = oneshot::channel();
        let (notes, mut noted) = mpsc::unbounded_channel();
        lock(&self.waiting).insert(number, Waiting { answer, notes });
        let _call = OpenCall { peer: self, number };
        let (method, params) = (method.to_owned(), raw(params)?);
        self.send(&Frame::Request(Request { id: id.clone(), method, params }));
        let mut told = CancelLevel::None;
        let result = loop {
            let next = if told == CancelLevel::None { CancelLevel::Graceful } else { CancelLevel::Immediate };
            tokio::select! {
                // Pieces first: those that came before the answer are passed on before it.
                biased;
                Some(note) = noted.recv() => match note {
                    Note::Piece(event) => {
                        watch.pulse.beat();
                        watch.deltas.send(event).await;
                    }
                    Note::Beat => watch.pulse.beat(),
                },
                answer = &mut answered => break answer.unwrap_or_else(|_| Err(gone()))?,
                () = watch.cancel.cancelled(next), if told < CancelLevel::Immediate => {
                    told = watch.cancel.level();
                    self.notify("cancel", &CancelWord { id: id.clone(), level: told });
                }
            }
        };
        let unreadable = |error| RpcError::new(code::INTERNAL, format!("the answer cannot be read: {error}"));
        serde_json::from_str(result.get()).map_err(unreadable)
    }

    pub(super) fn send_piece(&self, id: &RequestId, event: StreamEvent) {
        self.notify("stream.delta", &PieceWord { id: id.clone(), event });
    }

    pub(super) fn send_beat(&self, id: &RequestId) {
        self.notify("pulse", &CallWord { id: id.clone() });
    }

    fn notify(&self, method: &str, params: &impl Serialize) {
        // A word that cannot be written is lost, as any word may be.
        if let Ok(params) = raw(params) {
            self.send(&Frame::Notification(Notification { method: method.to_owned(), params }));
        }
    }

    /// A line for an end that is gone is lost; calls that wait for it are told by `end`.
    fn send(&self, frame: &Frame) {
        if let Ok(line) = frame.to_line() {
            drop(self.out.send(line));
        }
    }

    fn take(self: &Arc<Self>, line: &str, server: &Arc<dyn Serve>) {
        match Frame::read(line) {
            Ok(Frame::Request(request)) => self.serve(request, Arc::clone(server)),
            Ok(Frame::Response(Response { id: Some(RequestId::Number(id)), outcome })) => {
                if let Some(waiting) = lock(&self.waiting).remove(&id) {
                    drop(waiting.answer.send(outcome));
                }
            }
            Ok(Frame::Response(_)) => {}
            Ok(Frame::Notification(word)) => self.hear(&word),
            Err(error) => {
                let outcome = Err(RpcError::new(code::PARSE, error.to_string()));
                self.send(&Frame::Response(Response { id: None, outcome }));
            }
        }
    }

    fn serve(self: &Arc<Self>, request: Request, server: Arc<dyn Serve>) {
        let (id, cancel) = (request.id.clone(), CancelToken::new());
        let Request { method, params, .. } = request;
        let incoming =
            Incoming { id: id.clone(), method, params, cancel: cancel.clone(), peer: Arc::clone(self) };
        let task = tokio::spawn(async move { server.serve(incoming).await });
        lock(&self.serving).insert(id.clone(), Serving { cancel, abort: task.abort_handle() });
        let peer = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = match task.await {
                Ok(outcome) => outcome,
                Err(error) if error.is_panic() => Err(RpcError::new(code::INTERNAL, "the server panicked")),
                // Abandoned: nobody waits.
                Err(_) => return,
            };
            lock(&peer.serving).remove(&id);
            peer.send(&Frame::Response(Response { id: Some(id), outcome }));
        });
    }

    fn hear(&self, word: &Notification) {
        match word.method.as_str() {
            "cancel" => {
                if let Some(CancelWord { id, level }) = read_word(word)
                    && let Some(serving) = lock(&self.serving).get(&id)
                {
                    serving.cancel.request(level);
                }
            }
            "abandon" => {
                let abandoned = read_word(word).and_then(|CallWord { id }| lock(&self.serving).remove(&id));
                if let Some(serving) = abandoned {
                    serving.cancel.request_immediate();
                    serving.abort.abort();
                }
            }
            "stream.delta" => {
                if let Some(PieceWord { id, event }) = read_word(word) {
                    self.note(&id, Note::Piece(event));
                }
            }
            "pulse" => {
                if let Some(CallWord { id }) = read_word(word) {
                    self.note(&id, Note::Beat);
                }
            }
            _ => {}
        }
    }

    fn note(&self, id: &RequestId, note: Note) {
        if let RequestId::Number(number) = id
            && let Some(waiting) = lock(&self.waiting).get(number)
        {
            // Nobody listens any more; the answer will find that out too.
            drop(waiting.notes.send(note));
        }
    }

    fn end(&self) {
        for (_, serving) in lock(&self.serving).drain() {
            serving.abort.abort();
        }
        lock(&self.waiting).clear();
    }
}

fn gone() -> RpcError {
    RpcError::new(code::GONE, "the other end went away")
}

fn read_word<T: DeserializeOwned>(word: &Notification) -> Option<T> {
    let params: &RawValue = &word.params;
    serde_json::from_str(params.get()).ok()
}

/// Takes lines until the other end is gone or this one is no longer wanted.
async fn read(peer: Weak<Peer>, mut lines: mpsc::UnboundedReceiver<String>, server: Arc<dyn Serve>) {
    while let Some(line) = lines.recv().await {
        match peer.upgrade() {
            Some(peer) => peer.take(&line, &server),
            None => return,
        }
    }
    if let Some(peer) = peer.upgrade() {
        peer.end();
    }
}

/// Tells the other end when nobody waits any more.
struct OpenCall<'a> {
    peer: &'a Peer,
    number: u64,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let unanswered = lock(&self.peer.waiting).remove(&self.number).is_some();
        if unanswered {
            self.peer.notify("abandon", &CallWord { id: RequestId::Number(self.number) });
        }
    }
}
