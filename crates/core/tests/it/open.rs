//! Opening a session: what is mounted when, what is fatal, what is a line in the report, and what is unwound.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{
    Module, ModuleSource, ModuleSourceResolver, Mounted, Resolved, SourceError, TaskFailure,
};
use amplifier_core::loader::{ConfigExpander, ExpandError, FolderOpener, LoadError, Loader, MountCx};
use amplifier_core::report::LoadOutcome;
use amplifier_core::session::{OpenFault, Strictness};
use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::kit::*;

fn outcomes(session: &amplifier_core::session::Session) -> Vec<String> {
    session.report().modules.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_missing_orchestrator_or_context_is_fatal_with_the_words_people_search_for() {
    let mut stage = Stage::new();
    stage.plan["session"]["orchestrator"] = json!("loop-tset");
    let error = stage.open_error().await;
    assert!(error.to_string().starts_with("Cannot initialize without orchestrator"), "{error}");
    let text = amplifier_core::error::chain(&error);
    assert!(text.contains("Module 'loop-tset' not found; tried shelf; did you mean `loop-test`?"), "{text}");

    let mut stage = Stage::new();
    stage.plan["session"]["context"] = json!("context-gone");
    let error = stage.open_error().await;
    assert!(error.to_string().starts_with("Cannot initialize without context manager"), "{error}");
}

#[tokio::test]
async fn a_fatal_failure_unwinds_what_was_mounted_in_reverse_and_hands_back_the_report() {
    let diary = Diary::default();
    let noted = diary.clone();
    let mut stage = Stage::new().on_shelf(module("loop-test", ModuleKind::Orchestrator, move |_, cx| {
        cx.mount_orchestrator(orchestrator(call_named_tool));
        for name in ["first", "second"] {
            let diary = noted.clone();
            cx.register_cleanup(move || async move {
                diary.note(name);
                Ok(())
            });
        }
        Ok(Mounted::Ready)
    }));
    stage.plan["session"]["context"] = json!("context-gone");
    let error = stage.open_error().await;
    assert_eq!(diary.read(), ["second", "first"]);
    assert!(matches!(error.fault, OpenFault::Context(LoadError::NotFound { .. })));
    let entries: Vec<_> = error.report.modules.iter().map(|entry| entry.module.as_str()).collect();
    assert_eq!(entries, ["loop-test", "context-gone"]);
}

#[tokio::test]
async fn an_orchestrator_that_declines_is_as_fatal_as_one_that_fails() {
    let stage = Stage::new().on_shelf(module("loop-test", ModuleKind::Orchestrator, |_, _| {
        Ok(Mounted::Skipped { reason: "not today".to_owned() })
    }));
    let error = stage.open_error().await;
    assert_eq!(error.to_string(), "Cannot initialize without orchestrator: `loop-test` declined: not today");
}

#[tokio::test]
async fn one_tool_that_fails_is_a_report_line_and_an_event_and_the_next_one_is_mounted() {
    let stage = Stage::new()
        .module(module("tool-bad", ModuleKind::Tool, |_, cx| {
            Err(LoadError::Mount { id: cx.module().clone(), message: "no luck".to_owned() })
        }))
        .tool(echo("good"));
    let session = stage.open().await;
    assert!(session.coordinator().tool("good").is_some());
    let failed: Vec<_> = session.report().failed().map(ToString::to_string).collect();
    assert_eq!(failed, ["tool `tool-bad` did not load: module `tool-bad` failed to mount: no luck"]);
    assert!(!session.report().is_clean());
    let told = stage.ear.payloads("module:load_failed");
    assert_eq!((&told[0]["module_id"], &told[0]["module_type"]), (&json!("tool-bad"), &json!("tool")));
    assert!(told[0]["error"].as_str().unwrap().contains("no luck"));
}

#[tokio::test]
async fn the_report_has_a_line_for_every_module_in_mounting_order() {
    let stage = Stage::new()
        .tool(echo("t"))
        .module(module("provider-shy", ModuleKind::Provider, |_, _| {
            Ok(Mounted::Skipped { reason: "`SHY_KEY` is not set".to_owned() })
        }))
        .entry(ModuleKind::Hook, json!({"module": "hooks-gone"}));
    let session = stage.open().await;
    let lines = outcomes(&session);
    assert_eq!(
        lines,
        [
            "orchestrator `loop-test` is mounted",
            "context `context-test` is mounted",
            "provider `provider-test` is mounted",
            "provider `provider-shy` was not mounted: `SHY_KEY` is not set",
            "tool `tool-t` is mounted",
            "hook `hooks-ear` is mounted",
            "hook `hooks-gone` did not load: Module 'hooks-gone' not found; tried shelf",
        ]
    );
    let entry = &session.report().modules[4];
    assert_eq!(entry.outcome, LoadOutcome::Mounted { names: ["t".to_owned()].into() });
    assert_eq!(entry.found_in.as_deref(), Some("shelf"));
}

#[tokio::test]
async fn strict_mode_makes_any_failure_fatal_and_unwinds_but_lets_a_decline_pass() {
    let diary = Diary::default();
    let stage = Stage::new().tidy("a", &diary).entry(ModuleKind::Tool, json!({"module": "tool-b"}));
    let result = stage.builder().strictness(Strictness::Strict).open().await;
    let Err(error) = result else { panic!("opened") };
    assert!(error.to_string().contains("`tool-b`"), "{error}");
    assert!(matches!(error.fault, OpenFault::Strict { .. }));
    assert_eq!(diary.read(), ["cleanup a"]);

    let stage = Stage::new().module(module("provider-shy", ModuleKind::Provider, |_, _| {
        Ok(Mounted::Skipped { reason: "no key".to_owned() })
    }));
    assert!(stage.builder().strictness(Strictness::Strict).open().await.is_ok());
}

#[tokio::test]
async fn a_module_in_the_wrong_section_is_refused_with_both_kinds() {
    let stage = Stage::new()
        .on_shelf(module("tool-fake", ModuleKind::Hook, |_, _| Ok(Mounted::Ready)))
        .entry(ModuleKind::Tool, json!({"module": "tool-fake"}));
    let session = stage.open().await;
    let failed = session.report().failed().next().unwrap().to_string();
    assert!(failed.contains("module `tool-fake` is a hook, but the plan lists it as a tool"), "{failed}");
}

#[tokio::test]
async fn a_module_that_says_ready_and_mounts_nothing_did_not_load() {
    let stage = Stage::new().module(module("tool-empty", ModuleKind::Tool, |_, _| Ok(Mounted::Ready)));
    let session = stage.open().await;
    let failed = session.report().failed().next().unwrap().to_string();
    assert!(failed.contains("module `tool-empty` mounted no tool"), "{failed}");
}

#[tokio::test]
async fn a_module_that_fails_half_way_leaves_nothing_behind_and_puts_back_what_it_replaced() {
    let diary = Diary::default();
    let noted = diary.clone();
    let stage =
        Stage::new().tool(echo("kept")).module(module("tool-half", ModuleKind::Tool, move |_, cx| {
            cx.mount_tool(tool("kept", amplifier_protocol::tool::Effects::PURE, |_, _| async {
                Ok(json!("usurped"))
            }));
            cx.mount_tool(echo("half"));
            let diary = noted.clone();
            cx.register_cleanup(move || async move {
                diary.note("undone");
                Ok(())
            });
            let diary = noted.clone();
            cx.on_session_ready(move |_| async move {
                diary.note("ready");
                Ok::<(), TaskFailure>(())
            });
            Err(LoadError::Mount { id: cx.module().clone(), message: "fell over".to_owned() })
        }));
    let session = stage.open().await;
    assert!(session.coordinator().tool("half").is_none());
    assert_eq!(diary.read(), ["undone"], "its cleanup ran, its ready callback did not");
    assert_eq!(session.execute("kept").await.unwrap(), "{}", "the first tool of that name is back");
    session.cleanup().await;
    assert_eq!(diary.read(), ["undone"]);
}

#[tokio::test]
async fn a_tool_that_takes_anothers_name_is_mounted_with_a_warning() {
    let stage = Stage::new().tool(echo("t")).module(module("tool-other", ModuleKind::Tool, |_, cx| {
        cx.mount_tool(echo("t"));
        Ok(Mounted::Ready)
    }));
    let session = stage.open().await;
    let entry = session.report().modules.iter().find(|entry| entry.module.as_str() == "tool-other").unwrap();
    assert_eq!(entry.warnings, ["tool `t` of another module is replaced"]);
    assert!(!session.report().is_clean());
}

#[tokio::test]
async fn a_string_form_slot_gets_its_config_and_source_from_the_sections_beside_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hints = Hints::default();
    let configs = Arc::clone(&seen);
    let looping = module("loop-test", ModuleKind::Orchestrator, move |config, cx| {
        configs.lock().unwrap().push(config);
        cx.mount_orchestrator(orchestrator(call_named_tool));
        Ok(Mounted::Ready)
    });
    for nested in [false, true] {
        let mut stage = Stage::new().on_shelf(Arc::clone(&looping));
        if nested {
            stage.plan["session"]["orchestrator"] =
                json!({"module": "loop-test", "source": "git+https://x", "config": {"n": 1}});
        } else {
            stage.plan["session"]["orchestrator_source"] = json!("git+https://x");
            stage.plan["orchestrator"] = json!({"config": {"n": 1}});
        }
        let resolver = Arc::new(ShelfResolver { shelf: stage.shelf.clone(), hints: Arc::clone(&hints) });
        stage.builder().resolver(resolver).open().await.unwrap();
    }
    assert_eq!(*seen.lock().unwrap(), [json!({"n": 1}), json!({"n": 1})]);
    let hints = hints.lock().unwrap();
    let of_loop: Vec<_> = hints.iter().filter(|(id, _)| id == "loop-test").map(|(_, hint)| hint).collect();
    assert_eq!(of_loop, [&Some(json!("git+https://x")), &Some(json!("git+https://x"))]);
}

