//! Goals, those of the kernel among them, and how a run is judged by them.
//!
//! Ratios hold across machines, absolute times do not; both are goals, and a row is met when all that could be measured is.

use super::measurement::{Kind, Measurement, Run};

/// A goal for one measurement.
pub(super) struct Goal {
    pub(super) name: &'static str,
    /// The most it may take: nanoseconds or bytes, of a whole or of one session as `share` says.
    pub(super) at_most: Option<f64>,
    /// The row of ours that it may take a number of times of.
    pub(super) over: Option<(&'static str, f64)>,
    /// How many times less than what it is measured beside it must take.
    pub(super) times: Option<f64>,
    pub(super) share: Share,
}

/// Whether a value is compared as it is, or as one session's part of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Whole,
    /// The two sides keep different numbers of sessions alive, so only the cost of one can be compared.
    PerSession,
}

const fn goal(name: &'static str, at_most: f64, times: f64) -> Goal {
    Goal { name, at_most: Some(at_most), over: None, times: Some(times), share: Share::Whole }
}

/// A row that other rows are judged by.
const fn floor(name: &'static str) -> Goal {
    Goal { name, at_most: None, over: None, times: None, share: Share::Whole }
}

const fn emit(name: &'static str, floor: &'static str) -> Goal {
    Goal { at_most: None, over: Some((floor, 3.0)), ..goal(name, 0.0, 500.0) }
}

/// In the order of the table. An emit may take three times the floor of an asynchronous call to that many handlers,
/// which the same run measures; ten thousand sessions may take a second, which is 100 µs for each.
pub(super) const KERNEL: &[Goal] = &[
    goal("open_close", 100_000.0, 80.0),
    goal("emit_0", 600.0, 500.0),
    floor("emit_floor_1"),
    emit("emit_1", "emit_floor_1"),
    floor("emit_floor_10"),
    emit("emit_10", "emit_floor_10"),
    floor("emit_floor_100"),
    emit("emit_100", "emit_floor_100"),
    goal("turn_0", 60_000.0, 45.0),
    goal("turn_10", 600_000.0, 45.0),
    Goal { share: Share::PerSession, ..goal("live_open_all", 100_000.0, 100.0) },
    Goal { share: Share::PerSession, ..goal("live_turn_all", 100_000.0, 20.0) },
    Goal { times: None, ..goal("live_bytes_idle", 10_240.0, 0.0) },
    Goal { times: None, ..goal("live_bytes_after_turn", 25_600.0, 0.0) },
    floor(LIVE_SESSIONS),
];

/// How many sessions were alive at once; the measurement that the per-session rows are divided by.
const LIVE_SESSIONS: &str = "live_sessions";

/// What became of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    /// The absolute goal is met; the ratio could not be measured.
    MetAlone,
    NotMet,
    /// Our bench did not print it.
    Missing,
    /// There is no goal for it.
    NoGoal,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) ours: Option<Measurement>,
    /// What it is measured beside.
    pub(crate) public: Option<Measurement>,
    pub(crate) ratio: Option<f64>,
    pub(crate) goal: String,
    pub(crate) verdict: Verdict,
}

/// Puts both runs beside the goals.
pub(super) fn judge(goals: &[Goal], ours: &Run, public: &Run) -> Vec<Row> {
    goals.iter().map(|goal| row(goal, ours, public)).collect()
}

fn row(goal: &Goal, ours: &Run, public: &Run) -> Row {
    let (our_part, public_part) = (part(goal, ours), part(goal, public));
    let ratio = match (our_part, public_part) {
        (Some(ours), Some(public)) if ours.value > 0.0 && ours.kind != Kind::Count => {
            Some(public.value / ours.value)
        }
        _ => None,
    };
    Row {
        name: goal.name,
        ours: ours.find(goal.name),
        public: public.find(goal.name),
        ratio,
        goal: describe(goal),
        verdict: verdict(goal, ours, our_part, ratio),
    }
}

fn verdict(goal: &Goal, run: &Run, ours: Option<Measurement>, ratio: Option<f64>) -> Verdict {
    if goal.at_most.is_none() && goal.over.is_none() && goal.times.is_none() {
        return Verdict::NoGoal;
    }
    let Some(ours) = ours else { return Verdict::Missing };
    let over = goal.over.map(|(floor, times)| run.find(floor).map(|floor| floor.value * times));
    let Some(most) = most(goal.at_most, over) else { return Verdict::Missing };
    let size = most.map(|most| ours.value <= most);
    let times = goal.times.map(|times| ratio.map(|ratio| ratio >= times));
    match (size, times) {
        (Some(false), _) | (_, Some(Some(false))) => Verdict::NotMet,
        (_, Some(None)) => Verdict::MetAlone,
        _ => Verdict::Met,
    }
}

