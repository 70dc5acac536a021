//! Reading and writing mount plans: dialects, what is kept, and the round trip as a property.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(plan: Value) -> MountPlan {
    MountPlan::read(&plan).unwrap()
}

fn fault_at(plan: Value) -> String {
    MountPlan::read(&plan).unwrap_err().pointer
}

#[test]
fn both_dialects_of_one_plan_are_one_plan() {
    let strings = read(json!({
        "session": {
            "orchestrator": "loop-basic", "orchestrator_source": "git+https://example.org/x@main",
            "context": "context-simple",
        },
        "orchestrator": { "config": { "max_iterations": 3 }, "native": false },
        "context": { "config": { "max_tokens": 9 } },
    }));
    let nested = read(json!({
        "session": {
            "orchestrator": {
                "module": "loop-basic", "source": "git+https://example.org/x@main",
                "config": { "max_iterations": 3 }, "native": false,
            },
            "context": { "module": "context-simple", "config": { "max_tokens": 9 } },
        },
    }));
    assert_eq!(strings, nested);
    assert_eq!(strings.write(PlanForm::Nested), nested.write(PlanForm::Nested));
    assert_eq!(nested.write(PlanForm::Strings)["orchestrator"]["config"]["max_iterations"], 3);
}

#[test]
fn one_slot_may_be_a_string_and_the_other_an_object() {
    let plan = read(json!({
        "session": { "orchestrator": "loop-basic", "context": { "module": "context-simple", "config": { "a": 1 } } },
        "orchestrator": { "config": { "b": 2 } },
    }));
    assert_eq!(Value::Object(plan.session.orchestrator.config), json!({ "b": 2 }));
    assert_eq!(Value::Object(plan.session.context.config), json!({ "a": 1 }));
}

#[test]
fn unknown_keys_survive_everywhere_in_their_order() {
    let text = concat!(
        r#"{"session":{"orchestrator":{"module":"l","zeta":1,"alpha":[null]},"context":{"module":"c"},"#,
        r#""x_session":{"b":1,"a":2}},"tools":[{"module":"tool-x","note":1.5}],"#,
        r#""agents":{"zed":"text","ann":{"tools":[]}},"ui":{"z":0,"a":0},"extra":null}"#,
    );
    let plan: MountPlan = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&plan).unwrap(), text);
}

#[test]
fn string_form_keys_beside_a_nested_slot_are_kept_without_a_say() {
    let plan = json!({
        "session": {
            "orchestrator": { "module": "loop-basic", "config": { "a": 1 } }, "context": "context-simple",
            "orchestrator_source": "./elsewhere",
        },
        "orchestrator": { "config": { "a": 2 } },
        "context": { "config": {}, "module": "context-other", "source": "./x" },
    });
    let typed = read(plan);
    assert_eq!(typed.session.orchestrator.config["a"], 1);
    assert_eq!(typed.session.orchestrator.source, None);
    assert_eq!(typed.session.context.module.as_str(), "context-simple");
    for form in [PlanForm::Nested, PlanForm::Strings] {
        let written = typed.write(form);
        assert_eq!(written["session"]["orchestrator_source"], "./elsewhere");
        assert_eq!(written["orchestrator"], json!({ "config": { "a": 2 } }));
        assert_eq!(written["context"], json!({ "module": "context-other", "source": "./x" }));
        assert_eq!(read(written), typed);
    }
}

#[test]
fn a_source_object_is_written_nested_because_a_source_key_holds_text() {
    let plan = read(json!({
        "session": { "orchestrator": { "module": "l", "source": { "git": "x" } }, "context": "c" },
    }));
    let written = plan.write(PlanForm::Strings);
    assert_eq!(written["session"]["orchestrator"]["source"], json!({ "git": "x" }));
    assert_eq!(written["session"]["context"], "c");
}

