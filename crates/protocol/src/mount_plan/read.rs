//! JSON to [`MountPlan`], for both dialects and their mixtures.
//!
//! Total: any JSON gives a plan or a [`PlanError`] with the place. Optional values that are `null` count as absent,
//! except a budget, where `null` says "unlimited", and a `config`, where it is a mistake worth naming.

use serde_json::{Map, Value};

use super::{Budget, ModuleSpec, MountPlan, PlanError, PlanFault, SessionSection, type_name};
use crate::locate::join;

/// Which keys an entry knows besides the common ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// `id` is another spelling of `instance_id`.
    Provider,
    /// Only the common keys.
    Plain,
}

impl MountPlan {
    /// Reads a plan in any dialect.
    ///
    /// # Errors
    /// [`PlanError`] names the first place that does not fit.
    pub fn read(plan: &Value) -> Result<Self, PlanError> {
        let mut rest = object(plan, "")?.clone();
        let session = match rest.shift_remove("session") {
            None | Some(Value::Null) => return Err(missing("/session", "`session`")),
            Some(session) => session,
        };
        let session = read_session(&session, &mut rest)?;
        Ok(Self {
            session,
            providers: read_list(&mut rest, "providers", Entry::Provider)?,
            tools: read_list(&mut rest, "tools", Entry::Plain)?,
            hooks: read_list(&mut rest, "hooks", Entry::Plain)?,
            agents: take_map(&mut rest, "", "agents")?,
            unknown: rest,
        })
    }
}

fn read_session(session: &Value, plan: &mut Map<String, Value>) -> Result<SessionSection, PlanError> {
    let at = "/session";
    let mut rest = object(session, at)?.clone();
    Ok(SessionSection {
        orchestrator: read_slot("orchestrator", &mut rest, plan)?,
        context: read_slot("context", &mut rest, plan)?,
        injection_budget_per_turn: take_budget(&mut rest, "injection_budget_per_turn")?,
        injection_size_limit: take_budget(&mut rest, "injection_size_limit")?,
        metadata: take_map(&mut rest, at, "metadata")?,
        raw: take_bool(&mut rest, at, "raw")?.unwrap_or(false),
        limits: take_map(&mut rest, at, "limits")?,
        deadlines: take_map(&mut rest, at, "deadlines")?,
        unknown: rest,
    })
}

/// Reads the orchestrator or the context, whichever way it is written.
///
/// What the chosen form does not use stays in `session` and `plan`, and so ends among their unknown keys.
fn read_slot(
    name: &'static str,
    session: &mut Map<String, Value>,
    plan: &mut Map<String, Value>,
) -> Result<ModuleSpec, PlanError> {
    let at = format!("/session/{name}");
    match session.shift_remove(name) {
        None | Some(Value::Null) => Err(missing(&at, "a module")),
        Some(Value::Object(nested)) => read_entry(nested, &at, Entry::Plain),
        Some(Value::String(id)) => read_string_slot(name, &id, session, plan),
        Some(other) => Err(wrong(&at, "a module id or an object", &other)),
    }
}

fn read_string_slot(
    name: &'static str,
    id: &str,
    session: &mut Map<String, Value>,
    plan: &mut Map<String, Value>,
) -> Result<ModuleSpec, PlanError> {
    let module = parse_module(id, &format!("/session/{name}"))?;
    let source_key = format!("{name}_source");
    let source = match session.shift_remove(&source_key) {
        None | Some(Value::Null) => None,
        Some(source @ Value::String(_)) => Some(source),
        Some(other) => return Err(wrong(&join("/session", &source_key), "a string", &other)),
    };
    let at = join("", name);
    let mut section = match plan.shift_remove(name) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(section)) => section,
        Some(other) => return Err(wrong(&at, "an object", &other)),
    };
    // The string already names the module; a second name or source in the section has no say, but is not ours to drop.
    let mut shadowed = Map::new();
    for key in ["module", "source"] {
        if let Some(value) = section.shift_remove(key) {
            shadowed.insert(key.to_owned(), value);
        }
    }
    if !shadowed.is_empty() {
        plan.insert(name.to_owned(), Value::Object(shadowed));
    }
    let mut spec = read_settings(ModuleSpec::new(module), section, &at)?;
    spec.source = source;
    Ok(spec)
}

