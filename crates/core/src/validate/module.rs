//! The checks of one module entry, wherever it stands (numbers 6 to 16).

use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::locate::join;
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::mount_plan::{MODULE_KEYS, type_name};
use serde_json::{Map, Value};

use super::kind;
use super::{Validation, nearest, validate_bool};
use crate::redact::{redact, truncate};

/// Where an entry stands, as the names of its checks and as a pointer.
pub(super) struct Place {
    pub(super) path: String,
    pub(super) pointer: String,
    pub(super) kind: ModuleKind,
}

impl Place {
    pub(super) fn in_list(section: &str, index: usize, kind: ModuleKind) -> Self {
        Self { path: format!("{section}[{index}]"), pointer: format!("/{section}/{index}"), kind }
    }

    pub(super) fn in_session(slot: &str, kind: ModuleKind) -> Self {
        Self { path: format!("session.{slot}"), pointer: format!("/session/{slot}"), kind }
    }

    fn check(&self, name: &str) -> String {
        format!("{}_{name}", self.path)
    }

    fn at(&self, key: &str) -> String {
        join(&self.pointer, key)
    }
}

/// Checks an entry in object form.
pub(super) fn validate(entry: &Value, place: &Place, found: &mut Validation) {
    let Value::Object(fields) = entry else {
        let message = format!(
            r#"`{}` must be a dict, got {}. Expected {{"module": "<id>", "source": ..., "config": {{...}}}}"#,
            place.path,
            type_name(entry)
        );
        found.error(&place.check("type"), &place.pointer, message);
        return;
    };
    validate_module(fields, place, found);
    if let Some(source) = fields.get("source")
        && !matches!(source, Value::Null | Value::String(_) | Value::Object(_))
    {
        let message = format!("`{}.source` must be a string, got {}", place.path, type_name(source));
        found.error(&place.check("source_type"), &place.at("source"), message);
    }
    validate_settings(fields, place, found);
    warn_unknown_keys(fields, place, found);
}

fn validate_module(fields: &Map<String, Value>, place: &Place, found: &mut Validation) {
    match fields.get("module") {
        None | Some(Value::Null) => {
            let given = redact(&Value::Object(fields.clone())).to_string();
            let message = format!(
                r#"`{}` is missing the required field `module`. Got {}. Expected {{"module": "<id>", ...}}"#,
                place.path,
                truncate(&given)
            );
            found.error(&place.check("module_required"), &place.at("module"), message);
        }
        Some(Value::String(id)) if id.is_empty() => {
            let message = format!("`{}.module` must not be empty", place.path);
            found.error(&place.check("module_empty"), &place.at("module"), message);
        }
        Some(Value::String(id)) => validate_id(id, place, &place.at("module"), found),
        Some(other) => {
            let message = format!("`{}.module` must be a string, got {}", place.path, type_name(other));
            found.error(&place.check("module_type"), &place.at("module"), message);
        }
    }
}

/// Checks the text of an id that is not empty; `pointer` is where the text stands.
pub(super) fn validate_id(id: &str, place: &Place, pointer: &str, found: &mut Validation) {
    let id = match id.parse::<ModuleId>() {
        Ok(id) => id,
        Err(error) => return found.error(&place.check("module_valid"), pointer, error.to_string()),
    };
    found.pass(&place.check("module_valid"), pointer, &format!("module `{id}`"));
    if let Some(doubt) = kind::doubt(&id, place.kind) {
        found.warning(&place.check("module_kind"), pointer, doubt);
    }
}

/// Checks what may stand beside a module's name and source.
pub(super) fn validate_settings(fields: &Map<String, Value>, place: &Place, found: &mut Validation) {
    if let Some(config) = fields.get("config").filter(|config| !config.is_object()) {
        let message = format!("`{}.config` must be a dict, got {}", place.path, type_name(config));
        found.error(&place.check("config_type"), &place.at("config"), message);
    }
    let instance_id = fields.get("instance_id").filter(|id| !id.is_null());
    // `id` is the other spelling for providers; only as a text, since elsewhere it may mean anything.
    let other_spelling = fields.get("id").filter(|id| place.kind == ModuleKind::Provider && id.is_string());
    let key = if instance_id.is_some() { "instance_id" } else { "id" };
    if let Some(id) = instance_id.or(other_spelling)
        && id.as_str().is_none_or(str::is_empty)
    {
        let message = format!("`{}.{key}` must be a text of at least one character", place.path);
        found.error(&place.check("instance_id_type"), &place.at(key), message);
    }
    validate_bool(fields.get("native"), &place.check("native_type"), &place.at("native"), found);
}

/// Warns of keys that look like a slip of the pen; other unknown keys are somebody's and none of our business.
pub(super) fn warn_unknown_keys(fields: &Map<String, Value>, place: &Place, found: &mut Validation) {
    for key in fields.keys().map(String::as_str).filter(|key| !MODULE_KEYS.contains(key)) {
        if let Some(known) = nearest(key, &MODULE_KEYS) {
            let message = format!("`{}` has the unknown key `{key}`; did you mean `{known}`?", place.path);
            found.warning(&place.check("unknown_keys"), &place.at(key), message);
        }
    }
}
