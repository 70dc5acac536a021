//! What a plan may configure about the view, and the budget that follows from it.

use amplifier_core::contracts::RequestBudget;
use amplifier_protocol::provider::ProviderInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contexts::events::ContextBudget;

/// Room left free so that an estimate that is a little off does not overflow the model's window.
const MARGIN: u64 = 1_000;
/// What is left free for the answer of a model that does not say how long its answers may be.
const USUAL_ANSWER: u64 = 8_192;
/// The part of the budget that is usually filled after a shortening.
const USUAL_TARGET: f64 = 0.5;
/// The least a tool result may be clipped to: shorter, and what is left says nothing.
const LEAST_RESULT: u64 = 512;

/// What a plan may configure about the view.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(in crate::contexts) struct WindowConfig {
    /// The most tokens a request may have. Caps what the provider's window allows.
    pub(super) max_tokens: Option<u64>,
    /// The budget when neither the provider nor `max_tokens` names one.
    pub(super) max_tokens_fallback: u64,
    /// The part of the model's longest answer that is left free in its window. 1 is always safe; less leaves more room
    /// for the conversation with models whose answers are short in practice.
    pub(super) output_reserve_fraction: f64,
    /// The part of the budget at which the view is shortened.
    #[serde(alias = "compaction_threshold")]
    pub(super) compact_threshold: f64,
    /// The part of the budget that is filled after it was shortened. Without it 0.5, or less when `compact_threshold`
    /// is close to that.
    pub(super) target_usage: Option<f64>,
    /// Whether the view is ever shortened. Without it a conversation that is too long is the provider's to refuse.
    pub(super) auto_compact: bool,
    /// The part of the view, counted in messages from its end, that is not left out before everything else was tried.
    pub(super) protected_recent: f64,
    /// How many of the last tool results are neither cut nor left out while the budget can be kept without.
    pub(super) protected_tool_results: usize,
    /// How many characters of a text stay when it is cut: its beginning and its end.
    pub(super) truncate_chars: usize,
    /// Tool results longer than this many bytes are shown cut from the start; they are stored whole. Null shows any.
    pub(super) max_tool_result_bytes: Option<u64>,
    /// `actual` corrects estimates by what providers report; `estimate` does not.
    pub(super) token_meter: TokenMeter,
    /// Whether the model is told that its view was shortened.
    pub(super) compaction_notice_enabled: bool,
    /// Tokens kept free for that notice, at most a quarter of the budget.
    pub(super) compaction_notice_token_reserve: u64,
    /// How much the notice says.
    pub(super) compaction_notice_verbosity: Verbosity,
    /// The notice is left out while the view was shortened less than to this level (1 to 9).
    pub(super) compaction_notice_min_level: u64,
    /// Whether the first provider is asked to sum up what is left out. One model call for each shortening; when it
    /// fails, messages are left out without a summary.
    pub(super) summarize: bool,
    /// The most tokens such a summary may have.
    pub(super) summary_max_tokens: u64,
    /// How long such a summary may take; never longer than three quarters of the session's deadline for contexts.
    pub(super) summary_timeout_seconds: f64,
}

/// Where the size of a request is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::contexts) enum TokenMeter {
    /// Estimated from the text, corrected by what providers report.
    #[default]
    Actual,
    /// Estimated from the text.
    Estimate,
}

/// How much the notice says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::contexts) enum Verbosity {
    /// That something is missing.
    Minimal,
    /// What is missing, in numbers.
    #[default]
    Normal,
    /// Also what was kept.
    Verbose,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self {
            max_tokens: None,
            max_tokens_fallback: 200_000,
            output_reserve_fraction: 1.0,
            compact_threshold: 0.92,
            target_usage: None,
            auto_compact: true,
            protected_recent: 0.3,
            protected_tool_results: 5,
            truncate_chars: 250,
            max_tool_result_bytes: Some(131_072),
            token_meter: TokenMeter::Actual,
            compaction_notice_enabled: true,
            compaction_notice_token_reserve: 800,
            compaction_notice_verbosity: Verbosity::Normal,
            compaction_notice_min_level: 1,
            summarize: false,
            summary_max_tokens: 1_000,
            summary_timeout_seconds: 45.0,
        }
    }
}

