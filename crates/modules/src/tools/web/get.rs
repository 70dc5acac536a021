//! One GET, within limits: every hop is checked, the whole has one deadline, a body has a most, and a call that is
//! cancelled drops its connection.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{ToolCx, ToolFailure};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode};
use url::Url;

use super::address::{Checked, Policy, Refused};

/// What we would like to read, the plainest first.
const WANTED: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, \
                      application/json;q=0.8, */*;q=0.1";

/// How far a fetch goes.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) timeout: Duration,
    pub(super) bytes: usize,
    pub(super) redirects: usize,
}

/// What came.
#[derive(Debug)]
pub(super) struct Got {
    /// Where it came from in the end.
    pub(super) url: Url,
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
    /// Whether there was more.
    pub(super) cut: bool,
}

/// Whether a body is worth reading, by its media type and length.
pub(super) type Wanted = fn(&str, Option<u64>) -> Result<(), ToolFailure>;

/// Fetches pages.
pub(super) struct Getter {
    client: Client,
    policy: Arc<Policy>,
    limits: Limits,
}

impl Getter {
    pub(super) fn new(policy: Arc<Policy>, limits: Limits, proxy: Option<&str>) -> Result<Self, String> {
        let builder = crate::http::client();
        let builder = match proxy {
            // The proxy may well stand in a private network; it was chosen by whoever configured it.
            Some(proxy) => {
                let proxy = reqwest::Proxy::all(proxy).map_err(|error| format!("`proxy`: {error}"))?;
                builder.proxy(proxy)
            }
            None => builder.no_proxy().dns_resolver(Checked(Arc::clone(&policy))),
        };
        let client = builder.build().map_err(|error| format!("no HTTP client: {error}"))?;
        Ok(Self { client, policy, limits })
    }

    pub(super) async fn get(&self, url: Url, wanted: Wanted, cx: &ToolCx) -> Result<Got, ToolFailure> {
        bounded(self.limits.timeout, cx, self.follow(url, wanted, cx)).await
    }

    async fn follow(&self, mut url: Url, wanted: Wanted, cx: &ToolCx) -> Result<Got, ToolFailure> {
        for _ in 0..=self.limits.redirects {
            self.policy.check(&url).map_err(refused)?;
            let sent = self.client.get(url.clone()).header(ACCEPT, WANTED).send().await;
            let response = sent.map_err(|error| told(&url, error))?;
            cx.pulse.beat();
            let status = response.status();
            if let Some(next) = redirection(&response, &url)? {
                url = next;
                continue;
            }
            if !status.is_success() {
                return Err(unsuccessful(status, &url));
            }
            let content_type = header(&response, &CONTENT_TYPE).unwrap_or_default();
            wanted(&content_type, response.content_length())?;
            let (bytes, cut) =
                read(response, self.limits.bytes, cx).await.map_err(|error| told(&url, error))?;
            return Ok(Got { url, content_type, bytes, cut });
        }
        let message = format!("more than {} redirects, the last to {url}", self.limits.redirects);
        Err(ToolFailure::new(message).of_kind("TooManyRedirects"))
    }
}

/// Runs work until it is done, its time is over or the call is cancelled. What is dropped closes its connection.
pub(super) async fn bounded<T>(
    timeout: Duration,
    cx: &ToolCx,
    work: impl Future<Output = Result<T, ToolFailure>>,
) -> Result<T, ToolFailure> {
    tokio::select! {
        biased;
        () = cx.cancel.cancelled(CancelLevel::Immediate) => Err(ToolFailure::new("cancelled").of_kind("Cancelled")),
        done = tokio::time::timeout(timeout, work) => done.unwrap_or_else(|_| {
            let message = format!("no whole answer within {} s", timeout.as_secs_f64());
            Err(ToolFailure::new(message).of_kind("Timeout"))
        }),
    }
}

/// The body, unpacked, up to `most` bytes, and whether there was more. What is not asked for is not unpacked either, so
/// a small answer cannot become a large one.
pub(super) async fn read(
    mut response: Response,
    most: usize,
    cx: &ToolCx,
) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        cx.pulse.beat();
        let room = most.saturating_sub(bytes.len());
        bytes.extend(chunk.iter().take(room));
        if chunk.len() > room {
            return Ok((bytes, true));
        }
    }
    Ok((bytes, false))
}

/// Where a redirect leads, if the answer is one.
fn redirection(response: &Response, from: &Url) -> Result<Option<Url>, ToolFailure> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = header(response, &LOCATION) else { return Ok(None) };
    let next = from.join(&location).map_err(|error| {
        let message = format!("{from} redirects to `{location}`, which is no address: {error}");
        ToolFailure::new(message).of_kind("BadRedirect")
    })?;
    Ok(Some(next))
}

fn header(response: &Response, name: &reqwest::header::HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn unsuccessful(status: StatusCode, url: &Url) -> ToolFailure {
    let message = format!("HTTP {status} from {url}");
    let mut failure = ToolFailure::new(message).of_kind("HttpError");
    failure.details.insert("status".to_owned(), status.as_u16().into());
    failure
}

pub(super) fn refused(why: Refused) -> ToolFailure {
    ToolFailure::new(format!("Access denied: {why}")).of_kind("AccessDenied")
}

/// What went wrong on the way, with its cause, and without a query that might hold a key.
pub(super) fn told(url: &Url, error: reqwest::Error) -> ToolFailure {
    let error = error.without_url();
    let (mut message, mut cause) = (error.to_string(), error.source());
    while let Some(inner) = cause {
        // What our own resolver said is the whole truth.
        if let Some(why) = inner.downcast_ref::<Refused>() {
            return refused(why.clone());
        }
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    let place = url.host_str().unwrap_or("the host");
    ToolFailure::new(format!("{place} could not be read: {message}")).of_kind("NetworkError")
}
