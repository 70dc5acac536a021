//! The example of the specification through the binary: `collections.yaml`, extraction, resolution, plan, answer.
//!
//! Every module is in a repository of its own, one in a subdirectory; the profile extends another; an agent is a page.
//! All of it comes over HTTP from the loopback. Only the model is another: the mock.

use amplifier_testing::http::{Reply, Request, Server};
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, read};

const AGENT: &str = "---\nmeta: {name: explorer, description: Explores.}\n---\nYou explore.\n";

/// The profile below: it brings the loop, the hook and a config that the one above changes.
fn below(at: &dyn Fn(&str) -> String) -> String {
    format!(
        "---
profile:
  name: foundation
  version: 1.0.0
  schema_version: 2

session:
  orchestrator:
    module: loop-streaming
    source: {loop_streaming}
  context:
    module: context-simple
    source: {context_simple}
    config:
      max_tokens: 100000
      auto_compact: true

hooks:
- module: hooks-logging
  source: {hooks_logging}
---
",
        loop_streaming = at("amplifier-module-loop-streaming/.git@main"),
        context_simple = at("amplifier-module-context-simple/.git@main"),
        hooks_logging = at("amplifier-module-hooks-logging/.git@main"),
    )
}

fn above(at: &dyn Fn(&str) -> String, page: &str) -> String {
    format!(
        "---
profile:
  name: base
  version: 1.1.0
  description: Base configuration with core functionality
  extends: foundation  # Optional: inherit from another profile
  schema_version: 2

session:
  orchestrator:
    module: loop-streaming
    config:
      extended_thinking: true
  context:
    module: context-simple
    config:
      max_tokens: 400000

providers:
- module: provider-mock
  source: {provider}
  config:
    default_model: mock-1
    api_key: ${{SEED_KEY}}
    responses:
    - tool_calls: [{{name: todo, arguments: {{action: list}}}}]
    - Hello from the profile

tools:
- module: tool-web
  source: {web}
- module: tool-todo
  source: {todo}

agents:
  explorer: {page}

context:
  foundation: {context}

ui:
  show_thinking_stream: true
  show_tool_lines: 5
---

@foundation:context/shared/common-agent-base.md

# Base Profile
Description of the profile...
",
        provider = at("amplifier-module-provider-mock/.git@main"),
        web = at("amplifier-module-tool-web/.git@main"),
        todo = at("payne-amplifier/.git@main#subdirectory=max_payne_collection/modules/tool-todo"),
        context = at("amplifierd/.git@main#subdirectory=registry/context/foundation"),
    )
}

struct Example {
    desk: Desk,
    server: Server,
}

impl Example {
    async fn new() -> Self {
        let desk = Desk::new();
        let repositories = desk.serving();
        let server = Server::start(move |request: &Request| match request.path.as_str() {
            "/registry/agents/foundation/explorer.md" => Reply::new(200, AGENT),
            _ => repositories(request),
        })
        .await;
        for id in ["loop-streaming", "context-simple", "provider-mock", "tool-web", "hooks-logging"] {
            let file = format!("amplifier_module_{}/__init__.py", id.replace('-', "_"));
            desk.commit(&format!("amplifier-module-{id}"), &[(&file, &format!("# {id}\n"))]);
        }
        let todo = "max_payne_collection/modules/tool-todo/amplifier_module_tool_todo/__init__.py";
        desk.commit("payne-amplifier", &[(todo, "# todo\n"), ("README.md", "read me\n")]);
        let shared = "registry/context/foundation/shared/common-agent-base.md";
        desk.commit("amplifierd", &[(shared, "WORDS OF THE COLLECTION\n")]);
        let example = Self { desk, server };
        let at = |rest: &str| example.at(rest);
        let page = example.server.url("/registry/agents/foundation/explorer.md");
        let (below, above) = (below(&at), above(&at, &page));
        let files =
            [("foundation/profile.md", below.as_str()), ("base/profile.md", &above), ("README.md", "x\n")];
        example.desk.commit("profiles", &files);
        example.desk.git("profiles", &["tag", "v1.0.0"]);
        let registry = example.desk.home().join("share/collections.yaml");
        std::fs::create_dir_all(registry.parent().unwrap()).unwrap();
        let source = example.at("profiles/.git@v1.0.0");
        std::fs::write(registry, format!("collections:\n  foundation:\n    source: {source}\n")).unwrap();
        example
    }

    fn at(&self, rest: &str) -> String {
        format!("git+{}", self.server.url(&format!("/{rest}")))
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.desk.command_with_git(args);
        if args.first() == Some(&"run") {
            command.arg("--trust");
        }
        let ran = Ran::of(command.env("SEED_KEY", SECRET).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.seen());
        ran
    }
}

const SECRET: &str = "the-key-nobody-writes-down";

