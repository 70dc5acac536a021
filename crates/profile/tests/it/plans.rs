//! Mount plans and the resolver (reference §6.5).

use std::sync::Arc;

use amplifier_core::contracts::{ModuleSource, ModuleSourceResolver, Resolved, SourceError};
use amplifier_profile::resolver::DaemonModuleSourceResolver;
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::mount_plan::{MountPlan, PlanForm};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::house::{House, profile};

fn id(text: &str) -> ModuleId {
    text.parse().unwrap()
}

#[tokio::test]
async fn the_plan_of_the_seed_with_its_hints() {
    let house = House::new();
    for name in ["loop-streaming", "context-simple", "provider-anthropic", "tool-web", "hooks-logging"] {
        house.write(&format!("m/{name}/amplifier_module_{}/__init__.py", name.replace('-', "_")), "");
    }
    house.write("code.md", "You are an expert software engineer...");
    let at = |name: &str| house.path(&format!("m/{name}")).display().to_string();
    let text = format!(
        "---\nprofile: {{name: base, version: 1.0.0, schema_version: 2}}\nsession:\n  orchestrator:\n    module: loop-streaming\n    source: {}\n    config: {{extended_thinking: true, max_iterations: 25}}\n  context:\n    module: context-simple\n    source: {}\n    config: {{max_tokens: 400000, auto_compact: true}}\nproviders:\n- {{module: provider-anthropic, source: {}, config: {{default_model: claude-sonnet-4-5}}}}\ntools:\n- {{module: tool-web, source: {}}}\nhooks:\n- {{module: hooks-logging, source: {}, config: {{mode: session-only}}}}\nagents:\n  code-expert: {}\n---\n",
        at("loop-streaming"),
        at("context-simple"),
        at("provider-anthropic"),
        at("tool-web"),
        at("hooks-logging"),
        house.path("code.md").display()
    );
    house.write("foundation/base/profile.md", &text);
    house.register(&format!(
        "collections:\n  foundation:\n    source: {}\n",
        house.path("foundation").display()
    ));
    let plan = house.plan("foundation/base").await;
    let hint = "foundation/base";
    assert_eq!(
        serde_json::to_string_pretty(&plan).unwrap(),
        serde_json::to_string_pretty(&json!({
            "session": {
                "orchestrator": {"module": "loop-streaming", "source": hint, "config": {"extended_thinking": true, "max_iterations": 25}},
                "context": {"module": "context-simple", "source": hint, "config": {"max_tokens": 400_000, "auto_compact": true}},
            },
            "providers": [{"module": "provider-anthropic", "source": hint, "config": {"default_model": "claude-sonnet-4-5"}}],
            "tools": [{"module": "tool-web", "source": hint, "config": {}}],
            "hooks": [{"module": "hooks-logging", "source": hint, "config": {"mode": "session-only"}}],
            "agents": {"code-expert": {
                "content": "You are an expert software engineer...",
                "metadata": {"source": "foundation:agents/code-expert.md"},
            }},
        }))
        .unwrap()
    );
    // Both forms mean the same to the kernel, sources aside.
    let read = |form| {
        let mut plan = MountPlan::read(&house.plan_as(hint, form)).unwrap();
        plan.agents.clear();
        for spec in [&mut plan.session.orchestrator, &mut plan.session.context]
            .into_iter()
            .chain(&mut plan.providers)
            .chain(&mut plan.tools)
            .chain(&mut plan.hooks)
        {
            assert!(spec.source.take().is_some());
        }
        plan
    };
    assert_eq!(read(PlanForm::Nested), read(PlanForm::Strings));
}

#[tokio::test]
async fn budgets_null_and_unknown_keys_are_kept_and_context_folders_are_not() {
    let house = House::new();
    house.write("collection/docs/a.md", "a\n");
    let text = profile("p", "context: {docs: ../docs}\n").replace(
        "session:\n",
        "session:\n  injection_size_limit: null\n  injection_budget_per_turn: 500\n  metadata: {team: x}\n",
    );
    house.one("p", &text);
    assert_eq!(
        house.plan("c/p").await,
        json!({
            "session": {
                "orchestrator": {"module": "loop-basic", "config": {}},
                "context": {"module": "context-simple", "config": {}},
                "injection_budget_per_turn": 500,
                "injection_size_limit": null,
                "metadata": {"team": "x"},
            },
            "providers": [], "tools": [], "hooks": [], "agents": {},
        })
    );
    assert_eq!(
        house.plan_as("c/p", PlanForm::Strings),
        json!({
            "session": {
                "orchestrator": "loop-basic",
                "context": "context-simple",
                "injection_budget_per_turn": 500,
                "injection_size_limit": null,
                "metadata": {"team": "x"},
            },
        })
    );
}

#[tokio::test]
async fn every_value_knows_the_line_that_set_it() {
    let house = House::new();
    house.write(
        "home/share/profiles/local/base/profile.md",
        &profile("base", "tools:\n- {module: tool-x, config: {a: 1}}\n"),
    );
    let child = profile("p", "tools:\n- {module: tool-x, config: {a: 2}}\n")
        .replace("  version", "  extends: base\n  version");
    house.write("home/share/profiles/local/p/profile.md", &child);
    house.compile("local/p").await.unwrap();
    let plan = house.profiles.plan(&"local/p".parse().unwrap(), PlanForm::Nested).unwrap().plan;
    let settings = plan.explain();
    let set = settings.iter().find(|setting| setting.pointer() == "/tools/0/config/a").unwrap();
    assert!(set.place.to_string().ends_with("local/p/profile.md:11:32"), "{}", set.place);
    assert!(set.overrode[0].place.to_string().ends_with("local/base/profile.md:10:32"), "{:?}", set.overrode);
    assert_eq!(amplifier_bundle::explain::replay(&settings), plan.to_json());
}

