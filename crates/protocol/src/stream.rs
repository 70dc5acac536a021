//! An answer while it forms.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::usage::Usage;

/// One piece of a forming answer. Pieces of one block share its index; the finished answer holds the same blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum StreamEvent {
    /// The service began to answer.
    #[serde(rename = "message.start")]
    MessageStart,
    /// More text.
    #[serde(rename = "text.delta")]
    TextDelta {
        /// The block.
        index: u32,
        /// The piece; never empty.
        text: String,
    },
    /// More thinking.
    #[serde(rename = "thinking.delta")]
    ThinkingDelta {
        /// The block.
        index: u32,
        /// The piece; never empty.
        text: String,
    },
    /// A tool call begins.
    #[serde(rename = "tool_call.start")]
    ToolCallStart {
        /// The block.
        index: u32,
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    #[serde(rename = "tool_call.delta")]
    ToolCallDelta {
        /// The block.
        index: u32,
        /// The piece.
        arguments_fragment: String,
    },
    /// A call is complete.
    #[serde(rename = "tool_call.end")]
    ToolCallEnd {
        /// The block.
        index: u32,
        /// All arguments.
        arguments: Value,
    },
    /// The answer is complete.
    #[serde(rename = "message.end")]
    MessageEnd {
        /// What it consumed, where known.
        usage: Option<Usage>,
    },
    /// The answer broke off; what came before stays what it is.
    #[serde(rename = "error")]
    Error {
        /// What happened.
        message: String,
    },
}
