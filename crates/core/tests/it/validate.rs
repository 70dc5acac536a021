//! The validator through its public face: the specification's plans pass, and each way of being wrong has its check.

use std::collections::BTreeSet;

use amplifier_core::canonical::plan_hash;
use amplifier_core::validate::{MountPlanValidator, Severity, Validation};
use amplifier_protocol::mount_plan::{MountPlan, PLAN_KEYS, PlanForm, SESSION_KEYS};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn validate(plan: &Value) -> Validation {
    MountPlanValidator::validate(plan)
}

/// `name @ pointer` of the failed checks of one severity.
fn failures(plan: &Value, severity: Severity) -> Vec<String> {
    let found = validate(plan);
    let checks = if severity == Severity::Error {
        found.errors().cloned().collect::<Vec<_>>()
    } else {
        found.warnings().cloned().collect()
    };
    checks.into_iter().map(|check| format!("{} @ {}", check.name, check.pointer)).collect()
}

/// A good plan with keys put over it, top-level.
fn with(extra: Value) -> Value {
    let mut plan = json!({
        "session": { "orchestrator": "loop-basic", "context": "context-simple" },
        "providers": [{ "module": "provider-mock" }],
    });
    plan.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    plan
}

/// A good plan with keys put over its session.
fn with_session(extra: Value) -> Value {
    let mut plan = with(json!({}));
    plan["session"].as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    plan
}

/// A good plan whose orchestrator is nested, with keys put over it.
fn with_orchestrator(extra: Value) -> Value {
    let mut entry = json!({ "module": "loop-basic" });
    entry.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    with_session(json!({ "orchestrator": entry }))
}

#[test]
fn every_plan_of_the_specification_validates_reads_and_round_trips_in_both_forms() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let found = validate(&value);
        assert!(found.passed(), "{}: {}", path.display(), found.format_errors());
        assert_eq!(
            found.warnings().count(),
            0,
            "{}: {:?}",
            path.display(),
            found.warnings().collect::<Vec<_>>()
        );
        let plan = MountPlan::read(&value).unwrap();
        for form in [PlanForm::Nested, PlanForm::Strings] {
            let written = plan.write(form);
            assert!(validate(&written).passed(), "{}", path.display());
            let again = MountPlan::read(&written).unwrap();
            assert_eq!(again, plan, "{}", path.display());
            assert_eq!(plan_hash(&again).unwrap(), plan_hash(&plan).unwrap());
        }
        seen += 1;
    }
    assert_eq!(seen, 10);
}

#[test]
fn what_is_no_plan_fails_at_the_root_and_nothing_else_is_checked() {
    for (plan, got) in
        [(json!(null), "null"), (json!([]), "a list"), (json!("x"), "a string"), (json!(1), "a number")]
    {
        let found = validate(&plan);
        assert_eq!(found.checks.len(), 1);
        assert_eq!(found.checks[0].name, "root_type");
        assert!(found.checks[0].message.contains("must be a dict"));
        assert!(found.checks[0].message.ends_with(got), "{}", found.checks[0].message);
    }
    assert!(validate(&Value::Null).format_errors().contains("Configuration is required"));
    assert!(validate(&json!({})).format_errors().contains("Configuration is required"));
    assert_eq!(failures(&json!({}), Severity::Error), ["session_present @ /session"]);
}

fn assert_only_error(cases: &[(Value, &str)]) {
    for (plan, expected) in cases {
        assert_eq!(failures(plan, Severity::Error), [*expected], "{plan}");
        assert!(MountPlan::read(plan).is_err(), "{plan}");
    }
}

#[test]
fn a_missing_session_or_slot_is_an_error_with_its_place() {
    assert_only_error(&[
        (json!({ "providers": [] }), "session_present @ /session"),
        (with(json!({ "session": null })), "session_present @ /session"),
        (with(json!({ "session": "loop-basic" })), "session_type @ /session"),
        (with(json!({ "session": [] })), "session_type @ /session"),
        (
            with(json!({ "session": { "context": "context-simple" } })),
            "session_orchestrator_present @ /session/orchestrator",
        ),
        (
            with(json!({ "session": { "orchestrator": "loop-basic" } })),
            "session_context_present @ /session/context",
        ),
        (with_session(json!({ "context": null })), "session_context_present @ /session/context"),
        (with_session(json!({ "context": "" })), "session_context_present @ /session/context"),
        (with_session(json!({ "context": {} })), "session_context_present @ /session/context"),
        (with_session(json!({ "orchestrator": 1 })), "session.orchestrator_type @ /session/orchestrator"),
        (with_session(json!({ "orchestrator": [] })), "session.orchestrator_type @ /session/orchestrator"),
        (
            with_session(json!({ "orchestrator": { "config": {} } })),
            "session.orchestrator_module_required @ /session/orchestrator/module",
        ),
    ]);
}

