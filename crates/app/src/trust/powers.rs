//! What a plan could do beyond talking to a model: the programs it starts, the addresses it connects to with the keys that they
//! would receive, the variables it reads, the paths outside the working directory that it uses, and the questions it answers in
//! advance. Pure: it reads a plan and asks `Surroundings` for the rest.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;

use amplifier_core::redact::{names_a_secret, redact_text};
use amplifier_modules::table::ALIASES;
use amplifier_protocol::address::hide;
use amplifier_protocol::locate::join;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use url::Url;

use super::permissions::loosens;
use super::project::UNCHECKED;
use crate::expand::{fill, parts, references};
use crate::plain;
use crate::profiles::unfolded;

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
            Self::File { path, sha256 } if sha256 == UNCHECKED => {
                write!(f, "uses `{path}`, which is {UNCHECKED} and so is never trusted")
            }
            Self::File { path, sha256 } => {
                write!(f, "uses `{path}` (sha256 {})", sha256.get(..12).unwrap_or(sha256))
            }
        }
    }
}

impl Power {
    /// Whether it is among what the user agreed to.
    pub(super) fn is_in(&self, granted: &[Self]) -> bool {
        let is_unchecked = matches!(self, Self::File { sha256, .. } if sha256 == UNCHECKED);
        !is_unchecked && granted.contains(self)
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

/// Keys of agents by which the hooks of a session, and so its user's rules, do not reach its sub-sessions.
const WITHOUT_HOOKS: &[&str] = &["exclude_hooks", "inherit_hooks"];

/// Keys that make a program what it is.
const PARTS_OF_PROGRAMS: &[&str] = &["command", "args", "env", "cwd"];

/// Keys whose texts are words, whatever they look like.
const WORDS: &[&str] = &["responses", "instruction", "description", "prompt", "text", "system_prompt"];

/// Keys that hold an address, also without a scheme.
const ADDRESSES: &[&str] = &["base_url", "azure_endpoint", "endpoint", "host", "proxy", "url", "httpUrl"];

/// Keys that say in whose name a service is asked: with a header of its own, a stranger's config could move a request to
/// another site behind the same front, or into an account where the stranger reads it.
const ACCOUNTS: &[&str] = &["headers", "api_key", "entra_token"];

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

/// What a plan does not say about itself.
pub struct Surroundings<'a> {
    /// Who wrote the value at a JSON pointer.
    pub author: &'a dyn Fn(&str) -> Author,
    /// The value of a variable, if it has one: an address that no key would reach asks for none.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Where a path leads when that is outside of the working directory.
    pub outside: &'a dyn Fn(&str) -> Option<PathBuf>,
}

/// What a plan could do, as far as its authors need consent for it.
pub fn of_plan(plan: &Value, surroundings: &Surroundings<'_>) -> Vec<Power> {
    let mut search = Search { surroundings, found: Vec::new() };
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
    surroundings: &'a Surroundings<'a>,
    found: Vec<Power>,
}

impl Search<'_> {
    fn author(&self, pointer: &str) -> Author {
        (self.surroundings.author)(pointer)
    }

    /// Whether a stranger wrote a value or a part of it.
    fn is_strangers(&self, value: &Value, pointer: &str) -> bool {
        let below = |key: &str, value: &Value| self.is_strangers(value, &join(pointer, key));
        self.author(pointer) == Author::Stranger
            || match value {
                Value::Array(items) => {
                    items.iter().enumerate().any(|(at, item)| below(&at.to_string(), item))
                }
                Value::Object(entries) => entries.iter().any(|(key, entry)| below(key, entry)),
                _ => false,
            }
    }

    fn is_set(&self, name: &str) -> bool {
        (self.surroundings.variable)(name).is_some()
    }

