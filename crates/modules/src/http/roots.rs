//! The certificates that the system trusts, read when a server first shows its own: reading them takes longer than a short
//! session, and a session that only asks this machine needs none.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// The check of the platform, made when it is first needed.
#[derive(Debug)]
pub(super) struct SystemRoots {
    provider: Arc<CryptoProvider>,
    check: OnceLock<Result<Verifier, Error>>,
}

impl SystemRoots {
    pub(super) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { provider, check: OnceLock::new() }
    }

    fn check(&self) -> Result<&Verifier, Error> {
        let made = self.check.get_or_init(|| Verifier::new(Arc::clone(&self.provider)));
        made.as_ref().map_err(Clone::clone)
    }
}

impl ServerCertVerifier for SystemRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use rustls::crypto::ring;

    use super::*;

    /// Of 127.0.0.1, signed by itself, and good for a hundred years.
    const SELF_MADE: &str = "MIIBjjCCATOgAwIBAgIUFGrhwj/46J5tr9PPlUtFtEP89WwwCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEx\
        NjA2MTgwMloYDzIxMjYxMDIzMDYxODAyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASGH2SC\
        Z/nDk6zjGaPY3qVQw7Y+kN+l9kolAkLm4cYDWby9zueF07/3Wef2mrYYFcAL0RK0o4GO9W69UIUL7arJo2EwXzAdBgNVHQ4EFgQUKxhX\
        YSgHYaZffBXhKRFwg6LufscwHwYDVR0jBBgwFoAUKxhXYSgHYaZffBXhKRFwg6LufscwDwYDVR0RBAgwBocEfwAAATAMBgNVHRMBAf8E\
        AjAAMAoGCCqGSM49BAMCA0kAMEYCIQCBf+wsKfFSp7ogjDIH84ama/DUGaHbUVrcRMw/GXgbCAIhAPD8tOS+0ho4pttX3XnO5qBAGhxj\
        gC98J7lou3MnqsOy";

    #[test]
    fn roots_are_read_when_a_server_shows_its_certificate_and_one_of_its_own_making_is_refused() {
        let roots = SystemRoots::new(Arc::new(ring::default_provider()));
        assert!(!roots.supported_verify_schemes().is_empty() && roots.check.get().is_none());
        let shown = CertificateDer::from(BASE64_STANDARD.decode(SELF_MADE).unwrap());
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_900_000_000));
        let said = roots.verify_server_cert(&shown, &[], &name, &[], now).unwrap_err();
        assert!(roots.check.get().is_some());
        // A system without any certificates refuses everybody, and one that has an authority of the same name finds
        // another fault; both with other words.
        assert!(matches!(said, Error::InvalidCertificate(_) | Error::General(_)), "{said}");
    }
}
