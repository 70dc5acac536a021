//! What a provider says about itself and its models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A provider's self-description.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProviderInfo {
    /// Short name, such as `anthropic`.
    pub id: String,
    /// Name for people.
    pub display_name: String,
    /// Environment variables that may hold its key.
    #[serde(default)]
    pub credential_env_vars: Vec<String>,
    /// What it can do, in the vocabulary of [`capability`].
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Defaults such as `model`, `context_window`, `max_output_tokens`.
    #[serde(default)]
    pub defaults: Map<String, Value>,
    /// What a person may configure.
    #[serde(default)]
    pub config_fields: Vec<ConfigField>,
}

impl ProviderInfo {
    /// A whole-number default, such as `context_window`.
    pub fn default_number(&self, key: &str) -> Option<u64> {
        self.defaults.get(key).and_then(Value::as_u64)
    }
}

/// One model of a provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModelInfo {
    /// The id to ask for.
    pub id: String,
    /// Name for people.
    pub display_name: String,
    /// Tokens that fit into one request and its answer.
    pub context_window: u64,
    /// The most tokens of an answer.
    pub max_output_tokens: u64,
    /// What it can do, in the vocabulary of [`capability`].
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Defaults of this model.
    #[serde(default)]
    pub defaults: Map<String, Value>,
    /// Other keys, such as prices.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A setting that a person may be asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigField {
    /// The config key.
    pub id: String,
    /// Name for people.
    pub display_name: String,
    /// How to ask.
    #[serde(default)]
    pub field_type: FieldType,
    /// The question.
    #[serde(default)]
    pub prompt: String,
    /// The environment variable that may answer it.
    #[serde(default)]
    pub env_var: Option<String>,
    /// The answers to choose from.
    #[serde(default)]
    pub choices: Option<Vec<String>>,
    /// Whether it must be answered.
    #[serde(default = "yes")]
    pub required: bool,
    /// The answer when none is given.
    #[serde(default)]
    pub default: Option<String>,
    /// Ask only when these fields have these values.
    #[serde(default)]
    pub show_when: Option<Map<String, Value>>,
    /// Ask only once a model is chosen.
    #[serde(default)]
    pub requires_model: bool,
}

fn yes() -> bool {
    true
}

/// How a setting is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// Free text.
    #[default]
    Text,
    /// Text that is not shown.
    Secret,
    /// One of several.
    Choice,
    /// Yes or no.
    Boolean,
}

/// The words for what a model can do. The set is open; these are the agreed ones.
pub mod capability {
    /// What most callers look for.
    pub const CORE: [&str; 5] = ["tools", "streaming", "thinking", "vision", "json_mode"];

    /// Less common abilities.
    pub const EXTENDED: [&str; 11] = [
        "fast",
        "code_execution",
        "web_search",
        "deep_research",
        "local",
        "audio",
        "image_generation",
        "computer_use",
        "embeddings",
        "long_context",
        "batch",
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixteen_capability_words_are_distinct() {
        let words: std::collections::BTreeSet<_> =
            capability::CORE.iter().chain(&capability::EXTENDED).collect();
        assert_eq!(words.len(), 16);
    }

    #[test]
    fn a_config_field_has_the_documented_defaults() {
        let field: ConfigField = serde_json::from_str(r#"{"id": "api_key", "display_name": "Key"}"#).unwrap();
        assert!(field.required && !field.requires_model);
        assert_eq!(field.field_type, FieldType::Text);
    }
}
