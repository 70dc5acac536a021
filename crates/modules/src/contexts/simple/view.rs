//! The conversation and the part of it that a model sees. Pure: no lock, no event, no wait.
//!
//! The view is the whole conversation until it must be shortened. From then on it is a list of its own that grows with
//! the conversation, so its beginning stays the same from request to request and prompt caches keep working.

use std::sync::Arc;

use amplifier_core::contracts::ContextError;
use amplifier_protocol::message::{Message, Messages, Role};

use super::estimate::tokens;

#[derive(Default)]
pub(super) struct Conversation {
    messages: Messages,
    // Absent while the view is everything.
    shortened: Option<Messages>,
    // Estimated tokens of the view.
    view_tokens: u64,
}

/// How far a view shall be shortened, in tokens.
pub(super) struct Aim {
    /// What it must not exceed.
    pub(super) budget: u64,
    /// What makes it be shortened.
    pub(super) trigger: u64,
    /// What it is shortened to, where that is possible.
    pub(super) target: u64,
}

/// A shorter view.
pub(super) struct Shortened {
    messages: Messages,
    pub(super) numbers: Numbers,
}

/// What a shorter view holds and what it left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) messages: u64,
    pub(super) tokens: u64,
    pub(super) removed: u64,
    pub(super) kept_system: u64,
}

impl Conversation {
    pub(super) fn of(messages: Messages) -> Self {
        let view_tokens = sum(&messages);
        Self { messages, shortened: None, view_tokens }
    }

    pub(super) fn push(&mut self, message: Arc<Message>) {
        self.view_tokens = self.view_tokens.saturating_add(tokens(&message));
        if let Some(view) = &mut self.shortened {
            view.push(Arc::clone(&message));
        }
        self.messages.push(message);
    }

    pub(super) fn all(&self) -> Messages {
        self.messages.clone()
    }

    pub(super) fn view(&self) -> Messages {
        self.shortened.as_ref().unwrap_or(&self.messages).clone()
    }

    /// Messages and estimated tokens of the view.
    pub(super) fn view_size(&self) -> (u64, u64) {
        let view = self.shortened.as_ref().unwrap_or(&self.messages);
        (count(view.len()), self.view_tokens)
    }

    /// The view without its oldest exchanges, within the aim's target; when the running exchange alone is past the
    /// trigger, without its oldest rounds of tools too. What must stay is the frame, the last prompt and the last round.
    /// `None` when that is all there is.
    pub(super) fn shorter(&self, aim: &Aim) -> Result<Option<Shortened>, ContextError> {
        let view = self.shortened.as_ref().unwrap_or(&self.messages);
        let (frame, talk): (Messages, Messages) = view.iter().cloned().partition(|message| is_frame(message));
        let frame_tokens = sum(&frame);
        let target = aim.target.saturating_sub(frame_tokens);
        let mut kept = drop_oldest(&talk, &positions(&talk, is_prompt), target);
        if frame_tokens.saturating_add(sum(&kept)) >= aim.trigger {
            kept = drop_rounds(&kept, target);
        }
        let tokens = frame_tokens.saturating_add(sum(&kept));
        if tokens > aim.budget {
            return Err(ContextError::DoesNotFit { needed: tokens, budget: aim.budget });
        }
        let removed = talk.len() - kept.len();
        let messages = in_order(view, &frame, &kept);
        let numbers = Numbers {
            messages: count(messages.len()),
            tokens,
            removed: count(removed),
            kept_system: count(frame.len()),
        };
        Ok((removed > 0).then_some(Shortened { messages, numbers }))
    }

    pub(super) fn show(&mut self, shortened: Shortened) {
        self.view_tokens = shortened.numbers.tokens;
        self.shortened = Some(shortened.messages);
    }
}

/// Keeps what begins at the first start whose rest fits, or at the last start.
fn drop_oldest(talk: &[Arc<Message>], starts: &[usize], target: u64) -> Messages {
    let mut rest = sum(talk);
    let mut from = 0;
    for start in starts {
        if rest <= target {
            break;
        }
        let skipped = talk.get(from..*start).unwrap_or_default();
        rest = rest.saturating_sub(sum(skipped));
        from = *start;
    }
    talk.get(from..).unwrap_or_default().to_vec()
}

/// Keeps the prompt of one exchange and as many of its last rounds as fit, at least one. A round begins with what the
/// model said and ends before it speaks again, so calls stay with their results.
fn drop_rounds(exchange: &[Arc<Message>], target: u64) -> Messages {
    let rounds = positions(exchange, |message| message.role == Role::Assistant);
    let Some(first) = rounds.first().copied() else { return exchange.to_vec() };
    let (prompt, rest) = exchange.split_at_checked(first).unwrap_or((exchange, &[]));
    let starts: Vec<_> = rounds.iter().map(|at| at - first).collect();
    let mut kept = prompt.to_vec();
    kept.extend(drop_oldest(rest, &starts, target.saturating_sub(sum(prompt))));
    kept
}

