//! Whether a failed try is made again, and when; and the waiting until then.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::ProviderCx;
use amplifier_core::retry::RetryPolicy;
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use tokio::time::Instant;

/// While a call waits for its next try, a sign of life this often.
pub(super) const BEAT: Duration = Duration::from_secs(10);

/// What stands against another try.
pub(super) struct Bounds {
    /// How long the call may still take, where somebody limits it.
    pub(super) left: Option<Duration>,
    /// The longest wait a service may ask for.
    pub(super) longest: Duration,
}

/// How long to wait before the next try; none when there is no next try. A wait that would outlast what is left is not
/// begun: the caller hears of the failure while there is still time to do something else.
pub(super) fn wait(
    policy: &RetryPolicy,
    tries_before: u32,
    error: &LlmError,
    bounds: &Bounds,
    chance: f64,
) -> Option<Duration> {
    if !error.retryable || tries_before >= policy.max_retries {
        return None;
    }
    let delay = policy.delay(tries_before, error, chance);
    let asked = error.retry_after.unwrap_or_default();
    let too_long = asked > bounds.longest.as_secs_f64() || bounds.left.is_some_and(|left| delay >= left);
    (!too_long).then_some(delay)
}

/// A number in `[0, 1)`, good enough to keep many callers from coming back at once.
pub(super) fn chance() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    // 53 bits are what a float between 0 and 1 can tell apart.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a float exactly")]
    let part = (random >> 11) as f64;
    part / (1_u64 << 53) as f64
}

pub(super) fn stopped() -> LlmError {
    LlmError::new(LlmErrorKind::Abort, "cancelled; the connection is closed")
}

/// Waits, with signs of life, unless it is cancelled.
pub(super) async fn pause(delay: Duration, cx: &ProviderCx) -> Result<(), LlmError> {
    let until = Instant::now() + delay.min(Duration::from_secs(86_400));
    loop {
        cx.pulse.beat();
        let next = until.min(Instant::now() + BEAT);
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = cx.cancel.cancelled(CancelLevel::Immediate) => return Err(stopped()),
        }
        if Instant::now() >= until {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(left: Option<u64>) -> Bounds {
        Bounds { left: left.map(Duration::from_secs), longest: Duration::from_secs(600) }
    }

    fn limited(retry_after: Option<f64>) -> LlmError {
        LlmError { retry_after, ..LlmError::new(LlmErrorKind::RateLimit, "slow down") }
    }

    #[test]
    fn a_wait_that_does_not_fit_is_not_begun() {
        let policy = RetryPolicy::default();
        let wait =
            |error: &LlmError, left| super::wait(&policy, 0, error, &bounds(left), 0.0).map(|d| d.as_secs());
        assert_eq!(wait(&limited(Some(30.0)), None), Some(30));
        assert_eq!(wait(&limited(Some(30.0)), Some(20)), None);
        assert_eq!(wait(&limited(Some(601.0)), None), None);
        assert_eq!(wait(&limited(None), Some(20)), Some(1));
        assert_eq!(super::wait(&policy, 3, &limited(None), &bounds(None), 0.0), None);
        let refused = LlmError::new(LlmErrorKind::Authentication, "no");
        assert_eq!(wait(&refused, None), None);
    }

    #[test]
    fn chances_are_between_zero_and_one_and_differ() {
        let chances: Vec<_> = (0..32).map(|_| chance()).collect();
        assert!(chances.iter().all(|chance| (0.0..1.0).contains(chance)));
        assert!(chances.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
