//! What the tests of hooks share: a folder to work in and sessions with one hook of the table in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_core::contracts::{Capability, Module};
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::table::BuiltIns;
use amplifier_protocol::event::ToolPre;
use amplifier_testing::{RecordingDisplay, ScriptedProvider, TestSession, TestSessionBuilder};
use serde_json::{Map, Value};

pub(crate) async fn built_in(id: &str) -> Arc<dyn Module> {
    BuiltIns.find(&id.parse().unwrap()).await.unwrap().unwrap()
}

/// A working folder and a screen.
pub(crate) struct Desk {
    temp: tempfile::TempDir,
    pub(crate) display: Arc<RecordingDisplay>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { temp: tempfile::tempdir().unwrap(), display: Arc::new(RecordingDisplay::new()) }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A session of fakes with this hook, working in the folder.
    pub(crate) async fn with_hook(&self, id: &str, config: Value) -> TestSessionBuilder {
        let (dir, display) = (self.dir().display().to_string(), self.display.clone());
        TestSession::builder()
            .configure(move |builder| {
                builder
                    .capability("session.working_dir", Capability::Value(Value::String(dir)))
                    .display(display)
            })
            .module_with(built_in(id).await, object(config))
    }

    pub(crate) fn shown(&self) -> Vec<String> {
        self.display.messages().into_iter().map(|message| message.message).collect()
    }
}

/// The same session with the real loop and this model.
pub(crate) async fn looping(builder: TestSessionBuilder, provider: ScriptedProvider) -> TestSessionBuilder {
    builder.module(built_in("loop-basic").await).provider(Arc::new(provider))
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

pub(crate) fn call(tool: &str, input: Value) -> ToolPre {
    ToolPre {
        tool_name: tool.to_owned(),
        tool_input: input,
        tool_call_id: Some("c1".to_owned()),
        parallel_group_id: None,
    }
}

/// The lines of a file, each a JSON value.
pub(crate) fn json_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
