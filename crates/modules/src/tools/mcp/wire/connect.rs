//! How a connection comes about: which process or address, which generation of the protocol, and what is heard on it.

use std::sync::{Arc, OnceLock};

use amplifier_core::error::chain;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{ClientInitializeError, NotificationContext};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};

use super::super::config::{Protocol, Settings, Way};
use super::super::guard::{Guarded, LONGEST};
use super::super::process::{self, Errors, Launch};
use super::matched::Matched;
use super::{Heard, Link, brief, died};
use crate::environment;
use crate::http::Redirected;

/// What a connection needs beside its settings.
pub(in super::super) struct Surroundings {
    pub(in super::super) pass_env: Vec<String>,
    pub(in super::super) errors: Errors,
}

/// Connects: in the generation that is asked for, or the newer and, when that does not come about, the older. A server that
/// is thrown off its track by the question for the newer one is started once more for the older.
pub(in super::super) async fn connect(
    settings: &Settings,
    protocol: Protocol,
    around: &Surroundings,
) -> Result<Link, String> {
    match connect_once(settings, protocol, around).await {
        Err(Failed::Handshake(first)) if protocol == Protocol::Auto => {
            match connect_once(settings, Protocol::Initialize, around).await {
                Ok(link) => Ok(link),
                Err(Failed::Handshake(second) | Failed::Start(second)) if second == first => Err(first),
                Err(Failed::Handshake(second) | Failed::Start(second)) => {
                    Err(format!("{first}; then {second}"))
                }
            }
        }
        Ok(link) => Ok(link),
        Err(Failed::Handshake(why) | Failed::Start(why)) => Err(why),
    }
}

enum Failed {
    /// Nothing is there to talk to.
    Start(String),
    /// It does not talk as it should.
    Handshake(String),
}

async fn connect_once(
    settings: &Settings,
    protocol: Protocol,
    around: &Surroundings,
) -> Result<Link, Failed> {
    let heard = Arc::new(Heard::default());
    let ears = Ears(Arc::clone(&heard));
    match &settings.way {
        Way::Stdio { command, args, env, folder } => {
            let variables = environment::sifted(environment::own(), &around.pass_env, env);
            let errors = around.errors.clone();
            let launch = Launch { command, args, variables, folder: folder.as_deref(), errors };
            let (process, stdout, stdin) = process::start(launch)
                .map_err(|error| Failed::Start(format!("`{command}` cannot be started: {error}")))?;
            let broken = Arc::new(OnceLock::new());
            let from = Guarded::new(stdout, Arc::clone(&broken));
            let transport = AsyncRwTransport::<RoleClient, _, _>::new_client(from, stdin)
                .with_max_line_length(LONGEST * 2);
            let process = Arc::new(process);
            let service = ears.serve_with_lifecycle(transport, mode(protocol)).await;
            let service = match service {
                Ok(service) => service,
                Err(error) => {
                    process.settle().await;
                    return Err(Failed::Handshake(died(&process, &broken, &brief(&start_failure(&error)))));
                }
            };
            Ok(Link::new(service, heard, Some((process, broken)), None))
        }
        Way::Http { address, headers } => {
            let client = crate::http::client()
                .redirect(Redirected::policy())
                .connect_timeout(settings.start_timeout)
                .build()
                .map_err(|error| Failed::Start(chain(&error)))?;
            let named = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let config = StreamableHttpClientTransportConfig::with_uri(address.full.as_str())
                .custom_headers(named)
                .max_sse_event_size(LONGEST);
            let refused = Arc::clone(&heard.refused);
            let transport = Matched::new(StreamableHttpClientTransport::with_client(client, config), refused);
            let service = ears.serve_with_lifecycle(transport, mode(protocol)).await;
            let service = service.map_err(|error| {
                let why = brief(&address.clean(&start_failure(&error)));
                let why = format!("`{address}` does not answer as a server should: {why}");
                if error.is_authorization_required() { Failed::Start(why) } else { Failed::Handshake(why) }
            })?;
            Ok(Link::new(service, heard, None, Some(address.clone())))
        }
    }
}

fn mode(protocol: Protocol) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match protocol {
        Protocol::Auto => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        Protocol::Initialize => ClientLifecycleMode::Initialize,
        Protocol::Stateless => ClientLifecycleMode::Discover { preferred_versions },
    }
}

/// Hears what the server says without being asked.
pub(super) struct Ears(Arc<Heard>);

impl ClientHandler for Ears {
    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let waiting = self.0.waiting().get(&progress.progress_token).cloned();
        if let Some((pulse, moved)) = waiting {
            pulse.beat();
            moved.notify_one();
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }

    /// No capability is offered: a server gets no folders of this machine, no answer of a model (`sampling` is refused,
    /// since it would spend the user's money) and no word of the user (`elicitation` is declined). The library does so.
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("amplifier", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// What went wrong on the way to a server.
pub(super) fn transport_failure(error: &(dyn std::error::Error + 'static)) -> String {
    let error = match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        // The library does not name it as a cause.
        Some(StreamableHttpError::Client(error)) => error,
        _ => error,
    };
    // The client adds the address that was redirected to, and that may hold a key.
    Redirected::among(error).map_or_else(|| chain(error), Redirected::to_string)
}

/// What went wrong at the start, without the names of the library's own types.
fn start_failure(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => transport_failure(&*error.error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => start_failure(fallback),
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        other => chain(other),
    }
}
