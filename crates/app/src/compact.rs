//! A conversation made short because a person wants it: a model sums it up, and the summary takes its place.
//!
//! Contexts shorten what a model sees by themselves when they must; that is theirs. Here what is stored is replaced, and the
//! journal keeps everything that was said.

use std::sync::Arc;

use amplifier_core::contracts::{ContextError, DeltaSink, RequestBudget};
use amplifier_core::coordinator::CallError;
use amplifier_core::estimate::estimate_tokens;
use amplifier_core::session::Session;
use amplifier_protocol::chat::ChatRequest;
use amplifier_protocol::event::{ContextPostCompact, ContextPreCompact};
use amplifier_protocol::message::{Message, Messages, Role};

use crate::providers;

const WISH: &str = "Sum up this conversation so that the work can go on from your summary alone. Keep: what the person wants \
    and every instruction and correction they gave; what was decided and why; which files and commands matter, with exact \
    names; what is done, what is open, and what was about to happen next. Leave out small talk and what is settled. Write \
    plainly and without a preface.";

/// What a summary did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// Messages before.
    pub before: usize,
    /// Tokens before and after, estimated.
    pub tokens: (u64, u64),
    /// The summary.
    pub summary: String,
}

/// Why the conversation is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// There is nothing to sum up.
    #[error("nothing was said yet")]
    Nothing,
    /// A hook does not allow it.
    #[error("a hook denied it: {reason}")]
    Denied {
        /// Why.
        reason: String,
    },
    /// Nobody could sum it up.
    #[error("the session has no {0}")]
    Missing(&'static str),
    /// The conversation could not be read or replaced.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The model was not reached, or gave no answer.
    #[error("the model gave no summary")]
    Call(#[from] Box<CallError>),
    /// The model said nothing.
    #[error("the model gave an empty summary")]
    Empty,
}

/// Replaces the conversation of a session by a summary. Call it between turns.
pub async fn compact(session: &Session, wish: Option<&str>) -> Result<Compacted, CompactError> {
    let coordinator = session.coordinator();
    let context = coordinator.context().ok_or(CompactError::Missing("context"))?;
    let stored = context.messages().await?;
    if !stored.iter().any(|message| message.role == Role::User) {
        return Err(CompactError::Nothing);
    }
    let (name, provider) = providers::asked(coordinator).ok_or(CompactError::Missing("provider"))?;
    let (before, tokens) = (stored.len(), size(&stored));
    let asked =
        coordinator.emit(ContextPreCompact { message_count: count(before), token_count: tokens }).await;
    if let Some(reason) = asked.denied() {
        return Err(CompactError::Denied { reason: reason.to_owned() });
    }
    let mut messages = context.messages_for_request(RequestBudget::for_provider(provider.info())).await?;
    let wish = wish.map(|wish| format!("{WISH}\nThe person adds: {wish}"));
    messages.push(Arc::new(Message::user(wish.unwrap_or_else(|| WISH.to_owned()))));
    let answer = coordinator.call_provider(&name, ChatRequest::new(messages), DeltaSink::default()).await;
    let summary = answer.map_err(Box::new)?.visible_text();
    if summary.trim().is_empty() {
        return Err(CompactError::Empty);
    }
    let mut kept: Messages = stored.into_iter().filter(|message| message.role == Role::System).collect();
    kept.push(Arc::new(Message::user(format!("This is where we are, in short:\n\n{summary}"))));
    // The next prompt must not stand beside the summary: services want the two sides to take turns.
    kept.push(Arc::new(Message::text(Role::Assistant, "I go on from there.")));
    let after = size(&kept);
    let message_count = count(kept.len());
    context.set_messages(kept).await?;
    coordinator.emit(ContextPostCompact { message_count, token_count: after }).await;
    Ok(Compacted { before, tokens: (tokens, after), summary })
}

fn size(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| estimate_tokens(&message.content.visible_text())).sum()
}

fn count(many: usize) -> u64 {
    u64::try_from(many).unwrap_or(u64::MAX)
}
