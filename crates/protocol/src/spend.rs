//! What a session may spend and has spent. Counting is the kernel's; choosing limits is policy.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::usage::{Usage, Usd};

/// A thing that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Tokens of model calls.
    Tokens,
    /// Billionths of a US dollar.
    CostNanos,
    /// Model calls.
    Steps,
    /// Tool calls.
    ToolCalls,
    /// Children started, over the whole tree.
    Spawns,
    /// Tokens that hooks injected.
    InjectedTokens,
    /// Milliseconds since the session was opened.
    WallMillis,
    /// How deep the tree of sessions may be.
    SpawnDepth,
    /// How many children may live at once.
    SpawnWidth,
}

impl Unit {
    /// The units that are spent and never given back.
    pub const SPENT: [Self; 6] =
        [Self::Tokens, Self::CostNanos, Self::Steps, Self::ToolCalls, Self::Spawns, Self::InjectedTokens];
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens => "tokens",
            Self::CostNanos => "cost",
            Self::Steps => "steps",
            Self::ToolCalls => "tool calls",
            Self::Spawns => "spawned sessions",
            Self::InjectedTokens => "injected tokens",
            Self::WallMillis => "wall time",
            Self::SpawnDepth => "spawn depth",
            Self::SpawnWidth => "children at once",
        })
    }
}

/// Amounts of everything that is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Amounts {
    /// Tokens of model calls: everything that counts against a limit.
    pub tokens: u64,
    /// Of them, those that were sent.
    pub input_tokens: u64,
    /// Of them, those that were received.
    pub output_tokens: u64,
    /// Billionths of a US dollar.
    pub cost_nanos: u64,
    /// Model calls.
    pub steps: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Children started.
    pub spawns: u64,
    /// Tokens that hooks injected.
    pub injected_tokens: u64,
}

impl Amounts {
    /// One unit's amount; zero for units that are not spent.
    pub fn of(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Tokens => self.tokens,
            Unit::CostNanos => self.cost_nanos,
            Unit::Steps => self.steps,
            Unit::ToolCalls => self.tool_calls,
            Unit::Spawns => self.spawns,
            Unit::InjectedTokens => self.injected_tokens,
            Unit::WallMillis | Unit::SpawnDepth | Unit::SpawnWidth => 0,
        }
    }

    /// The sum of two amounts.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_nanos: self.cost_nanos.saturating_add(other.cost_nanos),
            steps: self.steps.saturating_add(other.steps),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
            spawns: self.spawns.saturating_add(other.spawns),
            injected_tokens: self.injected_tokens.saturating_add(other.injected_tokens),
        }
    }

    /// What is left of these amounts after `other` was taken away.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cost_nanos: self.cost_nanos.saturating_sub(other.cost_nanos),
            steps: self.steps.saturating_sub(other.steps),
            tool_calls: self.tool_calls.saturating_sub(other.tool_calls),
            spawns: self.spawns.saturating_sub(other.spawns),
            injected_tokens: self.injected_tokens.saturating_sub(other.injected_tokens),
        }
    }

    /// What one finished model call spent.
    pub fn of_model_call(usage: Option<&Usage>) -> Self {
        let tokens = usage.map_or(0, Usage::billed_tokens);
        let (input_tokens, output_tokens) =
            usage.map_or((0, 0), |usage| (usage.input_tokens, usage.output_tokens));
        let cost_nanos = usage.and_then(|usage| usage.cost_usd).map_or(0, Usd::as_nanos);
        Self { tokens, input_tokens, output_tokens, cost_nanos, steps: 1, ..Self::default() }
    }
}

/// The most a session and its children may spend together. Absent means no limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Tokens of model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Dollars, as a decimal string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// Model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Children started, over the whole tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawns: Option<u64>,
    /// How deep the tree may be below this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn_depth: Option<u64>,
    /// How many direct children may live at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn_width: Option<u64>,
    /// Tokens that hooks may inject over the session's life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injected_tokens: Option<u64>,
    /// Seconds since the session was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<u64>,
}

impl Limits {
    /// The limit of one unit, in that unit.
    pub fn of(&self, unit: Unit) -> Option<u64> {
        match unit {
            Unit::Tokens => self.tokens,
            Unit::CostNanos => self.cost_usd.map(Usd::as_nanos),
            Unit::Steps => self.steps,
            Unit::ToolCalls => self.tool_calls,
            Unit::Spawns => self.spawns,
            Unit::InjectedTokens => self.injected_tokens,
            Unit::WallMillis => self.wall_seconds.map(|seconds| seconds.saturating_mul(1_000)),
            Unit::SpawnDepth => self.spawn_depth,
            Unit::SpawnWidth => self.spawn_width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_limit_is_an_error_and_not_no_limit() {
        assert!(serde_json::from_str::<Limits>(r#"{"step": 3}"#).is_err());
        let limits: Limits = serde_json::from_str(r#"{"steps": 3, "cost_usd": "0.5"}"#).unwrap();
        assert_eq!(limits.of(Unit::Steps), Some(3));
        assert_eq!(limits.of(Unit::CostNanos), Some(500_000_000));
        assert_eq!(limits.of(Unit::Tokens), None);
    }
}
