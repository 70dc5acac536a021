//! `profile.md`: what is read, what is refused, and what `extends` does (reference §6.2).

use amplifier_profile::ProfileError;
use amplifier_profile::chain::Profile;
use serde_json::{Value, json};

use crate::house::{House, profile};

fn load(house: &House, id: &str) -> Result<Profile, ProfileError> {
    house.profiles.load(&id.parse().unwrap())
}

/// Writes profiles in place: no collection has to be synced.
fn local(house: &House, name: &str, text: &str) {
    house.write(&format!("home/share/profiles/local/{name}/profile.md"), text);
}

pub const SEED: &str = "---
profile:
  name: base
  version: 1.1.0
  description: Base configuration with core functionality
  extends: foundation  # Optional: inherit from another profile
  schema_version: 2

session:
  orchestrator:
    module: loop-streaming
    source: git+https://example.invalid/amplifier-module-loop-streaming@main
    config:
      extended_thinking: true
  context:
    module: context-simple
    source: git+https://example.invalid/amplifier-module-context-simple@main
    config:
      max_tokens: 400000

providers:
- module: provider-anthropic
  source: git+https://example.invalid/amplifier-module-provider-anthropic@main
  config:
    default_model: claude-sonnet-4-5

tools:
- module: tool-web
  source: git+https://example.invalid/amplifier-module-tool-web@main
- module: tool-issue
  source: git+https://example.invalid/o/r@main#subdirectory=max_payne_collection/modules/tool-issue

hooks:
- module: hooks-logging
  source: git+https://example.invalid/amplifier-module-hooks-logging@main

agents:
  explorer: https://example.invalid/registry/agents/foundation/explorer.md

context:
  foundation: git+https://example.invalid/o/amplifierd@main#subdirectory=registry/context/foundation

ui:
  show_thinking_stream: true
  show_tool_lines: 5
---

@foundation:context/shared/common-agent-base.md

# Base Profile
Description of the profile...
";

#[test]
fn every_key_of_the_seed_is_read_and_the_body_kept() {
    let house = House::new();
    local(&house, "foundation", &profile("foundation", "ui: {below: true}\n"));
    local(&house, "base", SEED);
    let profile = load(&house, "local/base").unwrap();
    assert!(profile.notices.is_empty(), "{:?}", profile.notices);
    let head = profile.head().unwrap();
    assert_eq!(head.name.as_ref().unwrap().text, "base");
    assert_eq!(head.version.as_ref().unwrap().text, "1.1.0");
    assert_eq!(head.description.as_ref().unwrap().text, "Base configuration with core functionality");
    let layers: Vec<_> = profile.layers.iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(layers, ["local/foundation", "local/base"]);
    assert_eq!(
        profile.ui.as_ref().unwrap().to_json(),
        json!({"below": true, "show_thinking_stream": true, "show_tool_lines": 5})
    );
    let body = &profile.composed.instruction.as_ref().unwrap().text.text;
    assert_eq!(
        *body,
        "@foundation:context/shared/common-agent-base.md\n\n# Base Profile\nDescription of the profile..."
    );
    let check = house.profiles.check(&"local/base".parse().unwrap()).unwrap();
    let at = |rest: &str| format!("git+https://example.invalid/{rest}");
    let own = |id: &str| at(&format!("amplifier-module-{id}@main"));
    let references: Vec<_> = check
        .references
        .iter()
        .map(|found| (found.slot.folder(), found.name.as_str(), found.shown.clone()))
        .collect();
    assert_eq!(
        references,
        [
            ("orchestrator", "loop-streaming", own("loop-streaming")),
            ("context", "context-simple", own("context-simple")),
            ("providers", "provider-anthropic", own("provider-anthropic")),
            ("tools", "tool-web", own("tool-web")),
            ("tools", "tool-issue", at("o/r@main#subdirectory=max_payne_collection/modules/tool-issue")),
            ("hooks", "hooks-logging", own("hooks-logging")),
            (
                "agents",
                "explorer",
                "https://example.invalid/registry/agents/foundation/explorer.md".to_owned()
            ),
            ("contexts", "foundation", at("o/amplifierd@main#subdirectory=registry/context/foundation")),
        ]
    );
}

