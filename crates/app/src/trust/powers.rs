//! What a plan could do beyond talking to a model: the programs it starts, the addresses it connects to with the keys that they
//! would receive, the variables it reads, the paths outside the working directory that it uses, and the questions it answers in
//! advance. Pure: it reads a plan and nothing else.

use std::fmt;

use amplifier_core::redact::{names_a_secret, redact_text};
use amplifier_protocol::locate::join;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use crate::expand::references;
use crate::plain;

/// One thing that needs the user's consent, in a form that can be stored and compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Power {
    /// Starts a program.
    Program { module: String, command: String },
    /// Connects to an address that receives these keys.
    Address { module: String, url: String, keys: Vec<String> },
    /// Puts a variable of the environment into the config of a module.
    Variable { module: String, name: String },
    /// Reads or writes outside the working directory.
    Path { module: String, key: String, path: String },
    /// Allows what the user would be asked about, or widens what a module may do.
    Permission { module: String, key: String, value: String },
    /// A value of a project's settings.
    Setting { key: String, value: String },
    /// A file of a project that modules run or obey, with its content.
    File { path: String, sha256: String },
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { module, command } => write!(f, "runs `{command}` ({module})"),
            Self::Address { module, url, keys } if keys.is_empty() => {
                write!(f, "connects to {url} ({module})")
            }
            Self::Address { module, url, keys } => {
                write!(f, "sends {} to {url} ({module})", keys.join(" or "))
            }
            Self::Variable { module, name } => {
                write!(f, "reads the environment variable `{name}` ({module})")
            }
            Self::Path { module, key, path } => write!(f, "uses the path `{path}` ({module}, `{key}`)"),
            Self::Permission { module, key, value } => write!(f, "sets `{key}` to {value} ({module})"),
            Self::Setting { key, value } => write!(f, "sets `{key}` to {value}"),
            Self::File { path, sha256 } => {
                write!(f, "uses `{path}` (sha256 {})", sha256.get(..12).unwrap_or(sha256))
            }
        }
    }
}

/// Who wrote a value of a plan, in the order of how much it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// Somebody else: a fetched source or the files of a project. Everything needs consent.
    Stranger,
    /// A local file that the user named for one command. Its programs may run; keys and secrets need consent.
    Named,
    /// A local bundle that the user registered or chose in the settings. Only a key for another address needs consent.
    Own,
    /// The user's settings, flags and environment, and this program. Nothing needs consent.
    User,
}

/// A key of a built-in module that starts programs or loosens what the user would be asked about.
const SENSITIVE: &[(&str, &[&str])] = &[
    (
        "tool-bash",
        &[
            "require_approval",
            "safety_profile",
            "allowed_commands",
            "safety_overrides",
            "sandbox_required",
            "sandbox",
            "env",
            "pass_env",
        ],
    ),
    ("tool-filesystem", &["require_read_before_write", "require_approval"]),
    ("tool-apply-patch", &["require_approval"]),
    (
        "tool-mcp",
        &["project_files", "trust_annotations", "pass_env", "user_file", "config_file", "server_log_dir"],
    ),
    ("tool-web", &["allow_private", "private_hosts"]),
    ("hooks-approval", &["rules", "auto_approve", "default_action", "reads", "policy_driven_only"]),
    ("hooks-shell", &["hooks_dir", "load_files", "pass_env"]),
];

/// Keys whose texts are words, whatever they look like.
const WORDS: &[&str] = &["responses", "instruction", "description", "prompt", "text", "system_prompt"];

/// Keys that hold an address, also without a scheme.
const ADDRESSES: &[&str] = &["base_url", "azure_endpoint", "endpoint", "host", "proxy", "url", "httpUrl"];

