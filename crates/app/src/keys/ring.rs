//! The keyring of the system: the secret service on Linux, the keychain on macOS, the credential manager on Windows. Each
//! call has a thread of its own and a deadline, since a keyring may ask the person first.

use std::sync::mpsc;
use std::time::Duration;

#[cfg(target_os = "macos")]
use apple_native_keyring_store::keychain::Store;
#[cfg(all(unix, not(target_os = "macos")))]
use dbus_secret_service_keyring_store::Store;
use keyring_core::api::CredentialStoreApi as _;
use keyring_core::{Entry, Error};
#[cfg(windows)]
use windows_native_keyring_store::Store;

use super::KeysError;

/// Under which name our keys are in the keyring.
const SERVICE: &str = "amplifier";
/// How long a keyring may take; the person may have to unlock it.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to find out whether there is one.
const GLANCE: Duration = Duration::from_secs(5);

pub(super) fn is_there() -> Result<(), KeysError> {
    aside(GLANCE, || match Store::new() {
        Ok(_) => Ok(()),
        Err(error) => Err(KeysError::NoKeyring { reason: error.to_string() }),
    })
}

pub(super) fn read(name: &str) -> Result<String, KeysError> {
    let name = name.to_owned();
    aside(PATIENCE, move || entry(&name)?.get_password().map_err(|error| refused(&error)))
}

pub(super) fn write(name: &str, value: &str) -> Result<(), KeysError> {
    let (name, value) = (name.to_owned(), value.to_owned());
    aside(PATIENCE, move || entry(&name)?.set_password(&value).map_err(|error| refused(&error)))
}

pub(super) fn delete(name: &str) -> Result<(), KeysError> {
    let name = name.to_owned();
    aside(PATIENCE, move || match entry(&name)?.delete_credential() {
        // What is gone already is forgotten.
        Ok(()) | Err(Error::NoEntry) => Ok(()),
        Err(error) => Err(refused(&error)),
    })
}

fn entry(name: &str) -> Result<Entry, KeysError> {
    Store::new().and_then(|store| store.build(SERVICE, name, None)).map_err(|error| refused(&error))
}

/// Some errors of keyrings carry the value they speak of; only their kind is told.
fn refused(error: &Error) -> KeysError {
    let reason = match error {
        Error::NoEntry => "it has no such key".to_owned(),
        Error::BadEncoding(_) => "what it has is no text".to_owned(),
        other => other.to_string(),
    };
    KeysError::Refused { reason }
}

fn aside<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> Result<T, KeysError> + Send + 'static,
) -> Result<T, KeysError> {
    let (tell, hear) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody may be listening any more: the deadline passed.
        drop(tell.send(work()));
    });
    hear.recv_timeout(patience).unwrap_or(Err(KeysError::Silent { seconds: patience.as_secs() }))
}
