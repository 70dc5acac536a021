//! Fakes and conformance suites: what tests of modules, applications and the kernel itself are made with.
//!
//! | need | use |
//! |---|---|
//! | a hub without a session | [`TestCoordinator`], [`create_test_coordinator`] |
//! | a whole session | [`TestSession`], [`FakeModule`], [`FakeFinder`] |
//! | a model | [`ScriptedProvider`], [`MockProvider`] |
//! | tools | [`MockTool`], [`EchoTool`], [`FailTool`] |
//! | a conversation | [`MockContextManager`] |
//! | a loop | [`ScriptedOrchestrator`], [`SmallLoop`] |
//! | what was said on the way | [`EventRecorder`], [`RecordingDisplay`], [`ScriptedApproval`], [`MemoryJournal`] |
//! | a program that can be started | [`write_program`], [`copy_program`] |
//! | time | [`ManualClock`], [`until`], [`block_until`] |
//! | a server on the loopback, of pages or of repositories | [`http::Server`], [`http::git`] |
//!
//! A dev-dependency only: what breaks here may panic, because a broken test should.

#![deny(missing_docs)]

mod approval;
mod clock;
pub mod conformance;
mod context;
mod coordinator;
mod display;
mod guest;
pub mod http;
mod journal;
mod kernel;
mod mock_provider;
mod mock_tool;
mod module;
mod program;
mod recorder;
mod scripted_orchestrator;
mod scripted_provider;
mod session;
mod small_loop;
mod small_tools;
mod sync;
mod wait;
pub mod wire;

pub use approval::ScriptedApproval;
pub use clock::ManualClock;
pub use context::MockContextManager;
pub use coordinator::{TestCoordinator, create_test_coordinator};
pub use display::RecordingDisplay;
pub use guest::{GuestModule, GuestReady, Left};
pub use journal::MemoryJournal;
pub use kernel::{HookResultRefused, Inventory, Kernel, KernelLoop, LocalKernel, ToolNotRun};
pub use mock_provider::MockProvider;
pub use mock_tool::MockTool;
pub use module::{FakeFinder, FakeModule};
pub use program::{copy_program, write_program};
pub use recorder::EventRecorder;
pub use scripted_orchestrator::ScriptedOrchestrator;
pub use scripted_provider::{Exhausted, ScriptedProvider, Step};
pub use session::{TestSession, TestSessionBuilder};
pub use small_loop::SmallLoop;
pub use small_tools::{EchoTool, FailTool};
pub use wait::{block_until, until};
