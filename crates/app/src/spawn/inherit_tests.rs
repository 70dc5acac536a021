//! What a sub-session has and has not.

use super::*;

fn parent() -> MountPlan {
    MountPlan::read(&json!({
        "session": {
            "orchestrator": {"module": "loop-basic", "config": {"max_iterations": 5, "keep": 1}},
            "context": {"module": "context-simple", "config": {"max_tokens": 9}},
        },
        "providers": [{"module": "provider-mock", "config": {"a": 1}}],
        "tools": [{"module": "tool-bash", "config": {"timeout": 3}}, {"module": "tool-task"}, {"module": "tool-todo"}],
        "hooks": [{"module": "hooks-logging"}, {"module": "hooks-backup"}],
        "agents": {"a": {"description": "x"}, "b": {}},
    }))
    .unwrap()
}

fn child(parent: &MountPlan, agent: Value, request: SpawnRequest) -> MountPlan {
    child_plan(parent, agent.as_object().unwrap(), &request).unwrap()
}

fn ids(list: &[amplifier_protocol::mount_plan::ModuleSpec]) -> Vec<&str> {
    list.iter().map(|spec| spec.module.as_str()).collect()
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn without_rules_a_child_has_what_its_parent_has() {
    assert_eq!(child(&parent(), json!({}), SpawnRequest::default()), parent());
}

#[test]
fn every_voice_may_take_away_and_what_the_agent_lists_it_has() {
    let mut with_policy = parent();
    with_policy.unknown.insert(
        "spawn".to_owned(),
        json!({"exclude_tools": ["tool-todo"], "inherit_hooks": ["hooks-backup"], "agents": {"a": {"exclude_providers": ["mock"]}}}),
    );
    let request = SpawnRequest {
        agent_name: "a".to_owned(),
        // The name of a tool works like the id of its module.
        tool_inheritance: Inheritance { exclude: names(&["task"]), inherit: None },
        ..SpawnRequest::default()
    };
    let plan = child(
        &with_policy,
        json!({"exclude_tools": ["tool-bash"], "tools": ["tool-todo", {"module": "tool-echo"}]}),
        request,
    );
    assert_eq!(ids(&plan.tools), ["tool-todo", "tool-echo"]);
    assert_eq!(ids(&plan.hooks), ["hooks-backup"]);
    assert!(plan.providers.is_empty());
}

#[test]
fn a_list_in_the_spawn_section_replaces_the_sessions_own() {
    let mut with_policy = parent();
    with_policy
        .unknown
        .insert("spawn".to_owned(), json!({"tools": [{"module": "tool-echo"}, "tool-search"]}));
    let plan = child(&with_policy, json!({}), SpawnRequest::default());
    assert_eq!(ids(&plan.tools), ["tool-echo", "tool-search"]);
}

#[test]
fn w17_the_callers_word_about_the_loop_reaches_a_nested_loop_and_the_agents_own_wins() {
    let config = json!({"max_iterations": 7, "extra": true});
    let request =
        || SpawnRequest { orchestrator_config: config.as_object().cloned(), ..SpawnRequest::default() };
    let plan = child(&parent(), json!({}), request());
    assert_eq!(
        Value::Object(plan.session.orchestrator.config),
        json!({"max_iterations": 7, "keep": 1, "extra": true})
    );
    let own = json!({"session": {"orchestrator": {"config": {"max_iterations": 2}}, "limits": {"steps": 4}}});
    let plan = child(&parent(), own, request());
    assert_eq!(plan.session.orchestrator.config.get("max_iterations"), Some(&json!(2)));
    assert_eq!(plan.session.limits.get("steps"), Some(&json!(4)));
    // Another loop does not get the config of the one it replaces.
    let plan =
        child(&parent(), json!({"session": {"orchestrator": "loop-streaming"}}), SpawnRequest::default());
    assert_eq!(plan.session.orchestrator.module.as_str(), "loop-streaming");
    assert!(plan.session.orchestrator.config.is_empty());
}

#[test]
fn an_agent_sees_the_agents_it_may_call() {
    let agents = |agent: Value| {
        let plan = child(&parent(), agent, SpawnRequest::default());
        plan.agents.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(agents(json!({"agents": "none"})), [""; 0]);
    assert_eq!(agents(json!({"agents": ["b", "unknown"]})), ["b"]);
    assert_eq!(agents(json!({"agents": "all"})), ["a", "b"]);
}

#[test]
fn w24_a_child_shares_nothing_with_its_parent() {
    let before = parent();
    let mut plan = child(
        &before,
        json!({"tools": [{"module": "tool-bash", "config": {"timeout": 9}}]}),
        SpawnRequest::default(),
    );
    plan.providers.clear();
    plan.agents.clear();
    assert_eq!(before, parent());
    let timeouts: Vec<_> = plan.tools.iter().filter_map(|tool| tool.config.get("timeout")).collect();
    assert_eq!(timeouts, [&json!(9)]);
}
