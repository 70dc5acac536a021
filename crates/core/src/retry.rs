//! When to try a failed model call again. The arithmetic is pure; sleeping can be cancelled.

use std::future::Future;
use std::time::Duration;

use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use serde::{Deserialize, Deserializer, Serialize};

use crate::cancel::{CancelLevel, CancelToken};

/// How often and how patiently to try again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// Tries after the first.
    pub max_retries: u32,
    /// Seconds before the first retry.
    #[serde(alias = "min_delay")]
    pub initial_delay: f64,
    /// The most seconds that growth alone reaches.
    pub max_delay: f64,
    /// How much longer each wait is.
    #[serde(alias = "backoff_multiplier")]
    pub backoff_factor: f64,
    /// Whether waits are spread so that many callers do not return at once.
    #[serde(deserialize_with = "bool_or_number")]
    pub jitter: bool,
    /// Whether a service's own wish is a floor.
    pub honor_retry_after: bool,
}

/// Older configs give jitter as a fraction; zero is off.
fn bool_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Bool(bool),
        Number(f64),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Bool(on) => on,
        Either::Number(fraction) => fraction != 0.0,
    })
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_delay: 1.0,
            max_delay: 60.0,
            backoff_factor: 2.0,
            jitter: true,
            honor_retry_after: true,
        }
    }
}

impl RetryPolicy {
    /// Seconds to wait before retry number `attempt` (from 0). `chance` is a random number in `[0, 1)`.
    ///
    /// Jitter adds up to half of what growth says, on top of the service's floor: the wait is never shorter than either,
    /// and those who were told to wait equally long do not return at once.
    pub fn delay(&self, attempt: u32, error: &LlmError, chance: f64) -> Duration {
        let growth = self.backoff_factor.powi(i32::try_from(attempt).unwrap_or(i32::MAX));
        let mut seconds = (self.initial_delay * growth).min(self.max_delay);
        if let Some(multiplier) = error.delay_multiplier
            && multiplier.is_finite()
            && multiplier > 0.0
        {
            seconds *= multiplier;
        }
        let spread = if self.jitter { seconds * chance.clamp(0.0, 1.0) / 2.0 } else { 0.0 };
        if self.honor_retry_after
            && let Some(floor) = error.retry_after
            && floor.is_finite()
        {
            seconds = seconds.max(floor);
        }
        seconds += spread;
        // More seconds than a duration holds is a long wait, not none.
        let unheard_of = if seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
        Duration::try_from_secs_f64(seconds).unwrap_or(unheard_of)
    }
}

/// What is about to be tried again.
pub struct Retry<'a> {
    /// Which retry, from 1.
    pub attempt: u32,
    /// How long until then.
    pub delay: Duration,
    /// What went wrong.
    pub error: &'a LlmError,
}

