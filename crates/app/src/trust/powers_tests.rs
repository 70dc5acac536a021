//! What a plan asks for, by who wrote its parts; and that no key of a built-in module is forgotten.

use std::collections::BTreeSet;

use amplifier_modules::table::MODULES;
use serde_json::json;

use super::*;

/// What a plan asks for when the values at these pointers are by these authors, and the rest by a stranger.
fn powers(plan: &Value, authors: &[(&str, Author)]) -> Vec<Power> {
    let author = |pointer: &str| {
        let known = authors.iter().filter(|(at, _)| pointer.starts_with(at));
        known.max_by_key(|(at, _)| at.len()).map_or(Author::Stranger, |(_, author)| *author)
    };
    let variable = |name: &str| (!name.starts_with(plain::PREFIX)).then(|| "set".to_owned());
    of_plan(plan, &Surroundings { author: &author, variable: &variable, outside: &|_| None })
}

fn tool(module: &str, config: Value) -> Value {
    json!({"tools": [{"module": module, "config": config}]})
}

fn lines(powers: &[Power]) -> Vec<String> {
    powers.iter().map(ToString::to_string).collect()
}

#[test]
fn another_name_of_a_module_asks_for_the_same() {
    for (other, module) in [("hook-shell", "hooks-shell"), ("hooks-shell", "hooks-shell")] {
        let plan = json!({"hooks": [{"module": other, "config": {"hooks": [{"event": "session:start", "command": "x"}]}}]});
        assert_eq!(lines(&powers(&plan, &[])), [format!("runs `x` ({module})")]);
    }
    let plan = tool("tool-web-search", json!({"allow_private": true}));
    assert_eq!(lines(&powers(&plan, &[])), ["sets `allow_private` to true (tool-web)"]);
}

#[test]
fn what_a_stranger_adds_to_a_program_of_the_user_makes_it_the_strangers() {
    let server = json!({"command": "git-mcp", "args": ["a"], "env": {"LD_PRELOAD": "./x.so"}});
    let plan = tool("tool-mcp", json!({"servers": {"git": server}}));
    let at = "/tools/0/config/servers/git";
    let users = |parts: &[&str]| -> Vec<(String, Author)> {
        parts.iter().map(|part| (format!("{at}/{part}"), Author::User)).collect()
    };
    for theirs in [&["command", "args"][..], &["command", "env"], &["args", "env"]] {
        let authors = users(theirs);
        let authors: Vec<_> = authors.iter().map(|(at, author)| (at.as_str(), *author)).collect();
        let found = lines(&powers(&plan, &authors));
        assert_eq!(found, ["runs `LD_PRELOAD=./x.so git-mcp a` (tool-mcp)"], "{theirs:?}");
    }
    assert_eq!(powers(&plan, &[(at, Author::User)]), []);
}

#[test]
fn a_program_of_a_named_file_gets_no_secret_that_the_user_set_for_another() {
    let server = json!({"command": "mine", "env": {"T": "${A_TOKEN}", "MODE": "${MODE}"}});
    let plan = tool("tool-mcp", json!({"servers": {"git": server}}));
    let at = "/tools/0/config";
    let env = format!("{at}/servers/git/env");
    let found = powers(&plan, &[(at, Author::Named), (&env, Author::User)]);
    assert_eq!(lines(&found), ["reads the environment variable `A_TOKEN` (tool-mcp)"]);
    assert_eq!(powers(&plan, &[(at, Author::User)]), []);
}

#[test]
fn a_header_of_the_user_does_not_go_to_an_address_that_another_wrote() {
    for value in ["${PLAIN_MCP_SERVERS_GIT_HEADERS_AUTHORIZATION}", "Bearer sk-ant-0123456789abcdef"] {
        let server = json!({"url": "http://h.invalid/", "headers": {"Authorization": value}});
        let plan = tool("tool-mcp", json!({"servers": {"git": server}}));
        let (at, headers) = ("/tools/0/config", "/tools/0/config/servers/git/headers");
        let sends = "sends the key of `tool-mcp` in your settings to http://h.invalid/ (tool-mcp)";
        for author in [Author::Stranger, Author::Named, Author::Own] {
            let found = powers(&plan, &[(at, author), (headers, Author::User)]);
            assert!(lines(&found).contains(&sends.to_owned()), "{author:?}: {found:?}");
        }
        // Each author may send their own where they like; a stranger's address is shown all the same.
        assert_eq!(powers(&plan, &[(at, Author::Named)]), []);
        assert_eq!(powers(&plan, &[(at, Author::User)]), []);
    }
}

