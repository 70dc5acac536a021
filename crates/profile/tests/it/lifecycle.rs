//! The three phases of the specification, end to end: its folders, its lock and both of its mount plans, exactly.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use amplifier_profile::sync::Compilation;
use amplifier_protocol::mount_plan::PlanForm;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::house::{House, listing};
use crate::server::{Reply, Request, Server, git};
use crate::support::Repo;

const AGENT: &str = "You are an expert software engineer...";

/// The modules of the specification's listing, in one repository, with what nobody wants beside them.
fn modules(house: &House) -> (Repo, String) {
    let repo = house.world.repo("repos/modules");
    let commit = repo.commit(&[
        ("amplifier_module_loop_streaming/__init__.py", "loop\n"),
        ("amplifier_module_loop_streaming/orchestrator.py", "loop\n"),
        ("amplifier_module_context_simple/__init__.py", "context\n"),
        ("amplifier_module_context_simple/manager.py", "context\n"),
        ("amplifier_module_provider_anthropic/__init__.py", "provider\n"),
        ("amplifier_module_provider_anthropic/provider.py", "provider\n"),
        ("tools/web/amplifier_module_tool_web_search/__init__.py", "tool\n"),
        ("tools/web/amplifier_module_tool_web_search/tool.py", "tool\n"),
        ("tools/web/amplifier_module_tool_web_search/__pycache__/tool.pyc", "x"),
        ("hooks/amplifier_module_hook_logging/__init__.py", "hook\n"),
        ("hooks/amplifier_module_hook_logging/hook.py", "hook\n"),
        ("README.md", "modules\n"),
    ]);
    (repo, commit)
}

fn agents(house: &House) -> (Repo, String) {
    let repo = house.world.repo("repos/agents");
    let commit = repo.commit(&[
        ("experts/code.md", AGENT),
        ("docs/USAGE.md", "usage\n"),
        ("docs/subdir/EXTRA.md", "extra\n"),
    ]);
    repo.run(&["tag", "v1.0.0"]);
    (repo, commit)
}

fn text(modules: &str, agents: &str, page: &str) -> String {
    format!(
        "---
profile:
  name: base
  version: 1.1.0
  description: Base configuration with core functionality
  schema_version: 2

session:
  orchestrator:
    module: loop-streaming
    source: {modules}#amplifier_module_loop_streaming
    config:
      max_iterations: 10
  context:
    module: context-simple
    source: {modules}#amplifier_module_context_simple
    config:
      max_tokens: 200000

providers:
- module: provider-anthropic
  source: {modules}#amplifier_module_provider_anthropic
  config:
    model: claude-3-5-sonnet-20241022
    api_key: ${{ANTHROPIC_API_KEY}}

tools:
- module: tool-web-search
  source: {modules}#subdirectory=tools/web

hooks:
- module: hook-logging
  source: {modules}#subdirectory=hooks
  config:
    level: INFO

agents:
  code-expert: {agents}#experts/code.md
  debug-helper: {page}

context:
  docs: {agents}#subdirectory=docs

ui:
  show_thinking_stream: true
---

@docs:USAGE.md

# Base Profile
"
    )
}

