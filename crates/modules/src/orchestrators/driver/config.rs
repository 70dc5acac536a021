//! What a plan may configure about a loop. The keys are the same for every loop, and every one takes effect in each.

use std::time::Duration;

use amplifier_core::loader::MountCx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest wait between two calls. A plan that asks for more most likely confused its units.
const MAX_DELAY_MS: u64 = 600_000;
/// The longest wait after a piece, in seconds.
const MAX_STREAM_DELAY: f64 = 1.0;

/// What a plan may configure.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Config {
    /// How often the model may be asked in one turn before it must wrap up; -1 for any number.
    pub(super) max_iterations: i64,
    /// The provider to ask, by the name it is mounted under or its module's id; without it the first of the plan.
    pub(super) default_provider: Option<String>,
    /// The providers to ask, in order, when the one before failed; each is asked at most once in such a case, and none
    /// when part of an answer was shown already.
    pub(super) fallback_providers: Vec<String>,
    /// Which failures lead to the next of `fallback_providers`.
    pub(super) fallback_on: FallbackOn,
    /// Asks providers that can for their long form of thinking.
    pub(super) extended_thinking: bool,
    /// How hard to think, in the provider's words.
    pub(super) reasoning_effort: Option<String>,
    /// How many tool calls of one answer may run at the same time.
    pub(super) max_parallel_tools: usize,
    /// Milliseconds that must lie between the end of one model call of a turn and the next.
    pub(super) min_delay_between_calls_ms: u64,
    /// Seconds to wait after each piece of text of a streamed answer.
    pub(super) stream_delay: f64,
}

/// Which failures of a provider lead to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FallbackOn {
    /// Those that trying again cannot cure, such as a refused key or an unknown model.
    Permanent,
    /// Every one, also an outage or a rate limit that the provider's own retries did not outlast.
    #[default]
    Any,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_iterations: -1,
            default_provider: None,
            fallback_providers: Vec::new(),
            fallback_on: FallbackOn::default(),
            extended_thinking: false,
            reasoning_effort: None,
            max_parallel_tools: 8,
            min_delay_between_calls_ms: 0,
            stream_delay: 0.0,
        }
    }
}

impl Config {
    /// The same within its bounds; what had to be changed is a warning.
    pub(super) fn checked(mut self, cx: &MountCx) -> Self {
        if self.max_iterations < -1 {
            cx.warn(format!("`max_iterations` is {}, taken as -1 (any number)", self.max_iterations));
        }
        if self.max_parallel_tools == 0 {
            cx.warn("`max_parallel_tools` is 0, taken as 1 (one after the other)");
            self.max_parallel_tools = 1;
        }
        if self.min_delay_between_calls_ms > MAX_DELAY_MS {
            let wanted = self.min_delay_between_calls_ms;
            cx.warn(format!(
                "`min_delay_between_calls_ms` is {wanted}, taken as {MAX_DELAY_MS}, the most there is"
            ));
            self.min_delay_between_calls_ms = MAX_DELAY_MS;
        }
        if !(0.0..=MAX_STREAM_DELAY).contains(&self.stream_delay) {
            let wanted = self.stream_delay;
            self.stream_delay = wanted.clamp(0.0, MAX_STREAM_DELAY);
            cx.warn(format!("`stream_delay` is {wanted} s, taken as {} s", self.stream_delay));
        }
        self
    }

    /// Every provider it names.
    pub(super) fn provider_names(&self) -> impl Iterator<Item = &str> {
        self.default_provider.iter().chain(&self.fallback_providers).map(String::as_str)
    }

    pub(super) fn min_delay(&self) -> Duration {
        Duration::from_millis(self.min_delay_between_calls_ms)
    }

    pub(super) fn stream_delay(&self) -> Duration {
        Duration::try_from_secs_f64(self.stream_delay).unwrap_or_default()
    }
}