#[test]
fn absent_null_and_numbered_budgets_stay_apart() {
    let with = |budget: &str| -> MountPlan {
        let text = format!(r#"{{"session":{{"orchestrator":"l","context":"c"{budget}}}}}"#);
        serde_json::from_str(&text).unwrap()
    };
    let cases = [
        ("", Some(DEFAULT_INJECTION_BUDGET_PER_TURN)),
        (r#","injection_budget_per_turn":null"#, None),
        (r#","injection_budget_per_turn":0"#, Some(0)),
    ];
    for (text, bound) in cases {
        let plan = with(text);
        let budget = plan.session.injection_budget_per_turn;
        assert_eq!(budget.resolve(DEFAULT_INJECTION_BUDGET_PER_TURN), bound, "{text}");
        assert_eq!(read(plan.write(PlanForm::Strings)), plan);
    }
}

#[test]
fn a_provider_may_call_its_instance_id_id_and_a_tool_may_not() {
    let plan = read(json!({
        "session": { "orchestrator": "l", "context": "c" },
        "providers": [{ "module": "p", "id": "fast" }, { "module": "p", "instance_id": "a", "id": "b" }],
        "tools": [{ "module": "t", "id": "mine" }],
    }));
    let ids: Vec<_> = plan.providers.iter().map(|spec| spec.instance_id.as_deref()).collect();
    assert_eq!(ids, [Some("fast"), Some("a")]);
    assert_eq!(plan.tools[0].unknown["id"], "mine");
    let written = plan.write(PlanForm::Nested);
    assert_eq!(written["providers"][0], json!({ "module": "p", "instance_id": "fast" }));
    assert_eq!(written["providers"][1], json!({ "module": "p", "instance_id": "a", "id": "b" }));
}

#[test]
fn null_lists_sections_and_sources_count_as_absent() {
    let plan = read(json!({
        "session": { "orchestrator": "l", "orchestrator_source": null, "context": { "module": "c", "source": null },
            "metadata": null, "raw": null },
        "orchestrator": null, "providers": null, "tools": null, "hooks": null, "agents": null,
    }));
    assert_eq!(plan, MountPlan::new("l".parse().unwrap(), "c".parse().unwrap()));
}

#[test]
fn an_error_names_the_place_and_the_cause() {
    let session = json!({ "orchestrator": "l", "context": "c" });
    let cases = [
        (json!([]), ""),
        (json!({}), "/session"),
        (json!({ "session": "s" }), "/session"),
        (json!({ "session": { "context": "c" } }), "/session/orchestrator"),
        (json!({ "session": { "orchestrator": "l", "context": "" } }), "/session/context"),
        (json!({ "session": { "orchestrator": 1, "context": "c" } }), "/session/orchestrator"),
        (json!({ "session": { "orchestrator": {}, "context": "c" } }), "/session/orchestrator/module"),
        (
            json!({ "session": { "orchestrator": "l", "context": "c", "context_source": 1 } }),
            "/session/context_source",
        ),
        (
            json!({ "session": { "orchestrator": "l", "context": "c", "injection_size_limit": -1 } }),
            "/session/injection_size_limit",
        ),
        (json!({ "session": session, "context": 1 }), "/context"),
        (json!({ "session": session, "context": { "config": null } }), "/context/config"),
        (json!({ "session": session, "tools": {} }), "/tools"),
        (json!({ "session": session, "tools": ["tool-x"] }), "/tools/0"),
        (json!({ "session": session, "hooks": [{ "module": "h" }, { "module": 1 }] }), "/hooks/1/module"),
        (json!({ "session": session, "hooks": [{ "module": "two words" }] }), "/hooks/0/module"),
        (json!({ "session": session, "providers": [{ "module": "p", "id": "" }] }), "/providers/0/id"),
        (json!({ "session": session, "agents": [] }), "/agents"),
    ];
    for (plan, pointer) in cases {
        assert_eq!(fault_at(plan.clone()), pointer, "{plan}");
    }
    let error = serde_json::from_value::<MountPlan>(json!({ "session": session, "tools": 1 })).unwrap_err();
    assert_eq!(error.to_string(), "mount plan is not readable at `/tools`: expected a list, found a number");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[a-z${}]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec(("[a-z]{1,4}", inner), 0..3).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Maps whose keys no version of the format will ever know.
fn any_map() -> impl Strategy<Value = Map<String, Value>> {
    vec(("x_[a-z/~]{1,4}", any_json()), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn any_budget() -> impl Strategy<Value = Budget> {
    prop_oneof![Just(Budget::Default), Just(Budget::Unlimited), any::<u64>().prop_map(Budget::Limited)]
}

fn any_spec() -> impl Strategy<Value = ModuleSpec> {
    let source =
        option::of(prop_oneof!["[a-z/:@#]{0,9}".prop_map(Value::from), any_map().prop_map(Value::from)]);
    let id = "[a-z]{1,4}(-[a-z]{1,4})?";
    (id, source, any_map(), option::of("[a-z]{1,4}"), option::of(any::<bool>()), any_map()).prop_map(
        |(id, source, config, instance_id, native, unknown)| ModuleSpec {
            module: id.parse().unwrap(),
            source,
            config,
            instance_id,
            native,
            unknown,
        },
    )
}

fn any_section() -> impl Strategy<Value = SessionSection> {
    let shadow = option::of(any_json());
    let settings = (any_budget(), any_budget(), any_map(), any::<bool>(), any_map(), any_map(), any_map());
    (any_spec(), any_spec(), shadow, settings).prop_map(|(orchestrator, context, shadow, settings)| {
        let (budget, size, metadata, raw, limits, deadlines, mut unknown) = settings;
        unknown.extend(shadow.map(|value| ("context_source".to_owned(), value)));
        SessionSection {
            orchestrator,
            context,
            injection_budget_per_turn: budget,
            injection_size_limit: size,
            metadata,
            raw,
            limits,
            deadlines,
            unknown,
        }
    })
}

fn any_plan() -> impl Strategy<Value = MountPlan> {
    let list = || vec(any_spec(), 0..3);
    (any_section(), list(), list(), list(), any_map(), any_map(), option::of(any_json())).prop_map(
        |(session, providers, tools, hooks, agents, mut unknown, shadow)| {
            unknown.extend(shadow.map(|value| ("orchestrator".to_owned(), value)));
            MountPlan { session, providers, tools, hooks, agents, unknown }
        },
    )
}

/// JSON that looks like a plan until one looks closely.
fn almost_plan() -> impl Strategy<Value = Value> {
    let entry = |keys: &'static [&'static str], value: BoxedStrategy<Value>| {
        vec((proptest::sample::select(keys), value), 0..6).prop_map(|pairs| {
            Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        })
    };
    let spec =
        entry(&["module", "source", "config", "instance_id", "native", "id"], any_json().boxed()).boxed();
    let part = prop_oneof![any_json(), spec.clone(), vec(spec, 0..3).prop_map(Value::from)].boxed();
    let session = entry(&SESSION_KEYS, part.clone()).boxed();
    entry(&PLAN_KEYS, prop_oneof![part, session].boxed())
}

proptest! {
    #[test]
    fn a_plan_written_in_either_form_reads_back_the_same(plan in any_plan()) {
        for form in [PlanForm::Nested, PlanForm::Strings] {
            let text = plan.write(form).to_string();
            let again: MountPlan = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&again, &plan, "{}", text);
            prop_assert_eq!(again.write(PlanForm::Nested), plan.write(PlanForm::Nested));
        }
    }

    #[test]
    fn any_json_is_a_plan_or_an_error_and_what_was_read_round_trips(value in almost_plan()) {
        match MountPlan::read(&value) {
            Ok(plan) => {
                for form in [PlanForm::Nested, PlanForm::Strings] {
                    prop_assert_eq!(MountPlan::read(&plan.write(form)), Ok(plan.clone()));
                }
            }
            Err(error) => prop_assert!(error.pointer.is_empty() || error.pointer.starts_with('/')),
        }
    }
}