/// The listing of the specification.
const LISTING: [&str; 33] = [
    "agents/",
    "agents/code-expert.md",
    "agents/debug-helper.md",
    "context/",
    "context/context-simple/",
    "context/context-simple/amplifier_module_context_simple/",
    "context/context-simple/amplifier_module_context_simple/__init__.py",
    "context/context-simple/amplifier_module_context_simple/manager.py",
    "contexts/",
    "contexts/docs/",
    "contexts/docs/USAGE.md",
    "contexts/docs/subdir/",
    "contexts/docs/subdir/EXTRA.md",
    "hooks/",
    "hooks/hook-logging/",
    "hooks/hook-logging/amplifier_module_hook_logging/",
    "hooks/hook-logging/amplifier_module_hook_logging/__init__.py",
    "hooks/hook-logging/amplifier_module_hook_logging/hook.py",
    "orchestrator/",
    "orchestrator/loop-streaming/",
    "orchestrator/loop-streaming/amplifier_module_loop_streaming/",
    "orchestrator/loop-streaming/amplifier_module_loop_streaming/__init__.py",
    "orchestrator/loop-streaming/amplifier_module_loop_streaming/orchestrator.py",
    "profile.lock",
    "profile.md",
    "providers/",
    "providers/provider-anthropic/",
    "providers/provider-anthropic/amplifier_module_provider_anthropic/",
    "providers/provider-anthropic/amplifier_module_provider_anthropic/__init__.py",
    "providers/provider-anthropic/amplifier_module_provider_anthropic/provider.py",
    "tools/",
    "tools/tool-web-search/",
    "tools/tool-web-search/amplifier_module_tool_web_search/",
];

/// What the lock must say of a folder or file, by the rule that `profile.lock` is documented with: SHA-256 over a first line
/// and, in the order of their paths, the kind, the hash and the path of every file.
fn content_hash(files: &[(&str, &str)]) -> String {
    let hex =
        |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut text = "amplifier-tree-v1\n".to_owned();
    for (path, content) in files {
        text.push_str(&format!("file {} {path}\0", hex(content.as_bytes())));
    }
    format!("sha256:{}", hex(text.as_bytes()))
}

/// Everything about one run of the phases: the collection's source, the references of its profile, and what they are.
struct Example<'a> {
    source: &'a str,
    modules: &'a str,
    agents: &'a str,
    page: &'a str,
    /// Of the repository of modules and of the one of agents.
    commits: (&'a str, &'a str),
}

impl Example<'_> {
    fn text(&self) -> String {
        text(self.modules, self.agents, self.page)
    }

    /// The lock, to the byte.
    fn lock(&self) -> String {
        let at = "2025-11-28T10:30:00Z";
        let module = |name: &str, part: &str, file: &str, content: &str| {
            let package = format!("amplifier_module_{}", name.replace('-', "_"));
            let (init, other) = (format!("{package}/__init__.py"), format!("{package}/{file}"));
            let hash = content_hash(&[(init.as_str(), content), (other.as_str(), content)]);
            let reference = format!("{}#{part}", self.modules);
            json!({"name": name, "ref": reference, "commit": self.commits.0, "content_hash": hash, "resolved_at": at})
        };
        let usage = content_hash(&[("USAGE.md", "usage\n"), ("subdir/EXTRA.md", "extra\n")]);
        let expert = content_hash(&[("code-expert.md", AGENT)]);
        let lock = json!({
            "generated_at": at,
            "profile_hash": Sha256::digest(self.text()).iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            "resources": {
                "orchestrator": module("loop-streaming", "amplifier_module_loop_streaming", "orchestrator.py", "loop\n"),
                "context": module("context-simple", "amplifier_module_context_simple", "manager.py", "context\n"),
                "providers": [
                    module("provider-anthropic", "amplifier_module_provider_anthropic", "provider.py", "provider\n"),
                ],
                "tools": [module("tool-web-search", "subdirectory=tools/web", "tool.py", "tool\n")],
                "hooks": [module("hook-logging", "subdirectory=hooks", "hook.py", "hook\n")],
                "agents": {
                    "code-expert": {
                        "ref": format!("{}#experts/code.md", self.agents),
                        "commit": self.commits.1, "content_hash": expert, "resolved_at": at,
                    },
                    "debug-helper": {
                        "ref": self.page, "content_hash": content_hash(&[("debug-helper.md", "debug\n")]), "resolved_at": at,
                    },
                },
                "contexts": {
                    "docs": {
                        "ref": format!("{}#subdirectory=docs", self.agents),
                        "commit": self.commits.1, "content_hash": usage, "resolved_at": at,
                    },
                },
            },
            "lock_version": 1,
        });
        format!("{}\n", serde_json::to_string_pretty(&lock).unwrap())
    }

    /// The phases on the collection `foundation`, and all they must leave behind.
    async fn run(&self, house: &House) {
        house.register(&format!("collections:\n  foundation:\n    source: {}\n", self.source));
        let reports = house.profiles.sync(Compilation::Compile, &house.cx()).await.unwrap();
        assert_eq!(reports[0].status.as_str(), "synced", "{reports:?}");
        assert!(reports[0].failed.is_empty(), "{:?}", reports[0].failed[0].error.chain());
        let dir = house.share("profiles/foundation/base");
        let mut expected: Vec<_> = LISTING.iter().map(|name| (*name).to_owned()).collect();
        let package = "tools/tool-web-search/amplifier_module_tool_web_search";
        expected.extend(["__init__.py", "tool.py"].map(|name| format!("{package}/{name}")));
        expected.sort();
        assert_eq!(listing(&dir), expected);
        assert_eq!(fs::read_to_string(dir.join("profile.md")).unwrap(), self.text());
        assert_eq!(fs::read_to_string(dir.join("profile.lock")).unwrap(), self.lock());
        plans(house, (self.agents, self.page));
        // Nothing is fetched, asked or written again.
        let before = house.snapshot("profiles/foundation/base");
        let compiled =
            house.profiles.compile(&"foundation/base".parse().unwrap(), &house.offline()).await.unwrap();
        assert_eq!(crate::house::outcome(&compiled), ["unchanged"]);
        assert_eq!(house.snapshot("profiles/foundation/base"), before);
    }
}

