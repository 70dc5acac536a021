//! Which values of a built-in module's config allow more than the module does by itself. A stranger may ask for more care
//! without a question, and for less only with the user's consent. Pure.

use serde_json::Value;

/// When a value allows more.
#[derive(Clone, Copy)]
enum When {
    /// Whatever it is.
    Set,
    /// Anything but these words.
    Not(&'static [&'static str]),
    /// Neither empty nor absent.
    Filled,
    /// An empty list, which takes away what stood there.
    Emptied,
    /// A rule that lets a call go on.
    Allows,
    /// A tool that is not asked about.
    Unasked,
    /// A command's stand-in that asks a model.
    Prompts,
    /// Answers of a scripted model that call tools.
    Calls,
}

/// The words for on and off, as a `Not` compares them.
const OFF: &[&str] = &["false"];
const ON: &[&str] = &["true"];

/// Keys by module.
const PERMISSIONS: &[(&str, &[(&str, When)])] = &[
    (
        "tool-bash",
        &[
            ("require_approval", When::Not(&["true", "always", "risky"])),
            ("safety_profile", When::Not(&["strict"])),
            ("allowed_commands", When::Filled),
            ("denied_commands", When::Emptied),
            ("safety_overrides", When::Filled),
            ("sandbox", When::Not(&["read-only", "workspace-write"])),
            ("sandbox_required", When::Not(ON)),
            ("env", When::Filled),
            ("pass_env", When::Filled),
        ],
    ),
    (
        "tool-filesystem",
        &[
            ("require_approval", When::Not(ON)),
            ("require_read_before_write", When::Not(ON)),
            ("denied_write_paths", When::Emptied),
        ],
    ),
    ("tool-apply-patch", &[("require_approval", When::Not(ON)), ("denied_write_paths", When::Emptied)]),
    (
        "tool-mcp",
        &[
            ("project_files", When::Not(&["ignore"])),
            ("user_file", When::Not(OFF)),
            ("trust_annotations", When::Not(OFF)),
            ("pass_env", When::Filled),
            ("config_file", When::Filled),
            ("server_log_dir", When::Filled),
        ],
    ),
    (
        "tool-web",
        &[
            ("allow_private", When::Not(OFF)),
            ("private_hosts", When::Filled),
            ("blocked_hosts", When::Emptied),
            ("blocked_domains", When::Emptied),
        ],
    ),
    (
        "hooks-approval",
        &[
            ("rules", When::Allows),
            ("rules", When::Emptied),
            ("defaults", When::Allows),
            ("tools", When::Unasked),
            ("auto_approve", When::Set),
            ("default_action", When::Not(&["deny", "ask"])),
            ("policy_driven_only", When::Not(OFF)),
        ],
    ),
    (
        "hooks-redaction",
        &[
            ("rules", When::Emptied),
            ("allowlist", When::Filled),
            ("skip_events", When::Filled),
            ("high_entropy", When::Not(ON)),
        ],
    ),
    (
        "hooks-shell",
        &[
            ("hooks_dir", When::Filled),
            ("load_files", When::Not(OFF)),
            ("pass_env", When::Filled),
            ("hooks", When::Prompts),
        ],
    ),
    ("provider-mock", &[("responses", When::Calls)]),
];

/// What any provider could say about money, so that a limit is never reached.
const OF_PROVIDERS: &[(&str, When)] = &[("prices", When::Filled)];

/// Whether a value allows more than the module does by itself.
pub(super) fn loosens(module: &str, key: &str, value: &Value) -> bool {
    let known = PERMISSIONS.iter().find(|(id, _)| *id == module).map_or(&[][..], |(_, keys)| keys);
    let of_providers = if module.starts_with("provider-") { OF_PROVIDERS } else { &[] };
    known.iter().chain(of_providers).any(|(name, when)| *name == key && when.holds(value))
}

