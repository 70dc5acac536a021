//! First-party modules, one file each, and the [`table`] that lists them.
//!
//! Reading the table is reading the product. A module here uses no API that an author elsewhere lacks; the smallest one
//! to copy is `tools/echo.rs`. `tool-word-count` lives in `tools/word_count.rs`, `loop-basic` in
//! `orchestrators/loop_basic.rs`: the file is the id.

mod contexts;
pub mod environment;
mod files;
pub mod hooks;
mod http;
mod orchestrators;
mod providers;
mod reminder;
pub mod table;
mod tools;
pub mod watchdog;
mod workspace;

pub use orchestrators::{CANCELLED_NOTE, asked_provider};
pub use providers::ollama::address as ollama_address;
pub use table::{BuiltIn, BuiltIns, MODULES};
pub use tools::bash::policy::{Danger, dangers};
pub use tools::filesystem::preview;