fn plans(house: &House, (agents, page): (&str, &str)) {
    let hint = "foundation/base";
    assert_eq!(
        serde_json::to_string_pretty(&house.plan_as(hint, PlanForm::Nested)).unwrap(),
        serde_json::to_string_pretty(&json!({
            "session": {
                "orchestrator": {"module": "loop-streaming", "source": hint, "config": {"max_iterations": 10}},
                "context": {"module": "context-simple", "source": hint, "config": {"max_tokens": 200_000}},
            },
            "providers": [{
                "module": "provider-anthropic",
                "source": hint,
                "config": {"model": "claude-3-5-sonnet-20241022", "api_key": "${ANTHROPIC_API_KEY}"},
            }],
            "tools": [{"module": "tool-web-search", "source": hint, "config": {}}],
            "hooks": [{"module": "hook-logging", "source": hint, "config": {"level": "INFO"}}],
            "agents": {
                "code-expert": {"content": AGENT, "metadata": {"source": "foundation:agents/code-expert.md"}},
                "debug-helper": {"content": "debug\n", "metadata": {"source": "foundation:agents/debug-helper.md"}},
            },
        }))
        .unwrap()
    );
    let url = |part: &str| format!("file://{}/{part}", house.share("profiles/foundation/base").display());
    assert_eq!(
        serde_json::to_string_pretty(&house.plan_as(hint, PlanForm::Strings)).unwrap(),
        serde_json::to_string_pretty(&json!({
            "session": {
                "orchestrator": "loop-streaming",
                "orchestrator_source": url("orchestrator/loop-streaming"),
                "context": "context-simple",
                "context_source": url("context/context-simple"),
            },
            "orchestrator": {"config": {"max_iterations": 10}},
            "context": {"config": {"max_tokens": 200_000}},
            "providers": [{
                "module": "provider-anthropic",
                "source": url("providers/provider-anthropic"),
                "config": {"model": "claude-3-5-sonnet-20241022", "api_key": "${ANTHROPIC_API_KEY}"},
            }],
            "tools": [{"module": "tool-web-search", "source": url("tools/tool-web-search"), "config": {}}],
            "hooks": [{"module": "hook-logging", "source": url("hooks/hook-logging"), "config": {"level": "INFO"}}],
            "agents": {
                "code-expert": {"content": AGENT, "metadata": {"source": format!("{agents}#experts/code.md")}},
                "debug-helper": {"content": "debug\n", "metadata": {"source": page}},
            },
        }))
        .unwrap()
    );
}

