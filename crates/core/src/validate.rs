//! The structural checks of a mount plan: pure, before anything is loaded, over JSON as it was written.
//!
//! A plan that passes can be read ([`MountPlan::read`](amplifier_protocol::mount_plan::MountPlan::read)); whether its
//! modules can be had and like their configs is found out at mount time, not here.
//!
//! Checks, in the order in which they are made. `<path>` is `session.orchestrator`, `session.context`, `providers[0]`,
//! …; `<section>` is `providers`, `tools` or `hooks`; `<slot>` is `orchestrator` or `context`. A passing `root_type`,
//! `session_present` and `<path>_module_valid`, and `<section>_empty`, are recorded as info.
//!
//! | # | name | failing is | fails when |
//! |---|---|---|---|
//! | 1 | `root_type` | error | the plan is not an object; nothing else is checked |
//! | 2 | `session_present` | error | there is no `session` |
//! | 3 | `unknown_sections` | warning | top-level keys that no dialect knows |
//! | 4 | `session_type` | error | `session` is not an object |
//! | 5 | `session_<slot>_present` | error | the slot is absent, null, `""` or `{}` |
//! | 6 | `<path>_type` | error | the entry is not an object (a slot may be a string) |
//! | 7 | `<path>_module_required` | error | the entry has no `module` |
//! | 8 | `<path>_module_type` | error | `module` is not a string |
//! | 9 | `<path>_module_empty` | error | `module` is `""` |
//! | 10 | `<path>_module_valid` | error | `module` is no module id |
//! | 11 | `<path>_config_type` | error | `config` is there and not an object; null counts |
//! | 12 | `<path>_source_type` | error | `source` is neither string nor object, or `<slot>_source` is no string |
//! | 13 | `<path>_instance_id_type` | error | `instance_id` is not a text of at least one character |
//! | 14 | `<path>_native_type` | error | `native` is not a boolean |
//! | 15 | `<path>_unknown_keys` | warning | an unknown key is nearly a known one |
//! | 16 | `<path>_module_kind` | warning | the id's name tells another kind than its place, or none |
//! | 17 | `<slot>_type`, `<slot>_config_type` | error | the string form's section or its `config` is not an object |
//! | 18 | `<path>_shadowed` | warning | string-form keys that a nested slot overrules |
//! | 19 | `session.injection_budget_per_turn_type`, `session.injection_size_limit_type` | error | not a non-negative integer or null |
//! | 20 | `session.metadata_type`, `session.limits_type`, `session.deadlines_type` | error | not an object |
//! | 21 | `session.raw_type` | error | not a boolean |
//! | 22 | `session_unknown_keys` | warning | an unknown key of `session` is nearly a known one |
//! | 23 | `<section>_type` | error | the section is not a list; null is an empty one |
//! | 24 | `providers_instance_id_required` | error | two entries of one module without `instance_id` |
//! | 25 | `providers_instance_id_unique` | error | two entries with one `instance_id` |
//! | 26 | `providers_instance_id_taken` | warning | an `instance_id` that an unnamed provider mounts under |
//! | 27 | `providers_present` | warning | no provider, so the session cannot execute |
//! | 28 | `agents_type` | error | `agents` is not an object |
//! | 29 | `session.limits_shape`, `session.deadlines_shape` | error | an unknown key, or a value that is no limit or no time |

use amplifier_protocol::locate::join;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::{PLAN_KEYS, type_name};
use serde_json::{Map, Value};

mod kind;
mod module;
mod providers;
mod report;
mod session;

pub use report::{Check, Severity, Validation};

use module::Place;

/// Checks the structure of mount plans.
pub struct MountPlanValidator;

