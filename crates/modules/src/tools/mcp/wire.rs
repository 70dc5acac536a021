//! One connection to one server. This file and its parts are the only ones that know the library which speaks the protocol;
//! what goes in and out is ours or plain JSON.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Pulse, ToolCx};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest, GetPromptRequestParams,
    ProgressToken, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RunningService, RunningServiceCancellationToken};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::config::Address;
use super::process::Process;

mod connect;
mod matched;
mod offer;

use connect::{Ears, transport_failure};
pub(super) use connect::{Surroundings, connect};
pub(super) use offer::{Offer, OfferedPrompt, OfferedTool};

/// The longest call, however much progress it reports.
const LONGEST_CALL: Duration = Duration::from_secs(3_600);

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("the connection ended")]
    Ended,
    /// Nothing was sent.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The request was sent, and whether it was carried out is not known.
    #[error("the connection failed: {0}")]
    Failed(String),
    /// The server does not know our session any more, and a new one did not come about. It did nothing.
    #[error("the server has forgotten the session")]
    Forgotten,
    /// The server refused a request without saying which, as one does that does not know our session any more.
    #[error("the server refused the connection: {0}")]
    Unnamed(String),
    #[error("no answer and no sign of progress for {:.1} s", .0.as_secs_f64())]
    Late(Duration),
    #[error("cancelled")]
    Cancelled,
    #[error("{message} (code {code})")]
    Refused { code: i32, message: String },
    #[error("the answer is not what was asked for: {0}")]
    Strange(String),
}

impl WireError {
    /// Whether the connection is of no more use.
    pub(super) fn ends_the_connection(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Failed(_) | Self::Forgotten | Self::Unnamed(_))
    }
}

/// An open connection. When the last owner goes, the connection and the process behind it go.
pub(super) struct Link {
    peer: Peer<RoleClient>,
    ears: Arc<Heard>,
    ended: watch::Receiver<Option<String>>,
    hang_up: Mutex<Option<RunningServiceCancellationToken>>,
    process: Option<Arc<Process>>,
    /// Where it is, when it is no process of ours.
    address: Option<Address>,
}

/// What the server says without being asked.
#[derive(Default)]
struct Heard {
    waiting: Mutex<HashMap<ProgressToken, (Pulse, Arc<Notify>)>>,
    changed: Arc<Notify>,
    /// Whether it refused a request without saying which.
    refused: Arc<AtomicBool>,
}

impl Heard {
    fn waiting(&self) -> MutexGuard<'_, HashMap<ProgressToken, (Pulse, Arc<Notify>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    fn new(
        service: RunningService<RoleClient, Ears>,
        ears: Arc<Heard>,
        process: Option<(Arc<Process>, Arc<OnceLock<&'static str>>)>,
        address: Option<Address>,
    ) -> Self {
        let (peer, hang_up) = (service.peer().clone(), service.cancellation_token());
        let (told, ended) = watch::channel(None);
        let behind = process.clone();
        tokio::spawn(async move {
            // How it quit is not worth telling: why the server ended is.
            drop(service.waiting().await);
            let why = match &behind {
                Some((process, broken)) => {
                    process.settle().await;
                    died(process, broken, "it closed its output")
                }
                None => "the connection closed".to_owned(),
            };
            told.send_replace(Some(why));
        });
        let link = Self {
            peer,
            ears,
            ended,
            hang_up: Mutex::new(Some(hang_up)),
            address,
            process: process.map(|(process, _)| process),
        };
        link.listen();
        link
    }

