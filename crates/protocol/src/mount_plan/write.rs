//! [`MountPlan`] to JSON, in the dialect asked for.
//!
//! Known keys come first, in a fixed order; unknown ones follow in the order in which they were read. What is empty
//! or at its default is left out, so that a plan has one nested text whichever dialect it was read from.

use serde_json::{Map, Value};

use super::{Budget, ModuleSpec, MountPlan, PlanForm, SessionSection};

impl MountPlan {
    /// Writes the plan; reading the result gives the same plan again.
    pub fn write(&self, form: PlanForm) -> Value {
        let mut plan = Map::new();
        let mut session = Map::new();
        let mut sections = Map::new();
        let slots = [("orchestrator", &self.session.orchestrator), ("context", &self.session.context)];
        for (name, spec) in slots {
            if form == PlanForm::Strings && self.fits_string_form(name, spec) {
                write_string_slot(name, spec, &mut session, &mut sections);
            } else {
                session.insert(name.to_owned(), write_entry(spec));
            }
        }
        write_settings(&self.session, &mut session);
        plan.insert("session".to_owned(), Value::Object(session));
        plan.append(&mut sections);
        let lists = [("providers", &self.providers), ("tools", &self.tools), ("hooks", &self.hooks)];
        for (section, specs) in lists {
            if !specs.is_empty() {
                plan.insert(section.to_owned(), specs.iter().map(write_entry).collect());
            }
        }
        put_map(&mut plan, "agents", &self.agents);
        put_unknown(&mut plan, &self.unknown);
        Value::Object(plan)
    }

    /// Whether the string form can carry this slot: its keys must not be taken by shadowed ones, and `*_source` is a
    /// string by definition.
    fn fits_string_form(&self, name: &str, spec: &ModuleSpec) -> bool {
        !self.unknown.contains_key(name)
            && !self.session.unknown.contains_key(&format!("{name}_source"))
            && spec.source.as_ref().is_none_or(Value::is_string)
    }
}

fn write_string_slot(
    name: &str,
    spec: &ModuleSpec,
    session: &mut Map<String, Value>,
    sections: &mut Map<String, Value>,
) {
    session.insert(name.to_owned(), Value::from(spec.module.as_str()));
    if let Some(source) = &spec.source {
        session.insert(format!("{name}_source"), source.clone());
    }
    let mut section = Map::new();
    write_beside(spec, &mut section);
    if !section.is_empty() {
        sections.insert(name.to_owned(), Value::Object(section));
    }
}

fn write_entry(spec: &ModuleSpec) -> Value {
    let mut entry = Map::new();
    entry.insert("module".to_owned(), Value::from(spec.module.as_str()));
    if let Some(source) = &spec.source {
        entry.insert("source".to_owned(), source.clone());
    }
    write_beside(spec, &mut entry);
    Value::Object(entry)
}

/// Writes everything of an entry but its module and source.
fn write_beside(spec: &ModuleSpec, into: &mut Map<String, Value>) {
    if let Some(id) = &spec.instance_id {
        into.insert("instance_id".to_owned(), Value::from(id.as_str()));
    }
    if let Some(native) = spec.native {
        into.insert("native".to_owned(), Value::Bool(native));
    }
    put_map(into, "config", &spec.config);
    put_unknown(into, &spec.unknown);
}

fn write_settings(section: &SessionSection, into: &mut Map<String, Value>) {
    put_budget(into, "injection_budget_per_turn", section.injection_budget_per_turn);
    put_budget(into, "injection_size_limit", section.injection_size_limit);
    put_map(into, "metadata", &section.metadata);
    if section.raw {
        into.insert("raw".to_owned(), Value::Bool(true));
    }
    put_map(into, "limits", &section.limits);
    put_map(into, "deadlines", &section.deadlines);
    put_unknown(into, &section.unknown);
}

fn put_budget(into: &mut Map<String, Value>, key: &str, budget: Budget) {
    let value = match budget {
        Budget::Default => return,
        Budget::Unlimited => Value::Null,
        Budget::Limited(bound) => Value::from(bound),
    };
    into.insert(key.to_owned(), value);
}

fn put_map(into: &mut Map<String, Value>, key: &str, map: &Map<String, Value>) {
    if !map.is_empty() {
        into.insert(key.to_owned(), Value::Object(map.clone()));
    }
}

/// Adds unknown keys; one that would overwrite a known key is a caller's mistake and must not win.
fn put_unknown(into: &mut Map<String, Value>, unknown: &Map<String, Value>) {
    for (key, value) in unknown {
        if !into.contains_key(key) {
            into.insert(key.clone(), value.clone());
        }
    }
}