type Hints = Arc<Mutex<Vec<(String, Option<Value>)>>>;

/// Resolves from a shelf and keeps the hints it was given.
struct ShelfResolver {
    shelf: Shelf,
    hints: Hints,
}

struct Here(Resolved);

#[async_trait]
impl ModuleSource for Here {
    async fn resolve(&self) -> Result<Resolved, SourceError> {
        Ok(self.0.clone())
    }
}

#[async_trait]
impl ModuleSourceResolver for ShelfResolver {
    async fn resolve(
        &self,
        module_id: &ModuleId,
        hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        use amplifier_core::loader::ModuleFinder;
        self.hints.lock().unwrap().push((module_id.to_string(), hint.cloned()));
        if hint == Some(&json!("folder")) {
            return Ok(Arc::new(Here(Resolved::Folder(PathBuf::from("some/folder")))));
        }
        match self.shelf.find(module_id).await {
            Ok(Some(module)) => Ok(Arc::new(Here(Resolved::Native(module)))),
            _ => Err(SourceError::NotFound { id: module_id.clone(), tried: vec!["resolver".to_owned()] }),
        }
    }
}

#[tokio::test]
async fn a_mounted_resolver_decides_alone_and_nobody_looks_further() {
    let stage = Stage::new().tool(echo("t"));
    let without_tool = Stage::new();
    let resolver = Arc::new(ShelfResolver { shelf: without_tool.shelf.clone(), hints: Arc::default() });
    let session = stage.builder().resolver(resolver).open().await.unwrap();
    let failed = session.report().failed().next().unwrap().to_string();
    assert!(failed.contains("Module 'tool-t' not found; tried resolver"), "{failed}");
    assert!(session.coordinator().tool("t").is_none(), "though the shelf has it");
}