#[test]
fn rules_crlf_and_a_byte_order_mark_change_nothing() {
    let house = House::new();
    let text = profile("p", "ui:\n  line: '--- not a fence ---'\n  block: |\n    ---\n    x\n");
    let text = format!("{text}\nbefore\n\n---\n\nafter\n");
    local(&house, "plain", &text);
    local(&house, "windows", &format!("\u{feff}{}", text.replace('\n', "\r\n")));
    let read = |id: &str| {
        let profile = load(&house, id).unwrap();
        let body = profile.composed.instruction.as_ref().unwrap().text.text.clone();
        (profile.ui.as_ref().unwrap().at("line").unwrap().to_json(), body)
    };
    assert_eq!(read("local/plain"), (json!("--- not a fence ---"), "before\n\n---\n\nafter".into()));
    assert_eq!(read("local/windows"), read("local/plain"));
}

#[tokio::test]
async fn what_is_no_profile_is_refused_with_its_reason_and_its_line() {
    let house = House::new();
    let head = |rest: &str| format!("---\nprofile:\n{rest}session: {{orchestrator: a, context: b}}\n---\n");
    let rows = [
        ("just text", "1:1: the file has no front matter"),
        ("---\nprofile: {}\n", "1:1: the front matter has no closing `---`"),
        ("---\nbundle: {name: x}\n---\n", "1:1: the front matter has no `profile` section"),
        (&head("  version: 1\n  schema_version: 2\n"), "1:1: `profile.name` is missing"),
        (
            &head("  name: a/b\n  version: 1\n  schema_version: 2\n"),
            "3:9: `profile.name` is `a/b`, which is no name of a folder",
        ),
        (&head("  name: x\n  version: 1\n"), "3:9: `profile.schema_version` is missing"),
        (
            &head("  name: x\n  version: 1\n  schema_version: 1\n"),
            "5:19: `profile.schema_version` 1 is not supported; 2 is",
        ),
        (&head("  name: x\n  schema_version: 2\n"), "3:9: `profile.version` is missing"),
        (
            "---\nprofile: {name: x, version: 1, schema_version: 2}\n---\n",
            "2:17: `session.orchestrator` is missing",
        ),
    ];
    for (index, (text, expected)) in rows.iter().enumerate() {
        let name = format!("p{index}");
        local(&house, &name, text);
        let error = load(&house, &format!("local/{name}")).unwrap_err();
        let said = error.to_string();
        assert!(said.ends_with(&format!("profile.md:{expected}")), "{text}\n{said}");
        assert!(error.hint().is_some(), "{said}");
    }
    // A quoted number is a number.
    local(&house, "quoted", &head("  name: x\n  version: 1\n  schema_version: \"2\"\n"));
    load(&house, "local/quoted").unwrap();
    // Discovery tells and goes on.
    house.one("old", &head("  name: x\n  version: 1\n  schema_version: 1\n"));
    house.write("collection/good/profile.md", &profile("good", ""));
    let reports = house.extract().await;
    assert_eq!((reports[0].profiles.len(), reports[0].skipped.len()), (1, 1));
    assert!(reports[0].skipped[0].reason.to_string().contains("`profile.schema_version` 1 is not supported"));
}

#[tokio::test]
async fn other_spellings_of_sections_are_read() {
    let house = House::new();
    house.write("home/share/profiles/local/p/a.md", "one");
    house.write("home/share/profiles/local/p/b.md", "two");
    house.write("home/share/profiles/local/p/docs/c.md", "three");
    let head = "---\nprofile: {name: p, version: 1, schema_version: 2}\n";
    local(
        &house,
        "p",
        &format!(
            "{head}session:\n  orchestrator: loop-basic\n  context-manager: {{module: context-simple}}\nagents: [./a.md, b.md]\ncontext: [./docs]\n---\n"
        ),
    );
    house.compile("local/p").await.unwrap();
    let plan = house.plan_as("local/p", Default::default());
    assert_eq!(plan["session"]["context"]["module"], json!("context-simple"));
    assert_eq!(plan["session"]["orchestrator"]["module"], json!("loop-basic"));
    assert_eq!(plan["agents"]["agent_0"]["content"], json!("one"));
    assert_eq!(plan["agents"]["agent_1"]["content"], json!("two"));
    assert!(house.share("profiles/local/p/contexts/context_0/c.md").is_file());
    // What is not ours stays where it was.
    assert!(house.share("profiles/local/p/docs/c.md").is_file());
}