/// The variables in which a provider looks for its key, and the host of its service.
const SERVICES: &[(&str, &[&str], Option<&str>)] = &[
    ("provider-anthropic", &["ANTHROPIC_API_KEY"], Some("api.anthropic.com")),
    ("provider-azure-openai", &["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_KEY", "AZURE_OPENAI_AD_TOKEN"], None),
    ("provider-chat-completions", &["CHAT_COMPLETIONS_API_KEY"], None),
    ("provider-gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], Some("generativelanguage.googleapis.com")),
    ("provider-ollama", &["OLLAMA_API_KEY"], None),
    ("provider-openai", &["OPENAI_API_KEY"], Some("api.openai.com")),
    ("provider-vllm", &["VLLM_API_KEY"], None),
];

/// What a plan could do, as far as its authors need consent for it. `author` says who wrote the value at a JSON pointer, and
/// `is_set` whether a variable has a value: an address that no key would reach asks for none.
pub fn of_plan(plan: &Value, author: &dyn Fn(&str) -> Author, is_set: &dyn Fn(&str) -> bool) -> Vec<Power> {
    let mut search = Search { author, is_set, found: Vec::new() };
    search.plan(plan, "", None);
    let mut found = search.found;
    found.sort();
    found.dedup();
    let sent: Vec<_> = found
        .iter()
        .filter_map(|power| match power {
            Power::Address { module, keys, .. } => Some(keys.iter().map(|key| (module.clone(), key.clone()))),
            _ => None,
        })
        .flatten()
        .collect();
    // A variable that an address receives is shown with the address.
    let is_sent = |module: &String, name: &String| sent.contains(&(module.clone(), name.clone()));
    found.retain(|power| !matches!(power, Power::Variable { module, name } if is_sent(module, name)));
    found
}

struct Search<'a> {
    author: &'a dyn Fn(&str) -> Author,
    is_set: &'a dyn Fn(&str) -> bool,
    found: Vec<Power>,
}

