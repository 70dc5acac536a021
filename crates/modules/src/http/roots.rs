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
    use rustls::CertificateError;
    use rustls::crypto::ring;

    use super::*;

    /// Of 127.0.0.1, signed by itself under a name that no authority has, and good for a hundred years.
    const SELF_MADE: &str = "MIIBzTCCAXOgAwIBAgIUN4RcRzl/Fm1fvKtpyTMGXk6b+l8wCgYIKoZIzj0EAwIwNDEyMDAGA1UEAwwpYW1wbGlmaWVyIHNlbGYt\
        bWFkZSBjZXJ0aWZpY2F0ZSBvZiBhIHRlc3QwIBcNMjYxMTE2MDc0NTQzWhgPMjEyNjEwMjMwNzQ1NDNaMDQxMjAwBgNVBAMMKWFt\
        cGxpZmllciBzZWxmLW1hZGUgY2VydGlmaWNhdGUgb2YgYSB0ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEV14gllVHnMWR\
        hkMxBlCmkYoA9rgBm6dhvwg5WTvmJ41TUzj2G7SUFff6ciAq0TjbzEjhYn1ARaTo8VnRNrFfFaNhMF8wHQYDVR0OBBYEFGhcAuc2\
        /Iav1Rt1Yii0zVFAXZR6MB8GA1UdIwQYMBaAFGhcAuc2/Iav1Rt1Yii0zVFAXZR6MA8GA1UdEQQIMAaHBH8AAAEwDAYDVR0TAQH/\
        BAIwADAKBggqhkjOPQQDAgNIADBFAiEA0rqvHo4/slrkS9+2GZXzCzUdcthACHwiX3vsfoSY9X8CIAT7wmBOGfLAuFe2FwlAMA62\
        tU4n/vRgwUZpiAhYNuXW";

    #[test]
    fn roots_are_read_when_a_server_shows_its_certificate_and_one_of_its_own_making_is_refused() {
        let roots = SystemRoots::new(Arc::new(ring::default_provider()));
        assert!(!roots.supported_verify_schemes().is_empty() && roots.check.get().is_none());
        let shown = CertificateDer::from(BASE64_STANDARD.decode(SELF_MADE).unwrap());
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_900_000_000));
        let said = roots.verify_server_cert(&shown, &[], &name, &[], now).unwrap_err();
        assert!(roots.check.get().is_some());
        // A system without any certificates refuses everybody, with other words.
        assert!(
            matches!(said, Error::InvalidCertificate(CertificateError::UnknownIssuer) | Error::General(_)),
            "{said}"
        );
    }
}
