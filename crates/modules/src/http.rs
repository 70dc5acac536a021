//! The one place where HTTP clients are made: which TLS, which name we give, and that nobody follows a redirect unasked.
//! What to send, how long to wait and which addresses are allowed is for the modules that ask.
//!
//! A client is cheap to make: the certificates of the system are read when the first server shows its own, once for all
//! clients of the process, and never by who only asks this machine (`http/roots.rs`).

use std::sync::{Arc, LazyLock};

use reqwest::redirect::Policy;
use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, ring};
use url::Url;

mod roots;

use roots::SystemRoots;

/// What a server sees as our name.
const USER_AGENT: &str = concat!("amplifier/", env!("CARGO_PKG_VERSION"));

/// One for all clients, so that certificates are read once and TLS sessions are resumed.
static TLS: LazyLock<Result<ClientConfig, rustls::Error>> = LazyLock::new(|| {
    let provider = provider();
    let mut tls = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        // Not less than the usual check: the same one, made when it is first needed.
        .with_custom_certificate_verifier(Arc::new(SystemRoots::new(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
});

/// A builder of clients that follow no redirect: a key must not travel to an address nobody chose.
/// Time-outs are the caller's to set.
pub fn client() -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder().user_agent(USER_AGENT).redirect(Policy::none());
    match &*TLS {
        Ok(tls) => builder.tls_backend_preconfigured(tls.clone()),
        // The builder meets the same error, and says so when the client is made.
        Err(_) => builder,
    }
}

/// A redirect that is not followed. It names both addresses without their queries, which may hold a key.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{from}` redirects to `{to}`, which is not followed: keys are sent only to the address that was configured"
)]
pub(crate) struct Redirected {
    from: String,
    to: String,
}

impl Redirected {
    pub(crate) fn new(from: &Url, location: Option<&str>) -> Self {
        let to = location.and_then(|location| from.join(location).ok());
        let to = to.map_or_else(
            || "no address".to_owned(),
            |to| match to.origin() == from.origin() {
                true => to.path().to_owned(),
                false => to.origin().ascii_serialization(),
            },
        );
        Self { from: from.origin().ascii_serialization(), to }
    }

    /// The one among the causes of an error, where there is one.
    pub(crate) fn among<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref())
    }

    /// Makes every redirect this error, for libraries that do not hand out the headers of an answer.
    pub(crate) fn policy() -> Policy {
        Policy::custom(|attempt| match attempt.previous().last() {
            Some(from) => {
                let redirected = Self::new(from, Some(attempt.url().as_str()));
                attempt.error(redirected)
            }
            None => attempt.stop(),
        })
    }
}

/// The crates below us ask the process for its cryptography; whoever comes first sets it, the same for all.
fn provider() -> Arc<CryptoProvider> {
    if let Some(provider) = CryptoProvider::get_default() {
        return Arc::clone(provider);
    }
    let ours = ring::default_provider();
    // Losing the race to another thread is fine: it set a provider, and one is all that is needed.
    drop::<Result<(), Arc<CryptoProvider>>>(ours.clone().install_default());
    Arc::new(ours)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_client_can_be_made_twice_in_one_process() {
        for _ in 0..2 {
            assert!(super::client().build().is_ok());
        }
    }

    #[test]
    fn a_redirect_names_both_addresses_without_what_may_be_a_key() {
        let from = super::Url::parse("https://me:word@a.example:8/v1?key=k").unwrap();
        let said = |location| super::Redirected::new(&from, location).to_string();
        for (location, to) in [
            (Some("http://a.example:8/v2?token=t"), "`http://a.example:8`"),
            (Some("//b.example/x?token=t"), "`https://b.example`"),
            (Some("v2/?token=t"), "`/v2/`"),
            (None, "`no address`"),
        ] {
            let said = said(location);
            assert!(said.starts_with("`https://a.example:8` redirects to ") && said.contains(to), "{said}");
            assert!(!["word", "key=", "token"].iter().any(|secret| said.contains(secret)), "{said}");
        }
    }
}
