//! Tokens of the identity that a machine or an application in Azure has: asked for at the place that Azure offers on the
//! machine itself, when a request needs one, and kept for a while. No key is stored anywhere.

use std::time::Duration;

use amplifier_core::loader::MountCx;
use amplifier_core::redact::redact_text;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::providers::wire::{self, Tokens};

/// What a token is for.
const RESOURCE: &str = "https://cognitiveservices.azure.com/";
/// Where every machine in Azure finds the service of its identity; the variable moves it.
const MACHINE: &str = "http://169.254.169.254";
const MACHINE_VARIABLE: &str = "AZURE_POD_IDENTITY_AUTHORITY_HOST";
const CLIENT_VARIABLE: &str = "AZURE_MANAGED_IDENTITY_CLIENT_ID";
/// How long a token is kept at most. The service keeps them too, so that asking again costs little.
const KEPT: Duration = Duration::from_secs(300);
/// A token that ends sooner is not begun with.
const SPARE: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(10);

/// The identity of this machine or application.
pub(super) struct Identity {
    client: reqwest::Client,
    url: Url,
    header: (&'static str, String),
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    token: String,
    until: Instant,
}

impl Identity {
    /// Finds the place. An application has one of its own, with a word that proves who asks; else it is the machine's.
    pub(super) async fn find(cx: &MountCx, client_id: Option<&str>) -> Result<Self, String> {
        let of_application = wire::variable(&cx.coordinator, "IDENTITY_ENDPOINT").await;
        let word = wire::variable(&cx.coordinator, "IDENTITY_HEADER").await;
        let named = wire::variable(&cx.coordinator, CLIENT_VARIABLE).await;
        let (place, version, header) = match (of_application, word) {
            (Some(place), Some(word)) => (place, "2019-08-01", ("x-identity-header", word)),
            _ => {
                let machine = wire::variable(&cx.coordinator, MACHINE_VARIABLE).await;
                let machine = machine.unwrap_or_else(|| MACHINE.to_owned());
                let place = format!("{}/metadata/identity/oauth2/token", machine.trim_end_matches('/'));
                (place, "2018-02-01", ("metadata", "true".to_owned()))
            }
        };
        let mut url =
            Url::parse(&place).map_err(|error| format!("`{}` is no URL: {error}", redact_text(&place)))?;
        url.query_pairs_mut().append_pair("api-version", version).append_pair("resource", RESOURCE);
        if let Some(id) = client_id.map(str::to_owned).or(named) {
            url.query_pairs_mut().append_pair("client_id", &id);
        }
        // Straight there: a proxy is another machine, with another identity.
        let client = crate::http::client().no_proxy().connect_timeout(PATIENCE).timeout(PATIENCE).build();
        let client = client.map_err(|error| format!("no HTTP client can be made: {error}"))?;
        Ok(Self { client, url, header, kept: Mutex::default() })
    }

    async fn fetch(&self) -> Result<Kept, LlmError> {
        let place = format!("{}{}", self.url.origin().ascii_serialization(), self.url.path());
        let refused = |reason: String| {
            let message = format!("no token of the identity came from `{place}`: {reason}");
            LlmError::new(LlmErrorKind::Authentication, message)
        };
        let asked = self.client.get(self.url.clone()).header(self.header.0, &self.header.1).send().await;
        let answer = asked.map_err(|error| refused(error.without_url().to_string()))?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(|error| refused(error.without_url().to_string()))?;
        let told: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let text = |key: &str| told.get(key).and_then(Value::as_str).map(str::trim);
        match text("access_token") {
            Some(token) if status.is_success() && !token.is_empty() => {
                let seconds = told.get("expires_in").and_then(|value| match value {
                    Value::String(text) => text.trim().parse().ok(),
                    other => other.as_u64(),
                });
                let left = seconds.map_or(KEPT, Duration::from_secs).saturating_sub(SPARE);
                Ok(Kept { token: token.to_owned(), until: Instant::now() + left.min(KEPT) })
            }
            _ => {
                let said =
                    text("error_description").or(text("error")).unwrap_or("it said nothing that can be read");
                Err(refused(format!("HTTP {status}: {said}")))
            }
        }
    }
}

#[async_trait]
impl Tokens for Identity {
    async fn token(&self) -> Result<String, LlmError> {
        let mut kept = self.kept.lock().await;
        if let Some(kept) = kept.as_ref().filter(|kept| kept.until > Instant::now()) {
            return Ok(kept.token.clone());
        }
        let fresh = self.fetch().await?;
        let token = fresh.token.clone();
        *kept = Some(fresh);
        Ok(token)
    }

    async fn forget(&self) {
        *self.kept.lock().await = None;
    }
}
