//! What a plan or an `mcp.json` may say about servers, and the checked form the rest of the module works with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reminder::Voice;

/// What a plan may configure.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Config {
    /// Servers by name: `{command, args, env, cwd}` or `{url, headers}`. They win over those of files.
    #[serde(alias = "mcpServers", alias = "mcp_servers")]
    pub(super) servers: BTreeMap<String, Entry>,
    /// One more file in the `mcpServers` form; wins over the files found by themselves, loses against `servers`.
    pub(super) config_file: Option<String>,
    /// Whether `~/.amplifier/mcp.json` is read.
    pub(super) user_file: bool,
    /// Whether servers of `.mcp.json` and `.amplifier/mcp.json` in the working folder are started. Such a file comes with
    /// a project that somebody else may have written, and starting a server runs its command: `ignore` only warns.
    pub(super) project_files: ProjectFiles,
    /// How long the session waits at its start for servers, in seconds. One that needs longer joins when it is there.
    pub(super) wait: f64,
    /// How long a server may take to start, in seconds, unless it says otherwise.
    pub(super) start_timeout: f64,
    /// How long a call may go without an answer or a sign of progress, in seconds, unless the server says otherwise.
    pub(super) call_timeout: f64,
    /// How often a server that ends or does not start is started again before it is only started for a call.
    pub(super) max_restarts: u32,
    /// The most characters of text that one answer gives to the model.
    pub(super) max_content_size: usize,
    /// The most bytes of one picture that is given to the model.
    pub(super) max_image_bytes: usize,
    /// Whether what servers write to their error output is told as `mcp:server_output` events.
    pub(super) verbose_servers: bool,
    /// A folder where the error output of each server is appended to `<server>.log`.
    pub(super) server_log_dir: Option<String>,
    /// Whether a server is believed when it says that a tool only reads, so that it runs without an approval where reading
    /// does. Else every tool counts as one that may do anything. Servers that files of the working folder name are never
    /// believed.
    pub(super) trust_annotations: bool,
    /// Names of variables of this process that servers started here also see; `NAME_*` for several.
    pub(super) pass_env: Vec<String>,
    /// How the model learns which servers there are.
    pub(super) visibility: Visibility,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            servers: BTreeMap::new(),
            config_file: None,
            user_file: true,
            project_files: ProjectFiles::Ignore,
            wait: 10.0,
            start_timeout: 30.0,
            call_timeout: 120.0,
            max_restarts: 5,
            max_content_size: 50_000,
            max_image_bytes: 5_000_000,
            verbose_servers: false,
            server_log_dir: None,
            trust_annotations: false,
            pass_env: Vec::new(),
            visibility: Visibility::default(),
        }
    }
}

/// What becomes of servers that a file of the project names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProjectFiles {
    /// They are not started; a warning says that they are there.
    Ignore,
    /// They are started like the others.
    Allow,
}

/// How the model learns which servers there are.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Visibility {
    /// Whether it is told unasked.
    pub(super) enabled: bool,
    /// In whose name.
    pub(super) inject_role: Voice,
    /// The most servers that are told.
    pub(super) max_servers_visible: usize,
    /// Whether it is told with each request and never stored; else it is stored once.
    pub(super) ephemeral: bool,
    /// Where the hook stands among the others; lower runs first.
    pub(super) priority: i32,
}

impl Default for Visibility {
    fn default() -> Self {
        Self {
            enabled: true,
            inject_role: Voice::User,
            max_servers_visible: 50,
            ephemeral: true,
            priority: 20,
        }
    }
}

