//! Paths into a plan, right ones and wrong ones.

use serde_json::json;

use super::*;

fn plan() -> MountPlan {
    MountPlan::read(&json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [
            {"module": "provider-mock", "instance_id": "a"},
            {"module": "provider-mock", "instance_id": "b", "config": {"model": "m"}},
        ],
        "tools": [{"module": "tool-bash"}, {"module": "tool-web", "config": {"allow": ["x", "y"]}}],
    }))
    .unwrap()
}

fn with(texts: &[&str]) -> Result<Value, OverrideError> {
    let mut plan = plan();
    let overrides = texts.iter().map(|text| text.parse()).collect::<Result<Vec<Override>, _>>()?;
    apply(&mut plan, &overrides)?;
    Ok(plan.write(PlanForm::Nested))
}

fn at(texts: &[&str], pointer: &str) -> Value {
    with(texts).unwrap().pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn a_value_is_json_and_else_text() {
    for (text, value) in [
        ("5", json!(5)),
        ("true", json!(true)),
        ("[1,2]", json!([1, 2])),
        ("\"5\"", json!("5")),
        ("a=b c", json!("a=b c")),
        ("", json!("")),
    ] {
        assert_eq!(at(&[&format!("tools.tool-bash.config.x={text}")], "/tools/0/config/x"), value, "{text}");
    }
}

#[test]
fn entries_are_named_by_number_module_short_name_or_instance() {
    for path in ["tools.0", "tools.tool-bash", "tools.bash", "/tools/0", "/tools/tool-bash"] {
        let tail = if path.starts_with('/') { "/config/timeout=5" } else { ".config.timeout=5" };
        assert_eq!(at(&[&format!("{path}{tail}")], "/tools/0/config/timeout"), json!(5), "{path}");
    }
    assert_eq!(at(&["providers.b.config.model=n"], "/providers/1/config/model"), json!("n"));
    assert_eq!(at(&["tools.web.config.allow.1=z"], "/tools/1/config/allow"), json!(["x", "z"]));
    assert_eq!(
        at(&["session.orchestrator.config.max_iterations=3"], "/session/orchestrator/config"),
        json!({"max_iterations": 3})
    );
}

#[test]
fn free_places_take_new_keys_at_any_depth_and_later_settings_win() {
    let set = ["tools.bash.config.a.b.c=1", "tools.bash.config.a.b.d=2", "tools.bash.config.a.b.c=3"];
    assert_eq!(at(&set, "/tools/0/config"), json!({"a": {"b": {"c": 3, "d": 2}}}));
    assert_eq!(at(&["session.limits.steps=2"], "/session/limits"), json!({"steps": 2}));
    assert_eq!(at(&["/agents/a~1b/description=x"], "/agents/a~1b/description"), json!("x"));
    assert_eq!(at(&["tools=[]"], "/tools"), Value::Null);
}

#[test]
fn a_path_that_leads_nowhere_names_the_nearest() {
    for (text, said) in [
        ("tool.tool-bash.config.x=1", "did you mean `tools`?"),
        ("tools.tool-bsh.config.x=1", "`tools` has no `tool-bsh`; did you mean `tool-bash`?"),
        ("tools.7.config.x=1", "it has tool-bash, tool-web"),
        ("tools.tool-bash.confg.x=1", "did you mean `config`?"),
        ("session.limit.steps=1", "did you mean `limits`?"),
        ("hooks.0.config.x=1", "`hooks` has no `0`, which is empty"),
        ("providers.b.config.model.name=1", "`providers.b.config.model` is"),
    ] {
        let error = with(&[text]).unwrap_err();
        assert!(error.to_string().contains(said), "{text}: {error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn what_is_no_setting_or_no_plan_any_more_is_refused() {
    for text in ["tools", "=1", "a..b=1", "/=1"] {
        assert!(matches!(text.parse::<Override>(), Err(OverrideError::Form { .. })), "{text}");
    }
    for text in ["session.limits.stepz=1", "tools.0.config=7", "session.orchestrator.module=", "tools=1"] {
        assert!(matches!(with(&[text]), Err(OverrideError::Invalid { .. })), "{text}");
    }
}

#[test]
fn the_short_flags_set_what_they_name() {
    let mut plan = plan();
    cap_answer(&mut plan, 7);
    cap_cost(&mut plan, "0.50".parse().unwrap());
    assert_eq!(plan.providers[0].config["max_tokens"], json!(7));
    assert_eq!(plan.session.limits["cost_usd"], json!("0.50"));
}
