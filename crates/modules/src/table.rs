//! The table of built-in modules. A module that is not listed here does not exist.

use std::sync::Arc;

use amplifier_core::contracts::{Module, Mounted};
use amplifier_core::loader::{LoadError, ModuleFinder, MountCx};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::{ModuleInfo, ModuleKind};
use async_trait::async_trait;
use serde_json::Value;

use crate::contexts::persistent::Persistent;
use crate::contexts::simple::Simple;
use crate::hooks::approval::Approval;
use crate::hooks::backup::Backup;
use crate::hooks::logging::Logging;
use crate::hooks::redaction::Redaction;
use crate::hooks::scheduler_cost_aware::SchedulerCostAware;
use crate::hooks::scheduler_heuristic::SchedulerHeuristic;
use crate::hooks::shell::Shell;
use crate::hooks::status_context::StatusContext;
use crate::hooks::streaming_ui::StreamingUi;
use crate::hooks::todo_reminder::TodoReminder;
use crate::orchestrators::loop_basic::LoopBasic;
use crate::orchestrators::loop_events::LoopEvents;
use crate::orchestrators::loop_streaming::LoopStreaming;
use crate::providers::anthropic::Anthropic;
use crate::providers::azure_openai::AzureOpenAi;
use crate::providers::chat_completions::ChatCompletions;
use crate::providers::demo::Demo;
use crate::providers::gemini::Gemini;
use crate::providers::mock::Mock;
use crate::providers::ollama::Ollama;
use crate::providers::openai::OpenAi;
use crate::providers::vllm::Vllm;
use crate::tools::apply_patch::ApplyPatch;
use crate::tools::bash::Bash;
use crate::tools::echo::Echo;
use crate::tools::filesystem::Filesystem;
use crate::tools::mcp::McpModule;
use crate::tools::search::Search;
use crate::tools::skills::Skills;
use crate::tools::task::TaskModule;
use crate::tools::todo::TodoModule;
use crate::tools::web::Web;

/// A module of the table: it also says what it is, for `amplifier module list` and the reference page.
pub trait BuiltIn: Module {
    /// What it is, what may be configured, what it emits.
    fn info(&self) -> ModuleInfo;

    /// What every module of the table says in the same way; the rest is added to it. The summary is one line.
    fn about(&self, summary: &str) -> ModuleInfo {
        ModuleInfo::new(self.id(), self.kind(), env!("CARGO_PKG_VERSION"), summary)
    }
}

/// Every built-in module.
pub static MODULES: &[&dyn BuiltIn] = &[
    &LoopBasic,
    &LoopStreaming,
    &LoopEvents,
    &Simple,
    &Persistent,
    &Anthropic,
    &AzureOpenAi,
    &ChatCompletions,
    &Demo,
    &Gemini,
    &Mock,
    &Ollama,
    &OpenAi,
    &Vllm,
    &ApplyPatch,
    &Bash,
    &Echo,
    &Filesystem,
    &McpModule,
    &Search,
    &Skills,
    &TaskModule,
    &TodoModule,
    &Web,
    &Approval,
    &Backup,
    &Logging,
    &Redaction,
    &SchedulerCostAware,
    &SchedulerHeuristic,
    &Shell,
    &StatusContext,
    &StreamingUi,
    &TodoReminder,
];

/// Other names that plans know modules of the table by: the other name, and the id here.
pub static ALIASES: &[(&str, &str)] =
    &[("hook-logging", "hooks-logging"), ("hook-shell", "hooks-shell"), ("tool-web-search", "tool-web")];

/// Finds modules in the table.
pub struct BuiltIns;

#[async_trait]
impl ModuleFinder for BuiltIns {
    fn name(&self) -> &str {
        "built-in modules"
    }

    fn known(&self) -> Vec<String> {
        MODULES.iter().map(|module| module.id().to_string()).collect()
    }

    async fn find(&self, id: &ModuleId) -> Result<Option<Arc<dyn Module>>, LoadError> {
        let alias = ALIASES.iter().find(|(other, _)| *other == id.as_str());
        let name = alias.map_or(id.as_str(), |(_, name)| name);
        let row = MODULES.iter().find(|module| module.id().as_str() == name);
        let row = row.map(|module| Row { module: *module, alias: alias.map(|(other, _)| *other) });
        Ok(row.map(|row| Arc::new(row) as Arc<dyn Module>))
    }
}

/// A row of the table, as the kernel shares modules.
struct Row {
    module: &'static dyn BuiltIn,
    /// The other name the plan used.
    alias: Option<&'static str>,
}

#[async_trait]
impl Module for Row {
    fn id(&self) -> ModuleId {
        self.module.id()
    }

    fn kind(&self) -> ModuleKind {
        self.module.kind()
    }

    async fn mount(&self, config: Value, cx: &MountCx) -> Result<Mounted, LoadError> {
        if let Some(alias) = self.alias {
            cx.warn(format!("`{alias}` is another name of `{}`; that one was mounted", self.module.id()));
        }
        self.module.mount(config, cx).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_id_is_a_valid_name_and_stands_in_the_table_once() {
        let mut seen = BTreeSet::new();
        for module in MODULES {
            let id: ModuleId = module.id().as_str().parse().unwrap();
            assert!(seen.insert(id.to_string()), "{id} stands twice in the table");
        }
    }

    #[test]
    fn every_other_name_is_free_and_leads_to_a_module_of_the_kind_it_names() {
        for (alias, id) in ALIASES {
            let named = |name: &str| MODULES.iter().find(|module| module.id().as_str() == name);
            assert!(named(alias).is_none(), "{alias} is a module itself");
            let kind = named(id).unwrap_or_else(|| panic!("{id} is no module")).kind();
            assert_eq!(ModuleKind::of_id(&alias.parse().unwrap()), Some(kind), "{alias}");
        }
    }

    #[test]
    fn every_module_lives_in_the_file_its_id_names_and_is_of_the_kind_it_names() {
        for module in MODULES {
            let id = module.id();
            assert_eq!(ModuleKind::of_id(&id), Some(module.kind()), "{id}");
            let (prefix, rest) = id.as_str().split_once('-').unwrap();
            let file = match prefix {
                "loop" => format!("orchestrators/loop_{rest}.rs"),
                "context" => format!("contexts/{rest}.rs"),
                "provider" => format!("providers/{rest}.rs"),
                "tool" => format!("tools/{rest}.rs"),
                "hooks" => format!("hooks/{rest}.rs"),
                other => panic!("`{other}` is no prefix of a module id"),
            };
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file.replace('-', "_"));
            assert!(path.is_file(), "{id} should live in {}", path.display());
        }
    }
}