/// One server, as it is written.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Entry {
    /// The program to start; its standard input and output carry the protocol.
    command: Option<String>,
    /// Its arguments.
    args: Vec<String>,
    /// Variables it sees beside the harmless ones.
    env: BTreeMap<String, String>,
    /// Its working folder; the session's without.
    cwd: Option<String>,
    /// The address of a server that is reached over HTTP.
    #[serde(alias = "httpUrl")]
    url: Option<String>,
    /// Headers sent with every request.
    headers: BTreeMap<String, String>,
    /// `stdio` or `http`; told by `command` and `url` without.
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    /// Whether it is left out.
    disabled: bool,
    /// Which generation of the protocol is spoken; found out without.
    protocol: Protocol,
    /// How long it may take to start, in seconds.
    #[serde(alias = "startup_timeout_sec")]
    start_timeout: Option<f64>,
    /// How long a call may go without an answer or a sign of progress, in seconds.
    #[serde(alias = "tool_timeout_sec")]
    call_timeout: Option<f64>,
    /// Only these of its tools are offered.
    #[serde(alias = "enabled_tools", alias = "includeTools")]
    include_tools: Option<Vec<String>>,
    /// These of its tools are not offered.
    #[serde(alias = "disabled_tools", alias = "excludeTools")]
    exclude_tools: Vec<String>,
}

/// Which generation of the protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Protocol {
    /// The newer one if the server knows it, else the older.
    #[default]
    Auto,
    /// The older one, which begins with a handshake (up to 2025-11-25).
    Initialize,
    /// The newer one without sessions (2026-07-28).
    Stateless,
}

/// One server, checked.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) name: String,
    /// Whether what it says about its tools is believed.
    pub(super) believed: bool,
    pub(super) way: Way,
    pub(super) protocol: Protocol,
    pub(super) start_timeout: Duration,
    pub(super) call_timeout: Duration,
    include: Option<Vec<String>>,
    exclude: Vec<String>,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub(super) enum Way {
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String>, folder: Option<PathBuf> },
    Http { address: Address, headers: HeaderMap },
}

impl Settings {
    pub(super) fn wants(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == tool);
        self.include.as_deref().is_none_or(named) && !named(&self.exclude)
    }
}

impl Entry {
    pub(super) fn is_disabled(&self) -> bool {
        self.disabled
    }

    /// The checked form, or what is wrong with the entry.
    pub(super) fn check(
        self,
        name: &str,
        config: &Config,
        folder: Option<&Path>,
    ) -> Result<Settings, String> {
        let start_timeout = seconds("start_timeout", self.start_timeout.unwrap_or(config.start_timeout))?;
        let call_timeout = seconds("call_timeout", self.call_timeout.unwrap_or(config.call_timeout))?;
        let way = self.way(folder)?;
        Ok(Settings {
            name: name.to_owned(),
            believed: false,
            way,
            protocol: self.protocol,
            start_timeout,
            call_timeout,
            include: self.include_tools,
            exclude: self.exclude_tools,
        })
    }

    fn way(&self, base: Option<&Path>) -> Result<Way, String> {
        let kind = self.kind.as_deref().map(|kind| kind.to_lowercase().replace(['-', '_'], ""));
        match (kind.as_deref(), &self.command, &self.url) {
            (Some("sse"), ..) => Err("the transport `sse` is of the past and not supported; use the server's streamable HTTP address with `type: http`".to_owned()),
            (Some("stdio"), Some(command), _) | (None, Some(command), None) => {
                let folder = match (&self.cwd, base) {
                    (Some(cwd), Some(base)) => Some(base.join(cwd)),
                    (Some(cwd), None) => Some(PathBuf::from(cwd)),
                    (None, base) => base.map(Path::to_owned),
                };
                let (args, env) = (self.args.clone(), self.env.clone());
                Ok(Way::Stdio { command: command.clone(), args, env, folder })
            }
            (Some("http" | "streamablehttp"), _, Some(url)) | (None, None, Some(url)) => {
                Ok(Way::Http { address: Address::parse(url)?, headers: headers(&self.headers)? })
            }
            (Some("stdio"), None, _) => Err("`type: stdio` needs a `command`".to_owned()),
            (Some("http" | "streamablehttp"), _, None) => Err("`type: http` needs a `url`".to_owned()),
            (Some(_), ..) => Err(format!("`type: {}` is not known; use `stdio` or `http`", self.kind.as_deref().unwrap_or_default())),
            (None, Some(_), Some(_)) => Err("both `command` and `url` are given; keep one, or say `type`".to_owned()),
            (None, None, None) => Err("neither `command` nor `url` is given".to_owned()),
        }
    }
}

