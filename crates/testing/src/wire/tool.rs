//! The tool contract over a wire: `tool.describe`, `tool.execute`.

use std::sync::Arc;

use amplifier_core::contracts::{Pulse, Tool, ToolCx, ToolFailure};
use amplifier_protocol::frame::RpcError;
use amplifier_protocol::tool::{Effects, ToolSpec};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::line::Line;
use super::peer::{Peer, Watch};
use super::serve::{Answer, Incoming, Nothing, Serve, no_pieces, outcome, own_error, raw};

/// The same tool, at the other end of a wire.
pub async fn tool(tool: Arc<dyn Tool>) -> Result<Arc<dyn Tool>, RpcError> {
    at(Line::whole(Peer::connect(Arc::new(Nothing), served(tool)))).await
}

/// The tool that is served there.
pub(super) async fn at(line: Line) -> Result<Arc<dyn Tool>, RpcError> {
    let description = line.call("tool.describe", &(), Watch::default()).await?;
    Ok(Arc::new(Proxy { line, description }))
}

/// Serves a tool.
pub(super) fn served(tool: Arc<dyn Tool>) -> Arc<dyn Serve> {
    Arc::new(Server(tool))
}

/// What is read once: the contract's answers that cannot wait.
#[derive(Serialize, Deserialize)]
struct Description {
    spec: ToolSpec,
    effects: Effects,
}

#[derive(Serialize, Deserialize)]
struct Execute {
    call_id: String,
    input: Value,
}

struct Proxy {
    line: Line,
    description: Description,
}

#[async_trait]
impl Tool for Proxy {
    fn spec(&self) -> ToolSpec {
        self.description.spec.clone()
    }

    fn effects(&self) -> Effects {
        self.description.effects
    }

    async fn execute(&self, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        let params = Execute { call_id: cx.call_id.clone(), input };
        let watch = Watch { cancel: cx.cancel.clone(), pulse: cx.pulse.clone(), ..Watch::default() };
        let answer = self.line.call("tool.execute", &params, watch).await;
        answer.map_err(|error| own_error(error, ToolFailure::new))
    }
}

struct Server(Arc<dyn Tool>);

#[async_trait]
impl Serve for Server {
    async fn serve(&self, call: Incoming) -> Answer {
        match call.method.as_str() {
            "tool.describe" => raw(&Description { spec: self.0.spec(), effects: self.0.effects() }),
            "tool.execute" => {
                let Execute { call_id, input } = call.read()?;
                let cx = ToolCx { call_id, cancel: call.cancel.clone(), pulse: Pulse::default() };
                outcome(call.attend(&cx.pulse, no_pieces(), self.0.execute(input, &cx)).await)
            }
            _ => call.unknown(),
        }
    }
}
