//! What a model call consumed, and what it cost.

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Token counts of one model call.
///
/// `input_tokens` is gross: fresh tokens plus cache reads. Cache writes are counted on top.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens sent, cache reads included.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens received.
    #[serde(default)]
    pub output_tokens: u64,
    /// The sum the service reported.
    #[serde(default)]
    pub total_tokens: u64,
    /// Tokens spent on thinking, where the service tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Tokens read from a prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to a prompt cache, billed on top of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Money; absent means unknown, which is not the same as free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// What else the service reported.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Usage {
    /// Counts without cache or cost, the total being their sum.
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        let total_tokens = input_tokens.saturating_add(output_tokens);
        Self { input_tokens, output_tokens, total_tokens, ..Self::default() }
    }

    /// Everything that counts against a token limit: input, output and cache writes.
    pub fn billed_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.output_tokens)
            .saturating_add(self.cache_write_tokens.unwrap_or_default())
    }
}

/// An exact amount of US dollars. Written as a string; a JSON float is refused because it is not exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema)]
#[schemars(with = "String")]
pub struct Usd(Decimal);

impl Usd {
    /// Whole billionths of a dollar, rounded up, for counters. Negative amounts count as zero.
    pub fn as_nanos(self) -> u64 {
        if self.0.is_sign_negative() {
            return 0;
        }
        let nanos = self.0.checked_mul(Decimal::from(1_000_000_000_u64));
        nanos.and_then(|nanos| u64::try_from(nanos.ceil()).ok()).unwrap_or(u64::MAX)
    }

    /// An amount given in billionths of a dollar.
    pub fn from_nanos(nanos: u64) -> Self {
        Self((Decimal::from(nanos) / Decimal::from(1_000_000_000_u64)).normalize())
    }
}

impl std::ops::Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text is not an amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a decimal amount of dollars")]
pub struct UsdError {
    text: String,
}

impl FromStr for Usd {
    type Err = UsdError;

    fn from_str(text: &str) -> Result<Self, UsdError> {
        let parsed = if text.contains(['e', 'E']) {
            Decimal::from_scientific(text)
        } else {
            Decimal::from_str_exact(text)
        };
        parsed.map(Self).map_err(|_| UsdError { text: text.to_owned() })
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Amount;

        impl serde::de::Visitor<'_> for Amount {
            type Value = Usd;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a decimal string or a whole number of dollars, not a float")
            }

            fn visit_u64<E: serde::de::Error>(self, whole: u64) -> Result<Usd, E> {
                Ok(Usd(Decimal::from(whole)))
            }

            fn visit_i64<E: serde::de::Error>(self, whole: i64) -> Result<Usd, E> {
                Ok(Usd(Decimal::from(whole)))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Usd, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cost_is_exact_and_never_a_float() {
        let usage: Usage = serde_json::from_value(
            json!({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "cost_usd": "0.047"}),
        )
        .unwrap();
        assert_eq!(serde_json::to_value(&usage).unwrap()["cost_usd"], json!("0.047"));
        assert!(serde_json::from_value::<Usd>(json!(0.047)).is_err());
        assert_eq!(serde_json::from_value::<Usd>(json!(2)).unwrap().to_string(), "2");
        assert_eq!("1E-9".parse::<Usd>().unwrap().as_nanos(), 1);
        assert_eq!("0".parse::<Usd>().unwrap().to_string(), "0");
    }

    #[test]
    fn unknown_cost_is_not_free() {
        let usage = Usage::new(3, 4);
        assert_eq!(usage.cost_usd, None);
        assert_eq!(usage.total_tokens, 7);
        assert!(serde_json::to_value(&usage).unwrap().get("cost_usd").is_none());
    }

    #[test]
    fn counters_round_money_up() {
        assert_eq!("0.0000000001".parse::<Usd>().unwrap().as_nanos(), 1);
        assert_eq!("-1".parse::<Usd>().unwrap().as_nanos(), 0);
        assert_eq!(Usd::from_nanos(47_000_000).to_string(), "0.047");
    }
}
