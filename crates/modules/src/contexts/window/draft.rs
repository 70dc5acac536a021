//! A view while it is being made shorter: what is in it still, what it costs, and what may go. The order of steps is in
//! `plan.rs`; here they are done.

use std::collections::HashMap;
use std::sync::Arc;

use amplifier_protocol::message::{Message, Messages, Role};

use super::config::{WindowConfig, part_of};
use super::conversation::{Conversation, Form, Shown, count};
use super::cut::shortened;
use super::estimate::tokens;
use super::plan::{Aim, Numbers, Plan, Results};

/// A message with this note holds what its service wants back with every request.
const PINNED: &str = "openai:tool_search_items";

enum Now {
    Kept,
    Cut(Cut),
    Gone,
}

/// A shorter message, what it costs, and to how many characters its texts were cut.
struct Cut {
    message: Arc<Message>,
    tokens: u64,
    keep: usize,
}

pub(super) struct Draft<'a> {
    shown: &'a [Shown],
    aim: Aim,
    config: &'a WindowConfig,
    now: Vec<Now>,
    pub(super) total: u64,
    numbers: Numbers,
    // Places of what people said, and of tool results.
    prompts: Vec<usize>,
    results: Vec<usize>,
    // Where the last round begins: what the model said last, or the last prompt, and everything since.
    pub(super) last_round: usize,
    // First and last place of each group.
    groups: HashMap<u32, (usize, usize)>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(of: &'a Conversation, aim: Aim, config: &'a WindowConfig) -> Self {
        let shown = of.shown();
        let places = |wanted: fn(&Shown) -> bool| -> Vec<usize> {
            shown.iter().enumerate().filter(|(_, shown)| wanted(shown)).map(|(at, _)| at).collect()
        };
        let prompts = places(is_prompt);
        let spoke = shown.iter().rposition(|shown| shown.message.role == Role::Assistant);
        let mut groups = HashMap::new();
        for (at, group) in shown.iter().enumerate().filter_map(|(at, shown)| Some((at, shown.group?))) {
            groups.entry(group).or_insert((at, at)).1 = at;
        }
        let last_round = spoke.max(prompts.last().copied()).unwrap_or(shown.len());
        // Results may still come for calls that are open, also when somebody spoke meanwhile.
        let open =
            of.open_group().and_then(|group| groups.get(&group)).map_or(last_round, |(first, _)| *first);
        Self {
            shown,
            aim,
            config,
            now: shown.iter().map(|_| Now::Kept).collect(),
            total: shown.iter().map(|shown| shown.tokens).fold(0, u64::saturating_add),
            numbers: Numbers::default(),
            last_round: last_round.min(open),
            prompts,
            results: places(|shown| shown.message.role == Role::Tool),
            groups,
        }
    }

    /// Where the protected tail begins.
    pub(super) fn tail(&self, part: f64, results: Results) -> usize {
        let messages = part_of(count(self.shown.len()), self.config.protected_recent * part);
        let tail = self.shown.len() - usize::try_from(messages).unwrap_or(usize::MAX).min(self.shown.len());
        let of_results = self.protected_results().first().and_then(|at| self.shown.get(*at)?.group);
        match of_results.and_then(|group| self.groups.get(&group)) {
            Some((first, _)) if results == Results::Protected => tail.min(*first),
            _ => tail,
        }
    }

    fn protected_results(&self) -> &[usize] {
        let from = self.results.len().saturating_sub(self.config.protected_tool_results);
        self.results.get(from..).unwrap_or_default()
    }

    /// Cuts the oldest part of the tool results, but none of the protected ones.
    pub(super) fn cut_results(&mut self, part: f64, level: u64) {
        let wanted = usize::try_from(part_of(count(self.results.len()), part)).unwrap_or(usize::MAX);
        let most = self.results.len() - self.protected_results().len();
        for at in self.results.get(..wanted.min(most)).unwrap_or_default().to_vec() {
            if self.total <= self.aim.target {
                return;
            }
            self.cut(at, self.config.truncate_chars, level);
        }
    }

    /// Leaves out the oldest exchanges that end before `limit`, whole; of the one that does not, the rounds that do.
    pub(super) fn drop_before(&mut self, limit: usize, level: u64) {
        let limit = limit.min(self.last_round);
        let mut starts = vec![0];
        starts.extend(&self.prompts);
        for (number, start) in starts.iter().copied().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(self.shown.len());
            if start >= limit || self.total <= self.aim.target {
                return;
            }
            let whole = end <= limit && number + 1 < starts.len();
            for at in start..end.min(limit) {
                if !whole && (self.total <= self.aim.target || self.is_prompt(at)) {
                    continue;
                }
                self.leave_out(at, limit, level);
            }
        }
    }

    /// Leaves out a message with all that belongs to it, unless some of that must stay.
    fn leave_out(&mut self, at: usize, limit: usize, level: u64) {
        // What belongs together goes together, so the rest of it is gone too.
        if matches!(self.now.get(at), Some(Now::Gone)) {
            return;
        }
        let group = self.shown.get(at).and_then(|shown| shown.group);
        let (first, last) = group.and_then(|group| self.groups.get(&group)).copied().unwrap_or((at, at));
        let belongs =
            |at: &usize| *at == first || self.shown.get(*at).is_some_and(|shown| shown.group == group);
        let members: Vec<_> = (first..=last).filter(belongs).collect();
        if last >= limit || !members.iter().all(|at| self.may_go(*at)) {
            return;
        }
        for at in members {
            let Some(now) = self.now.get_mut(at) else { continue };
            let tokens = match now {
                Now::Gone => continue,
                Now::Cut(cut) => cut.tokens,
                Now::Kept => self.shown.get(at).map_or(0, |shown| shown.tokens),
            };
            *now = Now::Gone;
            self.total = self.total.saturating_sub(tokens);
            self.numbers.removed += 1;
            self.numbers.level = self.numbers.level.max(level);
        }
    }

    fn may_go(&self, at: usize) -> bool {
        let kept = [self.prompts.first(), self.prompts.last()].contains(&Some(&at));
        let Some(shown) = self.shown.get(at) else { return false };
        !kept
            && !is_frame(shown)
            && shown.form != Form::Summary
            && !shown.message.metadata.contains_key(PINNED)
    }

    fn is_prompt(&self, at: usize) -> bool {
        self.prompts.binary_search(&at).is_ok()
    }

    /// Cuts long texts of models, hooks and, between the first and the last prompt, people.
    pub(super) fn stub_before(&mut self, limit: usize) {
        for at in 0..limit.min(self.last_round) {
            if self.total <= self.aim.target {
                return;
            }
            let text = self.shown.get(at).is_some_and(|shown| shown.message.role != Role::Tool);
            if text && self.may_go(at) {
                self.cut(at, self.config.truncate_chars, 8);
            }
        }
    }

    /// The last resort: cuts what is protected, the newest results least.
    pub(super) fn squeeze(&mut self) {
        // Not to the last token: else the next message would squeeze again.
        let enough = self.aim.target.midpoint(self.aim.trigger);
        let old = self.results.partition_point(|at| *at < self.last_round);
        let (old, new) = self.results.split_at_checked(old).unwrap_or_default();
        let (old, mut new) = (old.to_vec(), new.to_vec());
        for at in old {
            if self.total > enough {
                self.cut(at, self.config.truncate_chars, 9);
            }
        }
        new.sort_by_key(|at| std::cmp::Reverse(self.shown.get(*at).map_or(0, |shown| shown.tokens)));
        for at in new {
            let own = self.shown.get(at).map_or(0, |shown| shown.tokens);
            if self.total > enough {
                let room = enough.saturating_sub(self.total.saturating_sub(own)).saturating_sub(40);
                // Three characters for each token: what is kept may be of several bytes a character.
                let room = usize::try_from(room.saturating_mul(3)).unwrap_or(usize::MAX);
                self.cut(at, room.max(self.config.truncate_chars), 9);
            }
        }
        // Prompts of rounds that are still open.
        for at in self.prompts.clone() {
            if self.total > self.aim.budget {
                self.leave_out(at, self.last_round, 9);
            }
        }
        if let (Some(first), Some(last)) = (self.prompts.first().copied(), self.prompts.last().copied())
            && first != last
            && self.total > self.aim.budget
        {
            self.cut(first, self.config.truncate_chars, 9);
        }
        // Texts of several bytes a character need a second, harder cut.
        for at in self.results.clone() {
            if self.total > self.aim.budget {
                self.cut(at, self.config.truncate_chars, 9);
            }
        }
    }

    fn cut(&mut self, at: usize, keep: usize, level: u64) {
        let (Some(shown), Some(now)) = (self.shown.get(at), self.now.get_mut(at)) else { return };
        let before = match now {
            Now::Gone => return,
            Now::Kept => shown.tokens,
            // An earlier level did the same.
            Now::Cut(cut) if cut.keep == keep => return,
            Now::Cut(cut) => cut.tokens,
        };
        let Some(shorter) = shortened(&shown.stored, keep) else { return };
        let after = tokens(&shorter);
        if after >= before {
            return;
        }
        if matches!(now, Now::Kept) {
            match is_prompt(shown) {
                true => self.numbers.stubbed += 1,
                false => self.numbers.cut += 1,
            }
        }
        *now = Now::Cut(Cut { message: Arc::new(shorter), tokens: after, keep });
        self.total = self.total.saturating_sub(before).saturating_add(after);
        self.numbers.level = self.numbers.level.max(level);
    }

    pub(super) fn finish(self, generation: u64) -> Option<Plan> {
        if self.numbers.level == 0 {
            return None;
        }
        let (mut view, mut left_out) = (Vec::with_capacity(self.shown.len()), Messages::new());
        for (shown, now) in self.shown.iter().zip(self.now) {
            match now {
                Now::Kept => view.push(shown.clone()),
                Now::Cut(Cut { message, tokens, .. }) => {
                    view.push(Shown { message, tokens, form: Form::Cut, ..shown.clone() });
                }
                Now::Gone => left_out.push(Arc::clone(&shown.stored)),
            }
        }
        let kept_system = count(view.iter().filter(|shown| is_frame(shown)).count());
        let numbers =
            Numbers { messages: count(view.len()), tokens: self.total, kept_system, ..self.numbers };
        Some(Plan { view, planned: self.shown.len(), generation, numbers, left_out })
    }
}

fn is_frame(shown: &Shown) -> bool {
    matches!(shown.message.role, Role::System | Role::Developer)
}

/// Whether a person said this, and not a hook or a context in their name.
pub(super) fn is_prompt(shown: &Shown) -> bool {
    let message = &shown.message;
    let answers = shown.group.is_some();
    message.role == Role::User && !answers && !message.metadata.contains_key("source")
}
