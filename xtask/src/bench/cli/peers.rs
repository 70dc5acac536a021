//! Other agents that npm offers: installed below the target folder, told to ask our server and nobody else.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::stage::{Stage, size};
use crate::output::TaskError;
use crate::process::capture_quietly;
use crate::workspace::Workspace;

const INSTALL_LIMIT: Duration = Duration::from_secs(600);
/// Nobody listens here: whatever a program wants from elsewhere is refused on this machine.
const NOWHERE: &str = "http://127.0.0.1:9";

#[derive(Clone, Copy)]
enum Kind {
    Codex,
    OpenCode,
}

/// Another agent.
pub(super) struct Peer {
    pub(super) name: &'static str,
    package: &'static str,
    folder: PathBuf,
    server: String,
    kind: Kind,
}

impl Peer {
    pub(super) fn codex(workspace: &Workspace, server: &str) -> Self {
        Self::new("codex", "@openai/codex@0.166.0", Kind::Codex, workspace, server)
    }

    pub(super) fn opencode(workspace: &Workspace, server: &str) -> Self {
        Self::new("opencode", "opencode-ai@1.18.33", Kind::OpenCode, workspace, server)
    }

    fn new(
        name: &'static str,
        package: &'static str,
        kind: Kind,
        workspace: &Workspace,
        server: &str,
    ) -> Self {
        let folder = workspace.target.join("bench-tools").join("npm").join(name);
        Self { name, package, folder, server: server.to_owned(), kind }
    }

    fn program(&self) -> PathBuf {
        self.folder.join("node_modules/.bin").join(self.name)
    }

    /// Installs it unless it is there.
    pub(super) fn install(&self) -> Result<(), TaskError> {
        if self.program().exists() {
            return Ok(());
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(&self.folder);
        capture_quietly(npm.arg(self.package), INSTALL_LIMIT)?;
        Ok(())
    }

    /// What it takes on the disk.
    pub(super) fn size(&self) -> Result<u64, TaskError> {
        size(&self.folder.join("node_modules"))
    }

    fn command(&self, stage: &Stage) -> Command {
        let home = stage.home_of(self.name);
        // A home that could not be made is told by the program that wants it.
        drop(std::fs::create_dir_all(home.join("codex")));
        let mut command = Command::new(self.program());
        // Some believe what a shell would say of the folder before they ask the system.
        command.current_dir(stage.work()).env("PWD", stage.work()).env("HOME", &home);
        for folder in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"] {
            command.env(folder, home.join(folder));
        }
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env(proxy, NOWHERE);
        }
        command.env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
        command.env("CODEX_HOME", home.join("codex")).env("MOCK_KEY", "none");
        command.env("OPENCODE_DISABLE_AUTOUPDATE", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        command
    }

    pub(super) fn version(&self, stage: &Stage) -> Command {
        let mut command = self.command(stage);
        command.arg("--version");
        command
    }

    /// One prompt to this model, without anybody to ask.
    pub(super) fn run(&self, stage: &Stage, model: &str) -> Command {
        let mut command = self.command(stage);
        match self.kind {
            Kind::Codex => {
                let provider = format!(
                    "model_providers.mock={{name=\"mock\",base_url=\"{}\",wire_api=\"responses\",env_key=\"MOCK_KEY\"}}",
                    self.server
                );
                command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]);
                command.args([
                    "-c",
                    &provider,
                    "-c",
                    "model_provider=mock",
                    "-c",
                    "check_for_update_on_startup=false",
                ]);
                command.args(["-m", model, "What do the notes say?"]);
            }
            Kind::OpenCode => {
                let config = json!({"autoupdate": false, "share": "disabled", "provider": {"mock": {
                    "npm": "@ai-sdk/openai-compatible", "name": "mock",
                    "options": {"baseURL": self.server, "apiKey": "none"}, "models": {model: {"name": model}}}}});
                command.env("OPENCODE_CONFIG_CONTENT", config.to_string());
                command.args(["run", "--model", &format!("mock/{model}"), "What do the notes say?"]);
            }
        }
        command
    }
}
