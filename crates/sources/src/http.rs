//! One download: bounded in size, time and redirects, with the answer to "has it changed" when the server can give it.

use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use reqwest::header::{ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response, StatusCode};
use rustls::crypto::{CryptoProvider, ring};
use url::{Host, Url};

use crate::cache::Validators;
use crate::error::FetchError;
use crate::fetch::FetchContext;
use crate::limits::Limits;
use crate::progress::Stage;

/// What a server sees as our name.
const USER_AGENT: &str = concat!("amplifier/", env!("CARGO_PKG_VERSION"));
const CONNECT: Duration = Duration::from_secs(10);
/// How many bytes come between two reports.
const TELL_EVERY: u64 = 256 * 1024;

/// What a server answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It is still what was fetched before.
    Unchanged,
    /// A file, and what to ask with the next time.
    File { path: PathBuf, validators: Validators },
}

/// Why a redirect is not followed.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("more than {0} times")]
    TooMany(usize),
    #[error("to `{0}`, which is not HTTP")]
    Scheme(String),
    #[error("from https to http, where others can read along")]
    Downwards,
    #[error("from another machine to `{0}` on this one or its network")]
    Inwards(String),
}

/// A client for downloads.
pub(crate) fn client(limits: &Limits) -> reqwest::Result<Client> {
    choose_tls();
    let most = limits.http_redirects;
    Client::builder()
        .user_agent(USER_AGENT)
        .redirect(Policy::custom(move |attempt| follow(attempt, most)))
        // The address that led here may carry its own permission.
        .referer(false)
        .connect_timeout(CONNECT)
        .read_timeout(limits.http_idle)
        .timeout(limits.http_total)
        .build()
}

/// The crates below us ask the process for its cryptography; whoever comes first sets it, the same for all.
fn choose_tls() {
    if CryptoProvider::get_default().is_none() {
        // Losing the race to another thread is fine: it set a provider, and one is all that is needed.
        drop::<Result<(), Arc<CryptoProvider>>>(ring::default_provider().install_default());
    }
}

fn follow(attempt: Attempt<'_>, most: usize) -> reqwest::redirect::Action {
    match judge(attempt.previous(), attempt.url(), most) {
        Ok(()) => attempt.follow(),
        Err(refused) => attempt.error(refused),
    }
}

fn judge(previous: &[Url], next: &Url, most: usize) -> Result<(), Refused> {
    if previous.len() > most {
        return Err(Refused::TooMany(most));
    }
    if is_near(next) && !previous.iter().all(is_near) {
        return Err(Refused::Inwards(next.host_str().unwrap_or_default().to_owned()));
    }
    match next.scheme() {
        "https" => Ok(()),
        "http" if previous.iter().any(|url| url.scheme() == "https") => Err(Refused::Downwards),
        "http" => Ok(()),
        scheme => Err(Refused::Scheme(scheme.to_owned())),
    }
}

/// Whether an address is of this machine or a private network. Names are not looked up.
fn is_near(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => is_near_v4(ip),
        Some(Host::Ipv6(ip)) => {
            let first = ip.segments().first().copied().unwrap_or_default();
            ip.is_loopback()
                || ip.is_unspecified()
                || first & 0xfe00 == 0xfc00
                || first & 0xffc0 == 0xfe80
                || ip.to_ipv4_mapped().is_some_and(is_near_v4)
        }
        None => false,
    }
}

fn is_near_v4(ip: Ipv4Addr) -> bool {
    ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
}

/// Downloads one file into a folder.
pub(crate) async fn download(
    client: &Client,
    (url, shown): (&Url, &str),
    known: &Validators,
    (folder, limits): (&Path, &Limits),
    cx: &FetchContext,
) -> Result<Answer, FetchError> {
    let work = async {
        let mut headers = HeaderMap::new();
        for (name, value) in [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.last_modified)] {
            if let Some(value) = value.as_deref().and_then(|value| value.parse().ok()) {
                headers.insert(name, value);
            }
        }
        let sent = client.get(url.clone()).headers(headers).send().await;
        let response = sent.map_err(|error| failed(shown, limits, error))?;
        match response.status() {
            StatusCode::NOT_MODIFIED if !known.is_empty() => Ok(Answer::Unchanged),
            status if status.is_success() => {
                let path = folder.join(file_name(url));
                let validators = validators(&response);
                receive(response, &path, shown, limits, cx).await?;
                Ok(Answer::File { path, validators })
            }
            status => Err(FetchError::HttpStatus { uri: shown.to_owned(), status: status.as_u16() }),
        }
    };
    tokio::select! {
        answer = work => answer,
        () = cx.cancel.cancelled(CancelLevel::Graceful) => Err(FetchError::Cancelled { uri: shown.to_owned() }),
    }
}