async fn merged(base: &str, child: &str) -> Value {
    let house = House::new();
    local(&house, "base", base);
    local(&house, "child", child);
    house.compile("local/child").await.unwrap_or_else(|error| panic!("{}", error.chain()));
    house.plan_as("local/child", Default::default())
}

fn child(rest: &str) -> String {
    format!("---\nprofile: {{name: child, version: 1, schema_version: 2, extends: base}}\n{rest}---\n")
}

#[tokio::test]
async fn a_child_merges_by_module_id_and_inherits_the_source() {
    let base = profile("base", "tools:\n- {module: tool-a, source: pkg-a, config: {x: 1, deep: {y: 1, z: 1}}}\n- module: tool-b\nproviders:\n- module: provider-mock\n")
        .replace("context: {module: context-simple}", "context: {module: context-simple, source: pkg-c, config: {max_tokens: 1, auto: true}}");
    let plan = merged(
        &base,
        &child("session: {context: {config: {max_tokens: 2}}}\ntools:\n- {module: tool-a, config: {deep: {y: 2}}}\n- module: tool-c\n"),
    )
    .await;
    assert_eq!(
        plan["session"]["context"],
        json!({"module": "context-simple", "source": "pkg-c", "config": {"max_tokens": 2, "auto": true}})
    );
    assert_eq!(
        plan["tools"],
        json!([
            {"module": "tool-a", "source": "pkg-a", "config": {"x": 1, "deep": {"y": 2, "z": 1}}},
            {"module": "tool-b", "config": {}},
            {"module": "tool-c", "config": {}},
        ])
    );
    assert_eq!(plan["providers"], json!([{"module": "provider-mock", "config": {}}]));
}

#[tokio::test]
async fn another_loop_does_not_inherit_the_source_of_the_first() {
    let base = profile("base", "").replace(
        "orchestrator: {module: loop-basic}",
        "orchestrator: {module: loop-basic, source: pkg, config: {a: 1}}",
    );
    let plan = merged(&base, &child("session: {orchestrator: {module: loop-events}}\n")).await;
    assert_eq!(plan["session"]["orchestrator"], json!({"module": "loop-events", "config": {}}));
}

#[tokio::test]
async fn an_entry_written_twice_stays_two_in_order() {
    let twice =
        "providers:\n- {module: provider-mock, config: {n: 1}}\n- {module: provider-mock, config: {n: 2}}\n";
    let plan = merged(&profile("base", twice), &child("")).await;
    let configs = |plan: &Value| {
        plan["providers"].as_array().unwrap().iter().map(|p| p["config"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(configs(&plan), [json!({"n": 1}), json!({"n": 2})]);
    // Across levels the first meets the first.
    let once = "providers:\n- {module: provider-mock, config: {m: 0}}\n";
    let plan = merged(&profile("base", once), &child(twice)).await;
    assert_eq!(configs(&plan), [json!({"m": 0, "n": 1}), json!({"n": 2})]);
}

#[test]
fn a_circle_is_an_error_that_shows_it() {
    let house = House::new();
    let extends = |name: &str, base: &str| {
        profile(name, "").replace("  version", &format!("  extends: {base}\n  version"))
    };
    local(&house, "a", &extends("a", "b"));
    local(&house, "b", &extends("b", "local/a"));
    local(&house, "self", &extends("self", "local:profiles/self.md"));
    let said = load(&house, "local/a").unwrap_err().to_string();
    assert!(
        said.ends_with(
            "b/profile.md:4:12: profiles extend each other in a circle: local/a → local/b → local/a"
        ),
        "{said}"
    );
    let said = load(&house, "local/self").unwrap_err().to_string();
    assert!(said.ends_with("local/self → local/self"), "{said}");
}

#[tokio::test]
async fn a_base_that_is_not_there_is_named() {
    let house = House::new();
    local(&house, "a", &profile("a", "").replace("  version", "  extends: other/nobody\n  version"));
    let error = house.compile("local/a").await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("profile.md:4:12: the profile `other/nobody` that `local/a` extends is not there"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("collection sync"));
    let error = house.compile("local/nobody").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no profile `local/nobody`");
}