    /// Whether a variable is one that an unknown address must not receive.
    fn is_secret(&self, name: &str) -> bool {
        let holds_a_secret = |value: String| redact_text(&value) != value;
        sounds_secret(name) || (self.surroundings.variable)(name).is_some_and(holds_a_secret)
    }

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
                let alias = ALIASES.iter().find(|(other, _)| *other == module);
                let module = alias.map_or(module, |(_, id)| id);
                for (key, entry) in entries {
                    let below = join(pointer, key);
                    match (key.as_str(), entry) {
                        ("config", Value::Object(config)) => self.config(module, config, &below),
                        ("content", Value::String(_)) => self.folded(entries, &below),
                        (key, value) if WITHOUT_HOOKS.contains(&key) && self.is_strangers(value, &below) => {
                            let (module, key, value) = ("agents".to_owned(), key.to_owned(), shown(value));
                            self.found.push(Power::Permission { module, key, value });
                        }
                        _ => self.plan(entry, &below, Some(key)),
                    }
                }
            }
            _ => {}
        }
    }

    /// An agent that is a whole file: whoever wrote the file wrote what it says.
    fn folded(&mut self, agent: &Map<String, Value>, content: &str) {
        let unfolded = Value::Object(unfolded(agent));
        let author = self.author(content);
        let surroundings = Surroundings { author: &|_| author, ..*self.surroundings };
        let mut search = Search { surroundings: &surroundings, found: Vec::new() };
        search.plan(&unfolded, "", None);
        self.found.extend(search.found);
    }

    fn config(&mut self, module: &str, config: &Map<String, Value>, pointer: &str) {
        let at = |key: &str| join(pointer, key);
        for (key, value) in config {
            if loosens(module, key, value) && self.is_strangers(value, &at(key)) {
                let (module, key, value) = (module.to_owned(), key.clone(), shown(value));
                self.found.push(Power::Permission { module, key, value });
            }
        }
        if matches!(module, "hooks-shell" | "tool-mcp") {
            self.commands(module, config, pointer);
        }
        if module == "tool-mcp" {
            self.believed(config, pointer);
        }
        if service(module).is_some() {
            self.accounts(module, config, pointer);
        }
        self.addresses(module, config, pointer);
        for (key, value) in config {
            self.texts(module, key, value, &at(key), config);
        }
    }

    /// Programs that a config names anywhere.
    fn commands(&mut self, module: &str, entries: &Map<String, Value>, pointer: &str) {
        if let Some(command) = entries.get("command").and_then(Value::as_str) {
            // Arguments and variables make another program of it, whoever wrote its name.
            let author = PARTS_OF_PROGRAMS.iter().filter_map(|key| {
                let mut least = None;
                each_value(entries.get(*key)?, &join(pointer, key), &mut |_, at| {
                    least = least.into_iter().chain([self.author(at)]).min();
                });
                least
            });
            match author.min() {
                Some(Author::Stranger) => self.found.push(program(module, command, entries)),
                // What the user's settings give to their own server is not for the program of a file.
                Some(Author::Named) => self.variables_above(module, entries, pointer),
                _ => {}
            }
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

    /// The secrets that the user set for a program and that the program of a named file would get.
    fn variables_above(&mut self, module: &str, entries: &Map<String, Value>, pointer: &str) {
        let mut found = Vec::new();
        for key in ["env", "args"] {
            let Some(value) = entries.get(key) else { continue };
            each_value(value, &join(pointer, key), &mut |value, at| {
                if self.author(at) > Author::Named {
                    found.extend(self.secrets(module, value, Author::Own, Author::Named));
                }
            });
        }
        let module = module.to_owned();
        self.found.extend(found.into_iter().map(|name| Power::Variable { module: module.clone(), name }));
    }

    /// Servers of a stranger that the user's `trust_annotations` would believe.
    fn believed(&mut self, config: &Map<String, Value>, pointer: &str) {
        if config.get("trust_annotations") != Some(&Value::Bool(true)) {
            return;
        }
        for key in ["servers", "mcpServers", "mcp_servers"] {
            let Some(Value::Object(servers)) = config.get(key) else { continue };
            for (name, server) in servers {
                let mut is_strange = false;
                each_value(server, &join(&join(pointer, key), name), &mut |_, at| {
                    is_strange |= self.author(at) == Author::Stranger;
                });
                if is_strange {
                    let value = format!("true for the server `{}`", redact_text(name));
                    let (module, key) = ("tool-mcp".to_owned(), "trust_annotations".to_owned());
                    self.found.push(Power::Permission { module, key, value });
                }
            }
        }
    }

    /// Headers and keys of a stranger, unless they are where the provider looks anyway.
    fn accounts(&mut self, module: &str, config: &Map<String, Value>, pointer: &str) {
        for key in ACCOUNTS {
            let Some(value) = config.get(*key).filter(|value| !value.is_null()) else { continue };
            let mut is_strange = false;
            each_value(value, &join(pointer, key), &mut |value, at| {
                let names = variables(value);
                let is_usual = !names.is_empty() && names.iter().all(|name| is_usual(module, name));
                is_strange |= self.author(at) == Author::Stranger && !(is_usual && *key != "headers");
            });
            if is_strange {
                let (module, key, value) = (module.to_owned(), (*key).to_owned(), shown(value));
                self.found.push(Power::Permission { module, key, value });
            }
        }
    }

    /// The addresses that one object names, with the keys that stand or are looked for beside them.
    fn addresses(&mut self, module: &str, entries: &Map<String, Value>, pointer: &str) {
        // Names of headers have no case, and `Host` is one.
        for (key, url) in entries.iter().filter(|(key, _)| is_address(key)) {
            let Some(url) = url.as_str().filter(|url| !url.is_empty()) else { continue };
            let author = self.author(&join(pointer, key));
            if author == Author::User || is_own_service(module, key, url) || is_reference(url) {
                continue;
            }
            let keys = self.keys(module, entries, pointer, author);
            if author == Author::Stranger || !keys.is_empty() {
                let (module, url) = (module.to_owned(), redact_text(&hide(url)).into_owned());
                self.found.push(Power::Address { module, url, keys });
            }
        }
    }

    /// The user's keys that a request to an address in this object would carry.
    fn keys(&self, module: &str, entries: &Map<String, Value>, pointer: &str, author: Author) -> Vec<String> {
        let mut keys = Vec::new();
        let text =
            |key: &&str| entries.get(*key).and_then(Value::as_str).filter(|key| !key.trim().is_empty());
        let written = ["api_key", "key", "entra_token"].iter().find_map(text);
        match written {
            None => {
                let own = service(module).map_or(&[][..], |(_, variables, _)| *variables);
                keys.extend(own.iter().filter(|name| self.is_set(name)).map(|name| (*name).to_owned()));
            }
            Some(key) if references(key).all(|name| name.starts_with(plain::PREFIX)) => {
                // A key in plain text belongs to the author of the entry, unless the user laid it over.
                if self.author(&join(pointer, "api_key")) > author {
                    keys.push(format!("the key of `{module}` in your settings"));
                }
            }
            Some(_) => {}
        }
        for (key, value) in entries {
            each_value(value, &join(pointer, key), &mut |value, at| {
                keys.extend(self.secrets(module, value, self.author(at), author));
            });
        }
        let by_variable = IDENTITIES.iter().any(|name| self.is_set(name));
        if module == "provider-azure-openai"
            && written.is_none()
            && (by_variable || is_managed_identity(entries))
        {
            keys.push("a token of this machine's identity".to_owned());
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// The secrets in a value that something of `least` would get: references, and what a higher author wrote as it is. What
    /// is no secret is nothing to keep from an address.
    fn secrets(&self, module: &str, value: &Value, author: Author, least: Author) -> Vec<String> {
        let own = || format!("the key of `{module}` in your settings");
        let is_higher = author > least;
        let mut found: Vec<_> = variables(value)
            .into_iter()
            .filter_map(|name| match name.starts_with(plain::PREFIX) {
                true => is_higher.then(own),
                false => (self.is_secret(&name) && self.is_set(&name)).then_some(name),
            })
            .collect();
        if let Value::String(text) = value
            && is_higher
            && redact_text(text) != *text
        {
            found.push(own());
        }
        found
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

    /// A path that leaves the working directory, as it is shown.
    fn outside(&self, key: &str, text: &str, written: &str) -> Option<String> {
        // What has several lines or spaces around it is no path, and a pattern of commands is none.
        if key == "matcher" || key == "command" || key == "args" || text.contains('\n') {
            return None;
        }
        if leads_outside(text) {
            return Some(written.to_owned());
        }
        let to = (self.surroundings.outside)(text)?;
        Some(format!("{written} -> {}", to.display()))
    }

    /// A text as the module gets it, and as it is shown: without the values of variables.
    fn filled(&self, text: &str) -> [String; 2] {
        let value = |name: &str| (self.surroundings.variable)(name);
        let named = |name: &str| value(name).map(|_| format!("${{{name}}}"));
        [&value as &dyn Fn(&str) -> Option<String>, &named].map(|look_up| {
            let Ok(filled) = fill(text, |inside| {
                let (name, default) = parts(inside);
                Ok::<_, Infallible>(look_up(name).unwrap_or_else(|| default.unwrap_or_default().to_owned()))
            });
            filled
        })
    }

    fn text(&mut self, module: &str, key: &str, text: &str, pointer: &str, around: &Map<String, Value>) {
        let author = self.author(pointer);
        // The whole text is the name of a variable that programs receive.
        let is_passed_on = key == "pass_env" && matches!(author, Author::Named | Author::Stranger);
        if is_passed_on && self.is_secret(text) && self.is_set(text) {
            self.found.push(Power::Variable { module: module.to_owned(), name: text.to_owned() });
        }
        let is_foreign = around
            .iter()
            .filter(|(key, _)| is_address(key))
            .any(|(key, url)| url.as_str().is_some_and(|url| !is_own_service(module, key, url)));
        for name in references(text) {
            let is_usual = key == "api_key" && !is_foreign && is_usual(module, name);
            let is_secret = self.is_secret(name);
            let asks = match author {
                Author::User | Author::Own => false,
                Author::Named => is_secret && !is_usual,
                Author::Stranger => !is_usual,
            };
            if asks && self.is_set(name) {
                self.found.push(Power::Variable { module: module.to_owned(), name: name.to_owned() });
            }
        }
        // The default of an unset variable counts like literal text.
        let [text, written] = self.filled(text);
        // Words, and the script of the mock provider, are looked at by nothing that opens paths.
        if author != Author::Stranger || module == "provider-mock" || WORDS.contains(&key) {
            return;
        }
        let module = module.to_owned();
        if is_address(key) {
            // Found with its keys already.
        } else if is_url(&text) {
            let url = redact_text(&written).into_owned();
            self.found.push(Power::Address { module, url, keys: Vec::new() });
        } else if (module != "hooks-approval" || key == "remember_file")
            && let Some(path) = self.outside(key, &text, &written)
        {
            self.found.push(Power::Path { module, key: key.to_owned(), path });
        }
    }
}

/// Words in the names of variables that hold secrets, beside those that [`names_a_secret`] judges by their place.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASS",
    "PASSWD",
    "PASSPHRASE",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "AUTH",
    "COOKIE",
    "PRIVATE",
    "PAT",
    "DSN",
    "JWT",
    "BEARER",
    "SIGNATURE",
];

/// Whether a name sounds like that of a secret. Asking once too often is better than giving a key away.
fn sounds_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    // The working directory of a shell is no password.
    let is_word = |word: &str| SECRET_WORDS.contains(&word) && !matches!(name, "PWD" | "OLDPWD");
    names_a_secret(name)
        || upper.split('_').any(is_word)
        || upper.ends_with("APIKEY")
        || upper.ends_with("TOKEN")
}

/// Variables with which the user asks for a token of this machine's identity.
const IDENTITIES: [&str; 2] = ["AZURE_USE_MANAGED_IDENTITY", "AZURE_USE_DEFAULT_CREDENTIAL"];

/// Whether a config of Azure asks this machine for a token.
fn is_managed_identity(config: &Map<String, Value>) -> bool {
    let is_on = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    let keys = ["use_managed_identity", "use_default_credential", "managed_identity_client_id"];
    keys.iter().any(|key| config.get(*key).is_some_and(is_on))
}

/// A program as it would be started: with the variables, the arguments and the directory that the same object sets.
pub(super) fn program(module: &str, command: &str, entries: &Map<String, Value>) -> Power {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let env = entries.get("env").and_then(Value::as_object).into_iter().flatten();
    let mut words: Vec<_> = env.map(|(name, value)| format!("{name}={}", text(value))).collect();
    words.push(command.to_owned());
    words.extend(entries.get("args").and_then(Value::as_array).into_iter().flatten().map(text));
    if let Some(cwd) = entries.get("cwd").filter(|cwd| !cwd.is_null()) {
        words.push(format!("(in {})", text(cwd)));
    }
    Power::Program { module: module.to_owned(), command: words.join(" ") }
}

type Service = (&'static str, &'static [&'static str], Option<&'static str>);

fn service(module: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|(id, ..)| *id == module)
}

fn is_address(key: &str) -> bool {
    ADDRESSES.iter().any(|known| known.eq_ignore_ascii_case(key))
}

/// Whether a provider looks for its key in this variable anyway.
fn is_usual(module: &str, variable: &str) -> bool {
    service(module).is_some_and(|(_, variables, _)| variables.contains(&variable))
}

/// Calls for every value that is no list and no object, with where it is.
fn each_value(value: &Value, pointer: &str, call: &mut dyn FnMut(&Value, &str)) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                each_value(item, &join(pointer, &at.to_string()), call);
            }
        }
        Value::Object(entries) => {
            for (key, entry) in entries {
                each_value(entry, &join(pointer, key), call);
            }
        }
        value => call(value, pointer),
    }
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
    let (whole, shown) = match value {
        Value::String(text) => (format!("`{text}`"), format!("`{text}`")),
        other => (other.to_string(), amplifier_core::redact::redact(other).to_string()),
    };
    let shown = redact_text(&shown).into_owned();
    match shown == whole {
        true => shown,
        // Two values that look alike without their secrets are still two values.
        false => format!("{shown} (sha256 {})", hex(&Sha256::digest(whole)).get(..16).unwrap_or_default()),
    }
}

/// Bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "powers_tests.rs"]
mod tests;