struct Opener;

#[async_trait]
impl FolderOpener for Opener {
    async fn open(&self, id: &ModuleId, folder: &Path) -> Result<Arc<dyn Module>, LoadError> {
        assert_eq!(folder, Path::new("some/folder"));
        let name = id.as_str().replace("tool-", "");
        Ok(module(id.as_str(), ModuleKind::Tool, move |_, cx: &MountCx| {
            cx.mount_tool(echo(&name));
            Ok(Mounted::Ready)
        }))
    }
}

#[tokio::test]
async fn a_folder_is_opened_where_something_can_and_is_an_error_where_nothing_can() {
    let mut stage = Stage::new().entry(ModuleKind::Tool, json!({"module": "tool-far", "source": "folder"}));
    let resolver = Arc::new(ShelfResolver { shelf: stage.shelf.clone(), hints: Arc::default() });
    let session = stage.builder().resolver(Arc::clone(&resolver) as _).open().await.unwrap();
    let failed = session.report().failed().next().unwrap().to_string();
    assert!(failed.contains("`some/folder`") && failed.contains("without a way to run"), "{failed}");

    stage.loader = Loader::new().opener(Arc::new(Opener));
    let session = stage.builder().resolver(resolver).open().await.unwrap();
    assert!(session.coordinator().tool("far").is_some());
    assert_eq!(session.report().modules[3].found_in.as_deref(), Some("some/folder"));
}