#[tokio::test]
async fn what_is_not_compiled_has_no_plan() {
    let house = House::new();
    let said = "foundation".parse::<amplifier_profile::ProfileId>().unwrap_err().to_string();
    assert_eq!(
        said,
        "Invalid profile_id format: foundation. Expected format: collection/profile (e.g., 'foundation/base')"
    );
    house.one("p", &profile("p", ""));
    house.extract().await;
    for name in ["c/p", "c/nobody"] {
        let id = name.parse().unwrap();
        let error = house.profiles.plan(&id, PlanForm::Nested).unwrap_err();
        let dir = house.share(&format!("profiles/{name}"));
        assert_eq!(
            error.to_string(),
            format!(
                "Profile cache directory not found: {}. The profile `{name}` must be compiled/cached first.",
                dir.display()
            )
        );
        assert_eq!(error.hint().unwrap(), format!("run `amplifier profile compile {name}`"));
    }
}

#[tokio::test]
async fn secrets_stay_references_in_the_plan() {
    let house = House::new();
    house.one("p", &profile("p", "providers:\n- {module: provider-x, config: {api_key: '${SOME_KEY}'}}\n"));
    assert_eq!(house.plan("c/p").await["providers"][0]["config"]["api_key"], json!("${SOME_KEY}"));
}

async fn folder(source: Arc<dyn ModuleSource>) -> Result<std::path::PathBuf, SourceError> {
    match source.resolve().await? {
        Resolved::Folder(path) => Ok(path),
        Resolved::Native(_) => panic!("a folder was expected"),
    }
}

#[tokio::test]
async fn hints_become_folders_of_the_share() {
    let house = House::new();
    let resolver = DaemonModuleSourceResolver::new(house.profiles.share().clone());
    let hint = json!("foundation/base");
    let rows = [
        ("loop-streaming", "orchestrator"),
        ("context-simple", "context"),
        ("provider-anthropic", "providers"),
        ("tool-provider-x", "tools"),
        ("hooks-status-context", "hooks"),
    ];
    for (module, mount) in rows {
        let place = house.share(&format!("profiles/foundation/base/{mount}/{module}"));
        // The resolver itself does not look; the source does.
        let source = resolver.resolve(&id(module), Some(&hint)).await.unwrap();
        let said = folder(source.clone()).await.unwrap_err().to_string();
        assert_eq!(
            said,
            format!("Module '{module}' not found; tried Module path not found: {}", place.display())
        );
        std::fs::create_dir_all(&place).unwrap();
        assert_eq!(folder(source).await.unwrap(), place);
        let map = json!({"collection": "foundation", "profile": "base"});
        let source = resolver.resolve(&id(module), Some(&map)).await.unwrap();
        assert_eq!(folder(source).await.unwrap(), place);
    }
}

#[tokio::test]
async fn what_is_no_hint_is_refused_in_the_words_of_the_seed() {
    let house = House::new();
    let resolver = DaemonModuleSourceResolver::new(house.profiles.share().clone());
    let no_hint = "profile_hint must be dict with collection/profile or 'collection/profile' string";
    let half = "profile_hint must specify both collection and profile";
    let rows = [
        ("tool-x", None, no_hint),
        ("tool-x", Some(json!("foundation")), no_hint),
        ("tool-x", Some(json!("../x/y")), no_hint),
        ("tool-x", Some(json!("/etc/passwd")), no_hint),
        ("tool-x", Some(json!(7)), no_hint),
        ("tool-x", Some(json!("foundation/")), half),
        ("tool-x", Some(json!({"collection": "a"})), half),
        (
            "tool-x",
            Some(json!({"collection": "..", "profile": "b"})),
            "`..` is no name of a collection or profile",
        ),
        ("my-custom-thing", Some(json!("a/b")), "Could not determine mount type for module: my-custom-thing"),
    ];
    for (module, hint, expected) in rows {
        let Err(error) = resolver.resolve(&id(module), hint.as_ref()).await else { panic!("{hint:?}") };
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    // A module without a prefix is found where the profile has put it.
    let place = house.share("profiles/a/b/tools/my-custom-thing");
    std::fs::create_dir_all(&place).unwrap();
    let source = resolver.resolve(&id("my-custom-thing"), Some(&json!("a/b"))).await.unwrap();
    assert_eq!(folder(source).await.unwrap(), place);
}

/// Knows nothing, and says what it was asked.
struct Next;

#[async_trait]
impl ModuleSourceResolver for Next {
    async fn resolve(
        &self,
        id: &ModuleId,
        hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        Err(SourceError::NotFound { id: id.clone(), tried: vec![format!("{hint:?}")] })
    }
}

#[tokio::test]
async fn addresses_and_nothing_at_all_are_for_the_resolver_after() {
    let house = House::new();
    let resolver = DaemonModuleSourceResolver::new(house.profiles.share().clone()).then(Arc::new(Next));
    for hint in [None, Some(json!("file:///x/y")), Some(json!("./x")), Some(json!("pkg"))] {
        let Err(error) = resolver.resolve(&id("tool-x"), hint.as_ref()).await else { panic!("{hint:?}") };
        assert_eq!(error.to_string(), format!("Module 'tool-x' not found; tried {:?}", hint.as_ref()));
    }
    assert!(resolver.resolve(&id("tool-x"), Some(&json!("a/b"))).await.is_ok());
}