/// Where a server is reached. Keys are often part of an address, so messages show it without them.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) full: String,
    shown: String,
}

impl Address {
    fn parse(text: &str) -> Result<Self, String> {
        let url = url::Url::parse(text).map_err(|error| format!("the `url` is no address: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}` addresses are not supported; use `http` or `https`", url.scheme()));
        }
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let shown = format!("{}://{host}{port}{}", url.scheme(), url.path());
        Ok(Self { full: url.to_string(), shown })
    }

    /// A message without what the address keeps secret.
    pub(super) fn clean(&self, message: &str) -> String {
        message.replace(&self.full, &self.shown)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

fn headers(written: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in written {
        let known = name.parse::<HeaderName>().map_err(|_| format!("`{name}` is no name of a header"))?;
        // The value may be a key and stays out of the message.
        let mut value = value
            .parse::<HeaderValue>()
            .map_err(|_| format!("the value of header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}

pub(super) fn seconds(key: &str, value: f64) -> Result<Duration, String> {
    match Duration::try_from_secs_f64(value) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(format!("`{key}` must be a positive number of seconds, not {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn way(entry: Value) -> Result<String, String> {
        let entry: Entry = serde_json::from_value(entry).unwrap();
        let settings = entry.check("s", &Config::default(), Some(Path::new("/project")))?;
        Ok(match settings.way {
            Way::Stdio { command, folder, .. } => format!("{command} in {}", folder.unwrap().display()),
            Way::Http { address, .. } => address.full,
        })
    }

    #[test]
    fn every_usual_spelling_of_a_server_is_read() {
        assert_eq!(way(json!({"command": "a"})), Ok("a in /project".to_owned()));
        assert_eq!(way(json!({"command": "a", "cwd": "x"})), Ok("a in /project/x".to_owned()));
        assert_eq!(way(json!({"type": "stdio", "command": "a", "cwd": "/y"})), Ok("a in /y".to_owned()));
        for kind in ["http", "streamable-http", "streamable_http", "streamableHttp", "HTTP"] {
            let url = way(json!({"type": kind, "url": "http://127.0.0.1:1/mcp"}));
            assert_eq!(url, Ok("http://127.0.0.1:1/mcp".to_owned()), "{kind}");
        }
        assert_eq!(way(json!({"url": "https://h/"})), Ok("https://h/".to_owned()));
    }

    #[test]
    fn a_server_that_makes_no_sense_is_refused_with_the_reason() {
        for (entry, said) in [
            (json!({}), "neither `command` nor `url`"),
            (json!({"command": "a", "url": "http://h"}), "both"),
            (json!({"type": "sse", "url": "http://h"}), "streamable HTTP"),
            (json!({"type": "pigeon", "command": "a"}), "`type: pigeon` is not known"),
            (json!({"url": "ftp://h"}), "`ftp` addresses"),
            (json!({"url": "http://h", "headers": {"a b": "c"}}), "no name of a header"),
            (json!({"command": "a", "call_timeout": 0}), "positive number of seconds"),
        ] {
            let refused = way(entry.clone()).unwrap_err();
            assert!(refused.contains(said), "{entry}: {refused}");
        }
        let secret = way(json!({"url": "http://h", "headers": {"x": "key\n"}})).unwrap_err();
        assert!(!secret.contains("key"), "{secret}");
        let address = Address::parse("https://me:word@h:8/p?key=k").unwrap();
        let said = address.clean(&format!("no answer from {}", address.full));
        assert_eq!(
            (said.as_str(), address.to_string().as_str()),
            ("no answer from https://h:8/p", "https://h:8/p")
        );
    }
}