/// The most a row may take; nothing when the row it is judged by is missing.
fn most(at_most: Option<f64>, over: Option<Option<f64>>) -> Option<Option<f64>> {
    match over {
        None => Some(at_most),
        Some(None) => None,
        Some(Some(over)) => Some(Some(at_most.map_or(over, |at_most| at_most.min(over)))),
    }
}

/// The value a goal speaks about. Without a number of sessions there is no part of one session.
fn part(goal: &Goal, run: &Run) -> Option<Measurement> {
    let whole = run.find(goal.name)?;
    if goal.share == Share::Whole {
        return Some(whole);
    }
    let sessions = run.find(LIVE_SESSIONS)?.value;
    (sessions > 0.0).then(|| Measurement { value: whole.value / sessions, ..whole })
}

fn describe(goal: &Goal) -> String {
    let kind = if goal.name.contains("bytes") { Kind::Bytes } else { Kind::Nanoseconds };
    let each = if goal.share == Share::PerSession { " each" } else { "" };
    let size = goal.at_most.map(|value| format!("≤ {}{each}", Measurement { value, kind }.show()));
    let over = goal.over.map(|(floor, times)| format!("≤ {times}× {floor}"));
    let times = goal.times.map(|times| format!("≥ {times}×"));
    size.into_iter().chain(over).chain(times).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lines: &[(&str, f64, &str)]) -> Run {
        let line = |(name, value, unit): &(&str, f64, &str)| {
            format!("{{\"name\":\"{name}\",\"value\":{value},\"unit\":\"{unit}\"}}\n")
        };
        Run::read(&lines.iter().map(line).collect::<String>())
    }

    fn verdict_of(name: &str, ours: &Run, public: &Run) -> (Verdict, Option<f64>) {
        let row = judge(KERNEL, ours, public).into_iter().find(|row| row.name == name).unwrap();
        (row.verdict, row.ratio)
    }

    #[test]
    fn both_the_size_and_the_ratio_must_hold() {
        let public = run(&[("open_close", 8_600.0, "us")]);
        let verdict = |us| verdict_of("open_close", &run(&[("open_close", us, "us")]), &public);
        assert_eq!(verdict(100.0), (Verdict::Met, Some(86.0)));
        assert_eq!(verdict(101.0).0, Verdict::NotMet);
        let slow = run(&[("open_close", 7_900.0, "us")]);
        assert_eq!(verdict_of("open_close", &run(&[("open_close", 100.0, "us")]), &slow).0, Verdict::NotMet);
    }

    #[test]
    fn without_the_other_side_the_size_alone_is_judged() {
        let nothing = Run::default();
        assert_eq!(
            verdict_of("emit_0", &run(&[("emit_0", 600.0, "ns")]), &nothing),
            (Verdict::MetAlone, None)
        );
        assert_eq!(verdict_of("emit_0", &run(&[("emit_0", 601.0, "ns")]), &nothing).0, Verdict::NotMet);
        assert_eq!(verdict_of("emit_0", &nothing, &nothing).0, Verdict::Missing);
    }

    #[test]
    fn an_emit_is_judged_by_the_floor_of_its_own_run() {
        let public = run(&[("emit_1", 690.0, "us")]);
        let verdict = |floor| {
            let ours = run(&[("emit_floor_1", floor, "us"), ("emit_1", 0.6, "us")]);
            verdict_of("emit_1", &ours, &public).0
        };
        assert_eq!(verdict(0.2), Verdict::Met);
        assert_eq!(verdict(0.19), Verdict::NotMet);
        let alone = run(&[("emit_1", 0.6, "us")]);
        assert_eq!(verdict_of("emit_1", &alone, &public).0, Verdict::Missing);
    }

    #[test]
    fn many_sessions_are_compared_one_by_one() {
        let ours = run(&[("live_open_all", 1.0e6, "us"), ("live_sessions", 10_000.0, "count")]);
        let public = run(&[("live_open_all", 12.6e6, "us"), ("live_sessions", 1_000.0, "count")]);
        assert_eq!(verdict_of("live_open_all", &ours, &public), (Verdict::Met, Some(126.0)));
        let uncounted = run(&[("live_open_all", 1.0, "us")]);
        assert_eq!(verdict_of("live_open_all", &uncounted, &public).0, Verdict::Missing);
    }

    #[test]
    fn memory_is_judged_by_its_size() {
        let ours =
            run(&[("live_bytes_idle", 10_240.0, "bytes"), ("live_bytes_after_turn", 25_601.0, "bytes")]);
        assert_eq!(verdict_of("live_bytes_idle", &ours, &Run::default()).0, Verdict::Met);
        assert_eq!(verdict_of("live_bytes_after_turn", &ours, &Run::default()).0, Verdict::NotMet);
    }
}