#[tokio::test]
async fn the_same_module_listed_twice_mounts_each_time_with_its_own_config() {
    let stage = Stage::new().on_shelf(module("tool-many", ModuleKind::Tool, |config, cx| {
        cx.mount_tool(echo(config["name"].as_str().unwrap()));
        Ok(Mounted::Ready)
    }));
    let stage = stage
        .entry(ModuleKind::Tool, json!({"module": "tool-many", "config": {"name": "one"}}))
        .entry(ModuleKind::Tool, json!({"module": "tool-many", "config": {"name": "two"}}));
    let session = stage.open().await;
    let names: Vec<_> = session.coordinator().tool_specs().iter().map(|spec| spec.name.clone()).collect();
    assert_eq!(names, ["one", "two"], "in plan order");
}

/// Knows `${HOME}` only.
struct OnlyHome;

impl ConfigExpander for OnlyHome {
    fn expand(&self, config: Value) -> Result<Value, ExpandError> {
        let text = config.to_string().replace("${HOME}", "/home/me");
        if text.contains("${") {
            return Err(ExpandError { reference: "${KEY}".to_owned(), pointer: "/key".to_owned() });
        }
        Ok(serde_json::from_str(&text).unwrap())
    }
}

#[tokio::test]
async fn references_are_filled_in_for_the_module_only_and_the_plan_keeps_them() {
    let seen = Diary::default();
    let noted = seen.clone();
    let mut stage = Stage::new()
        .on_shelf(module("tool-x", ModuleKind::Tool, move |config, cx| {
            noted.note(config["path"].as_str().unwrap());
            cx.mount_tool(echo("x"));
            Ok(Mounted::Ready)
        }))
        .entry(ModuleKind::Tool, json!({"module": "tool-x", "config": {"path": "${HOME}/a"}}))
        .entry(ModuleKind::Tool, json!({"module": "tool-x", "config": {"key": "${KEY}"}}));
    stage.loader = Loader::new().expander(Arc::new(OnlyHome));
    let session = stage.open().await;
    assert_eq!(seen.read(), ["/home/me/a"]);
    assert_eq!(session.coordinator().plan().tools[0].config["path"], "${HOME}/a");
    let failed: Vec<_> = session.report().failed().map(ToString::to_string).collect();
    assert_eq!(failed.len(), 1);
    for part in
        ["config of module `tool-x` cannot be filled in", "`${KEY}` at `/key` is not set", ":-default"]
    {
        assert!(failed[0].contains(part), "{failed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_module_that_never_finishes_mounting_is_given_up_and_undone() {
    let diary = Diary::default();
    let noted = diary.clone();
    let stage = Stage::new()
        .session(json!({"deadlines": {"mount": 5}}))
        .module(hanging_module("tool-slow", ModuleKind::Tool, move |_, cx| {
            cx.mount_tool(echo("slow"));
            let diary = noted.clone();
            cx.register_cleanup(move || async move {
                diary.note("undone");
                Ok(())
            });
            Ok(Mounted::Ready)
        }))
        .tool(echo("next"));
    let began = tokio::time::Instant::now();
    let session = stage.open().await;
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!(diary.read(), ["undone"]);
    assert!(session.coordinator().tool("slow").is_none() && session.coordinator().tool("next").is_some());
    let failed = session.report().failed().next().unwrap().to_string();
    assert!(failed.contains("`tool-slow`") && failed.contains("no answer within 5.0 s"), "{failed}");
}

#[tokio::test]
async fn a_module_that_panics_while_mounting_costs_itself_only() {
    let stage = Stage::new()
        .module(module("tool-panics", ModuleKind::Tool, |_, _| panic!("out of coffee")))
        .tool(echo("next"));
    let session = stage.open().await;
    let failed = session.report().failed().next().unwrap().to_string();
    assert!(failed.contains("`tool-panics` failed to mount: panicked: out of coffee"), "{failed}");
    assert!(session.coordinator().tool("next").is_some());
}

/// A module and its ready callback, which writes into the diary.
fn ready(id: &str, kind: ModuleKind, diary: &Diary, outcome: Result<(), TaskFailure>) -> Arc<dyn Module> {
    let diary = diary.clone();
    module(id, kind, move |_, cx| {
        let name = cx.module().to_string();
        match cx.module().as_str().split('-').next() {
            Some("loop") => cx.mount_orchestrator(orchestrator(call_named_tool)),
            Some("provider") => cx.mount_provider(parrot("p")),
            Some("tool") => cx.mount_tool(echo(&name)),
            _ => {}
        }
        diary.note(format!("mount {name}"));
        let (diary, outcome) = (diary.clone(), outcome.clone());
        cx.on_session_ready(move |hub: amplifier_core::coordinator::Coordinator| async move {
            let tools = hub.tool_specs().len();
            diary.note(format!("ready {name}, {tools} tools"));
            outcome
        });
        Ok(Mounted::Ready)
    })
}

#[tokio::test]
async fn ready_callbacks_run_after_every_mount_in_mounting_order_and_one_failure_stops_none() {
    let diary = Diary::default();
    let stage = Stage::new()
        .on_shelf(ready("loop-test", ModuleKind::Orchestrator, &diary, Ok(())))
        .module(ready("provider-a", ModuleKind::Provider, &diary, Err(TaskFailure::new("not ready"))))
        .module(ready("tool-a", ModuleKind::Tool, &diary, Ok(())))
        .module(ready("hooks-a", ModuleKind::Hook, &diary, Ok(())));
    let session = stage.open().await;
    assert_eq!(
        diary.read(),
        [
            "mount loop-test",
            "mount provider-a",
            "mount tool-a",
            "mount hooks-a",
            "ready loop-test, 1 tools",
            "ready provider-a, 1 tools",
            "ready tool-a, 1 tools",
            "ready hooks-a, 1 tools",
        ]
    );
    let told = stage.ear.payloads("module:on_session_ready_failed");
    assert_eq!((told.len(), &told[0]["module_id"]), (1, &json!("provider-a")));
    assert_eq!(told[0]["error"], "not ready");
    let warned: Vec<_> = session.report().modules.iter().flat_map(|entry| &entry.warnings).collect();
    assert_eq!(warned, ["not ready: not ready"], "and it stands in the load report");
    let strict = stage.builder().strictness(Strictness::Strict).open().await.err().expect("strict");
    assert!(strict.to_string().contains("`provider-a` is not ready"), "{strict}");
}

#[tokio::test]
async fn a_module_that_was_mounted_before_is_called_ready_in_every_session() {
    let diary = Diary::default();
    let stage = Stage::new().module(ready("tool-a", ModuleKind::Tool, &diary, Ok(())));
    let loader = Arc::new(stage.loader.clone().finder(Arc::new(stage.shelf.clone())));
    let open = || {
        amplifier_core::session::SessionBuilder::new(
            stage.mount_plan(),
            Arc::clone(&loader),
            Arc::clone(&stage.clock),
        )
        .open()
    };
    let (first, second) = (open().await.unwrap(), open().await.unwrap());
    assert_ne!(first.id(), second.id());
    assert_eq!(diary.count("ready tool-a, 1 tools"), 2);
}

#[tokio::test]
async fn a_resolver_that_knows_no_such_module_does_not_take_the_near_names_away() {
    let stage = Stage::new().on_shelf(module("tool-filesystem", ModuleKind::Tool, |_, _| Ok(Mounted::Ready)));
    let stage = stage.entry(ModuleKind::Tool, json!({"module": "tool-filesystm"}));
    let resolver = Arc::new(ShelfResolver { shelf: stage.shelf.clone(), hints: Arc::default() });
    let session = stage.builder().resolver(resolver).open().await.unwrap();
    let failed = session.report().failed().next().unwrap().to_string();
    assert!(
        failed.contains("did you mean `tool-filesystem`?") && failed.contains("tried resolver"),
        "{failed}"
    );
}

#[tokio::test]
async fn a_childs_ready_callbacks_are_done_before_its_fork_is_told() {
    let diary = Diary::default();
    let noted = diary.clone();
    let stage = Stage::new().module(ready("tool-a", ModuleKind::Tool, &diary, Ok(()))).hook(
        "fork",
        on("session:fork"),
        hook(move |_| {
            noted.note("fork");
            async { Ok(Default::default()) }
        }),
    );
    let parent = stage.open().await;
    parent.child(stage.mount_plan()).open().await.unwrap();
    assert_eq!(diary.read()[2..], ["mount tool-a", "ready tool-a, 1 tools", "fork"]);
}

#[tokio::test]
async fn unreadable_limits_and_deadlines_are_refused_with_their_place() {
    for (section, pointer) in [("limits", "/session/limits"), ("deadlines", "/session/deadlines")] {
        let stage = Stage::new().session(json!({section: {"typo": 1}}));
        let text = amplifier_core::error::chain(&stage.open_error().await);
        assert!(text.contains(pointer) && text.contains("typo"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_being_opened_when_its_parent_ends_is_unwound_and_refused() {
    let diary = Diary::default();
    let parent = Stage::new().open().await;
    let noted = diary.clone();
    let stage =
        Stage::new().tidy("a", &diary).module(hanging_module("tool-slow", ModuleKind::Tool, move |_, _| {
            noted.note("mounting");
            Ok(Mounted::Ready)
        }));
    let loader = Arc::new(Loader::new().finder(Arc::new(stage.shelf.clone())));
    let root =
        amplifier_core::session::SessionBuilder::new(Stage::new().mount_plan(), loader, RuntimeClock::new());
    drop(parent);
    let parent = root.open().await.unwrap();
    let opening = tokio::spawn(parent.child(stage.mount_plan()).open());
    while diary.count("mounting") == 0 {
        tokio::task::yield_now().await;
    }
    let began = tokio::time::Instant::now();
    parent.cleanup().await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let Err(error) = opening.await.unwrap() else { panic!("opened under a closed parent") };
    assert!(matches!(error.fault, OpenFault::Cancelled), "{error}");
    assert_eq!(diary.count("cleanup a"), 1);
}

#[tokio::test]
async fn no_child_opens_under_a_parent_that_is_closed() {
    let stage = Stage::new();
    let parent = stage.open().await;
    parent.cleanup().await;
    let Err(error) = parent.child(stage.mount_plan()).open().await else { panic!("opened") };
    assert!(matches!(error.fault, OpenFault::Cancelled), "{error}");
}

#[tokio::test]
async fn an_opening_that_its_caller_gives_up_cleans_up_what_it_mounted() {
    let diary = Diary::default();
    let stage =
        Stage::new()
            .tidy("a", &diary)
            .module(hanging_module("tool-slow", ModuleKind::Tool, |_, _| Ok(Mounted::Ready)));
    let opening = tokio::time::timeout(Duration::from_millis(20), stage.builder().open()).await;
    assert!(opening.is_err());
    settle().await;
    assert_eq!(diary.read(), ["cleanup a"]);
}

#[tokio::test]
async fn a_child_of_a_gracefully_cancelled_parent_opens_and_starts_nothing_new() {
    let stage = Stage::new().tool(echo("t"));
    let parent = stage.open().await;
    parent.cancel(CancelLevel::Graceful).await;
    let child = parent.child(stage.mount_plan()).open().await.unwrap();
    assert!(child.execute("t").await.is_err());
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Config {
    max_bytes: u64,
}

#[tokio::test]
async fn a_config_that_does_not_fit_is_refused_and_a_misspelt_key_is_a_warning_that_names_the_right_one() {
    let stage = Stage::new().on_shelf(module("tool-x", ModuleKind::Tool, |config, cx| {
        let config: Config = cx.read_config(config)?;
        cx.mount_tool(echo(&format!("x{}", config.max_bytes)));
        Ok(Mounted::Ready)
    }));
    let stage = stage
        .entry(ModuleKind::Tool, json!({"module": "tool-x", "config": {"max_bytes": "many"}}))
        .entry(ModuleKind::Tool, json!({"module": "tool-x", "config": {"max_bytes": 1, "max_byte": 2}}));
    let session = stage.open().await;
    let failed = session.report().failed().next().unwrap().to_string();
    assert!(
        failed.contains("module `tool-x` rejected its config at `max_bytes`: invalid type: string"),
        "{failed}"
    );
    let warned = &session.report().modules[4].warnings;
    assert_eq!(*warned, ["unknown config key `max_byte` is ignored; did you mean `max_bytes`?"]);
}