#[test]
fn a_stranger_asks_no_service_in_a_name_of_its_own() {
    let provider = |config: Value| json!({"providers": [{"module": "provider-openai", "config": config}]});
    for config in [
        json!({"headers": {"x-account": "other"}}),
        json!({"headers": {"Authorization": "Bearer ${OPENAI_API_KEY}"}}),
        json!({"api_key": "${PLAIN_OPENAI_API_KEY}"}),
    ] {
        let plan = provider(config);
        let asks = powers(&plan, &[]);
        assert!(asks.iter().any(|power| matches!(power, Power::Permission { .. })), "{plan}: {asks:?}");
        assert_eq!(powers(&plan, &[("", Author::Own)]), [], "{plan}");
    }
    assert_eq!(powers(&provider(json!({"api_key": "${OPENAI_API_KEY}"})), &[]), []);
    // One header says where a request goes.
    let moved = powers(&provider(json!({"headers": {"Host": "h.invalid"}})), &[("", Author::Own)]);
    assert_eq!(lines(&moved), ["sends OPENAI_API_KEY to h.invalid (provider-openai)"]);
}

#[test]
fn a_token_of_this_machine_goes_to_no_address_of_another() {
    // The variables of the test are all set, so that of the identity is.
    let config = json!({"azure_endpoint": "https://h.invalid"});
    let plan = json!({"providers": [{"module": "provider-azure-openai", "config": config}]});
    let found = lines(&powers(&plan, &[("", Author::Own)]));
    assert!(found.iter().any(|line| line.contains("a token of this machine's identity")), "{found:?}");
    let own =
        json!({"azure_endpoint": "https://h.invalid", "entra_token": "${PLAIN_AZURE_OPENAI_ENTRA_TOKEN}"});
    let plan = json!({"providers": [{"module": "provider-azure-openai", "config": own}]});
    assert_eq!(powers(&plan, &[("", Author::Own)]), []);
}

#[test]
fn servers_of_a_stranger_are_not_believed_because_the_user_believes_his_own() {
    let server = json!({"command": "x"});
    let plan = tool("tool-mcp", json!({"trust_annotations": true, "servers": {"s": server}}));
    let believes = "sets `trust_annotations` to true for the server `s` (tool-mcp)".to_owned();
    let users = ("/tools/0/config/trust_annotations", Author::User);
    assert!(lines(&powers(&plan, &[users])).contains(&believes));
    for author in [Author::User, Author::Own, Author::Named] {
        let found = powers(&plan, &[users, ("/tools/0/config/servers", author)]);
        assert!(!lines(&found).contains(&believes), "{found:?}");
    }
}