impl Search<'_> {
    /// Looks for entries of modules, and for the configs of the dialect that keeps them apart. `slot` is the key above.
    fn plan(&mut self, value: &Value, pointer: &str, slot: Option<&str>) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.plan(item, &join(pointer, &at.to_string()), None);
                }
            }
            Value::Object(entries) => {
                let module = entries.get("module").and_then(Value::as_str).or(slot).unwrap_or("plan");
                for (key, entry) in entries {
                    let below = join(pointer, key);
                    match (key.as_str(), entry) {
                        ("config", Value::Object(config)) => self.config(module, config, &below),
                        _ => self.plan(entry, &below, Some(key)),
                    }
                }
            }
            _ => {}
        }
    }

    fn config(&mut self, module: &str, config: &Map<String, Value>, pointer: &str) {
        let at = |key: &str| join(pointer, key);
        let sensitive = SENSITIVE.iter().find(|(id, _)| *id == module).map_or(&[][..], |(_, keys)| keys);
        for key in sensitive.iter().filter(|key| config.contains_key(**key)) {
            if (self.author)(&at(key)) == Author::Stranger {
                let value = shown(config.get(*key).unwrap_or(&Value::Null));
                let (module, key) = (module.to_owned(), (*key).to_owned());
                self.found.push(Power::Permission { module, key, value });
            }
        }
        if matches!(module, "hooks-shell" | "tool-mcp") {
            self.commands(module, config, pointer);
        }
        self.addresses(module, config, pointer);
        for (key, value) in config {
            self.texts(module, key, value, &at(key), config);
        }
    }

    /// Programs that a config names anywhere.
    fn commands(&mut self, module: &str, entries: &Map<String, Value>, pointer: &str) {
        if let Some(command) = entries.get("command").and_then(Value::as_str)
            && (self.author)(&join(pointer, "command")) == Author::Stranger
        {
            let args = entries.get("args").and_then(Value::as_array).into_iter().flatten();
            let words: Vec<_> = std::iter::once(command).chain(args.filter_map(Value::as_str)).collect();
            self.found.push(Power::Program { module: module.to_owned(), command: words.join(" ") });
        }
        for (key, value) in entries {
            let below = join(pointer, key);
            match value {
                Value::Object(entries) => self.commands(module, entries, &below),
                Value::Array(items) => {
                    for (at, item) in items.iter().enumerate() {
                        if let Value::Object(entries) = item {
                            self.commands(module, entries, &join(&below, &at.to_string()));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The addresses that one object names, with the keys that stand or are looked for beside them.
    fn addresses(&mut self, module: &str, entries: &Map<String, Value>, pointer: &str) {
        for key in ADDRESSES {
            let Some(url) = entries.get(*key).and_then(Value::as_str).filter(|url| !url.is_empty()) else {
                continue;
            };
            let author = (self.author)(&join(pointer, key));
            if author == Author::User || is_own_service(module, key, url) || is_reference(url) {
                continue;
            }
            let keys = self.keys(module, entries, pointer, author);
            if author == Author::Stranger || !keys.is_empty() {
                let (module, url) = (module.to_owned(), redact_text(url).into_owned());
                self.found.push(Power::Address { module, url, keys });
            }
        }
    }

    /// The user's keys that a request to an address in this object would carry.
    fn keys(&self, module: &str, entries: &Map<String, Value>, pointer: &str, author: Author) -> Vec<String> {
        let mut keys = Vec::new();
        let written = entries.get("api_key").or_else(|| entries.get("key"));
        match written.and_then(Value::as_str).filter(|key| !key.trim().is_empty()) {
            None => {
                let own = service(module).map_or(&[][..], |(_, variables, _)| *variables);
                keys.extend(own.iter().filter(|name| (self.is_set)(name)).map(|name| (*name).to_owned()));
            }
            Some(key) if references(key).all(|name| name.starts_with(plain::PREFIX)) => {
                // A key in plain text belongs to the author of the entry, unless the user laid it over.
                if (self.author)(&join(pointer, "api_key")) > author {
                    keys.push(format!("the key of `{module}` in your settings"));
                }
            }
            Some(_) => {}
        }
        let names = entries.values().flat_map(variables);
        // What is no secret is nothing to keep from an address.
        keys.extend(names.filter(|name| names_a_secret(name) && (self.is_set)(name)));
        keys.sort();
        keys.dedup();
        keys
    }

    /// References, addresses and paths in the texts of a config.
    fn texts(&mut self, module: &str, key: &str, value: &Value, pointer: &str, around: &Map<String, Value>) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.texts(module, key, item, &join(pointer, &at.to_string()), around);
                }
            }
            Value::Object(entries) => {
                self.addresses(module, entries, pointer);
                for (key, value) in entries {
                    self.texts(module, key, value, &join(pointer, key), entries);
                }
            }
            Value::String(text) => self.text(module, key, text, pointer, around),
            _ => {}
        }
    }

    fn text(&mut self, module: &str, key: &str, text: &str, pointer: &str, around: &Map<String, Value>) {
        let author = (self.author)(pointer);
        let is_foreign = ADDRESSES.iter().any(|key| {
            let url = around.get(*key).and_then(Value::as_str);
            url.is_some_and(|url| !is_own_service(module, key, url))
        });
        for name in references(text) {
            let is_usual = key == "api_key"
                && !is_foreign
                && service(module).is_some_and(|(_, variables, _)| variables.contains(&name));
            let is_secret = names_a_secret(name);
            let asks = match author {
                Author::User | Author::Own => false,
                Author::Named => is_secret && !is_usual,
                Author::Stranger => !is_usual,
            };
            if asks && (self.is_set)(name) {
                self.found.push(Power::Variable { module: module.to_owned(), name: name.to_owned() });
            }
        }
        // Words, and the script of the mock provider, are looked at by nothing that opens paths.
        if author != Author::Stranger || module == "provider-mock" || WORDS.contains(&key) {
            return;
        }
        let module = module.to_owned();
        if ADDRESSES.contains(&key) {
            // Found with its keys already.
        } else if is_url(text) {
            let url = redact_text(text).into_owned();
            self.found.push(Power::Address { module, url, keys: Vec::new() });
        } else if leads_outside(text) {
            self.found.push(Power::Path { module, key: key.to_owned(), path: text.to_owned() });
        }
    }
}

type Service = (&'static str, &'static [&'static str], Option<&'static str>);

fn service(module: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|(id, ..)| *id == module)
}

/// Whether this is where the service of a provider is anyway.
fn is_own_service(module: &str, key: &str, url: &str) -> bool {
    let Some((_, _, Some(host))) = service(module) else { return false };
    key == "base_url"
        && Url::parse(url)
            .is_ok_and(|url| url.scheme() == "https" && url.host_str() == Some(host) && url.port().is_none())
}

/// Whether the whole text is a variable: the user's environment says what it is.
fn is_reference(text: &str) -> bool {
    let inside = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inside.is_some_and(|name| !name.contains([':', '$', '{']) && !names_a_secret(name))
}

fn is_url(text: &str) -> bool {
    let schemes = ["http://", "https://", "ws://", "wss://", "socks5://", "socks5h://", "ftp://"];
    let text = text.trim_start().to_ascii_lowercase();
    schemes.iter().any(|scheme| text.starts_with(scheme))
}

/// Whether a text is a path that leaves the directory that it is relative to.
fn leads_outside(text: &str) -> bool {
    let starts = text.starts_with('/') || text.starts_with('~');
    starts || text.split(['/', '\\']).any(|part| part == "..")
}

/// The variables that the texts of a value name.
fn variables(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => references(text).map(str::to_owned).collect(),
        Value::Array(items) => items.iter().flat_map(variables).collect(),
        Value::Object(entries) => entries.values().flat_map(variables).collect(),
        _ => Vec::new(),
    }
}

/// A value for people, short and without secrets.
pub(super) fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => format!("`{text}`"),
        other => amplifier_core::redact::redact(other).to_string(),
    };
    redact_text(&text).into_owned()
}
