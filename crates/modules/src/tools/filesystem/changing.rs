//! The face of every tool that changes files: plan, be allowed, carry out.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use amplifier_core::contracts::{ToolCx, ToolFailure, TypedTool};
use amplifier_protocol::tool::Effects;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::desk::{Desk, Plan};

/// The input of a tool that changes files.
pub(super) trait Changes: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The tool's name.
    const NAME: &'static str;

    /// What a call with this input would do. Looks, and changes nothing.
    fn plan(&self, desk: &Desk) -> impl Future<Output = Result<Plan, ToolFailure>> + Send;
}

/// A tool made of its input.
pub(super) struct Changing<I>(Arc<Desk>, PhantomData<I>);

impl<I> Changing<I> {
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        Self(desk, PhantomData)
    }
}

impl<I: Changes> TypedTool for Changing<I> {
    const NAME: &'static str = I::NAME;
    const EFFECTS: Effects = Effects::WRITES;
    type Input = I;
    type Output = Value;

    async fn run(&self, input: I, cx: &ToolCx) -> Result<Value, ToolFailure> {
        let desk = &self.0;
        let _one_at_a_time = desk.writing.lock().await;
        let plan = input.plan(desk).await?;
        if let Some(approvals) = &desk.approvals {
            approvals.claim(&input, &plan)?;
        }
        if cx.cancel.is_immediate() {
            return Err(ToolFailure::new("cancelled before anything was written").of_kind("Cancelled"));
        }
        desk.carry_out(plan, &cx.call_id).await
    }
}