impl MountPlanValidator {
    /// Runs every check that applies and says what came of each.
    pub fn validate(plan: &Value) -> Validation {
        let mut found = Validation::default();
        match plan {
            Value::Object(plan) => validate_root(plan, &mut found),
            Value::Null => found.error(
                "root_type",
                "",
                "Configuration is required: mount plan must be a dict (a JSON object), got null".to_owned(),
            ),
            other => found.error(
                "root_type",
                "",
                format!("mount plan must be a dict (a JSON object), got {}", type_name(other)),
            ),
        }
        found
    }
}

fn validate_root(plan: &Map<String, Value>, found: &mut Validation) {
    found.pass("root_type", "", "mount plan is a dict");
    let session = plan.get("session").filter(|session| !session.is_null());
    match session {
        Some(_) => found.pass("session_present", "/session", "`session` is present"),
        None => {
            let reason = if plan.is_empty() { "Configuration is required: " } else { "" };
            let expected = r#"Expected {"session": {"orchestrator": ..., "context": ...}, ...}"#;
            found.error(
                "session_present",
                "/session",
                format!("{reason}mount plan must specify `session`, which is missing. {expected}"),
            );
        }
    }
    warn_unknown_sections(plan, found);
    if let Some(session) = session {
        session::validate(session, plan, found);
    }
    let lists =
        [("providers", ModuleKind::Provider), ("tools", ModuleKind::Tool), ("hooks", ModuleKind::Hook)];
    for (section, kind) in lists {
        validate_list(plan, section, kind, found);
    }
    providers::validate(plan.get("providers"), found);
    validate_object(plan.get("agents"), "agents", "/agents", found);
}

fn warn_unknown_sections(plan: &Map<String, Value>, found: &mut Validation) {
    let mut unknown: Vec<&str> =
        plan.keys().map(String::as_str).filter(|key| !PLAN_KEYS.contains(key)).collect();
    unknown.sort_unstable();
    let Some(first) = unknown.first() else { return };
    let list = unknown.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let hints: Vec<String> = unknown
        .iter()
        .filter_map(|key| {
            nearest(key, &PLAN_KEYS).map(|known| format!("; did you mean `{known}` for `{key}`?"))
        })
        .collect();
    let message = format!("unknown sections are ignored: {list}{}", hints.concat());
    found.warning("unknown_sections", &join("", first), message);
}

fn validate_list(plan: &Map<String, Value>, section: &str, kind: ModuleKind, found: &mut Validation) {
    let pointer = join("", section);
    match plan.get(section) {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) if items.is_empty() => {
            found.pass(&format!("{section}_empty"), &pointer, &format!("`{section}` is an empty list"));
        }
        Some(Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                let place = Place::in_list(section, index, kind);
                module::validate(item, &place, found);
            }
        }
        Some(other) => {
            let message = format!("`{section}` must be a list, got {}", type_name(other));
            found.error(&format!("{section}_type"), &pointer, message);
        }
    }
}

/// An optional object, where null counts as absent.
fn validate_object(value: Option<&Value>, path: &str, pointer: &str, found: &mut Validation) {
    match value {
        None | Some(Value::Null | Value::Object(_)) => {}
        Some(other) => {
            let message = format!("`{path}` must be a dict, got {}", type_name(other));
            found.error(&format!("{path}_type"), pointer, message);
        }
    }
}

/// An optional boolean, where null counts as absent.
fn validate_bool(value: Option<&Value>, check: &str, pointer: &str, found: &mut Validation) {
    match value {
        None | Some(Value::Null | Value::Bool(_)) => {}
        Some(other) => {
            let key = pointer.rsplit('/').next().unwrap_or_default();
            found.error(check, pointer, format!("`{key}` must be a boolean, got {}", type_name(other)));
        }
    }
}

/// The known key that a misspelt one was probably meant to be.
fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    const NEAR: f64 = 0.7;
    // Comparing costs the product of the lengths, and no slip of the pen is this long.
    const LONGEST: usize = 64;
    if key.len() > LONGEST {
        return None;
    }
    let key = key.to_lowercase();
    known
        .iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(&key, known), *known))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}
