//! The one place where HTTP clients are made: which TLS, which name we give, and that nobody follows a redirect unasked.
//! What to send, how long to wait and which addresses are allowed is for the modules that ask.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

/// What a server sees as our name.
const USER_AGENT: &str = concat!("amplifier/", env!("CARGO_PKG_VERSION"));

/// A builder of clients that follow no redirect: a key must not travel to an address nobody chose.
/// Time-outs are the caller's to set.
pub fn client() -> reqwest::ClientBuilder {
    choose_tls();
    reqwest::Client::builder().user_agent(USER_AGENT).redirect(reqwest::redirect::Policy::none())
}

/// The crates below us ask the process for its cryptography; whoever comes first sets it, the same for all.
fn choose_tls() {
    if CryptoProvider::get_default().is_none() {
        // Losing the race to another thread is fine: it set a provider, and one is all that is needed.
        drop::<Result<(), Arc<CryptoProvider>>>(ring::default_provider().install_default());
    }
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
