//! The environment of this process, as it was at the start, and that of its children: what is harmless, what the plan names,
//! nothing else. No key of this process leaks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::OnceLock;

/// Passed on as they are.
const HARMLESS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_TARGET_DIR",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "VIRTUAL_ENV",
    "PYENV_ROOT",
    "CONDA_PREFIX",
    "UV_CACHE_DIR",
    "PIP_CACHE_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "NO_PROXY",
    "no_proxy",
];
/// Passed on unless an address in them carries a password.
const PROXIES: &[&str] =
    &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// Parts of names that say: this is a secret.
const SECRETIVE: &[&str] =
    &["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH", "COOKIE", "SESSION", "PRIVATE", "_PAT"];
/// Nobody sits at the other end, so nothing may wait for somebody.
const QUIET: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
];

/// The variables of a command: `own` sifted, then what the plan sets.
pub(crate) fn sifted(
    own: &BTreeMap<OsString, OsString>,
    pass: &[String],
    set: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let mut kept: BTreeMap<OsString, OsString> =
        QUIET.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let passes = |name: &OsString, value: &OsString| {
        let Some(name) = name.to_str() else { return false };
        let proxy = PROXIES.contains(&name) && !value.to_string_lossy().contains('@');
        proxy || HARMLESS.contains(&name) || name.starts_with("LC_") || named(name, pass)
    };
    let passed = own.iter().filter(|(name, value)| passes(name, value));
    kept.extend(passed.map(|(name, value)| (name.clone(), value.clone())));
    kept.extend(set.iter().map(|(name, value)| (name.into(), value.into())));
    kept
}

/// A secret passes only under its full name: `MY_*` was not written with `MY_API_KEY` in mind.
fn named(name: &str, pass: &[String]) -> bool {
    let upper = name.to_uppercase();
    let secret = SECRETIVE.iter().any(|part| upper.contains(part));
    pass.iter().any(|wanted| match wanted.strip_suffix('*') {
        Some(start) => !secret && name.starts_with(start),
        None => name == wanted,
    })
}

/// The variables of this process as they were when this was first asked. A program that erases its secrets where other
/// programs could read them asks before.
pub fn own() -> &'static BTreeMap<OsString, OsString> {
    static OWN: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "the one place that reads them")]
    OWN.get_or_init(|| std::env::vars_os().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_here_unless_they_are_named_in_full() {
        let own = [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "k"),
            ("GITHUB_TOKEN", "t"),
            ("MY_MODE", "m"),
            ("MY_TOKEN", "t"),
            ("HTTP_PROXY", "http://u:p@x"),
            ("https_proxy", "http://x"),
            ("LC_ALL", "C"),
            ("AWS_SECRET_ACCESS_KEY", "a"),
            ("RANDOM_THING", "r"),
            ("SSH_AUTH_SOCK", "/s"),
        ];
        let own = own.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
        let names = |pass: &[&str]| -> Vec<String> {
            let pass: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
            let kept = sifted(&own, &pass, &BTreeMap::from([("CI".to_owned(), "1".to_owned())]));
            let quiet = |name: &str| QUIET.iter().any(|(known, _)| *known == name);
            kept.into_keys().filter_map(|name| name.into_string().ok()).filter(|name| !quiet(name)).collect()
        };
        assert_eq!(names(&[]), ["CI", "LC_ALL", "PATH", "https_proxy"]);
        assert_eq!(names(&["MY_*"]), ["CI", "LC_ALL", "MY_MODE", "PATH", "https_proxy"]);
        assert_eq!(names(&["GITHUB_TOKEN"]), ["CI", "GITHUB_TOKEN", "LC_ALL", "PATH", "https_proxy"]);
    }
}