/// What a key of a built-in module can do in a stranger's config.
#[derive(Clone, Copy)]
enum Can {
    /// It is shown before it is used, with this value.
    Ask(&'static str),
    /// Nothing, because of this.
    Nothing(&'static str),
}

const URL: Can = Can::Ask("http://h.invalid/");
const HOST: Can = Can::Ask("h.invalid:1");
const OUTSIDE: Can = Can::Ask("/outside");
const ANY: Can = Can::Ask("x");

const TIGHTENS: Can = Can::Nothing("it only takes away");
const PATTERN: Can = Can::Nothing("a pattern that calls are compared with; nothing is opened");
const BODY: Can = Can::Nothing("it goes into the body of a request to the address of the provider");
const WORD: Can = Can::Nothing("one of a few words that the module knows");
const OUTPUT: Can = Can::Nothing("it says what is written down, not where");

/// Keys that sound like an address, a key, a path, a program or a permission. A key that is not here fails the test below:
/// make `of_plan` find it, or say why it is harmless.
const JUDGED: &[(&str, &str, Can)] = &[
    ("*", "base_url", URL),
    ("*", "proxy", HOST),
    ("*", "working_dir", OUTSIDE),
    ("*", "allowed_paths", OUTSIDE),
    ("*", "allowed_read_paths", OUTSIDE),
    ("*", "allowed_write_paths", OUTSIDE),
    ("*", "denied_write_paths", TIGHTENS),
    ("*", "pass_env", ANY),
    ("*", "headers", ANY),
    ("*", "max_tokens_key", BODY),
    ("*", "prompt_cache_key", BODY),
    ("*", "cached_content", BODY),
    ("*", "organization", Can::Nothing("the service takes only what belongs to the user's own key")),
    ("*", "project", Can::Nothing("the service takes only what belongs to the user's own key")),
    ("*", "enable_web_search", BODY),
    ("*", "web_search_user_location", BODY),
    ("*", "token_meter", WORD),
    ("provider-anthropic", "cache_stable_region_ttl_1h", BODY),
    ("tool-web", "api_key", Can::Nothing("a reference asks by itself, and what it is sent to asks too")),
    ("*", "api_key", ANY),
    ("provider-azure-openai", "azure_endpoint", HOST),
    ("provider-azure-openai", "entra_token", ANY),
    (
        "provider-azure-openai",
        "managed_identity_client_id",
        Can::Nothing("it chooses among this machine's own"),
    ),
    (
        "provider-azure-openai",
        "use_managed_identity",
        Can::Nothing("an address that would get the token asks"),
    ),
    (
        "provider-azure-openai",
        "use_default_credential",
        Can::Nothing("an address that would get the token asks"),
    ),
    ("provider-anthropic", "beta_headers", Can::Nothing("they say which features are asked for")),
    ("provider-ollama", "host", HOST),
    ("context-persistent", "transcript_path", OUTSIDE),
    ("context-persistent", "memory_files", OUTSIDE),
    ("tool-apply-patch", "engine", WORD),
    ("tool-apply-patch", "require_approval", ANY),
    ("tool-bash", "require_approval", ANY),
    ("tool-bash", "safety_profile", ANY),
    ("tool-bash", "allowed_commands", ANY),
    ("tool-bash", "denied_commands", TIGHTENS),
    ("tool-bash", "safety_overrides.allow", ANY),
    ("tool-bash", "env", ANY),
    ("tool-bash", "sandbox", ANY),
    ("tool-bash", "sandbox_required", ANY),
    ("tool-filesystem", "require_approval", ANY),
    ("tool-mcp", "servers", Can::Nothing("its parts are judged one by one")),
    ("tool-mcp", "servers.*.command", ANY),
    ("tool-mcp", "servers.*.args", Can::Nothing("shown with the command")),
    ("tool-mcp", "servers.*.env", Can::Nothing("shown with the command")),
    ("tool-mcp", "servers.*.cwd", OUTSIDE),
    ("tool-mcp", "servers.*.url", URL),
    ("tool-mcp", "servers.*.headers", Can::Nothing("they go to the address, which is shown")),
    ("tool-mcp", "config_file", ANY),
    ("tool-mcp", "user_file", ANY),
    ("tool-mcp", "project_files", ANY),
    ("tool-mcp", "verbose_servers", OUTPUT),
    ("tool-mcp", "server_log_dir", ANY),
    ("tool-mcp", "trust_annotations", ANY),
    ("tool-skills", "skills", OUTSIDE),
    ("tool-skills", "skills_dirs", OUTSIDE),
    ("tool-skills", "skills_dir", OUTSIDE),
    ("tool-task", "exclude_hooks", Can::Nothing("the rules of the parent hold for its agents")),
    ("tool-task", "inherit_hooks", Can::Nothing("the rules of the parent hold for its agents")),
    ("tool-web", "allowed_hosts", TIGHTENS),
    ("tool-web", "allowed_domains", TIGHTENS),
    ("tool-web", "blocked_hosts", TIGHTENS),
    ("tool-web", "blocked_domains", TIGHTENS),
    ("tool-web", "allow_private", ANY),
    ("tool-web", "private_hosts", ANY),
    ("tool-web", "backend", WORD),
    ("tool-web", "search_engine", WORD),
    ("hooks-approval", "rules[].command", PATTERN),
    ("hooks-approval", "rules[].path", PATTERN),
    ("hooks-approval", "tools.*.require_approval", ANY),
    ("hooks-approval", "remember_file", OUTSIDE),
    ("hooks-redaction", "allowlist", Can::Nothing("known keys are hidden before any hook")),
    ("hooks-status-context", "git_status_enable_path_filtering", OUTPUT),
    ("hooks-streaming-ui", "ui.show_token_usage", OUTPUT),
    ("hooks-backup", "backup_dir", OUTSIDE),
    ("hooks-backup", "files", OUTPUT),
    ("hooks-backup", "transcripts", OUTPUT),
    ("hooks-logging", "output_dir", OUTSIDE),
    ("hooks-logging", "session_log_template", OUTSIDE),
    ("hooks-shell", "hooks", Can::Nothing("its parts are judged one by one")),
    ("hooks-shell", "hooks[].command", ANY),
    ("hooks-shell", "hooks_dir", ANY),
    ("hooks-shell", "load_files", ANY),
];

/// Parts of names that sound like it.
const SOUNDS: &[&str] = &[
    "url",
    "uri",
    "host",
    "endpoint",
    "proxy",
    "address",
    "domain",
    "region",
    "socket",
    "backend",
    "engine",
    "auth",
    "key",
    "token",
    "secret",
    "credential",
    "identity",
    "header",
    "organization",
    "project",
    "account",
    "cookie",
    "cert",
    "path",
    "dir",
    "file",
    "folder",
    "cwd",
    "template",
    "command",
    "args",
    "env",
    "program",
    "script",
    "shell",
    "hook",
    "plugin",
    "sandbox",
    "allow",
    "private",
    "trust",
    "approv",
    "search",
    "server",
    "skills",
    "cached",
];

/// Every key of a schema, as `servers.*.url` and `rules[].path`, with its schema.
fn keys<'a>(root: &'a Value, schema: &'a Value, at: &str, found: &mut Vec<(String, &'a Value)>) {
    if at.split(['.', '[']).count() > 6 {
        return;
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        if let Some(schema) = root.pointer(name.trim_start_matches('#')) {
            keys(root, schema, at, found);
        }
        return;
    }
    for (key, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        found.push((at.clone(), schema));
        keys(root, schema, &at, found);
    }
    for schema in ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(key)?.as_array()).flatten() {
        keys(root, schema, at, found);
    }
    for (key, suffix) in [("items", "[]"), ("additionalProperties", ".*")] {
        if let Some(schema) = schema.get(key).filter(|schema| schema.is_object()) {
            keys(root, schema, &format!("{at}{suffix}"), found);
        }
    }
}

