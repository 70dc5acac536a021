//! From estimated to real tokens: what providers report about earlier requests corrects the estimate of the next.
//!
//! A real request costs a fixed part (tools, framing) and a part for each estimated token. Both are learned from the
//! smallest and the latest request that were measured.

/// The most that tools and framing are believed to cost; what is beyond is the estimate's error.
const MOST_FIXED: f64 = 20_000.0;
/// How far the estimate of a text can be off, either way. Little downwards: a view that is too long costs the request.
const SLOPES: (f64, f64) = (0.75, 4.0);
/// A report of less than this part of the estimate is not about the whole request, such as one without cached tokens.
const LEAST: f64 = 0.4;
/// Two requests closer than this say nothing about the cost of a token.
const APART: f64 = 1_000.0;

#[derive(Debug, Clone, Copy)]
pub(super) struct Meter {
    slope: f64,
    fixed: f64,
    smallest: Option<(f64, f64)>,
    // The estimate of a request that nobody reported about yet.
    sent: Option<u64>,
}

impl Default for Meter {
    fn default() -> Self {
        Self { slope: 1.0, fixed: 0.0, smallest: None, sent: None }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "estimates"
)]
impl Meter {
    /// A request is being made; reports until it is sent are about something else.
    pub(super) fn preparing(&mut self) {
        self.sent = None;
    }

    pub(super) fn sent(&mut self, estimated: u64) {
        self.sent = Some(estimated);
    }

    /// What a provider reported. Only the first report after a request is about it.
    pub(super) fn measured(&mut self, tokens: u64) {
        let Some(estimated) = self.sent.take_if(|estimated| *estimated > 0 && tokens > 0) else { return };
        let (estimated, tokens) = (estimated as f64, tokens as f64);
        if tokens < estimated * LEAST {
            return;
        }
        let smallest = *self.smallest.get_or_insert((estimated, tokens));
        if estimated < smallest.0 {
            self.smallest = Some((estimated, tokens));
        } else if estimated - smallest.0 >= APART {
            self.slope = ((tokens - smallest.1) / (estimated - smallest.0)).clamp(SLOPES.0, SLOPES.1);
        }
        self.fixed = (tokens - self.slope * estimated).clamp(0.0, MOST_FIXED);
        self.slope = ((tokens - self.fixed) / estimated).clamp(SLOPES.0, SLOPES.1);
    }

    /// What an estimate is in real tokens.
    pub(super) fn real(&self, estimated: u64) -> u64 {
        (self.slope * estimated as f64 + self.fixed).ceil() as u64
    }

    /// The estimate at which a real budget is used up.
    pub(super) fn estimated(&self, real: u64) -> u64 {
        if self.fixed == 0.0 && (self.slope - 1.0).abs() < f64::EPSILON {
            return real;
        }
        ((real as f64 - self.fixed).max(0.0) / self.slope) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(reports: &[(u64, u64)]) -> Meter {
        let mut meter = Meter::default();
        for (estimated, measured) in reports {
            meter.sent(*estimated);
            meter.measured(*measured);
        }
        meter
    }

    #[test]
    fn without_a_report_an_estimate_is_taken_as_it_is() {
        assert_eq!((meter(&[]).real(123), meter(&[]).estimated(u64::MAX)), (123, u64::MAX));
    }

    #[test]
    fn tools_are_a_fixed_part_and_dense_text_a_slope() {
        // 5,000 tokens of tools, and text that is half as much again as estimated.
        let learned = meter(&[(100, 5_150), (40_000, 65_000), (80_000, 125_000)]);
        assert!(learned.real(60_000).abs_diff(95_000) < 1_000, "{learned:?}");
        assert!(learned.estimated(95_000).abs_diff(60_000) < 1_000, "{learned:?}");
    }

    #[test]
    fn an_estimate_that_is_too_high_is_corrected_too() {
        assert!(meter(&[(50_000, 40_000)]).real(50_000).abs_diff(40_000) < 10);
    }

    #[test]
    fn a_report_that_cannot_be_about_the_whole_request_changes_nothing() {
        assert_eq!(meter(&[(50_000, 10)]).real(50_000), 50_000);
    }

    #[test]
    fn a_report_without_a_request_or_a_second_one_changes_nothing() {
        let mut once = meter(&[(10_000, 15_000)]);
        let real = once.real(20_000);
        once.measured(900_000);
        assert_eq!(once.real(20_000), real);
        once.sent(10_000);
        once.preparing();
        once.measured(1);
        assert_eq!(once.real(20_000), real);
    }
}
