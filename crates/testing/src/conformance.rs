//! One suite per contract. Any implementation, native or behind a wire, can be run through it.
//!
//! A suite takes a closure that makes a fresh instance, checks every clause of the contract on instances of its own, and
//! returns a [`Report`]. A clause never stops the others: a panic or a hang fails that clause and names it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::sync::Arc;
//! use amplifier_core::contracts::Tool;
//! use amplifier_testing::{EchoTool, conformance};
//!
//! conformance::tool(async || { Arc::new(EchoTool) as Arc<dyn Tool> }).await.assert();
//! # }
//! ```

mod approval;
mod context;
mod display;
mod hook;
mod module;
mod orchestrator;
mod provider;
mod report;
mod resolver;
mod tool;

pub use approval::approval;
pub use context::context;
pub use display::display;
pub use hook::hook;
pub use module::module;
pub use orchestrator::orchestrator;
pub use provider::provider;
pub use report::{Clause, Report};
pub use resolver::resolver;
pub use tool::tool;
