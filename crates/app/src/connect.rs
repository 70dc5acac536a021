//! Connecting a provider: from what a person chose to the entry that settings keep. A key itself is never part of an entry;
//! it is in a variable or in the store, and the entry has `${NAME}`.

use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use amplifier_protocol::mount_plan::ModuleSpec;
use serde_json::{Value, json};

pub mod fit;

use crate::catalog::{self, UnknownModule};
use crate::expand::is_variable;
use crate::inquire::{has_key, set_model};

/// Where the key of a provider comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum KeyChoice {
    /// It needs none, or finds its own.
    None,
    /// A variable, which the person sets or the store holds.
    Variable(String),
    /// What was typed, not stored yet, and the variable it will be found under.
    Given { variable: String, value: String },
}

impl std::fmt::Debug for KeyChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Variable(name) | Self::Given { variable: name, .. } => write!(f, "Variable({name})"),
        }
    }
}

/// What a person chose.
#[derive(Debug, Clone)]
pub struct Connection {
    pub info: ModuleInfo,
    /// The name of this instance, where there are several of one module.
    pub id: Option<String>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    pub key: KeyChoice,
    /// The entry it is laid over; what that says and nobody was asked about stays.
    pub over: Option<ModuleSpec>,
}

impl Connection {
    /// A connection with everything at its usual value.
    pub fn to(name: &str) -> Result<Self, UnknownModule> {
        let info = provider(name)?;
        Ok(Self { info, id: None, model: None, base_url: None, key: KeyChoice::None, over: None })
    }

    /// A change of an entry that is there.
    pub fn over(entry: &ModuleSpec) -> Result<Self, UnknownModule> {
        let (id, over) = (entry.instance_id.clone(), Some(entry.clone()));
        Ok(Self { id, over, ..Self::to(entry.module.as_str())? })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.id.as_deref().unwrap_or_else(|| short(&self.info.id))
    }

    /// Whether the module takes a key at all.
    pub fn takes_key(&self) -> bool {
        has_key(&self.info, "api_key")
    }

    /// The variable that a key of this provider is kept under: its usual one, or one of its own where it has a name of its
    /// own, so that two accounts do not share a key. An entry that is there names its own.
    pub fn variable(&self, usual: Option<&str>) -> String {
        let written = self.over.as_ref().and_then(key_variable);
        match (written, &self.id, usual) {
            (Some(written), ..) => written,
            (None, Some(id), _) => variable_of(id),
            (None, None, Some(usual)) => usual.to_owned(),
            (None, None, None) => variable_of(short(&self.info.id)),
        }
    }

    /// The entry that settings keep.
    pub fn entry(&self) -> ModuleSpec {
        let mut spec = self.over.clone().unwrap_or_else(|| ModuleSpec::new(self.info.id.clone()));
        spec.instance_id.clone_from(&self.id);
        if let Some(place) = &self.base_url {
            spec.config.insert("base_url".to_owned(), json!(place));
        }
        if let Some(model) = &self.model {
            set_model(&mut spec, model);
        }
        if let KeyChoice::Variable(name) | KeyChoice::Given { variable: name, .. } = &self.key
            && self.takes_key()
        {
            spec.config.insert("api_key".to_owned(), json!(format!("${{{name}}}")));
        }
        spec
    }

    /// The entry with the key itself, to try it before anything is kept. It is never written.
    pub fn trial(&self) -> ModuleSpec {
        let mut spec = self.entry();
        if let KeyChoice::Given { value, .. } = &self.key {
            // A key may hold what looks like a reference.
            let value = value.trim().replace("${", "$${");
            spec.config.insert("api_key".to_owned(), Value::from(value));
        }
        spec
    }
}

/// The variable that the key of something with this name is kept under.
pub fn variable_of(name: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{}_API_KEY", bare(name).chars().map(word).collect::<String>())
}

/// The provider whose usual variable this is, by its short name.
pub(crate) fn provider_of(variable: &str) -> Option<String> {
    let providers = catalog::of_kind(ModuleKind::Provider).into_iter();
    let mut names = providers.map(|info| short(&info.id).to_owned());
    names.find(|name| variable_of(name) == variable)
}

/// The variable that the key of an entry is in, where it names one alone.
pub fn key_variable(entry: &ModuleSpec) -> Option<String> {
    let written = entry.config.get("api_key")?.as_str()?.trim();
    let inside = written.strip_prefix("${")?.strip_suffix('}')?;
    is_variable(inside).then(|| inside.to_owned())
}

/// A provider module by its id or its short name.
pub fn provider(name: &str) -> Result<ModuleInfo, UnknownModule> {
    let full = if name.starts_with("provider-") { name.to_owned() } else { format!("provider-{name}") };
    catalog::module(&full)
        .filter(|info| info.kind == ModuleKind::Provider)
        .ok_or_else(|| catalog::unknown(&full))
}

/// A module without the word that says what it is.
pub fn short(id: &ModuleId) -> &str {
    bare(id.as_str())
}

/// The same of a name that somebody wrote.
pub(crate) fn bare(name: &str) -> &str {
    name.strip_prefix("provider-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_name_of_the_key_and_a_trial_the_key() {
        let mut connection = Connection::to("anthropic").unwrap();
        assert_eq!(connection.entry(), ModuleSpec::new(ModuleId::fixed("provider-anthropic")));
        connection.id = Some("my-work".to_owned());
        assert_eq!(connection.variable(Some("ANTHROPIC_API_KEY")), "MY_WORK_API_KEY");
        connection.key =
            KeyChoice::Given { variable: "MY_WORK_API_KEY".to_owned(), value: "k${x".to_owned() };
        connection.model = Some("m".to_owned());
        let entry = connection.entry();
        assert_eq!(
            Value::Object(entry.config.clone()),
            json!({"default_model": "m", "api_key": "${MY_WORK_API_KEY}"})
        );
        assert_eq!(connection.trial().config.get("api_key"), Some(&json!("k$${x")));
        assert!(!format!("{connection:?}").contains("k${x"));
    }

    #[test]
    fn a_provider_has_a_long_and_a_short_name() {
        assert_eq!(provider("provider-openai").unwrap().id, provider("openai").unwrap().id);
        assert!(provider("tool-bash").is_err());
    }
}