/// Which modules a session has, and what each of them brought.
fn mounted(ran: &Ran) -> Vec<(Value, Value, Value)> {
    let report = ran.json();
    let modules = report["load_report"]["modules"].as_array().unwrap().clone();
    modules.iter().map(|row| (row["kind"].clone(), row["module"].clone(), row["outcome"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_the_specification_answers() {
    let example = Example::new().await;
    let desk = &example.desk;
    tokio::task::block_in_place(|| {
        let synced = example.run(&["collection", "sync"]);
        assert_eq!(synced.stdout, "foundation synced: base, foundation\n");
        let dir = desk.home().join("share/profiles/foundation/base");
        for file in [
            "profile.md",
            "profile.lock",
            "orchestrator/loop-streaming/amplifier_module_loop_streaming/__init__.py",
            "context/context-simple/amplifier_module_context_simple/__init__.py",
            "providers/provider-mock/amplifier_module_provider_mock/__init__.py",
            "tools/tool-web/amplifier_module_tool_web/__init__.py",
            "tools/tool-todo/amplifier_module_tool_todo/__init__.py",
            "hooks/hooks-logging/amplifier_module_hooks_logging/__init__.py",
            "agents/explorer.md",
            "contexts/foundation/shared/common-agent-base.md",
        ] {
            assert!(dir.join(file).is_file(), "{file}");
        }
        let asked = example.server.log().len();
        let ran = example.run(&["run", "--profile", "foundation/base", "--output", "json", "--strict", "hi"]);
        assert_eq!(ran.json()["answer"], "Hello from the profile");
        assert_eq!(ran.json()["tool_calls"], 1);
        assert_eq!(example.server.log().len(), asked, "what was compiled needs no network");
    });
    check_session(desk);
}

/// The session that was made: its plan, its tool, its hook and its prompt.
fn check_session(desk: &Desk) {
    let session = desk.sessions().pop().unwrap();
    let plan: Value = serde_json::from_str(&read(&session.join("mount_plan.json"))).unwrap();
    let hint = "foundation/base";
    assert_eq!(
        plan["session"],
        json!({
            "orchestrator": {"module": "loop-streaming", "source": hint, "config": {"extended_thinking": true}},
            "context": {
                "module": "context-simple", "source": hint,
                "config": {"max_tokens": 400_000, "auto_compact": true},
            },
        })
    );
    let of = |section: &str| {
        let items = plan[section].as_array().unwrap().iter();
        items
            .map(|item| (item["module"].as_str().unwrap(), item["source"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("providers"), [("provider-mock", hint)]);
    assert_eq!(of("tools"), [("tool-web", hint), ("tool-todo", hint)]);
    assert_eq!(of("hooks"), [("hooks-logging", hint)]);
    assert_eq!(
        plan["agents"],
        json!({"explorer": {"content": AGENT, "metadata": {"source": "foundation:agents/explorer.md"}}})
    );
    let journal = read(&session.join("events.jsonl"));
    let named = |name: &str| journal.lines().find(|line| line.contains(&format!("\"name\":\"{name}\"")));
    assert!(named("tool:post").unwrap().contains("\"todo\""), "{journal}");
    assert!(named("mentions:resolved").unwrap().contains("contexts/foundation/shared/common-agent-base.md"));
    let logs = desk.work().join(".amplifier/logs");
    let log = format!("{}.jsonl", session.file_name().unwrap().display());
    let mut names: Vec<_> =
        std::fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".gitignore", log.as_str()]);
    assert!(read(&logs.join(log)).contains("tool:pre"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_forms_of_a_plan_mount_the_same_modules() {
    let example = Example::new().await;
    tokio::task::block_in_place(|| {
        example.run(&["collection", "sync"]);
        let of_profile = example.run(&["run", "--profile", "foundation/base", "--output", "json", "hi"]);
        for form in ["nested", "string"] {
            let plan =
                example.run(&["plan", "show", "--profile", "foundation/base", "--format", form]).stdout;
            let is_string =
                serde_json::from_str::<Value>(&plan).unwrap()["session"]["orchestrator"].is_string();
            assert_eq!(is_string, form == "string", "{plan}");
            example.desk.file("plan.json", plan);
            let opened = example.run(&["run", "--plan", "plan.json", "--output", "json", "--strict", "hi"]);
            assert_eq!(opened.json()["answer"], "Hello from the profile");
            assert_eq!(mounted(&opened), mounted(&of_profile), "{form}");
            assert_eq!(mounted(&opened).len(), 6);
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_of_a_profile_is_written_down() {
    let example = Example::new().await;
    tokio::task::block_in_place(|| {
        example.run(&["collection", "sync"]);
        example.run(&["run", "--profile", "foundation/base", "hi"]);
    });
    let session = example.desk.sessions().pop().unwrap();
    let plan: Value = serde_json::from_str(&read(&session.join("mount_plan.json"))).unwrap();
    assert_eq!(plan["providers"][0]["config"]["api_key"], "${SEED_KEY}");
    let mut open = vec![example.desk.home(), example.desk.work()];
    let mut files = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
                continue;
            }
            files += 1;
            let bytes = std::fs::read(entry.path()).unwrap();
            let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
            assert!(!found, "the key is in {}", entry.path().display());
        }
    }
    assert!(files > 20, "{files} files were looked at");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_compile_at_once_wait_for_each_other_and_agree() {
    let example = Example::new().await;
    tokio::task::block_in_place(|| {
        example.run(&["collection", "sync", "--no-compile"]);
        let args = ["profile", "compile", "foundation/base"];
        let running: Vec<_> = (0..2).map(|_| example.desk.command_with_git(&args).spawn().unwrap()).collect();
        let mut said: Vec<_> = running
            .into_iter()
            .map(|child| {
                let ran = Ran::of(child.wait_with_output().unwrap());
                assert_eq!(ran.code, 0, "{}", ran.seen());
                ran.stdout
            })
            .collect();
        said.sort();
        assert_eq!(said, ["foundation/base compiled\n", "foundation/base unchanged\n"]);
        assert_eq!(example.run(&["profile", "check", "foundation/base"]).code, 0);
        let left = std::fs::read_dir(example.desk.home().join("share/profiles/foundation")).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, [".collection.json", "base", "foundation"]);
    });
}
