//! A folder, a hub and the tools of one module in it.

use amplifier_core::contracts::{Capability, ToolCx, ToolFailure};
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::BuiltIns;
use amplifier_testing::TestCoordinator;
use serde_json::{Value, json};
use tempfile::TempDir;

pub struct Workshop {
    pub folder: TempDir,
    pub hub: TestCoordinator,
}

impl Workshop {
    pub async fn new(module: &str, config: Value) -> Self {
        let (folder, hub) = (TempDir::new().unwrap(), TestCoordinator::new());
        let path = folder.path().to_str().unwrap();
        hub.register_capability("session.working_dir", Capability::Value(json!(path)));
        let module = BuiltIns.find(&module.parse().unwrap()).await.unwrap().unwrap();
        let (_, warnings) = hub.mount(&*module, config).await.unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        Self { folder, hub }
    }

    pub async fn files(config: Value) -> Self {
        Self::new("tool-filesystem", config).await
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    pub fn has(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    pub async fn call(&self, tool: &str, input: Value) -> Result<Value, ToolFailure> {
        self.hub.tool(tool).unwrap().execute(input, &ToolCx::default()).await
    }

    pub async fn refused(&self, tool: &str, input: Value) -> ToolFailure {
        self.call(tool, input).await.unwrap_err()
    }

    pub async fn read(&self, name: &str) {
        self.call("read_file", json!({"file_path": name})).await.unwrap();
    }
}