async fn receive(
    mut response: Response,
    path: &Path,
    shown: &str,
    limits: &Limits,
    cx: &FetchContext,
) -> Result<(), FetchError> {
    let limit = limits.download_bytes;
    let too_large = || FetchError::TooLarge { uri: shown.to_owned(), limit };
    let of = response.content_length();
    if of.is_some_and(|of| of > limit) {
        return Err(too_large());
    }
    let at = || FetchError::in_cache("write", path);
    let mut file = File::create_new(path).map_err(at())?;
    let (mut bytes, mut told) = (0, 0);
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(shown, limits, error))? {
        bytes += chunk.len() as u64;
        if bytes > limit {
            return Err(too_large());
        }
        // Into memory of the system first, so this does not wait for a disk.
        file.write_all(&chunk).map_err(at())?;
        if bytes - told >= TELL_EVERY {
            told = bytes;
            cx.tell(shown, Stage::Receiving { bytes, of });
        }
    }
    Ok(())
}

fn validators(response: &Response) -> Validators {
    let header = |name: HeaderName| response.headers().get(name)?.to_str().ok().map(str::to_owned);
    Validators { etag: header(ETAG), last_modified: header(LAST_MODIFIED), archive: None }
}

/// An error without the address, which may hold credentials.
fn failed(shown: &str, limits: &Limits, error: reqwest::Error) -> FetchError {
    let uri = shown.to_owned();
    if error.is_timeout() {
        return FetchError::TimedOut { uri, action: "download", after: limits.http_total };
    }
    let causes = || std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    if let Some(refused) = causes().find_map(|cause| cause.downcast_ref::<Refused>()) {
        return FetchError::Redirect { uri, why: refused.to_string() };
    }
    match causes().last() {
        // The transport tells every layer; the innermost is what happened.
        Some(cause) if error.is_connect() => FetchError::Unreachable { uri, cause: cause.to_string() },
        _ => FetchError::Http { uri, source: error.without_url() },
    }
}

/// The last part of the address, as a name that is safe everywhere and keeps its suffix.
pub(crate) fn file_name(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut segments| segments.rfind(|segment| !segment.is_empty()));
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = last.unwrap_or_default().chars().map(safe).collect();
    let name = name.trim_start_matches('.');
    // The end is kept, since the suffix says what it is.
    let start = name.len().saturating_sub(120);
    let name = name.get(start..).unwrap_or(name);
    if name.is_empty() { "download".to_owned() } else { name.to_owned() }
}

/// The address as a name in the cache: what means the same reads the same, credentials left out.
pub(crate) fn normal(url: &Url) -> String {
    let mut pairs: Vec<_> =
        url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}{}{query}", url.scheme(), url.path().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_mean_the_same_have_one_name() {
        let normal = |text: &str| super::normal(&Url::parse(text).unwrap());
        assert_eq!(normal("HTTP://Host:80/a/?b=2&a=1"), normal("http://user:x@host/a?a=1&b=2"));
        assert_ne!(normal("http://host/a"), normal("https://host/a"));
        assert_ne!(normal("http://one/a.md"), normal("http://two/a.md"));
    }

    #[test]
    fn a_redirect_may_lead_up_to_https_and_never_down_or_out_of_http() {
        let judge = |previous: &[&str], next: &str| {
            let previous: Vec<_> = previous.iter().map(|text| Url::parse(text).unwrap()).collect();
            judge(&previous, &Url::parse(next).unwrap(), 2).map_err(|refused| refused.to_string())
        };
        assert_eq!(judge(&["http://a/"], "https://b/"), Ok(()));
        assert_eq!(judge(&["http://a/"], "http://b/"), Ok(()));
        let down = Err("from https to http, where others can read along".to_owned());
        assert_eq!(judge(&["http://a/", "https://a/"], "http://a/"), down);
        assert_eq!(
            judge(&["http://a/"], "file:///etc/passwd"),
            Err("to `file`, which is not HTTP".to_owned())
        );
        let inwards =
            |host: &str| Err(format!("from another machine to `{host}` on this one or its network"));
        assert_eq!(judge(&["https://a/"], "https://127.0.0.1/x"), inwards("127.0.0.1"));
        assert_eq!(judge(&["https://a/"], "https://localhost/x"), inwards("localhost"));
        assert_eq!(judge(&["https://a/"], "https://[::ffff:7f00:1]/x"), inwards("[::ffff:7f00:1]"));
        assert_eq!(judge(&["http://127.0.0.1/"], "http://127.0.0.1:81/x"), Ok(()));
        assert_eq!(
            judge(&["http://a/", "http://b/", "http://c/"], "http://d/"),
            Err("more than 2 times".to_owned())
        );
    }

    #[test]
    fn names_of_files_are_safe_and_keep_their_suffix() {
        let name = |text: &str| file_name(&Url::parse(text).unwrap());
        assert_eq!(name("http://h/x/bundle.md?a=1"), "bundle.md");
        assert_eq!(name("http://h/%2e%2e%2fetc/.hidden"), "hidden");
        assert_eq!(name("http://h/a b%2Fc.md"), "a_20b_2Fc.md");
        assert_eq!(name("http://h/"), "download");
        assert!(name(&format!("http://h/{}.md", "x".repeat(500))).ends_with("x.md"));
    }
}
