//! The one place where HTTP clients are made: which TLS, which name we give, and that nobody follows a redirect unasked.
//! What to send, how long to wait and which addresses are allowed is for the modules that ask.
//!
//! A client is cheap to make: the certificates of the system are read when the first server shows its own, once for all
//! clients of the process, and never by who only asks this machine (`http/roots.rs`).

use std::sync::{Arc, LazyLock};

use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, ring};

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
    let builder =
        reqwest::Client::builder().user_agent(USER_AGENT).redirect(reqwest::redirect::Policy::none());
    match &*TLS {
        Ok(tls) => builder.tls_backend_preconfigured(tls.clone()),
        // The builder meets the same error, and says so when the client is made.
        Err(_) => builder,
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
}