/// The collection in a repository of its own, with a tag.
fn collection(house: &House, text: &str) -> Repo {
    let profiles = house.world.repo("repos/profiles");
    profiles.commit(&[
        ("registry/foundation/base/profile.md", text),
        ("registry/foundation/README.md", "read me\n"),
    ]);
    profiles.run(&["tag", "v1.0.0"]);
    profiles
}

const PROFILES: &str = "@v1.0.0#subdirectory=registry/foundation";

#[tokio::test]
async fn the_phases_of_the_specification_over_files() {
    let house = House::new();
    let ((modules, one), (agents, two)) = (modules(&house), agents(&house));
    // A fetched collection sees no file of this machine, so the page comes over HTTP here too.
    let server = Server::start(|_: &Request| Reply::new(200, "debug\n")).await;
    let (modules, agents, page) = (modules.uri("@main"), agents.uri("@v1.0.0"), server.url("/debug.md"));
    let source = collection(&house, &text(&modules, &agents, &page)).uri(PROFILES);
    let commits = (one.as_str(), two.as_str());
    Example { source: &source, modules: &modules, agents: &agents, page: &page, commits }.run(&house).await;
}

#[tokio::test]
async fn the_phases_of_the_specification_from_a_folder() {
    let house = House::new();
    let ((modules, one), (agents, two)) = (modules(&house), agents(&house));
    let page = house.write("page/debug.md", "debug\n");
    let (modules, agents) = (modules.uri("@main"), agents.uri("@v1.0.0"));
    let page = format!("file://{}", page.display());
    // A collection on this machine may name files of this machine.
    house.write("registry/base/profile.md", &text(&modules, &agents, &page));
    let source = house.path("registry").display().to_string();
    let commits = (one.as_str(), two.as_str());
    Example { source: &source, modules: &modules, agents: &agents, page: &page, commits }.run(&house).await;
}

#[tokio::test]
async fn the_phases_of_the_specification_over_http() {
    let house = House::new();
    let ((_, one), (_, two)) = (modules(&house), agents(&house));
    let repositories = git(&house.path("repos"), house.world.variables());
    let server = Server::start(move |request: &Request| match request.path.as_str() {
        "/pages/debug.md" => Reply::new(200, "debug\n"),
        _ => repositories(request),
    })
    .await;
    let modules = format!("git+{}", server.url("/modules/.git@main"));
    let agents = format!("git+{}", server.url("/agents/.git@v1.0.0"));
    let page = server.url("/pages/debug.md");
    collection(&house, &text(&modules, &agents, &page));
    let source = format!("git+{}", server.url(&format!("/profiles/.git{PROFILES}")));
    let commits = (one.as_str(), two.as_str());
    Example { source: &source, modules: &modules, agents: &agents, page: &page, commits }.run(&house).await;
    assert_eq!(server.fetches(), 3, "one for each repository: {:#?}", server.log());
    // With the cache gone and the server too, what was compiled still opens.
    drop(server);
    fs::remove_dir_all(house.path("home/cache")).unwrap();
    let compiled =
        house.profiles.compile(&"foundation/base".parse().unwrap(), &house.offline()).await.unwrap();
    assert_eq!(crate::house::outcome(&compiled), ["unchanged"]);
}

