//! How a view is made shorter: step by step, the least loss first, until it is as short as it should be. Pure.
//!
//! | level | what goes |
//! |---|---|
//! | 1, 2, 4, 6 | the middle of tool results: the oldest quarter, half, three quarters, all but the protected ones |
//! | 3, 5, 7 | the oldest exchanges, and the oldest rounds of an exchange that goes on, before an ever shorter tail |
//! | 8 | the middle of other long old texts; then everything but the last round |
//! | 9 | only when the budget cannot be kept otherwise: the middle of protected results and of the first prompt |
//!
//! System messages, the last prompt and the last round stay, and a call stays or goes with its results.

use amplifier_core::contracts::ContextError;
use amplifier_protocol::message::Messages;

use super::config::WindowConfig;
use super::conversation::{Conversation, Shown};
use super::draft::Draft;

/// How far a view shall be shortened, in estimated tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    /// What it must not exceed.
    pub(super) budget: u64,
    /// What makes it be shortened.
    pub(super) trigger: u64,
    /// What it is shortened to, where that is possible.
    pub(super) target: u64,
}

/// A shorter view, for [`Conversation::show`].
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) view: Vec<Shown>,
    /// How much of the view it was made from.
    pub(super) planned: usize,
    pub(super) generation: u64,
    pub(super) numbers: Numbers,
    /// What it leaves out, in order.
    pub(super) left_out: Messages,
}

/// What a shorter view holds and what it lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Numbers {
    pub(super) messages: u64,
    pub(super) tokens: u64,
    pub(super) removed: u64,
    pub(super) cut: u64,
    pub(super) stubbed: u64,
    pub(super) kept_system: u64,
    pub(super) level: u64,
}

/// One step of making a view shorter.
enum Step {
    /// Cuts this part of the tool results, the oldest.
    Cut(f64),
    /// Leaves out what is older than this part of the protected tail.
    Drop(f64, Results),
}

/// Whether the protected results also keep their exchanges from being left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Results {
    Protected,
    Free,
}

const LADDER: [(u64, Step); 7] = [
    (1, Step::Cut(0.25)),
    (2, Step::Cut(0.5)),
    (3, Step::Drop(1.0, Results::Protected)),
    (4, Step::Cut(0.75)),
    (5, Step::Drop(0.6, Results::Protected)),
    (6, Step::Cut(1.0)),
    (7, Step::Drop(0.3, Results::Free)),
];

/// Plans a shorter view. `None` when nothing can go; an error when what must stay is more than the budget.
pub(super) fn plan(of: &Conversation, aim: Aim, config: &WindowConfig) -> Result<Option<Plan>, ContextError> {
    let mut draft = Draft::new(of, aim, config);
    for (level, step) in &LADDER {
        if draft.total <= aim.target {
            break;
        }
        match step {
            Step::Cut(part) => draft.cut_results(*part, *level),
            Step::Drop(part, results) => draft.drop_before(draft.tail(*part, *results), *level),
        }
    }
    if draft.total > aim.target {
        draft.stub_before(draft.tail(0.3, Results::Free));
    }
    if draft.total >= aim.trigger {
        draft.drop_before(draft.last_round, 8);
    }
    if draft.total > aim.budget {
        draft.squeeze();
    }
    if draft.total > aim.budget {
        let needed = draft.total.saturating_add(of.open_tokens());
        return Err(ContextError::DoesNotFit { needed, budget: aim.budget });
    }
    Ok(draft.finish(of.generation()))
}