#[test]
fn each_value_of_the_wrong_type_in_the_session_is_an_error_with_its_place() {
    assert_only_error(&[
        (
            with_orchestrator(json!({ "module": 1 })),
            "session.orchestrator_module_type @ /session/orchestrator/module",
        ),
        (
            with_orchestrator(json!({ "module": "" })),
            "session.orchestrator_module_empty @ /session/orchestrator/module",
        ),
        (
            with_orchestrator(json!({ "module": "loop basic" })),
            "session.orchestrator_module_valid @ /session/orchestrator/module",
        ),
        (
            with_orchestrator(json!({ "config": [] })),
            "session.orchestrator_config_type @ /session/orchestrator/config",
        ),
        (
            with_orchestrator(json!({ "config": null })),
            "session.orchestrator_config_type @ /session/orchestrator/config",
        ),
        (
            with_orchestrator(json!({ "source": 1 })),
            "session.orchestrator_source_type @ /session/orchestrator/source",
        ),
        (
            with_session(json!({ "context_source": 1 })),
            "session.context_source_type @ /session/context_source",
        ),
        (with(json!({ "context": "x" })), "context_type @ /context"),
        (with(json!({ "context": { "config": null } })), "context_config_type @ /context/config"),
        (
            with_session(json!({ "injection_budget_per_turn": -1 })),
            "session.injection_budget_per_turn_type @ /session/injection_budget_per_turn",
        ),
        (
            with_session(json!({ "injection_size_limit": 1.5 })),
            "session.injection_size_limit_type @ /session/injection_size_limit",
        ),
        (with_session(json!({ "metadata": [] })), "session.metadata_type @ /session/metadata"),
        (with_session(json!({ "limits": 1 })), "session.limits_type @ /session/limits"),
        (with_session(json!({ "deadlines": "1s" })), "session.deadlines_type @ /session/deadlines"),
        (with_session(json!({ "raw": "yes" })), "session.raw_type @ /session/raw"),
    ]);
}

#[test]
fn each_bad_section_or_entry_is_an_error_with_its_place() {
    assert_only_error(&[
        (with(json!({ "providers": {} })), "providers_type @ /providers"),
        (with(json!({ "tools": "tool-bash" })), "tools_type @ /tools"),
        (with(json!({ "hooks": 1 })), "hooks_type @ /hooks"),
        (with(json!({ "tools": ["tool-bash"] })), "tools[0]_type @ /tools/0"),
        (with(json!({ "tools": [null] })), "tools[0]_type @ /tools/0"),
        (
            with(json!({ "hooks": [{ "module": "hooks-a" }, { "config": {} }] })),
            "hooks[1]_module_required @ /hooks/1/module",
        ),
        (with(json!({ "tools": [{ "module": null }] })), "tools[0]_module_required @ /tools/0/module"),
        (with(json!({ "tools": [{ "module": 7 }] })), "tools[0]_module_type @ /tools/0/module"),
        (with(json!({ "tools": [{ "module": "" }] })), "tools[0]_module_empty @ /tools/0/module"),
        (
            with(json!({ "tools": [{ "module": "tool-x", "native": 1 }] })),
            "tools[0]_native_type @ /tools/0/native",
        ),
        (
            with(json!({ "providers": [{ "module": "provider-x", "instance_id": 1 }] })),
            "providers[0]_instance_id_type @ /providers/0/instance_id",
        ),
        (
            with(json!({ "providers": [{ "module": "provider-x", "id": "" }] })),
            "providers[0]_instance_id_type @ /providers/0/id",
        ),
        (with(json!({ "agents": [] })), "agents_type @ /agents"),
    ]);
}