fn read_list(
    plan: &mut Map<String, Value>,
    section: &'static str,
    entry: Entry,
) -> Result<Vec<ModuleSpec>, PlanError> {
    let at = join("", section);
    let items = match plan.shift_remove(section) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(wrong(&at, "a list", &other)),
    };
    let mut specs = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let at = join(&at, &index.to_string());
        match item {
            Value::Object(fields) => specs.push(read_entry(fields, &at, entry)?),
            other => return Err(wrong(&at, "an object", &other)),
        }
    }
    Ok(specs)
}

fn read_entry(mut fields: Map<String, Value>, at: &str, entry: Entry) -> Result<ModuleSpec, PlanError> {
    let module = match fields.shift_remove("module") {
        None | Some(Value::Null) => return Err(missing(&join(at, "module"), "`module`")),
        Some(Value::String(id)) => parse_module(&id, &join(at, "module"))?,
        Some(other) => return Err(wrong(&join(at, "module"), "a string", &other)),
    };
    let source = match fields.shift_remove("source") {
        None | Some(Value::Null) => None,
        Some(source @ (Value::String(_) | Value::Object(_))) => Some(source),
        Some(other) => return Err(wrong(&join(at, "source"), "a string or an object", &other)),
    };
    let mut spec = read_settings(ModuleSpec::new(module), fields, at)?;
    spec.source = source;
    if entry == Entry::Provider
        && spec.instance_id.is_none()
        && let Some(Value::String(_)) = spec.unknown.get("id")
        && let Some(id) = spec.unknown.shift_remove("id")
    {
        spec.instance_id = read_instance_id(Some(id), &join(at, "id"))?;
    }
    Ok(spec)
}

/// Reads what stands beside a module's name and source.
fn read_settings(
    mut spec: ModuleSpec,
    mut fields: Map<String, Value>,
    at: &str,
) -> Result<ModuleSpec, PlanError> {
    spec.config = match fields.shift_remove("config") {
        None => Map::new(),
        Some(Value::Object(config)) => config,
        Some(other) => return Err(wrong(&join(at, "config"), "an object", &other)),
    };
    spec.instance_id = read_instance_id(fields.shift_remove("instance_id"), &join(at, "instance_id"))?;
    spec.native = take_bool(&mut fields, at, "native")?;
    spec.unknown = fields;
    Ok(spec)
}

fn read_instance_id(value: Option<Value>, at: &str) -> Result<Option<String>, PlanError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if id.is_empty() => Err(missing(at, "an instance id")),
        Some(Value::String(id)) => Ok(Some(id)),
        Some(other) => Err(wrong(at, "a string", &other)),
    }
}

fn parse_module(id: &str, at: &str) -> Result<crate::ids::ModuleId, PlanError> {
    if id.is_empty() {
        return Err(missing(at, "a module id"));
    }
    id.parse().map_err(|error| PlanError { pointer: at.to_owned(), cause: PlanFault::Name(error) })
}

fn take_map(
    from: &mut Map<String, Value>,
    at: &str,
    key: &'static str,
) -> Result<Map<String, Value>, PlanError> {
    match from.shift_remove(key) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map),
        Some(other) => Err(wrong(&join(at, key), "an object", &other)),
    }
}

fn take_bool(from: &mut Map<String, Value>, at: &str, key: &'static str) -> Result<Option<bool>, PlanError> {
    match from.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(other) => Err(wrong(&join(at, key), "a boolean", &other)),
    }
}

fn take_budget(from: &mut Map<String, Value>, key: &'static str) -> Result<Budget, PlanError> {
    match from.shift_remove(key) {
        None => Ok(Budget::Default),
        Some(Value::Null) => Ok(Budget::Unlimited),
        Some(value) => match value.as_u64() {
            Some(bound) => Ok(Budget::Limited(bound)),
            None => Err(wrong(&join("/session", key), "a non-negative integer or null", &value)),
        },
    }
}

fn object<'v>(value: &'v Value, at: &str) -> Result<&'v Map<String, Value>, PlanError> {
    value.as_object().ok_or_else(|| wrong(at, "an object", value))
}

fn missing(at: &str, what: &'static str) -> PlanError {
    PlanError { pointer: at.to_owned(), cause: PlanFault::Missing { what } }
}

fn wrong(at: &str, expected: &'static str, found: &Value) -> PlanError {
    let cause = PlanFault::WrongType { expected, found: type_name(found) };
    PlanError { pointer: at.to_owned(), cause }
}
