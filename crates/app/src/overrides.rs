//! Single values of a plan that somebody sets by hand: `--set PATH=VALUE`, and the flags that are short for one.
//!
//! A path is dotted (`tools.tool-bash.config.timeout`) or a JSON pointer (`/tools/0/config/timeout`); entries of a list are
//! named by number, by module or by instance. The structure of a plan is fixed, so a name that no plan has is refused with
//! the nearest one; inside `config` and other free places a new key is allowed, and the module judges it.

use std::str::FromStr;

use amplifier_core::validate::MountPlanValidator;
use amplifier_protocol::mount_plan::{
    MODULE_KEYS, MountPlan, PLAN_KEYS, PlanError, PlanForm, SESSION_KEYS, type_name,
};
use amplifier_protocol::usage::Usd;
use serde_json::{Map, Value};

/// One value to set.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// The path as it was written.
    path: String,
    tokens: Vec<String>,
    value: Value,
}

/// Why a value was not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// It is no `PATH=VALUE`.
    #[error("`{text}` sets nothing: it has to be PATH=VALUE")]
    Form {
        /// What was written.
        text: String,
    },
    /// The path leads nowhere.
    #[error("`{path}` leads nowhere in the plan: {}", unknown(.place, .token, .nearest.as_deref(), .known))]
    Unknown {
        /// The whole path.
        path: String,
        /// Up to where it leads somewhere.
        place: String,
        /// What is not there.
        token: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// What is there.
        known: Vec<String>,
    },
    /// The path goes on where there is nothing below.
    #[error("`{path}` leads nowhere in the plan: `{place}` is {found} and has nothing below it")]
    Leaf {
        /// The whole path.
        path: String,
        /// Where it ends too early.
        place: String,
        /// What is there.
        found: &'static str,
    },
    /// The plan is none any more.
    #[error("the plan is not valid with what was set: {}", problems.join("; "))]
    Invalid {
        /// One line for each failed check.
        problems: Vec<String>,
    },
    /// The plan cannot be read any more.
    #[error("the plan is not valid with what was set")]
    Plan(#[from] PlanError),
}

impl OverrideError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Form { .. } => Some("for example `--set tools.tool-bash.config.timeout=5`"),
            Self::Unknown { .. } | Self::Leaf { .. } => Some(
                "`amplifier plan show`, with the same `--bundle`, `--profile` or `--plan`, prints the plan; entries of a list \
                 are named by module or by number",
            ),
            Self::Invalid { .. } | Self::Plan(_) => Some(
                "`amplifier plan show`, with the same `--bundle`, `--profile` or `--plan`, prints the plan as it is without",
            ),
        }
    }
}

fn unknown(place: &str, token: &str, nearest: Option<&str>, known: &[String]) -> String {
    let place = if place.is_empty() { "it".to_owned() } else { format!("`{place}`") };
    let guess = match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None if known.is_empty() => ", which is empty".to_owned(),
        None => format!("; it has {}", known.join(", ")),
    };
    format!("{place} has no `{token}`{guess}")
}

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Self, OverrideError> {
        let malformed = || OverrideError::Form { text: text.to_owned() };
        let (path, value) = text.split_once('=').ok_or_else(malformed)?;
        let path = path.trim();
        let tokens: Vec<String> = match path.strip_prefix('/') {
            Some(pointer) => {
                pointer.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
            }
            None => path.split('.').map(str::to_owned).collect(),
        };
        if tokens.iter().any(String::is_empty) {
            return Err(malformed());
        }
        // What is no JSON is meant as text: nobody wants to write quotes for a shell.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok(Self { path: path.to_owned(), tokens, value })
    }
}

/// Sets values in a plan, in order. The plan stays as it was when one of them cannot be set.
pub fn apply(plan: &mut MountPlan, overrides: &[Override]) -> Result<(), OverrideError> {
    if overrides.is_empty() {
        return Ok(());
    }
    let mut value = plan.write(PlanForm::Nested);
    for wanted in overrides {
        set(&mut value, wanted)?;
    }
    let validation = MountPlanValidator::validate(&value);
    if !validation.passed() {
        let problem =
            |check: &amplifier_core::validate::Check| format!("{}: {}", check.pointer, check.message);
        return Err(OverrideError::Invalid { problems: validation.errors().map(problem).collect() });
    }
    *plan = MountPlan::read(&value)?;
    Ok(())
}

/// The most tokens that an answer of the first provider may have.
pub fn cap_answer(plan: &mut MountPlan, tokens: u64) {
    if let Some(first) = plan.providers.first_mut() {
        first.config.insert("max_tokens".to_owned(), Value::from(tokens));
    }
}