#[test]
fn messages_keep_the_words_that_people_search_for() {
    let cases = [
        (json!([]), &["must be a dict"][..]),
        (json!({ "session": [] }), &["must be a dict"]),
        (with(json!({ "providers": {} })), &["must be a list"]),
        (with(json!({ "tools": [{ "source": "x" }] })), &["missing", "Expected", r#"{"source":"x"}"#]),
        (
            json!({ "session": { "context": "c" } }),
            &["must specify session.orchestrator", "missing", "Expected"],
        ),
        (json!({ "session": { "orchestrator": "l" } }), &["must specify session.context"]),
    ];
    for (plan, fragments) in cases {
        let text = validate(&plan).format_errors();
        for fragment in fragments {
            assert!(text.contains(fragment), "{fragment:?} in {text}");
        }
    }
}

#[test]
fn a_message_about_an_entry_shows_it_without_its_secrets() {
    let text = validate(&with(json!({ "tools": [{ "config": { "api_key": "hunter2" } }] }))).format_errors();
    assert!(text.contains("[REDACTED]") && !text.contains("hunter2"), "{text}");
}

#[test]
fn what_is_odd_but_usable_is_a_warning_and_the_plan_passes() {
    let cases = [
        (with(json!({ "zeta": 1, "alpha": 2 })), "unknown_sections @ /alpha"),
        (with(json!({ "providers": [] })), "providers_present @ /providers"),
        (with(json!({ "providers": null })), "providers_present @ /providers"),
        (
            with(json!({ "tools": [{ "module": "tool-x", "confg": {} }] })),
            "tools[0]_unknown_keys @ /tools/0/confg",
        ),
        (with_session(json!({ "metdata": {} })), "session_unknown_keys @ /session/metdata"),
        (
            with(json!({ "providers": [{ "module": "tool-x" }] })),
            "providers[0]_module_kind @ /providers/0/module",
        ),
        (with(json!({ "tools": [{ "module": "calculator" }] })), "tools[0]_module_kind @ /tools/0/module"),
        (
            with_session(json!({ "orchestrator": { "module": "loop-basic" }, "orchestrator_source": "./x" })),
            "session.orchestrator_shadowed @ /session/orchestrator_source",
        ),
        (
            {
                let mut plan = with_orchestrator(json!({}));
                plan["orchestrator"] = json!({ "config": { "a": 1 } });
                plan
            },
            "session.orchestrator_shadowed @ /orchestrator",
        ),
        (with(json!({ "context": { "source": "./x" } })), "session.context_shadowed @ /context/source"),
        (
            with(
                json!({ "providers": [{ "module": "provider-x" }, { "module": "provider-x", "instance_id": "x" }] }),
            ),
            "providers_instance_id_taken @ /providers/1/instance_id",
        ),
    ];
    for (plan, expected) in cases {
        assert_eq!(failures(&plan, Severity::Warning), [expected], "{plan}");
        assert!(validate(&plan).passed(), "{plan}");
        assert!(MountPlan::read(&plan).is_ok(), "{plan}");
    }
    let text =
        validate(&with(json!({ "tool": [], "alpha": 2 }))).to_json()["warnings"][0]["message"].to_string();
    assert!(text.contains("`alpha`, `tool`") && text.contains("did you mean `tools`"), "{text}");
}

#[test]
fn what_the_specification_allows_raises_nothing() {
    let plans = [
        with(json!({})),
        with_orchestrator(json!({ "source": { "git": "x" }, "config": {} })),
        with_orchestrator(json!({ "source": null, "native": false, "note": "ours" })),
        with_session(json!({ "injection_budget_per_turn": null, "injection_size_limit": 0, "raw": true })),
        with(json!({ "orchestrator": { "config": {} }, "context": null, "tools": null, "agents": null })),
        with(json!({ "agents": { "a": "text", "b": [1], "c": { "tools": "whatever" } } })),
        with(json!({ "tools": [{ "module": "my-loop-tool" }], "hooks": [{ "module": "hooks-loop-guard" }] })),
        with(json!({ "providers": [
            { "module": "provider-x" }, { "module": "provider-x", "instance_id": "b" },
            { "module": "provider-x", "id": "c" }, { "module": "provider-y" },
        ] })),
    ];
    for plan in plans {
        let found = validate(&plan);
        assert!(found.checks.iter().all(|check| check.passed), "{plan}: {found:?}");
    }
}

#[test]
fn a_misspelt_limit_or_deadline_is_an_error_and_not_no_limit() {
    for (session, expected) in [
        (json!({ "limits": { "step": 3 } }), "session.limits_shape @ /session/limits"),
        (json!({ "limits": { "cost_usd": 0.5 } }), "session.limits_shape @ /session/limits"),
        (json!({ "deadlines": { "tool": -1 } }), "session.deadlines_shape @ /session/deadlines"),
    ] {
        assert_eq!(failures(&with_session(session), Severity::Error), [expected]);
    }
    let good =
        with_session(json!({ "limits": { "steps": 3, "cost_usd": "0.5" }, "deadlines": { "tool": 1.5 } }));
    assert!(validate(&good).passed());
}

#[test]
fn several_providers_of_one_module_need_instance_ids() {
    let twice = with(json!({ "providers": [{ "module": "provider-x" }, { "module": "provider-x" }] }));
    assert_eq!(failures(&twice, Severity::Error), ["providers_instance_id_required @ /providers/1"]);
    let text = validate(&twice).format_errors();
    assert!(text.contains("2 entries of `provider-x`") && text.contains("`instance_id`"), "{text}");
    let equal = with(json!({ "providers": [
        { "module": "provider-x", "instance_id": "a" }, { "module": "provider-y", "id": "a" },
    ] }));
    assert_eq!(failures(&equal, Severity::Error), ["providers_instance_id_unique @ /providers/1/id"]);
}

#[test]
fn the_report_counts_numbers_and_totals() {
    let good = validate(&with(json!({ "tools": [] })));
    assert_eq!(good.summary(), "PASSED: 6/6 checks passed (0 errors, 0 warnings)");
    assert_eq!(good.format_errors(), "No errors");
    assert_eq!(Validation::default().summary(), "PASSED: 0/0 checks passed (0 errors, 0 warnings)");

    let bad = validate(&with(json!({ "tools": 1, "agents": 1, "more": 1 })));
    assert_eq!(bad.summary(), "FAILED: 5/8 checks passed (2 errors, 1 warning)");
    assert_eq!(
        bad.format_errors(),
        "Mount Plan Validation Failed\n  1. [tools_type] `tools` must be a list, got a number\n  \
         2. [agents_type] `agents` must be a dict, got a number\nTotal: 2 errors"
    );
}

#[test]
fn the_report_for_programs_has_a_fixed_order() {
    let text = serde_json::to_string(&validate(
        &json!({ "session": [], "providers": [{ "module": "provider-x" }] }),
    ));
    assert_eq!(
        text.unwrap(),
        concat!(
            r#"{"passed":false,"summary":"FAILED: 3/4 checks passed (1 error, 0 warnings)","errors":["#,
            r#"{"name":"session_type","passed":false,"message":"`session` must be a dict, got a list","#,
            r#""severity":"error","pointer":"/session"}],"warnings":[],"checks":["#,
            r#"{"name":"root_type","passed":true,"message":"mount plan is a dict","severity":"info","pointer":""},"#,
            r#"{"name":"session_present","passed":true,"message":"`session` is present","severity":"info","#,
            r#""pointer":"/session"},"#,
            r#"{"name":"session_type","passed":false,"message":"`session` must be a dict, got a list","#,
            r#""severity":"error","pointer":"/session"},"#,
            r#"{"name":"providers[0]_module_valid","passed":true,"message":"module `provider-x`","#,
            r#""severity":"info","pointer":"/providers/0/module"}]}"#,
        )
    );
}

fn any_value() -> BoxedStrategy<Value> {
    let values = json!([null, true, 3, -1, "", "tool-x", "two words", [], {}, { "module": "tool-x" }, { "config": {} }]);
    proptest::sample::select(values.as_array().unwrap().clone()).boxed()
}

fn any_object(keys: &'static [&'static str], value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    vec((proptest::sample::select(keys), value), 0..5)
        .prop_map(|pairs| {
            Value::Object(
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>(),
            )
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Validator and reader agree: what passes can be read, and what can be read fails only where entries meet and
    /// where the kernel reads a section that the reader keeps as it is.
    #[test]
    fn a_plan_passes_exactly_if_it_can_be_read(
        rest in {
            let spec = any_object(&["module", "source", "config", "instance_id", "native", "id"], any_value());
            let good = any_value().prop_map(|_| json!({ "module": "tool-x" }));
            let list = vec(prop_oneof![good, spec.clone()], 0..3).prop_map(Value::from);
            any_object(&PLAN_KEYS, prop_oneof![any_value(), spec, list].boxed())
        },
        extra in any_object(&SESSION_KEYS, any_value()),
        whole_session in any::<bool>(),
    ) {
        let mut plan = rest;
        if whole_session {
            plan["session"] = with_session(extra)["session"].clone();
        }
        let found = validate(&plan);
        let names: BTreeSet<&str> = found.errors().map(|check| check.name.as_str()).collect();
        let group = [
            "providers_instance_id_required", "providers_instance_id_unique", "session.limits_shape", "session.deadlines_shape",
        ];
        let entries_are_good = names.iter().all(|name| group.contains(name));
        prop_assert_eq!(MountPlan::read(&plan).is_ok(), entries_are_good, "{} {:?}", plan, names);
    }
}
