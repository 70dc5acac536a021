//! Modules that never return, flood or panic, at every point where the kernel calls one: they cost that call and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{
    Capability, CapabilityCall, CapabilityError, ContextError, ContextManager, DeltaSink, DisplayMessage,
    DisplaySystem, Mounted, RequestBudget, TaskFailure, Tool, ToolCx, ToolFailure, TurnError,
};
use amplifier_core::coordinator::Coordinator;
use amplifier_core::session::{ExecuteError, Session};
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::event::ToolPre;
use amplifier_protocol::hook::{HookResult, MessageLevel};
use amplifier_protocol::llm_error::LlmErrorKind;
use amplifier_protocol::message::{Message, Messages};
use amplifier_protocol::module_info::ModuleKind;
use amplifier_protocol::status::SessionState;
use amplifier_protocol::stream::StreamEvent;
use amplifier_protocol::tool::{Effects, ToolCall, ToolSpec};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::kit::*;

mod answers;
mod around;
mod stalls;
mod tools;

/// How a module misbehaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Vice {
    Hangs,
    Panics,
}

const VICES: [Vice; 2] = [Vice::Hangs, Vice::Panics];

/// Never returns, or panics after its first wait, as if in the middle of something.
async fn misbehave<T>(vice: Vice) -> T {
    tokio::task::yield_now().await;
    match vice {
        Vice::Hangs => std::future::pending().await,
        Vice::Panics => panic!("gone mad"),
    }
}

/// Short deadlines, so that giving up is part of the test.
fn stage() -> Stage {
    Stage::new().tool(echo("t")).session(json!({"deadlines": {
        "mount": 5, "ready": 5, "hook": 5, "context": 5, "tool": 60, "provider": 60,
        "capability": 60, "contributor": 5, "cleanup": 5, "stall": 20,
    }}))
}

/// The session is as good as new: it answers, and it closes with nothing to complain about.
async fn is_unharmed(session: &Session) {
    assert_eq!(session.execute("t").await.unwrap(), "{}");
    assert_eq!(session.status().status, SessionState::Completed);
    assert_eq!(session.coordinator().in_flight(), []);
    assert_eq!(session.cleanup().await.failed, Vec::<String>::new());
}

async fn call(session: &Session, tool: &str) -> Result<Value, String> {
    let call = ToolCall::new("call", tool, json!({}));
    let result = session.coordinator().call_tool(&call).await;
    result.map(|result| result.output).map_err(|error| error.to_string())
}
