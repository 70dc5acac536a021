//! The checks of the providers as a group (numbers 24 to 27): several instances of one module need names.

use std::collections::HashSet;

use amplifier_protocol::locate::join;
use indexmap::IndexMap;
use serde_json::Value;

use super::Validation;

/// An entry that is well-formed enough to be compared with others.
struct Named<'p> {
    module: &'p str,
    pointer: String,
    /// The instance id and the key it was written under.
    instance: Option<(&'p str, &'static str)>,
}

pub(super) fn validate(providers: Option<&Value>, found: &mut Validation) {
    let entries = match providers {
        Some(Value::Array(items)) => items.as_slice(),
        None | Some(Value::Null) => &[],
        // The wrong type was reported already.
        Some(_) => return,
    };
    if entries.is_empty() {
        let message = "no provider is configured; at least one is needed to execute a prompt".to_owned();
        found.warning("providers_present", "/providers", message);
    }
    let named: Vec<Named<'_>> = entries.iter().enumerate().filter_map(named).collect();
    require_instance_ids(&named, found);
    refuse_equal_instance_ids(&named, found);
}

fn named((index, entry): (usize, &Value)) -> Option<Named<'_>> {
    let written = |key: &'static str| entry.get(key).and_then(Value::as_str).map(|id| (id, key));
    let module = entry.get("module")?.as_str()?;
    let instance = written("instance_id").or_else(|| written("id"));
    Some(Named { module, pointer: format!("/providers/{index}"), instance })
}

/// Reported once per module, at the first entry that is one too many.
fn require_instance_ids(named: &[Named<'_>], found: &mut Validation) {
    let mut unnamed: IndexMap<&str, Vec<&Named<'_>>> = IndexMap::new();
    for entry in named.iter().filter(|entry| entry.instance.is_none()) {
        unnamed.entry(entry.module).or_default().push(entry);
    }
    for (module, entries) in unnamed {
        if let [_, second, ..] = entries.as_slice() {
            let count = entries.len();
            let message =
                format!("{count} entries of `{module}` have no `instance_id`; at most one may leave it out");
            found.error("providers_instance_id_required", &second.pointer, message);
        }
    }
}

fn refuse_equal_instance_ids(named: &[Named<'_>], found: &mut Validation) {
    let default_name = |entry: &Named<'_>| entry.module.strip_prefix("provider-").map(str::to_owned);
    let default_names: HashSet<String> =
        named.iter().filter(|entry| entry.instance.is_none()).filter_map(default_name).collect();
    let mut seen = HashSet::new();
    for entry in named {
        let Some((id, key)) = entry.instance.filter(|(id, _)| !id.is_empty()) else { continue };
        let pointer = join(&entry.pointer, key);
        if !seen.insert(id) {
            let message = format!("`instance_id` `{id}` is used by more than one provider");
            found.error("providers_instance_id_unique", &pointer, message);
        } else if default_names.contains(id) {
            let message = format!("`instance_id` `{id}` is also the name of `provider-{id}` without one");
            found.warning("providers_instance_id_taken", &pointer, message);
        }
    }
}