/// The kept messages in the order they were said.
fn in_order(view: &[Arc<Message>], frame: &[Arc<Message>], kept: &[Arc<Message>]) -> Messages {
    let (mut frame, mut kept) = (frame.iter().peekable(), kept.iter().peekable());
    let mut ordered = Messages::with_capacity(frame.len() + kept.len());
    for message in view {
        let same = |next: Option<&&Arc<Message>>| next.is_some_and(|next| Arc::ptr_eq(next, message));
        if same(frame.peek()) {
            ordered.extend(frame.next().cloned());
        } else if same(kept.peek()) {
            ordered.extend(kept.next().cloned());
        }
    }
    ordered
}

fn is_frame(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// Whether a person said this, and not a hook in their name.
fn is_prompt(message: &Message) -> bool {
    message.role == Role::User && !message.metadata.contains_key("source")
}

fn positions(messages: &[Arc<Message>], wanted: impl Fn(&Message) -> bool) -> Vec<usize> {
    messages.iter().enumerate().filter(|(_, message)| wanted(message)).map(|(at, _)| at).collect()
}

fn sum(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| tokens(message)).fold(0, u64::saturating_add)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::tool::ToolCall;
    use serde_json::json;

    fn said(role: Role, text: &str) -> Arc<Message> {
        Arc::new(Message::text(role, text))
    }

    /// A prompt, a call, its result of 400 characters, an answer.
    fn exchange(number: usize) -> Messages {
        let call = ToolCall::new(format!("c{number}"), "t", json!({}));
        let mut calling = Message::text(Role::Assistant, "");
        calling.tool_calls.push(call.clone());
        vec![
            said(Role::User, &format!("prompt {number}")),
            Arc::new(calling),
            Arc::new(Message::tool_result(&call, "x".repeat(400))),
            said(Role::Assistant, &format!("answer {number}")),
        ]
    }

    fn conversation(exchanges: usize) -> Conversation {
        let mut messages = vec![said(Role::System, "be kind")];
        messages.extend((0..exchanges).flat_map(exchange));
        Conversation::of(messages)
    }

    /// Shortens at 90 % of the budget; returns how many messages went and how many of the frame stayed.
    fn shorten(talk: &mut Conversation, budget: u64, target: u64) -> Result<(u64, u64), ContextError> {
        let Some(shortened) = talk.shorter(&Aim { budget, trigger: budget * 9 / 10, target })? else {
            return Ok((0, 0));
        };
        let done = (shortened.numbers.removed, shortened.numbers.kept_system);
        talk.show(shortened);
        Ok(done)
    }

    #[test]
    fn whole_exchanges_go_the_frame_stays_and_nothing_is_forgotten() {
        let mut talk = conversation(10);
        let (before, tokens_before) = talk.view_size();
        let done = shorten(&mut talk, 700, 400).unwrap();
        let view = talk.view();
        assert_eq!(view[0].role, Role::System);
        assert_eq!(view[1].content.visible_text(), "prompt 7");
        assert_eq!(view.len(), 1 + 3 * 4);
        assert_eq!(done, (28, 1));
        let (after, tokens_after) = talk.view_size();
        assert_eq!((before, after), (41, 13));
        assert!(tokens_after <= 400 && tokens_after < tokens_before, "{tokens_after}");
        assert_eq!(talk.all().len(), 41);
    }

    #[test]
    fn the_view_only_grows_until_it_must_be_shortened_again() {
        let mut talk = conversation(10);
        shorten(&mut talk, 700, 400).unwrap();
        let first = talk.view();
        for message in exchange(10) {
            talk.push(message);
        }
        assert_eq!(talk.view()[..first.len()], first[..]);
        assert_eq!(talk.view().len(), first.len() + 4);
        assert_eq!(talk.view_size().1, sum(&talk.view()));
    }

    #[test]
    fn a_long_running_exchange_loses_its_oldest_rounds_and_never_half_of_one() {
        let mut messages = vec![said(Role::User, "go")];
        messages.extend((0..10).flat_map(|number| exchange(number)[1..3].to_vec()));
        let mut talk = Conversation::of(messages);
        shorten(&mut talk, 400, 250).unwrap();
        let view = talk.view();
        assert_eq!(view[0].content.visible_text(), "go");
        assert_eq!(view[1].role, Role::Assistant);
        for pair in view[1..].chunks(2) {
            assert_eq!(pair[1].tool_call_id.as_deref(), Some(pair[0].tool_calls[0].id.as_str()));
        }
        assert!(view.len() < 21 && talk.view_size().1 <= 250, "{}", talk.view_size().1);
    }

    #[test]
    fn a_view_that_cannot_be_shorter_is_left_alone() {
        let mut talk = Conversation::of(vec![said(Role::User, &"x".repeat(380))]);
        assert_eq!(shorten(&mut talk, 100, 50).unwrap(), (0, 0));
    }

    #[test]
    fn what_cannot_be_made_to_fit_is_an_error_and_changes_nothing() {
        let mut talk = Conversation::of(vec![said(Role::User, &"x".repeat(4_000))]);
        assert!(matches!(shorten(&mut talk, 100, 50), Err(ContextError::DoesNotFit { budget: 100, .. })));
        assert_eq!(talk.view().len(), 1);
    }
}
