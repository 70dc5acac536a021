//! What is known about models without asking: windows, abilities, prices. The table is `catalogue.json` beside this file;
//! a plan's `context_window`, `max_output_tokens` and `prices` come before it, and so does what a service lists.

use std::sync::LazyLock;

use amplifier_protocol::provider::ModelInfo;
use serde::Deserialize;
use serde_json::json;

use super::price::Price;

/// A row of the catalogue: all models of a provider whose ids begin like this.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    provider: String,
    /// The beginning of the id; the longest that fits counts.
    prefix: String,
    /// Tokens that fit into a request and its answer.
    #[serde(default)]
    pub(crate) context_window: Option<u64>,
    /// The most tokens of an answer.
    #[serde(default)]
    pub(crate) max_output_tokens: Option<u64>,
    /// What it can do.
    #[serde(default)]
    pub(crate) capabilities: Vec<String>,
    /// What it costs.
    #[serde(default)]
    pub(crate) price: Option<Price>,
}

static CATALOGUE: LazyLock<Vec<Known>> = LazyLock::new(|| {
    // A test reads the file, so a release cannot hold one that fails here.
    serde_json::from_str(include_str!("catalogue.json")).unwrap_or_default()
});

/// What is known about a model of a provider.
pub(crate) fn known(provider: &str, model: &str) -> Option<&'static Known> {
    // Deployments are mostly named like the models they are of.
    let provider = provider.strip_prefix("azure-").unwrap_or(provider);
    // Gateways put the vendor in front, as in `anthropic/claude-…`.
    let (vendor, plain) = model.split_once('/').unwrap_or((provider, model));
    let rows = CATALOGUE.iter().filter(|known| known.provider == provider || known.provider == vendor);
    rows.filter(|known| begins(plain, &known.prefix)).max_by_key(|known| known.prefix.len())
}

/// Whether an id is of this family: `gpt-5` is not a `gpt-5.5`, but `gpt-5-2026-01-01` is a `gpt-5`.
fn begins(id: &str, prefix: &str) -> bool {
    match id.strip_prefix(prefix) {
        Some(rest) => rest.is_empty() || rest.starts_with(['-', '@', ':']) || prefix.ends_with(['-', '.']),
        None => false,
    }
}

/// A listed model, with what the catalogue adds to what the service said.
pub(crate) fn info(provider: &str, id: &str, context_window: Option<u64>, usual: &[&str]) -> ModelInfo {
    let known = known(provider, id);
    let window = context_window.or_else(|| known.and_then(|known| known.context_window));
    let abilities = known.map(|known| known.capabilities.clone()).filter(|some| !some.is_empty());
    ModelInfo {
        id: id.to_owned(),
        display_name: id.to_owned(),
        context_window: window.unwrap_or_default(),
        max_output_tokens: known.and_then(|known| known.max_output_tokens).or(window).unwrap_or_default(),
        capabilities: abilities.unwrap_or_else(|| usual.iter().map(|word| (*word).to_owned()).collect()),
        defaults: json!({}).as_object().cloned().unwrap_or_default(),
        ..ModelInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::provider::capability;

    #[test]
    fn the_catalogue_can_be_read_and_uses_the_agreed_words() {
        let rows: Vec<Known> = serde_json::from_str(include_str!("catalogue.json")).unwrap();
        assert!(!rows.is_empty());
        let words: Vec<_> = capability::CORE.iter().chain(&capability::EXTENDED).collect();
        for row in rows {
            let unknown = row.capabilities.iter().find(|word| !words.contains(&&word.as_str()));
            assert_eq!(unknown, None, "{}", row.prefix);
        }
    }

    #[test]
    fn the_longest_beginning_counts_and_families_are_told_apart() {
        let window = |provider, model| known(provider, model).and_then(|known| known.context_window);
        assert_eq!(window("openai", "gpt-5.5"), Some(1_000_000));
        assert_eq!(window("openai", "gpt-5.5-2026-08-01"), Some(1_000_000));
        assert_eq!(window("chat-completions", "openai/gpt-5.5"), Some(1_000_000));
        assert_eq!(window("openai", "gpt-5.55"), None);
        assert_eq!(known("openai", "unheard-of").map(|known| known.prefix.as_str()), None);
    }
}