/// Calls `operation` until it succeeds, fails for good, or the policy is exhausted; the last error is returned as it is.
/// `notice` hears of each retry before the wait; an immediate cancel ends the wait.
pub async fn with_retries<T, Fut, Notice>(
    policy: &RetryPolicy,
    cancel: &CancelToken,
    mut chance: impl FnMut() -> f64,
    mut notice: impl FnMut(Retry<'_>) -> Notice,
    mut operation: impl FnMut() -> Fut,
) -> Result<T, LlmError>
where
    Fut: Future<Output = Result<T, LlmError>>,
    Notice: Future<Output = ()>,
{
    let mut attempt = 0;
    loop {
        let error = match operation().await {
            Ok(value) => return Ok(value),
            Err(error) if !error.retryable || attempt >= policy.max_retries => return Err(error),
            Err(error) => error,
        };
        let delay = policy.delay(attempt, &error, chance());
        attempt += 1;
        notice(Retry { attempt, delay, error: &error }).await;
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = cancel.cancelled(CancelLevel::Immediate) => {
                return Err(LlmError::new(LlmErrorKind::Abort, "cancelled while waiting to try again").caused_by(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unavailable() -> LlmError {
        LlmError::new(LlmErrorKind::ProviderUnavailable, "down")
    }

    fn steady() -> RetryPolicy {
        RetryPolicy { jitter: false, ..RetryPolicy::default() }
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        let waits: Vec<_> =
            (0..8).map(|attempt| steady().delay(attempt, &unavailable(), 0.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_service_may_ask_for_more_than_the_cap() {
        let error = LlmError { retry_after: Some(120.0), ..unavailable() };
        assert_eq!(steady().delay(0, &error, 0.0).as_secs(), 120);
        let absurd = LlmError { retry_after: Some(1e300), ..unavailable() };
        assert_eq!(steady().delay(0, &absurd, 0.0), Duration::MAX);
        let deaf = RetryPolicy { honor_retry_after: false, ..steady() };
        assert_eq!(deaf.delay(0, &error, 0.0).as_secs(), 1);
    }

    #[test]
    fn callers_that_were_told_to_wait_equally_long_do_not_return_at_once() {
        let error = LlmError { retry_after: Some(30.0), ..unavailable() };
        let wait = |chance| RetryPolicy::default().delay(2, &error, chance).as_secs_f64();
        assert_eq!((wait(0.0), wait(0.5), wait(1.0)), (30.0, 31.0, 32.0));
    }

    #[test]
    fn a_multiplier_stretches_after_the_cap_and_nonsense_is_ignored() {
        let with = |multiplier| LlmError { delay_multiplier: Some(multiplier), ..unavailable() };
        assert_eq!(steady().delay(7, &with(2.0), 0.0).as_secs(), 120);
        for nonsense in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            assert_eq!(steady().delay(0, &with(nonsense), 0.0).as_secs(), 1);
        }
    }

    #[test]
    fn three_retries_from_one_second_to_a_minute_are_the_default() {
        let usual = RetryPolicy::default();
        assert_eq!((usual.max_retries, usual.initial_delay, usual.max_delay), (3, 1.0, 60.0));
        assert_eq!((usual.backoff_factor, usual.jitter, usual.honor_retry_after), (2.0, true, true));
        assert_eq!(serde_json::from_str::<RetryPolicy>("{}").unwrap(), usual);
    }

    #[test]
    fn a_stretched_wait_that_is_longer_than_the_service_asks_for_is_kept() {
        let error = LlmError { delay_multiplier: Some(4.0), retry_after: Some(3.0), ..unavailable() };
        assert_eq!(steady().delay(0, &error, 0.0).as_secs(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn without_retries_there_is_one_try_and_a_first_success_is_not_announced() {
        for (policy, works) in [(RetryPolicy { max_retries: 0, ..steady() }, false), (steady(), true)] {
            let (mut calls, mut notices, cancel) = (0, 0, CancelToken::new());
            let answer = with_retries(
                &policy,
                &cancel,
                || 0.0,
                |_| {
                    notices += 1;
                    std::future::ready(())
                },
                || {
                    calls += 1;
                    std::future::ready(if works { Ok(()) } else { Err(unavailable()) })
                },
            );
            assert_eq!(answer.await.is_ok(), works);
            assert_eq!((calls, notices), (1, 0));
        }
    }

    #[test]
    fn old_names_and_a_fractional_jitter_are_read() {
        let policy: RetryPolicy =
            serde_json::from_str(r#"{"min_delay": 2.0, "backoff_multiplier": 3.0, "jitter": 0.0}"#).unwrap();
        assert_eq!((policy.initial_delay, policy.backoff_factor, policy.jitter), (2.0, 3.0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn two_failures_then_success_take_three_calls_and_two_notices() {
        let (mut calls, mut notices) = (0, Vec::new());
        let cancel = CancelToken::new();
        let answer = with_retries(
            &steady(),
            &cancel,
            || 0.0,
            |retry| {
                notices.push((retry.attempt, retry.delay.as_secs()));
                std::future::ready(())
            },
            || {
                calls += 1;
                std::future::ready(if calls < 3 { Err(unavailable()) } else { Ok(calls) })
            },
        )
        .await;
        assert_eq!((answer.unwrap(), notices), (3, vec![(1, 1), (2, 2)]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_retried_or_is_exhausted_is_raised_as_it_is() {
        for (error, calls_expected) in
            [(LlmError::new(LlmErrorKind::Authentication, "no"), 1), (unavailable(), 4)]
        {
            let mut calls = 0;
            let result: Result<(), _> = with_retries(
                &steady(),
                &CancelToken::new(),
                || 0.0,
                |_| std::future::ready(()),
                || {
                    calls += 1;
                    std::future::ready(Err(error.clone()))
                },
            )
            .await;
            assert_eq!((result.unwrap_err(), calls), (error, calls_expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancel_ends_the_wait() {
        let cancel = CancelToken::new();
        cancel.request_immediate();
        let error = LlmError { retry_after: Some(1e6), ..unavailable() };
        let result: Result<(), _> = with_retries(
            &steady(),
            &cancel,
            || 0.0,
            |_| std::future::ready(()),
            || std::future::ready(Err(error.clone())),
        )
        .await;
        assert_eq!(result.unwrap_err().kind, LlmErrorKind::Abort);
    }

    proptest! {
        #[test]
        fn a_wait_is_never_shorter_than_growth_or_the_service_says(
            attempt in 0_u32..64, chance in 0.0_f64..1.0, floor in prop::option::of(0.0_f64..500.0), jitter: bool
        ) {
            let policy = RetryPolicy { jitter, ..RetryPolicy::default() };
            let error = LlmError { retry_after: floor, ..unavailable() };
            let wait = policy.delay(attempt, &error, chance).as_secs_f64();
            let growth = 2.0_f64.powi(attempt as i32).min(60.0);
            prop_assert!(wait + 1e-6 >= growth && wait + 1e-6 >= floor.unwrap_or(0.0));
            prop_assert!(wait <= growth.max(floor.unwrap_or(0.0)) + growth / 2.0 + 1e-6);
        }
    }
}
