//! The contracts: what a module of each kind promises the kernel, and what it may rely on.
//!
//! Every parameter and result is a serde type and callbacks go by name, so each contract can be served by another
//! process; `testing` does so for all of them.

mod approval;
mod context;
mod display;
mod hook;
mod module;
mod orchestrator;
mod provider;
mod source;
mod tool;
mod typed_tool;

pub use approval::{ApprovalError, ApprovalSystem};
pub use context::{ContextError, ContextManager, RequestBudget};
pub use display::{DisplayMessage, DisplaySystem};
pub use hook::{EventStamp, HookEvent, HookFailure, HookHandler};
pub use module::{
    Capability, CapabilityCall, CapabilityError, Cleanup, Contributor, Module, Mounted, Ready, TaskFailure,
};
pub use orchestrator::{Orchestrator, Prompt, TurnCx, TurnError};
pub use provider::{DeltaSink, Provider, ProviderCx};
pub use source::{ModuleSource, ModuleSourceResolver, Resolved, SourceError};
pub use tool::{Pulse, Tool, ToolCx, ToolFailure};
pub use typed_tool::{Typed, TypedTool};
