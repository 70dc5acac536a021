//! The checks of the `session` section and of the string form's sections (numbers 4, 5 and 17 to 22).

use amplifier_protocol::locate::join;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::{SESSION_KEYS, type_name};
use amplifier_protocol::spend::Limits;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::watch::Deadlines;

use super::module::{self, Place};
use super::{Validation, nearest, validate_bool, validate_object};

const SLOTS: [(&str, ModuleKind); 2] =
    [("orchestrator", ModuleKind::Orchestrator), ("context", ModuleKind::Context)];

pub(super) fn validate(session: &Value, plan: &Map<String, Value>, found: &mut Validation) {
    let Value::Object(session) = session else {
        let message = format!("`session` must be a dict, got {}", type_name(session));
        found.error("session_type", "/session", message);
        return;
    };
    for (slot, kind) in SLOTS {
        validate_slot(slot, kind, session, plan, found);
    }
    for key in ["injection_budget_per_turn", "injection_size_limit"] {
        if let Some(budget) = session.get(key).filter(|budget| !budget.is_null() && budget.as_u64().is_none())
        {
            let got = if budget.is_number() { budget.to_string() } else { type_name(budget).to_owned() };
            let message = format!("`session.{key}` must be a non-negative integer or null, got {got}");

            found.error(&format!("session.{key}_type"), &join("/session", key), message);
        }
    }
    for key in ["metadata", "limits", "deadlines"] {
        validate_object(session.get(key), &format!("session.{key}"), &join("/session", key), found);
    }
    validate_shape::<Limits>(session, "limits", found);
    validate_shape::<Deadlines>(session, "deadlines", found);
    validate_bool(session.get("raw"), "session.raw_type", "/session/raw", found);
    for key in session.keys().map(String::as_str).filter(|key| !SESSION_KEYS.contains(key)) {
        if let Some(known) = nearest(key, &SESSION_KEYS) {
            let message = format!("`session` has the unknown key `{key}`; did you mean `{known}`?");
            found.warning("session_unknown_keys", &join("/session", key), message);
        }
    }
}

/// A section whose keys the kernel itself reads. A misspelt limit would be no limit, so it is an error.
fn validate_shape<T: DeserializeOwned>(session: &Map<String, Value>, key: &str, found: &mut Validation) {
    let Some(section @ Value::Object(_)) = session.get(key) else { return };
    if let Err(error) = serde_json::from_value::<T>(section.clone()) {
        let message = format!("`session.{key}` cannot be read: {error}");
        found.error(&format!("session.{key}_shape"), &join("/session", key), message);
    }
}

fn validate_slot(
    slot: &str,
    kind: ModuleKind,
    session: &Map<String, Value>,
    plan: &Map<String, Value>,
    found: &mut Validation,
) {
    let place = Place::in_session(slot, kind);
    match session.get(slot) {
        Some(Value::String(id)) if !id.is_empty() => {
            module::validate_id(id, &place, &place.pointer, found);
            validate_string_form(slot, &place, session, plan, found);
        }
        Some(nested @ Value::Object(fields)) if !fields.is_empty() => {
            module::validate(nested, &place, found);
            warn_shadowed(slot, &place, session, plan, found);
        }
        None | Some(Value::Null | Value::String(_) | Value::Object(_)) => {
            let message = format!(
                r#"mount plan must specify session.{slot}, which is missing. Expected a module id or {{"module": "<id>", ...}}"#
            );
            found.error(&format!("session_{slot}_present"), &place.pointer, message);
        }
        Some(other) => {
            let message = format!(
                r#"`{}` must be a dict or a string, got {}. Expected a module id or {{"module": "<id>", ...}}"#,
                place.path,
                type_name(other)
            );
            found.error(&format!("{}_type", place.path), &place.pointer, message);
        }
    }
}

/// Checks `session.<slot>_source` and the top-level section of a slot that is a string.
fn validate_string_form(
    slot: &str,
    place: &Place,
    session: &Map<String, Value>,
    plan: &Map<String, Value>,
    found: &mut Validation,
) {
    let source_key = format!("{slot}_source");
    if let Some(source) = session.get(&source_key).filter(|source| !source.is_null() && !source.is_string()) {
        let message = format!("`session.{source_key}` must be a string, got {}", type_name(source));
        found.error(&format!("{}_source_type", place.path), &join("/session", &source_key), message);
    }
    let section = match plan.get(slot) {
        Some(Value::Object(section)) => section,
        other => return validate_object(other, slot, &join("", slot), found),
    };
    let section_place = Place { path: slot.to_owned(), pointer: join("", slot), kind: place.kind };
    module::validate_settings(section, &section_place, found);
    module::warn_unknown_keys(section, &section_place, found);
    for key in ["module", "source"] {
        if section.contains_key(key) {
            let wanted =
                if key == "module" { format!("session.{slot}") } else { format!("session.{source_key}") };
            let message =
                format!("`{slot}.{key}` is ignored because `session.{slot}` is a string; use `{wanted}`");
            found.warning(&format!("{}_shadowed", place.path), &join(&section_place.pointer, key), message);
        }
    }
}

/// Warns of string-form keys beside a nested slot: it alone is used.
fn warn_shadowed(
    slot: &str,
    place: &Place,
    session: &Map<String, Value>,
    plan: &Map<String, Value>,
    found: &mut Validation,
) {
    let says_something =
        |value: &&Value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty());
    let source_key = format!("{slot}_source");
    let shadowed = [
        (session.get(&source_key), format!("session.{source_key}"), join("/session", &source_key), "source"),
        (plan.get(slot), slot.to_owned(), join("", slot), "config"),
    ];
    for (value, path, pointer, inside) in shadowed {
        if value.filter(says_something).is_some() {
            let message = format!(
                "`{path}` is ignored because `session.{slot}` is a dict; use `session.{slot}.{inside}`"
            );
            found.warning(&format!("{}_shadowed", place.path), &pointer, message);
        }
    }
}