/// Whether values of a schema are numbers alone.
fn is_number(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => {
            kinds.iter().all(|kind| ["integer", "number", "null"].iter().any(|number| kind == number))
        }
        kind => kind.is_some_and(|kind| kind == "integer" || kind == "number"),
    }
}

/// A config that holds a value at a key.
fn config(key: &str, value: Value) -> Value {
    key.split('.').rev().fold(value, |value, part| match part.strip_suffix("[]") {
        Some(part) => json!({part: [value]}),
        None => json!({part: value}),
    })
}

#[test]
fn no_key_of_a_built_in_module_leads_a_stranger_anywhere_unasked() {
    let mut forgotten = BTreeSet::new();
    let mut used = BTreeSet::new();
    for module in MODULES {
        let (id, info) = (module.id().to_string(), module.info());
        let Some(schema) = &info.config_schema else { continue };
        let mut found = Vec::new();
        keys(schema, schema, "", &mut found);
        for (key, schema) in found {
            let name = key.rsplit('.').next().unwrap_or_default().trim_end_matches("[]");
            let is_script = id == "provider-mock" || key.starts_with("prices");
            if is_number(schema) || is_script || !SOUNDS.iter().any(|sound| name.contains(sound)) {
                continue;
            }
            let mut fitting = JUDGED
                .iter()
                .enumerate()
                .filter(|(_, (module, known, _))| (*module == id || *module == "*") && *known == key);
            let Some((at, (_, _, can))) = fitting.next() else {
                forgotten.insert(format!("{id}: {key}"));
                continue;
            };
            used.insert(at);
            let value = match can {
                Can::Ask(value) => value,
                Can::Nothing(why) => {
                    assert!(!why.is_empty(), "{id}: {key}");
                    continue;
                }
            };
            let value = match (schema.get("items"), schema.get("additionalProperties")) {
                (Some(_), _) => json!([value]),
                (None, Some(_)) => json!({"NAME": value}),
                (None, None) => json!(value),
            };
            let plan = tool(&id, config(&key, value));
            assert!(!powers(&plan, &[]).is_empty(), "{id}: a stranger sets `{key}` without a question");
        }
    }
    assert!(forgotten.is_empty(), "judge these keys in `JUDGED`: {forgotten:#?}");
    let gone: Vec<_> = JUDGED
        .iter()
        .enumerate()
        .filter(|(at, _)| !used.contains(at))
        .map(|(_, row)| (row.0, row.1))
        .collect();
    assert!(gone.is_empty(), "these keys are gone: {gone:?}");
}