#[tokio::test]
async fn relative_references_of_a_fetched_collection_are_pinned_to_its_commit() {
    let house = House::new();
    let repo = house.world.repo("repo");
    let commit = repo.commit(&[
        (
            "profiles/p/profile.md",
            &crate::house::profile(
                "p",
                "tools:\n- {module: tool-x, source: ../../modules/x}\nagents: {a: ../a.md}\n",
            ),
        ),
        ("profiles/a.md", "agent\n"),
        ("modules/x/amplifier_module_tool_x/__init__.py", "x\n"),
        ("modules/x/pyproject.toml", "[project]\n"),
    ]);
    house.register(&format!("collections:\n  c:\n    source: {}\n", repo.uri("@main#subdirectory=profiles")));
    house.extract().await;
    let compiled = house.compile("c/p").await.unwrap();
    let lock = compiled.lock.resources;
    assert_eq!(lock.tools[0].reference, repo.uri(&format!("@{commit}#subdirectory=modules/x")));
    assert_eq!(lock.agents["a"].reference, repo.uri(&format!("@{commit}#subdirectory=profiles/a.md")));
    assert_eq!(
        listing(&house.share("profiles/c/p/tools")),
        [
            "tool-x/",
            "tool-x/amplifier_module_tool_x/",
            "tool-x/amplifier_module_tool_x/__init__.py",
            "tool-x/pyproject.toml"
        ]
    );
}

#[tokio::test]
async fn a_fetched_profile_sees_nothing_of_this_machine() {
    let house = House::new();
    let secret = house.write("secret/key.md", "secret\n");
    let rows = [
        format!("agents: {{a: {}}}\n", secret.display()),
        format!("agents: {{a: file://{}}}\n", secret.display()),
        "agents: {a: ../../secret/key.md}\n".to_owned(),
        format!("context: {{a: {}}}\n", house.path("secret").display()),
        format!("tools:\n- {{module: tool-x, source: {}}}\n", house.path("secret").display()),
    ];
    let repo = house.world.repo("repo");
    let files: BTreeMap<_, _> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            (format!("p{index}/profile.md"), crate::house::profile(&format!("p{index}"), row))
        })
        .collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    repo.commit(&files);
    house.register(&format!("collections:\n  c:\n    source: {}\n", repo.uri("")));
    let reports = house.extract().await;
    assert_eq!(reports[0].profiles.len() + reports[0].skipped.len(), rows.len());
    for id in &reports[0].profiles {
        let error = house.profiles.compile(id, &house.cx()).await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains("a fetched profile") && error.place().is_some(), "{id}: {said}");
    }
    // A link in a repository leads nowhere outside of it.
    let links = house.world.repo("links");
    links.commit(&[("ctx/a.md", "a\n")]);
    std::os::unix::fs::symlink(&secret, links.path.join("ctx/link.md")).unwrap();
    links.commit(&[]);
    house.write(
        "home/share/profiles/local/l/profile.md",
        &crate::house::profile("l", &format!("context: {{c: {}}}\n", links.uri("#subdirectory=ctx"))),
    );
    let error = house.compile("local/l").await.unwrap_err();
    assert!(error.chain().contains("link"), "{}", error.chain());
    assert!(!house.share("profiles/local/l/contexts").exists());
}

#[tokio::test]
async fn two_compilations_at_once_wait_for_each_other_and_agree() {
    let house = House::new();
    let (modules, _) = modules(&house);
    house.write(
        "home/share/profiles/local/p/profile.md",
        &crate::house::profile(
            "p",
            &format!(
                "tools:\n- {{module: tool-web-search, source: {}}}\n",
                modules.uri("@main#subdirectory=tools/web")
            ),
        ),
    );
    let running: Vec<_> = (0..4)
        .map(|_| {
            let (profiles, cx) = (Arc::clone(&house.profiles), house.cx());
            tokio::spawn(async move { profiles.compile(&"local/p".parse().unwrap(), &cx).await.unwrap() })
        })
        .collect();
    let mut built = 0;
    let mut locks = Vec::new();
    for task in running {
        let compiled = task.await.unwrap();
        built += usize::from(crate::house::outcome(&compiled) != ["unchanged"]);
        locks.push(compiled.lock);
    }
    assert_eq!(built, 1);
    assert!(locks.windows(2).all(|pair| pair[0] == pair[1]));
}
