//! Every contract over a wire: an in-memory channel of JSON-RPC lines with the implementation at its far end.
//!
//! Each function takes an implementation and returns a proxy of the same contract. Whatever the proxy is asked is
//! written as text, carried, parsed, served by the original and answered the same way, so a contract that cannot be
//! served by another process fails here first. It is no transport for production: its queues have no bound.
//!
//! | word | says |
//! |---|---|
//! | `cancel {id, level}` | the caller's wish to stop rose |
//! | `abandon {id}` | nobody waits for the answer any more |
//! | `stream.delta {id, event}` | a piece of a forming answer |
//! | `pulse {id}` | the call is alive |

mod approval;
mod callbacks;
mod client;
mod context;
mod display;
mod hook;
mod line;
mod module;
mod orchestrator;
mod peer;
mod provider;
mod resolver;
mod serve;
mod tool;

pub use approval::approval;
pub use context::context;
pub use display::display;
pub use hook::hook;
pub use module::module;
pub use orchestrator::orchestrator;
pub use provider::provider;
pub use resolver::resolver;
pub use tool::tool;