    /// The newer generation tells changes only to those who ask to hear of them.
    fn listen(&self) {
        if !self.is_stateless() {
            return;
        }
        let (peer, changed, mut ended) =
            (self.peer.clone(), Arc::clone(&self.ears.changed), self.ended.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = offer::listen(&peer, &changed) => {}
                _ = ended.wait_for(Option::is_some) => {}
            }
        });
    }

    /// Whether the newer generation is spoken.
    pub(super) fn is_stateless(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize())
    }

    pub(super) fn process_id(&self) -> Option<i32> {
        self.process.as_ref().map(|process| process.id())
    }

    /// The end of what the server wrote to its error output.
    pub(super) fn last_words(&self) -> String {
        self.process.as_ref().map(|process| process.last_words()).unwrap_or_default()
    }

    pub(super) fn is_ended(&self) -> bool {
        self.peer.is_transport_closed() || self.ended.borrow().is_some()
    }

    /// Waits until the connection has ended, and says why.
    pub(super) async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        let why = ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| "nobody watched it".to_owned())
    }

    /// Waits until the server says that what it offers has changed.
    pub(super) async fn changed(&self) {
        self.ears.changed.notified().await;
    }

    /// Ends the connection and the process.
    pub(super) async fn close(&self) {
        self.hang_up();
        if let Some(process) = &self.process {
            process.close().await;
        } else {
            drop(tokio::time::timeout(Duration::from_secs(2), self.ended()).await);
        }
    }

    fn hang_up(&self) {
        let token = self.hang_up.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(token) = token {
            token.cancel();
        }
    }

    /// `tools/call`.
    pub(super) async fn call_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
        cx: &ToolCx,
    ) -> Result<Value, WireError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match self.ask(ClientRequest::CallToolRequest(CallToolRequest::new(params)), limit, cx).await? {
            ServerResult::CallToolResult(result) => json(&result),
            ServerResult::InputRequiredResult(_) => Err(WireError::Strange(
                "it asks a person for input, which this client does not offer".to_owned(),
            )),
            other => Err(strange(&other)),
        }
    }

    /// `resources/read`.
    pub(super) async fn read_resource(
        &self,
        uri: &str,
        limit: Duration,
        cx: &ToolCx,
    ) -> Result<Value, WireError> {
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        match self.ask(ClientRequest::ReadResourceRequest(request), limit, cx).await? {
            ServerResult::ReadResourceResult(result) => json(&result),
            other => Err(strange(&other)),
        }
    }

    /// `prompts/get`.
    pub(super) async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        limit: Duration,
        cx: &ToolCx,
    ) -> Result<Value, WireError> {
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = Some(arguments);
        match self.ask(ClientRequest::GetPromptRequest(GetPromptRequest::new(params)), limit, cx).await? {
            ServerResult::GetPromptResult(result) => json(&result),
            other => Err(strange(&other)),
        }
    }

    async fn ask(
        &self,
        request: ClientRequest,
        limit: Duration,
        cx: &ToolCx,
    ) -> Result<ServerResult, WireError> {
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let sent = tokio::time::timeout(limit, sent).await.map_err(|_| WireError::Late(limit))?;
        let mut handle = sent.map_err(|error| self.failure(error))?;
        let moved = Arc::new(Notify::new());
        let token = handle.progress_token.clone();
        self.ears.waiting().insert(token.clone(), (cx.pulse.clone(), Arc::clone(&moved)));
        let answer = self.wait(&mut handle, &moved, limit, cx).await;
        self.ears.waiting().remove(&token);
        if matches!(answer, Err(WireError::Late(_) | WireError::Cancelled)) {
            // Told as a courtesy; a server that is stuck may never read it.
            drop(tokio::time::timeout(Duration::from_millis(50), handle.cancel(None)).await);
        }
        answer
    }

    async fn wait(
        &self,
        handle: &mut RequestHandle<RoleClient>,
        moved: &Notify,
        limit: Duration,
        cx: &ToolCx,
    ) -> Result<ServerResult, WireError> {
        let last = Instant::now() + LONGEST_CALL;
        let mut deadline = Instant::now() + limit;
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    return answer.map_err(|_| WireError::Ended)?.map_err(|error| self.failure(error));
                }
                () = cx.cancel.cancelled(CancelLevel::Immediate) => return Err(WireError::Cancelled),
                () = moved.notified() => deadline = Instant::now() + limit,
                () = tokio::time::sleep_until(deadline.min(last)) => return Err(WireError::Late(limit)),
            }
        }
    }

    /// What an error is comes from its type and never from its words: those are the server's.
    fn failure(&self, error: ServiceError) -> WireError {
        match (error, &self.address) {
            (ServiceError::McpError(error), _) if self.ears.refused.load(Ordering::Relaxed) => {
                WireError::Unnamed(brief(&error.message))
            }
            (ServiceError::McpError(error), _) => {
                WireError::Refused { code: error.code.0, message: brief(&error.message) }
            }
            (ServiceError::TransportSend(error), Some(address)) => {
                let why = brief(&address.clean(&transport_failure(&*error.error)));
                match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                    Some(StreamableHttpError::SessionExpired) => WireError::Forgotten,
                    Some(StreamableHttpError::Client(error)) if error.is_connect() => {
                        WireError::Unreachable(why)
                    }
                    _ => WireError::Failed(why),
                }
            }
            (ServiceError::TransportSend(_), None) | (ServiceError::TransportClosed, _) => WireError::Ended,
            (ServiceError::Cancelled { .. }, _) => WireError::Cancelled,
            (other, _) => WireError::Strange(brief(&other.to_string())),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.hang_up();
    }
}

fn died(process: &Process, broken: &OnceLock<&'static str>, otherwise: &str) -> String {
    let why = match (broken.get(), process.ended()) {
        (Some(why), _) => (*why).to_owned(),
        (None, Some(status)) => format!("its process ended ({status})"),
        (None, None) => otherwise.to_owned(),
    };
    let words = process.last_words();
    let last: Vec<_> = words.lines().rev().take(5).collect();
    if last.is_empty() {
        return why;
    }
    let last: Vec<_> = last.into_iter().rev().collect();
    format!("{why}; its last words: {}", brief(&last.join(" | ")))
}

/// Messages of servers and libraries can be whole documents.
fn brief(text: &str) -> String {
    crate::reminder::one_line(text, 500)
}

fn json(result: &impl serde::Serialize) -> Result<Value, WireError> {
    serde_json::to_value(result).map_err(|error| WireError::Strange(error.to_string()))
}

fn strange(result: &ServerResult) -> WireError {
    WireError::Strange(brief(&serde_json::to_string(result).unwrap_or_default()))
}
