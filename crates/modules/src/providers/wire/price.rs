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

/// The most that so many tokens can cost, where a price is known.
pub(super) fn most(
    provider: &str,
    model: &str,
    (sent, received): (u64, u64),
    own: &BTreeMap<String, Price>,
) -> Option<Usd> {
    let listed = models::known(provider, model).and_then(|known| known.price.as_ref());
    Some(own.get(model).or(listed)?.most(sent, received))
}

impl Price {
    /// As if all that is sent were sent anew, kept in a cache for an hour, and answered in the fast mode.
    fn most(&self, sent: u64, received: u64) -> Usd {
        let rates = [Some(self.input), self.cache_read, self.cache_write];
        let rate = rates.into_iter().flatten().map(Usd::as_nanos).max().unwrap_or_default();
        let nanos = u128::from(sent) * u128::from(rate) * 3
            + u128::from(received) * u128::from(self.output.as_nanos());
        let most = Usd::from_nanos(u64::try_from((nanos * 2).div_ceil(1_000_000)).unwrap_or(u64::MAX));
        self.long.as_ref().map_or(most, |long| most.max(long.price.most(sent, received)))
    }

    fn of(&self, usage: &Usage) -> Usd {
        if let Some(long) = &self.long
            && usage.input_tokens > long.above
        {
            return long.price.of(usage);
        }
        let read = usage.cache_read_tokens.unwrap_or_default().min(usage.input_tokens);
        let written = usage.cache_write_tokens.unwrap_or_default();
        let for_an_hour = written_for_an_hour(usage).min(written);
        let parts = [
            (usage.input_tokens - read, self.input, 1),
            (read, self.cache_read.unwrap_or(self.input), 1),
            (written - for_an_hour, self.cache_write.unwrap_or(self.input), 1),
            // What is kept for an hour costs twice what it costs to be sent, whatever keeping it for minutes costs.
            (for_an_hour, self.input, 2),
            (usage.output_tokens, self.output, 1),
        ];
        let nanos: u128 = parts
            .iter()
            .map(|(tokens, rate, times)| u128::from(*tokens) * u128::from(rate.as_nanos()) * times)
            .sum();
        let nanos = nanos * if is_fast(usage) { 2 } else { 1 };
        Usd::from_nanos(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// Of the tokens written to a cache those that it keeps for an hour; Anthropic tells them apart.
fn written_for_an_hour(usage: &Usage) -> u64 {
    let apart = usage.extra.get("cache_creation");
    apart.and_then(|apart| apart.get("ephemeral_1h_input_tokens")?.as_u64()).unwrap_or_default()
}

/// Whether the service says that it answered in its fast mode, which costs twice as much.
fn is_fast(usage: &Usage) -> bool {
    usage.extra.get("speed").and_then(Value::as_str) == Some("fast")
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

    #[test]
    fn nothing_costs_more_than_the_most() {
        let own = json!({"m": {"input": 3, "output": "15", "cache_write": "3.75",
            "long": {"above": 1000, "price": {"input": 6, "output": 30}}}});
        let own: BTreeMap<String, Price> = serde_json::from_value(own).unwrap();
        let most = |sent, received| super::most("none", "m", (sent, received), &own).unwrap();
        for used in [usage(1_000, 100, 0, 0), usage(2_000, 100, 0, 2_000), usage(900, 50, 400, 500)] {
            for extra in
                [json!({}), json!({"speed": "fast", "cache_creation": {"ephemeral_1h_input_tokens": 9_000}})]
            {
                let Value::Object(extra) = extra else { panic!() };
                let used = Usage { extra, ..used.clone() };
                let cost = super::cost("none", "m", &used, &own).unwrap();
                assert!(cost <= most(used.input_tokens, used.output_tokens), "{used:?}");
            }
        }
        assert_eq!(super::most("none", "unheard-of", (1, 1), &own), None);
    }

    #[test]
    fn an_hour_in_the_cache_and_the_fast_mode_cost_twice_as_much() {
        let told = |extra: Value| {
            let Value::Object(extra) = extra else { panic!() };
            let usage = Usage { extra, ..usage(1_000, 100, 400, 200) };
            super::cost("anthropic", "claude-opus-4-8", &usage, &BTreeMap::new()).unwrap().to_string()
        };
        // 600 at 5, 400 at 0.5, 200 written, 100 at 25.
        assert_eq!(told(json!({"speed": "standard"})), "0.00695");
        let some =
            json!({"cache_creation": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 150}});
        assert_eq!(told(some), "0.0075125");
        assert_eq!(told(json!({"speed": "fast"})), "0.0139");
        let absurd = json!({"cache_creation": {"ephemeral_1h_input_tokens": 9_000}});
        assert_eq!(told(absurd), "0.0077", "no more than was written");
    }
}
