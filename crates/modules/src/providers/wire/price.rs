//! What an answer costs. Pure. Prices come from the plan first, then from the catalogue; a model without a price has an
//! unknown cost, which is not the same as none.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use amplifier_protocol::usage::{Usage, Usd};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::models;

/// Dollars for a million tokens, as decimal texts or whole numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    /// For tokens sent that no cache held.
    #[serde(deserialize_with = "dollars")]
    input: Usd,
    /// For tokens received.
    #[serde(deserialize_with = "dollars")]
    output: Usd,
    /// For tokens read from a cache; as `input` when left out.
    #[serde(default, deserialize_with = "some_dollars")]
    cache_read: Option<Usd>,
    /// For tokens written to a cache; as `input` when left out.
    #[serde(default, deserialize_with = "some_dollars")]
    cache_write: Option<Usd>,
    /// Other prices for requests with more tokens than `above`.
    #[serde(default)]
    long: Option<Box<LongPrice>>,
}

/// Prices of long requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LongPrice {
    /// More tokens sent than this.
    above: u64,
    /// What then counts.
    price: Price,
}

/// Prices in configs are often written as numbers with a point. They come as texts from JSON readers that keep them exact
/// and as floats from the others; a price per million has few digits and survives both.
fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Exact(Usd),
        Number(f64),
    }
    match Written::deserialize(deserializer)? {
        Written::Exact(amount) => Ok(amount),
        Written::Number(number) => number.to_string().parse().map_err(serde::de::Error::custom),
    }
}

fn some_dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    dollars(deserializer).map(Some)
}

/// What the answer cost, where a price is known.
pub(super) fn cost(provider: &str, model: &str, usage: &Usage, own: &BTreeMap<String, Price>) -> Option<Usd> {
    let listed = models::known(provider, model).and_then(|known| known.price.as_ref());
    Some(own.get(model).or(listed)?.of(usage))
}

impl Price {
    fn of(&self, usage: &Usage) -> Usd {
        if let Some(long) = &self.long
            && usage.input_tokens > long.above
        {
            return long.price.of(usage);
        }
        let read = usage.cache_read_tokens.unwrap_or_default().min(usage.input_tokens);
        let parts = [
            (usage.input_tokens - read, self.input),
            (read, self.cache_read.unwrap_or(self.input)),
            (usage.cache_write_tokens.unwrap_or_default(), self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        let nanos: u128 =
            parts.iter().map(|(tokens, rate)| u128::from(*tokens) * u128::from(rate.as_nanos())).sum();
        Usd::from_nanos(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// What a session spent here, in billionths of a dollar, and whether any of it is known.
#[derive(Default)]
pub(super) struct Spent {
    nanos: AtomicU64,
    answers: AtomicU64,
}

impl Spent {
    pub(super) fn add(&self, cost: Option<Usd>) {
        if let Some(cost) = cost {
            self.nanos.fetch_add(cost.as_nanos(), Ordering::Relaxed);
            self.answers.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn told(&self) -> Option<Value> {
        let known = self.answers.load(Ordering::Relaxed) > 0;
        known.then(|| json!({"cost_usd": Usd::from_nanos(self.nanos.load(Ordering::Relaxed))}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, read: u64, write: u64) -> Usage {
        Usage { cache_read_tokens: Some(read), cache_write_tokens: Some(write), ..Usage::new(input, output) }
    }

    #[test]
    fn every_kind_of_token_has_its_price_and_the_plan_wins() {
        let own = json!({"m": {"input": 3, "output": "15", "cache_read": 0.3, "cache_write": "3.75",
            "long": {"above": 1000, "price": {"input": 6, "output": 30}}}});
        let own: BTreeMap<String, Price> = serde_json::from_value(own).unwrap();
        let cost = |usage: Usage| super::cost("none", "m", &usage, &own).unwrap().to_string();
        assert_eq!(cost(usage(1_000, 100, 400, 200)), "0.00417");
        assert_eq!(cost(usage(2_000, 100, 0, 0)), "0.015");
        assert_eq!(super::cost("none", "unheard-of", &usage(1, 1, 0, 0), &own), None);
    }
}
