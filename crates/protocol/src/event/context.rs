//! Events of the conversation's memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{APP, CONTEXT, Event};

/// The conversation will be shown to the model in a shorter form.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContextPreCompact {
    /// Messages before.
    pub message_count: u64,
    /// Tokens before, estimated.
    pub token_count: u64,
}

impl Event for ContextPreCompact {
    const NAME: &'static str = "context:pre_compact";
    const EMITTER: &'static str = CONTEXT;
}

/// The shorter form is made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContextPostCompact {
    /// Messages after.
    pub message_count: u64,
    /// Tokens after, estimated.
    pub token_count: u64,
}

impl Event for ContextPostCompact {
    const NAME: &'static str = "context:post_compact";
    const EMITTER: &'static str = CONTEXT;
}

/// What a shorter form left out, in numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContextCompaction {
    /// Tokens before, estimated.
    pub before_tokens: u64,
    /// Tokens after, estimated.
    pub after_tokens: u64,
    /// Messages before.
    pub before_messages: u64,
    /// Messages after.
    pub after_messages: u64,
    /// Messages left out.
    pub messages_removed: u64,
    /// Messages cut short.
    pub messages_truncated: u64,
    /// Messages of the person replaced by a stub.
    pub user_messages_stubbed: u64,
    /// System messages kept.
    pub system_messages_preserved: u64,
    /// How far it went.
    pub strategy_level: u64,
    /// The budget.
    pub budget: u64,
    /// What it aimed for.
    pub target_tokens: u64,
    /// The part of the tail that was left alone.
    pub protected_recent: f64,
    /// How many tool results were left alone.
    pub protected_tool_results: u64,
}

impl Event for ContextCompaction {
    const NAME: &'static str = "context:compaction";
    const EMITTER: &'static str = CONTEXT;
}

/// A file was taken into the conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ContextInclude {
    /// The file.
    pub path: String,
    /// How many bytes.
    #[serde(default)]
    pub bytes: u64,
}

impl Event for ContextInclude {
    const NAME: &'static str = "context:include";
    const EMITTER: &'static str = APP;
}

/// Files that a text mentions were found, or were not. Told once for each file as it is, and once for each failure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MentionsResolved {
    /// Whose text mentions them: `bundle_context` for the system prompt, `prompt` for what was asked.
    pub source: String,
    /// The files that were found.
    pub resolutions: Vec<MentionResolution>,
    /// The mentions that led nowhere.
    pub failed: Vec<MentionFailure>,
    /// How many mentions led to a text that was there already.
    pub deduplicated_count: u64,
    /// The turn, counted from 1; 0 before the first.
    pub turn: Option<u64>,
}

/// A file that a text mentions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MentionResolution {
    /// As it was written, with its `@`; the key of a file that a bundle declares.
    pub mention: String,
    /// The file.
    pub resolved_path: String,
    /// What kind of mention it is, such as `bundle_namespace` or `relative_path`.
    pub source_type: String,
    /// SHA-256 of its text, in hex.
    pub content_hash: String,
    /// Whether the session meets this text for the first time.
    pub is_new: bool,
}

/// A mention that led nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MentionFailure {
    /// As it was written, with its `@`.
    pub mention: String,
    /// Why, in a word such as `not_found` or `path_traversal_rejected`.
    pub reason: String,
}

impl Event for MentionsResolved {
    const NAME: &'static str = "mentions:resolved";
    const EMITTER: &'static str = APP;
}
