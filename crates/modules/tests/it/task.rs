//! `tool-task` with an application that really opens child sessions.

use std::sync::{Arc, Mutex, OnceLock};

use amplifier_core::contracts::{Capability, CapabilityError, HookEvent, HookFailure, HookHandler};
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::session::Session;
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::tool::{ToolCall, ToolResult};
use amplifier_testing::{ScriptedProvider, Step, TestSession};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::stage::{calls, offer, script, session, texts};

/// The session that spawns, once it is open; and every call that reached the application.
#[derive(Clone, Default)]
struct App {
    parent: Arc<OnceLock<Session>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl App {
    fn spawn(&self) -> Capability {
        let app = self.clone();
        offer(move |arguments| {
            let app = app.clone();
            async move { app.run(arguments).await }
        })
    }

    async fn run(&self, arguments: Value) -> Result<Value, CapabilityError> {
        self.asked.lock().unwrap().push(arguments.clone());
        let parent = self.parent.get().unwrap();
        let failed = |message: String| CapabilityError::Failed { name: "session.spawn".to_owned(), message };
        let mut plan = parent.coordinator().plan().clone();
        plan.tools.clear();
        let text = |key: &str| arguments[key].as_str().unwrap().to_owned();
        let id = text("sub_session_id").parse().unwrap();
        let child =
            parent.child(plan).session_id(id).open().await.map_err(|error| failed(error.to_string()))?;
        let output = child.execute(text("instruction")).await.map_err(|error| failed(error.to_string()))?;
        let session_id = child.id().to_string();
        child.cleanup().await;
        Ok(json!({"output": output, "session_id": session_id, "status": "success", "secret": 1}))
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

async fn open(provider: &Arc<ScriptedProvider>, config: Value, limits: Value) -> (TestSession, App) {
    let app = App::default();
    let (spawn, resume) = (app.spawn(), app.spawn());
    let builder = session(provider, &[("tool-task", config)]).await.limits(limits).plan(|plan| {
        plan.agents.insert("zoe".to_owned(), json!({"description": "Finds\nthings", "tools": []}));
        plan.agents.insert("abe".to_owned(), json!({"meta": {"description": "Writes"}}));
        plan.agents.insert("dirs".to_owned(), json!(["./agents"]));
    });
    let builder = builder
        .configure(|builder| builder.capability("session.spawn", spawn).capability("session.resume", resume));
    let session = builder.open().await.unwrap();
    app.parent.set(session.session().clone()).ok().unwrap();
    (session, app)
}

async fn call(session: &TestSession, input: Value) -> ToolResult {
    session.coordinator().call_tool(&ToolCall::new("c", "task", input)).await.unwrap()
}

fn error_kind(result: &ToolResult) -> &str {
    result.error.as_ref().unwrap()["type"].as_str().unwrap()
}

#[tokio::test]
async fn an_agent_works_in_a_child_session_and_its_answer_comes_back() {
    let provider = script([
        calls("1", "task", json!({"agent": "zoe", "instruction": "find it", "inherit_context": "all"})),
        Step::say("found"),
        Step::say("all done"),
    ]);
    let config = json!({"exclude_tools": ["tool-task"], "inherit_hooks": ["hooks-logging"]});
    let (session, app) = open(&provider, config, json!({})).await;
    assert_eq!(session.execute("please help").await.unwrap(), "all done");
    let requests = provider.requests();
    let child = texts(&requests[1]);
    assert!(
        child[0].contains("USER: please help") && child[0].ends_with("[YOUR TASK]\nfind it"),
        "{child:?}"
    );
    let result: Value = serde_json::from_str(texts(&requests[2]).last().unwrap()).unwrap();
    let id = result["session_id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("test-session-") && id.ends_with("_zoe"), "{id}");
    assert_eq!(result, json!({"response": "found", "session_id": id, "agent": "zoe", "status": "success"}));

    let asked = &app.asked()[0];
    assert_eq!(asked["agent_config"], json!({"description": "Finds\nthings", "tools": []}));
    assert_eq!(asked["tool_inheritance"], json!({"exclude_tools": ["tool-task"]}));
    assert_eq!(asked["hook_inheritance"], json!({"inherit_hooks": ["hooks-logging"]}));
    assert_eq!(asked["depth"], json!(1));
    let names: Vec<_> = session.recorder().events("task:*").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["task:agent_spawned", "task:agent_completed"]);
    let completed = &session.recorder().events("task:agent_completed")[0].1;
    assert_eq!((&completed["success"], &completed["sub_session_id"]), (&json!(true), &json!(id)));
    session.cleanup().await;
}

#[tokio::test]
async fn the_description_names_the_agents_in_order_and_settings_are_no_agents() {
    let (session, _app) = open(&script([Step::say("x")]), json!({}), json!({})).await;
    let spec = session.coordinator().tool_specs()[0].clone();
    let description = spec.description.clone().unwrap();
    assert!(description.ends_with("Agents:\n- abe: Writes\n- zoe: Finds things"), "{description}");
    assert_eq!(spec.parameters["required"], json!(["instruction"]));
    let modes = &spec.parameters["properties"]["inherit_context"]["enum"];
    assert_eq!(*modes, json!(["none", "recent", "all"]));
    session.cleanup().await;
}

#[tokio::test]
async fn an_earlier_session_is_gone_on_with_and_a_foreign_one_is_not_found() {
    let provider = script([Step::say("first"), Step::say("second")]);
    let (session, app) = open(&provider, json!({}), json!({})).await;
    let first = call(&session, json!({"agent": "abe", "instruction": "a"})).await;
    let id = first.output["session_id"].clone();
    let second = call(&session, json!({"session_id": id, "instruction": "b"})).await;
    assert_eq!((second.success, &second.output["response"]), (true, &json!("second")));
    let resumed = json!({"sub_session_id": id, "instruction": "b", "parent_session_id": "test-session"});
    assert_eq!(app.asked()[1], resumed);
    assert_eq!(session.recorder().count("task:agent_resumed"), 1);
    for foreign in ["other-session", "test-session", "../x", "test-sessions-1"] {
        let refused = call(&session, json!({"session_id": foreign, "instruction": "b"})).await;
        let said = refused.error_message().unwrap().to_owned();
        assert!(said.starts_with(&format!("Session '{foreign}' not found. May have expired")), "{said}");
    }
    session.cleanup().await;
}

#[tokio::test]
async fn without_an_application_behind_it_the_tool_says_so() {
    let provider = script([Step::say("x")]);
    let session = session(&provider, &[("tool-task", json!({}))]).await;
    let session =
        session.plan(|plan| drop(plan.agents.insert("a".to_owned(), json!({})))).open().await.unwrap();
    for (input, said) in [
        (json!({"agent": "a", "instruction": "x"}), "the application offers no `session.spawn`"),
        (json!({"agent": "b", "instruction": "x"}), "Agent 'b' not found. Available: [a]"),
        (json!({"agent": "a", "instruction": " "}), "`instruction` is empty"),
        (json!({"instruction": "x"}), "`agent` is required"),
        (json!({"session_id": "test-session-1", "instruction": "x"}), "no `session.resume`"),
    ] {
        let result = call(&session, input).await;
        assert!(!result.success && result.error_message().unwrap().contains(said), "{result:?}");
    }
    assert_eq!(session.recorder().count("task:*"), 0);
}

#[tokio::test]
async fn number_depth_and_money_are_limited_and_the_refusal_names_the_limit() {
    let input = json!({"agent": "abe", "instruction": "a"});
    let (session, app) = open(&script([Step::say("x")]), json!({}), json!({"spawns": 1})).await;
    assert!(call(&session, input.clone()).await.success);
    let refused = call(&session, input.clone()).await;
    assert_eq!(error_kind(&refused), "LimitReached");
    assert!(refused.error_message().unwrap().contains("limit of 1 spawned session reached"), "{refused:?}");
    assert_eq!(app.asked().len(), 1);
    session.cleanup().await;

    // Depth is known only when the child is opened: the ledger's words come through the application.
    let (session, _app) = open(&script([Step::say("x")]), json!({}), json!({"spawn_depth": 0})).await;
    let refused = call(&session, input.clone()).await;
    let said = refused.error_message().unwrap();
    assert!(said.starts_with("Delegation failed: limit of 0 spawn depth reached"), "{said}");
    let completed = &session.recorder().events("task:agent_completed")[0].1;
    assert_eq!(completed["success"], json!(false));
    session.cleanup().await;

    let (session, _app) = open(&script([Step::say("x")]), json!({}), json!({"steps": 1})).await;
    session.execute("use it up").await.unwrap();
    assert_eq!(error_kind(&call(&session, input.clone()).await), "LimitReached");
    session.cleanup().await;

    for config in [json!({"max_recursion_depth": 0}), json!({"max_tasks": 0})] {
        let (session, _app) = open(&script([Step::say("x")]), config, json!({})).await;
        assert_eq!(error_kind(&call(&session, input.clone()).await), "LimitReached");
        session.cleanup().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_takes_long_is_waited_for_and_one_that_takes_too_long_is_not() {
    let slow = || script([Step::say("late").after(std::time::Duration::from_secs(2_000))]);
    let input = json!({"agent": "abe", "instruction": "a"});
    // Longer than the deadline of a silent tool: waiting is a sign of life.
    let deadlines = json!({"provider": 3_000.0, "capability": 3_000.0, "tool": 60.0});
    let app = App::default();
    let spawn = app.spawn();
    let provider = slow();
    let builder = session(&provider, &[("tool-task", json!({}))]).await.deadlines(deadlines);
    let builder = builder.plan(|plan| drop(plan.agents.insert("abe".to_owned(), json!({}))));
    let session =
        builder.configure(|builder| builder.capability("session.spawn", spawn)).open().await.unwrap();
    app.parent.set(session.session().clone()).ok().unwrap();
    let result = call(&session, input.clone()).await;
    assert!(result.success, "{result:?}");
    session.cleanup().await;

    let (session, _app) = open(&slow(), json!({"timeout": 5.0}), json!({})).await;
    let result = call(&session, input).await;
    assert!(result.error_message().unwrap().contains("no answer within 5 s"), "{result:?}");
    assert_eq!(session.recorder().events("task:agent_completed")[0].1["success"], json!(false));
    session.cleanup().await;
}

struct Never;

#[async_trait]
impl HookHandler for Never {
    async fn handle(&self, _event: &HookEvent) -> Result<HookResult, HookFailure> {
        Ok(HookResult::deny("not today"))
    }
}

#[tokio::test]
async fn a_hook_may_refuse_a_task_before_it_begins() {
    let (session, app) = open(&script([Step::say("x")]), json!({}), json!({})).await;
    let pattern: EventPattern = "task:agent_spawned".parse().unwrap();
    session.coordinator().hooks().on(HookSpec::new(pattern, "never"), Arc::new(Never));
    let result = call(&session, json!({"agent": "abe", "instruction": "a"})).await;
    assert_eq!(result.error_message(), Some("Denied by hook: not today"));
    assert!(app.asked().is_empty());
    session.cleanup().await;
}

#[tokio::test]
async fn agents_that_the_application_tells_count_before_those_of_the_plan() {
    let told = json!({"zoe": {"description": "Read from a file", "instruction": "z"}, "dirs": ["./agents"]});
    let app = App::default();
    let spawn = app.spawn();
    let builder = session(&script([Step::say("x")]), &[("tool-task", json!({}))]).await.plan(|plan| {
        plan.agents.insert("zoe".to_owned(), json!({"content": "---\nmeta: {}\n---\nz"}));
    });
    let builder = builder.configure(|builder| {
        builder.capability("session.spawn", spawn).capability("agents.list", Capability::Value(told))
    });
    let session = builder.open().await.unwrap();
    app.parent.set(session.session().clone()).ok().unwrap();
    let description = session.coordinator().tool_specs()[0].description.clone().unwrap();
    assert!(description.ends_with("Agents:\n- zoe: Read from a file"), "{description}");
    call(&session, json!({"agent": "zoe", "instruction": "do it"})).await;
    assert_eq!(app.asked()[0]["agent_config"]["instruction"], json!("z"));
    session.cleanup().await;
}