impl When {
    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Set => true,
            Self::Not(words) => !words.contains(&word(value).as_str()),
            Self::Filled => match value {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(entries) => entries.values().any(|entry| Self::Filled.holds(entry)),
                Value::String(text) => !text.is_empty(),
                Value::Bool(_) | Value::Number(_) => true,
            },
            Self::Emptied => match value {
                Value::Array(items) => items.is_empty(),
                other => other.is_null(),
            },
            // What only ever denies or asks is care; any other word might let something go on.
            Self::Allows => texts(value, "action").any(|word| !matches!(word, "deny" | "auto_deny" | "ask")),
            Self::Unasked => any(value, &|entry| {
                let approval = entry.get("require_approval");
                approval.is_some_and(|asked| !asked.is_null() && word(asked) != "true")
            }),
            Self::Prompts => any(value, &|entry| entry.get("prompt").is_some_and(|prompt| !prompt.is_null())),
            Self::Calls => {
                any(value, &|entry| entry.get("tool_calls").is_some_and(|calls| Self::Filled.holds(calls)))
            }
        }
    }
}

/// A value as one word, however YAML or JSON spell it.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned).to_lowercase()
}

/// The texts under a key of a list of rules, or all texts of a map of defaults.
fn texts<'a>(value: &'a Value, key: &'a str) -> Box<dyn Iterator<Item = &'a str> + 'a> {
    match value {
        Value::Array(items) => Box::new(items.iter().map(move |item| {
            // A rule without a word that can be read is none to trust.
            item.get(key).and_then(Value::as_str).unwrap_or_default()
        })),
        Value::Object(entries) => Box::new(
            // Looking is allowed by itself.
            entries
                .iter()
                .filter(|(name, _)| *name != "reads")
                .map(|(_, text)| text.as_str().unwrap_or_default()),
        ),
        Value::Null => Box::new(std::iter::empty()),
        _ => Box::new(std::iter::once("")),
    }
}

/// Whether one of the objects in a value is so.
fn any(value: &Value, is: &dyn Fn(&Value) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| any(item, is)),
        Value::Object(entries) => is(value) || entries.values().any(|entry| any(entry, is)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn care_needs_no_consent_and_its_opposite_does() {
        for (module, key, careful, loose) in [
            ("tool-bash", "require_approval", json!("always"), json!("never")),
            ("tool-bash", "require_approval", json!(true), json!(false)),
            ("tool-bash", "require_approval", json!("risky"), json!("${X:-never}")),
            ("tool-bash", "safety_profile", json!("strict"), json!("unrestricted")),
            ("tool-bash", "allowed_commands", json!([]), json!(["*"])),
            ("tool-bash", "denied_commands", json!(["curl *"]), json!([])),
            ("tool-bash", "safety_overrides", json!({"block": []}), json!({"allow": ["*"]})),
            ("tool-bash", "sandbox", json!("read-only"), json!("off")),
            ("tool-filesystem", "require_read_before_write", json!(true), json!(false)),
            ("tool-mcp", "trust_annotations", json!(false), json!(true)),
            ("tool-web", "allow_private", json!(false), json!(true)),
            (
                "hooks-approval",
                "rules",
                json!([{"tool": "bash", "action": "deny"}]),
                json!([{"action": "continue"}]),
            ),
            (
                "hooks-approval",
                "rules",
                json!([{"action": "ask"}]),
                json!([{"action": "deny"}, {"action": "auto_approve"}]),
            ),
            (
                "hooks-approval",
                "defaults",
                json!({"reads": "allow", "writes": "deny"}),
                json!({"writes": "allow"}),
            ),
            (
                "hooks-approval",
                "tools",
                json!({"bash": {"require_approval": true}}),
                json!({"bash": {"require_approval": false}}),
            ),
            ("hooks-redaction", "allowlist", json!([]), json!(["*"])),
            (
                "hooks-shell",
                "hooks",
                json!([{"event": "x", "command": "true"}]),
                json!([{"event": "x", "prompt": "?"}]),
            ),
            ("provider-mock", "responses", json!(["hi"]), json!([{"tool_calls": [{"name": "bash"}]}])),
            ("provider-openai", "prices", json!({}), json!({"gpt": {"input": "0", "output": "0"}})),
        ] {
            assert!(!loosens(module, key, &careful), "{module} {key}: {careful}");
            assert!(loosens(module, key, &loose), "{module} {key}: {loose}");
        }
    }
}