impl WindowConfig {
    /// What is wrong with it, if something is.
    pub(in crate::contexts) fn fault(&self) -> Option<String> {
        let part = |value: f64| value > 0.0 && value <= 1.0;
        if !part(self.compact_threshold) {
            return Some(format!(
                "`compact_threshold` is {}, must be above 0 and at most 1",
                self.compact_threshold
            ));
        }
        if let Some(target) =
            self.target_usage.filter(|target| !part(*target) || *target > self.compact_threshold)
        {
            return Some(format!(
                "`target_usage` is {target}, must be above 0 and at most `compact_threshold` ({})",
                self.compact_threshold
            ));
        }
        let shares = [
            ("protected_recent", self.protected_recent),
            ("output_reserve_fraction", self.output_reserve_fraction),
        ];
        for (key, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Some(format!("`{key}` is {value}, must be from 0 to 1"));
            }
        }
        if let Some(bytes) = self.max_tool_result_bytes.filter(|bytes| *bytes < LEAST_RESULT) {
            return Some(format!(
                "`max_tool_result_bytes` is {bytes}, must be {LEAST_RESULT} or more, or null"
            ));
        }
        if !(self.summary_timeout_seconds > 0.0 && self.summary_timeout_seconds.is_finite()) {
            return Some(format!(
                "`summary_timeout_seconds` is {}, must be above 0",
                self.summary_timeout_seconds
            ));
        }
        let numbers = [
            ("max_tokens", self.max_tokens),
            ("max_tokens_fallback", Some(self.max_tokens_fallback)),
            ("summary_max_tokens", Some(self.summary_max_tokens)),
        ];
        let zero = numbers.into_iter().find(|(_, value)| *value == Some(0));
        zero.map(|(key, _)| format!("`{key}` is 0, must be 1 or more"))
    }

    /// The part of the budget to aim for: far enough below the threshold that not every request shortens again.
    pub(super) fn target(&self) -> f64 {
        self.target_usage.unwrap_or_else(|| USUAL_TARGET.min(self.compact_threshold * 0.6))
    }

    /// What a request may hold: the explicit budget, else the provider's window less its answer and a margin, else
    /// `max_tokens`, else the fallback.
    pub(super) fn budget(&self, request: &RequestBudget) -> ContextBudget {
        let known = ContextBudget {
            max_tokens: self.max_tokens,
            max_tokens_fallback: self.max_tokens_fallback,
            ..ContextBudget::default()
        };
        if let Some(tokens) = request.token_budget {
            return ContextBudget { source: "explicit".to_owned(), effective_budget: tokens, ..known };
        }
        let Some(known) = request.provider.as_ref().and_then(|provider| self.derived(provider, &known))
        else {
            let (source, tokens) = match self.max_tokens {
                Some(tokens) => ("max_tokens", tokens),
                None => ("fallback", self.max_tokens_fallback),
            };
            return ContextBudget { source: source.to_owned(), effective_budget: tokens, ..known };
        };
        let derived = known.derived_budget.unwrap_or_default();
        let most = self.max_tokens.unwrap_or(u64::MAX);
        ContextBudget {
            source: "provider".to_owned(),
            capped: most < derived,
            effective_budget: derived.min(most),
            ..known
        }
    }

    fn derived(&self, provider: &ProviderInfo, known: &ContextBudget) -> Option<ContextBudget> {
        let window = provider.default_number("context_window").filter(|window| *window > 0)?;
        let answer = provider.default_number("max_output_tokens");
        let reserved = part_of(answer.unwrap_or(USUAL_ANSWER.min(window / 4)), self.output_reserve_fraction);
        Some(ContextBudget {
            context_window: Some(window),
            max_output_tokens: answer,
            reserved_output: reserved,
            derived_budget: Some(window.saturating_sub(reserved).saturating_sub(MARGIN)),
            ..known.clone()
        })
    }

    /// The most tokens a request may have when no provider is asked, for checks before there is one.
    pub(in crate::contexts) fn most_tokens(&self) -> u64 {
        self.max_tokens.unwrap_or(self.max_tokens_fallback)
    }
}

/// A part of an amount of tokens. Precision is of no matter: the amounts are estimates.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "estimates"
)]
pub(super) fn part_of(amount: u64, part: f64) -> u64 {
    (amount as f64 * part) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn provider(window: u64, answer: u64) -> RequestBudget {
        let defaults = json!({"context_window": window, "max_output_tokens": answer});
        let defaults = defaults.as_object().cloned().unwrap();
        RequestBudget::for_provider(ProviderInfo { defaults, ..ProviderInfo::default() })
    }

    fn budget(config: &WindowConfig, request: &RequestBudget) -> (String, u64, bool) {
        let budget = config.budget(request);
        (budget.source, budget.effective_budget, budget.capped)
    }

    #[test]
    fn an_explicit_budget_wins_then_the_window_then_max_tokens_then_the_fallback() {
        let plain = WindowConfig::default();
        let capped = WindowConfig { max_tokens: Some(50_000), ..plain.clone() };
        let mut explicit = provider(100_000, 10_000);
        explicit.token_budget = Some(60_000);
        assert_eq!(budget(&capped, &explicit), ("explicit".to_owned(), 60_000, false));
        assert_eq!(budget(&plain, &provider(100_000, 10_000)), ("provider".to_owned(), 89_000, false));
        assert_eq!(budget(&capped, &provider(100_000, 10_000)), ("provider".to_owned(), 50_000, true));
        assert_eq!(budget(&capped, &RequestBudget::default()), ("max_tokens".to_owned(), 50_000, false));
        assert_eq!(budget(&plain, &RequestBudget::default()), ("fallback".to_owned(), 200_000, false));
        let half = WindowConfig { output_reserve_fraction: 0.5, ..plain };
        assert_eq!(budget(&half, &provider(100_000, 10_000)), ("provider".to_owned(), 94_000, false));
    }

    #[test]
    fn values_that_mean_nothing_are_refused_and_say_which() {
        let fault = |config: serde_json::Value| {
            serde_json::from_value::<WindowConfig>(config).unwrap().fault().unwrap_or_default()
        };
        assert!(fault(json!({"compact_threshold": 1.5})).contains("compact_threshold"));
        assert!(fault(json!({"compaction_threshold": 0.0})).contains("compact_threshold"));
        assert!(fault(json!({"max_tokens": 0})).contains("max_tokens"));
        assert!(fault(json!({"max_tool_result_bytes": 5})).contains("max_tool_result_bytes"));
        assert!(fault(json!({"protected_recent": -1.0})).contains("protected_recent"));
        assert_eq!(fault(json!({"max_tool_result_bytes": null})), "");
        assert!(fault(json!({"target_usage": 0.95})).contains("target_usage"));
        let low: WindowConfig = serde_json::from_value(json!({"compact_threshold": 0.4})).unwrap();
        assert_eq!((low.fault(), part_of(100, low.target())), (None, 24));
        assert_eq!(part_of(100, WindowConfig::default().target()), 50);
    }
}