/// The most that the session and its children may cost together.
pub fn cap_cost(plan: &mut MountPlan, most: Usd) {
    plan.session.limits.insert("cost_usd".to_owned(), Value::from(most.to_string()));
}

/// What may stand at a place of a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plan,
    Session,
    /// A list of modules.
    Modules,
    Module,
    /// Anything.
    Free,
}

impl Shape {
    /// The names that have a meaning here, whether they are there or not.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Plan => &PLAN_KEYS,
            Self::Session => &SESSION_KEYS,
            Self::Module => &MODULE_KEYS,
            Self::Modules | Self::Free => &[],
        }
    }

    fn below(self, token: &str) -> Self {
        match (self, token) {
            (Self::Plan, "session") => Self::Session,
            (Self::Plan, "providers" | "tools" | "hooks") => Self::Modules,
            (Self::Session, "orchestrator" | "context") | (Self::Modules, _) => Self::Module,
            _ => Self::Free,
        }
    }
}

fn set(plan: &mut Value, wanted: &Override) -> Result<(), OverrideError> {
    let (mut at, mut shape, mut place) = (plan, Shape::Plan, String::new());
    for token in &wanted.tokens {
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
        let refused = Refused { path: &wanted.path, place: &place, token };
        at = match at {
            Value::Object(entries) => {
                let names = shape.names();
                if shape != Shape::Free && !names.contains(&token.as_str()) && !entries.contains_key(token) {
                    let known = entries.keys().map(String::as_str).chain(names.iter().copied());
                    return Err(refused.unknown(known));
                }
                entries.entry(token.clone()).or_insert(Value::Null)
            }
            Value::Array(items) => {
                let found = position(items, token, shape);
                let names: Vec<_> = items.iter().enumerate().map(|(at, item)| name(item, at)).collect();
                match found.and_then(|found| items.get_mut(found)) {
                    Some(item) => item,
                    None => return Err(refused.unknown(names.iter().map(String::as_str))),
                }
            }
            other => return Err(refused.leaf(type_name(other))),
        };
        shape = shape.below(token);
        place = if place.is_empty() { token.clone() } else { format!("{place}.{token}") };
    }
    *at = wanted.value.clone();
    Ok(())
}

/// An entry by number, and of modules by instance, by module, or by the module's name without its kind.
fn position(items: &[Value], token: &str, shape: Shape) -> Option<usize> {
    if let Ok(at) = token.parse::<usize>() {
        return Some(at).filter(|at| *at < items.len());
    }
    if shape != Shape::Modules {
        return None;
    }
    let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let by = |fits: &dyn Fn(&Value) -> bool| items.iter().position(fits);
    by(&|item| text(item, "instance_id").as_deref() == Some(token))
        .or_else(|| by(&|item| text(item, "module").as_deref() == Some(token)))
        .or_else(|| {
            by(&|item| {
                text(item, "module")
                    .is_some_and(|id| id.split_once('-').is_some_and(|(_, rest)| rest == token))
            })
        })
}

fn name(item: &Value, at: usize) -> String {
    let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    text("instance_id").or_else(|| text("module")).unwrap_or_else(|| at.to_string())
}

/// A step that cannot be made.
struct Refused<'a> {
    path: &'a str,
    place: &'a str,
    token: &'a str,
}

impl Refused<'_> {
    fn unknown<'k>(&self, known: impl Iterator<Item = &'k str>) -> OverrideError {
        let mut known: Vec<String> = known.map(str::to_owned).collect();
        known.sort_unstable();
        known.dedup();
        OverrideError::Unknown {
            path: self.path.to_owned(),
            place: self.place.to_owned(),
            token: self.token.to_owned(),
            nearest: nearest(self.token, &known),
            known,
        }
    }

    fn leaf(&self, found: &'static str) -> OverrideError {
        OverrideError::Leaf { path: self.path.to_owned(), place: self.place.to_owned(), found }
    }
}

fn nearest(token: &str, known: &[String]) -> Option<String> {
    const NEAR: f64 = 0.6;
    // Comparing costs the product of the lengths, and no slip of the pen is this long.
    const LONGEST: usize = 64;
    if token.len() > LONGEST {
        return None;
    }
    let likeness = |name: &String| strsim::normalized_damerau_levenshtein(token, name);
    let best = known.iter().map(|name| (likeness(name), name)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(likeness, _)| *likeness >= NEAR).map(|(_, name)| name.clone())
}

#[cfg(test)]
#[path = "overrides_tests.rs"]
mod tests;
