//! The variables that git gets: the user's own, without keys.

use std::ffi::{OsStr, OsString};

/// What every program needs, and what says which configuration is the user's.
const COMMON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "DEVELOPER_DIR",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_COUNT",
    // Windows.
    "SYSTEMROOT",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
];
const COMMON_PREFIXES: &[&str] = &["LC_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];

/// What reaches other machines as the user: ssh, proxies, certificates and the stores of credential helpers.
const NETWORK: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_PROXY_COMMAND",
    "GIT_ALLOW_PROTOCOL",
    "GIT_PROTOCOL_FROM_USER",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "KRB5CCNAME",
    "KRB5_CONFIG",
    "GNUPGHOME",
    "PASSWORD_STORE_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_HOME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    // What helpers of the hosting services read.
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
];
const NETWORK_PREFIXES: &[&str] = &["GIT_SSL_", "GIT_HTTP_", "GCM_", "GH_", "GIT_LFS_"];

fn is_among(name: &OsStr, names: &[&str], prefixes: &[&str]) -> bool {
    let Some(name) = name.to_str() else { return false };
    let begins =
        |prefix: &&str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    names.iter().any(|known| name.eq_ignore_ascii_case(known)) || prefixes.iter().any(begins)
}

pub(crate) fn is_for_the_network(name: &OsStr) -> bool {
    is_among(name, NETWORK, NETWORK_PREFIXES)
}

/// A variable as git gets it; `None` if it does not need it.
pub(crate) fn kept((name, value): (OsString, OsString)) -> Option<(OsString, OsString)> {
    let is_common = is_among(&name, COMMON, COMMON_PREFIXES);
    let value = match name.eq_ignore_ascii_case("PATH") {
        // A relative directory would be one of the repository.
        true => std::env::join_paths(std::env::split_paths(&value).filter(|path| path.is_absolute())).ok()?,
        false => value,
    };
    (is_common || is_for_the_network(&name)).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_gets_what_it_needs_and_no_key() {
        let names = |of: &[&str]| -> Vec<String> {
            let pair = |name: &&str| (OsString::from(*name), OsString::from("x"));
            let kept = of.iter().map(pair).filter_map(kept);
            kept.map(|(name, _)| name.into_string().unwrap()).collect()
        };
        let own =
            ["HOME", "LC_CTYPE", "SSH_AUTH_SOCK", "https_proxy", "GIT_SSL_CAINFO", "GIT_CONFIG_VALUE_0"];
        assert_eq!(names(&own), own);
        let others = [
            "OPENAI_API_KEY",
            "GIT_DIR",
            "GIT_EXTERNAL_DIFF",
            "GIT_TEMPLATE_DIR",
            "GIT_TRACE",
            "SSH_ASKPASS",
            "LD_PRELOAD",
        ];
        assert_eq!(names(&others), [""; 0]);
        assert!(is_for_the_network(OsStr::new("SSH_AUTH_SOCK")) && !is_for_the_network(OsStr::new("HOME")));
    }

    #[cfg(unix)]
    #[test]
    fn a_relative_directory_of_the_path_is_left_out() {
        let path = kept(("PATH".into(), ".:/usr/bin::tools:/bin".into()));
        assert_eq!(path, Some(("PATH".into(), "/usr/bin:/bin".into())));
    }
}
