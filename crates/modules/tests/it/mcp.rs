//! `tool-mcp` in real sessions: against real servers, and against one that misbehaves.

use std::time::Duration;

use amplifier_core::contracts::{Capability, ToolCx, ToolFailure};
use amplifier_core::report::LoadOutcome;
use amplifier_protocol::tool::{Effects, ToolCall, ToolResult};
use amplifier_testing::TestSession;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{built_in, looping, object, stored};

mod fake;
mod http;
mod real;

/// A session whose model calls tools by script, in a folder of its own.
struct Stage {
    session: TestSession,
    folder: TempDir,
}

impl Stage {
    /// Opens a session with these servers; each call of the script is one turn.
    async fn open(config: Value, calls: &[(&str, Value)]) -> Self {
        Self::open_in(TempDir::new().unwrap(), config, calls).await
    }

    async fn open_in(folder: TempDir, config: Value, calls: &[(&str, Value)]) -> Self {
        let mut responses = Vec::new();
        for (name, arguments) in calls {
            responses.push(json!({"tool_calls": [{"name": name, "arguments": arguments}]}));
            responses.push(json!("done"));
        }
        let path = folder.path().to_str().unwrap().to_owned();
        let session = looping(json!({}))
            .await
            .module_with(built_in("provider-mock").await, object(json!({"responses": responses})))
            .module_with(built_in("tool-mcp").await, object(config))
            .configure(move |builder| {
                let place = || Capability::Value(json!(path));
                builder.capability("session.working_dir", place()).capability("user.home_dir", place())
            })
            .open()
            .await
            .unwrap();
        Self { session, folder }
    }

    /// Runs the next turn of the script and returns what the model was told.
    async fn turn(&self) -> String {
        self.session.execute("go").await.unwrap();
        let messages = stored(&self.session).await;
        let told = messages.iter().rev().find(|message| message.tool_call_id.is_some()).unwrap();
        told.content.visible_text().into_owned()
    }

    /// Calls a tool beside the script.
    async fn call(&self, name: &str, input: Value) -> ToolResult {
        self.session.coordinator().call_tool(&ToolCall::new("c", name, input)).await.unwrap()
    }

    /// Calls a tool with a context that the test can look at.
    async fn execute(&self, name: &str, input: Value, cx: &ToolCx) -> Result<Value, ToolFailure> {
        self.session.coordinator().tool(name).unwrap().execute(input, cx).await
    }

    /// How a server stands.
    async fn status(&self, server: &str) -> Value {
        self.call("mcp_servers", json!({"server": server})).await.output[0].clone()
    }

    fn names(&self) -> Vec<String> {
        self.session.coordinator().tool_specs().iter().map(|spec| spec.name.clone()).collect()
    }

    fn spec(&self, name: &str) -> amplifier_protocol::tool::ToolSpec {
        let specs = self.session.coordinator().tool_specs();
        (**specs.iter().find(|spec| spec.name == name).unwrap()).clone()
    }

    fn effects(&self, name: &str) -> Effects {
        self.session.coordinator().tool(name).unwrap().effects()
    }

    fn warnings(&self) -> Vec<String> {
        let modules = &self.session.report().modules;
        modules.iter().find(|entry| entry.module.as_str() == "tool-mcp").unwrap().warnings.clone()
    }

    fn outcome(&self) -> LoadOutcome {
        let modules = &self.session.report().modules;
        modules.iter().find(|entry| entry.module.as_str() == "tool-mcp").unwrap().outcome.clone()
    }

    async fn close(self) {
        assert_eq!(self.session.cleanup().await.failed, Vec::<String>::new());
    }
}

/// Waits until something is so; a test that waits in vain fails.
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(30), async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}: not within 30 s");
}

fn is_alive(pid: i32) -> bool {
    // A process that ended and was not yet waited for has this state and is as good as gone.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
