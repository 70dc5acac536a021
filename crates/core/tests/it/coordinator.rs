//! The hub: what is mounted where, what modules offer each other, what is asked of contributors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use amplifier_core::cancel::CancelLevel;
use amplifier_core::contracts::{Capability, CapabilityCall, CapabilityError, Contributor, TaskFailure};
use amplifier_core::coordinator::{Coordinator, MountError, MountPoint};
use amplifier_protocol::tool::ToolCall;
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::kit::*;

#[tokio::test]
async fn places_are_read_as_the_specification_names_them_and_others_are_refused() {
    let parse = MountPoint::parse;
    assert_eq!(parse("orchestrator", None), Ok(MountPoint::Orchestrator));
    assert_eq!(parse("session", Some("orchestrator")), Ok(MountPoint::Orchestrator));
    assert_eq!(parse("session", Some("context")), Ok(MountPoint::Context));
    assert_eq!(parse("module-source-resolver", None), Ok(MountPoint::Resolver));
    assert_eq!(parse("hooks", None), Err(MountError::Hooks));
    assert!(parse("hooks", None).unwrap_err().to_string().starts_with("Hooks should be registered"));
    for (point, name) in [("session", None), ("session", Some("tools")), ("screens", None)] {
        let error = parse(point, name).unwrap_err();
        assert_eq!(error.to_string(), format!("Unknown mount point: {point}"));
    }
}

#[tokio::test]
async fn what_is_mounted_replaced_and_unmounted_is_told() {
    let session = Stage::new().open().await;
    let hub = session.coordinator();
    let owner = || "tool-x".parse().unwrap();
    hub.mount_tool(owner(), echo("b"));
    hub.mount_tool(owner(), echo("a"));
    hub.mount_tool(owner(), echo("b"));
    assert_eq!(
        hub.mounted(&MountPoint::Tools),
        ["b", "a"],
        "mounting order, and a replacement keeps its place"
    );
    assert!(hub.tool("a").is_some() && hub.tool("c").is_none());
    let error = hub.unmount(&MountPoint::Tools, None).unwrap_err();
    assert_eq!(error.to_string(), "Name required for tools");
    hub.unmount(&MountPoint::Tools, Some("b")).unwrap();
    hub.unmount(&MountPoint::Tools, Some("never there")).unwrap();
    assert_eq!(hub.mounted(&MountPoint::Tools), ["a"]);
    hub.unmount(&MountPoint::Context, None).unwrap();
    assert_eq!(hub.mounted(&MountPoint::Context), Vec::<String>::new());
    assert!(hub.context().is_none());
}

#[tokio::test]
async fn the_hub_describes_what_it_holds_and_approval_and_display_can_be_set_and_cleared() {
    let session = Stage::new().tool(echo("t")).open().await;
    let hub = session.coordinator();
    hub.register_capability("c", Capability::Value(json!(1)));
    hub.set_approval_system(Some(always("Allow")));
    hub.set_display_system(Some(Arc::new(Screen::default())));
    let expected = json!({
        "tools": ["t"], "providers": ["test"], "has_orchestrator": true, "has_context": true,
        "capabilities": ["c"], "has_approval_provider": true, "has_display_service": true,
    });
    assert_eq!(hub.describe(), expected);
    hub.set_approval_system(None);
    hub.set_display_system(None);
    assert_eq!(hub.describe()["has_approval_provider"], false);
    assert_eq!(hub.describe()["has_display_service"], false);
    session.cleanup().await;
    assert_eq!(
        session.coordinator().describe()["tools"],
        json!([]),
        "a closed session lets go of everything"
    );
}

#[tokio::test]
async fn the_last_offer_of_a_capability_counts_and_a_missing_one_is_none() {
    let stage = Stage::new();
    let session = stage.builder().capability("dir", Capability::Value(json!("/a"))).open().await.unwrap();
    let hub = session.coordinator();
    assert_eq!(hub.capability_text("dir").as_deref(), Some("/a"));
    hub.register_capability("dir", Capability::Value(json!("/b")));
    assert_eq!(hub.capability_text("dir").as_deref(), Some("/b"));
    assert!(hub.capability("none").is_none() && hub.capability_text("none").is_none());
}

struct Doubling;

#[async_trait]
impl CapabilityCall for Doubling {
    async fn call(&self, arguments: Value) -> Result<Value, CapabilityError> {
        Ok(json!(arguments.as_u64().unwrap_or(0) * 2))
    }
}

#[tokio::test]
async fn a_capability_is_called_by_name_and_a_value_or_nothing_cannot_be() {
    let session = Stage::new().open().await;
    let hub = session.coordinator();
    hub.register_capability("double", Capability::Call(Arc::new(Doubling)));
    hub.register_capability("value", Capability::Value(json!(1)));
    assert_eq!(hub.call_capability("double", json!(21)).await, Ok(json!(42)));
    let refused = hub.call_capability("value", json!(1)).await.unwrap_err();
    assert_eq!(refused, CapabilityError::NotCallable { name: "value".to_owned() });
    let refused = hub.call_capability("none", json!(1)).await.unwrap_err();
    assert_eq!(refused, CapabilityError::Absent { name: "none".to_owned() });
}

/// Says before and after a pause whether it runs in a task; the test itself runs in none.
struct Pausing(usize);

#[async_trait]
impl CapabilityCall for Pausing {
    async fn call(&self, _arguments: Value) -> Result<Value, CapabilityError> {
        let before = tokio::task::try_id().is_some();
        for _ in 0..self.0 {
            tokio::task::yield_now().await;
        }
        Ok(json!([before, tokio::task::try_id().is_some()]))
    }
}

#[tokio::test]
async fn a_capability_that_answers_at_once_needs_no_task_and_one_that_waits_gets_its_own() {
    let session = Stage::new().open().await;
    let hub = session.coordinator();
    for (pauses, expected) in
        [(0, json!([false, false])), (1, json!([false, true])), (3, json!([false, true]))]
    {
        hub.register_capability("pause", Capability::Call(Arc::new(Pausing(pauses))));
        assert_eq!(hub.call_capability("pause", json!(null)).await, Ok(expected));
    }
}

/// A contributor that gives what the closure makes.
fn gives(make: impl Fn() -> Option<Value> + Send + Sync + 'static) -> Arc<dyn Contributor> {
    let make = Arc::new(make);
    Arc::new(move || {
        let make = Arc::clone(&make);
        async move { Ok::<_, TaskFailure>(make()) }
    })
}

async fn collected(hub: &Coordinator, channel: &str) -> Vec<Value> {
    hub.collect_contributions(channel).await.0
}

#[tokio::test]
async fn contributions_come_in_registration_order_as_they_are_and_nulls_are_left_out() {
    let session = Stage::new().open().await;
    let hub = session.coordinator();
    for value in [json!(["a", "b"]), json!({"k": 1}), json!("text"), Value::Null, json!(7)] {
        hub.register_contributor("c", "same name", gives(move || Some(value.clone())));
    }
    hub.register_contributor("c", "none", gives(|| None));
    hub.register_contributor("other", "x", gives(|| Some(json!("elsewhere"))));
    assert_eq!(collected(hub, "c").await, [json!(["a", "b"]), json!({"k": 1}), json!("text"), json!(7)]);
    assert_eq!(collected(hub, "other").await, [json!("elsewhere")]);
    assert_eq!(collected(hub, "unknown").await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_contributor_that_fails_panics_or_hangs_is_named_and_the_others_are_heard() {
    let session = Stage::new().session(json!({"deadlines": {"contributor": 2}})).open().await;
    let hub = session.coordinator();
    hub.register_contributor("c", "first", gives(|| Some(json!(1))));
    hub.register_contributor("c", "fails", Arc::new(|| async { Err(TaskFailure::new("empty")) }));
    hub.register_contributor("c", "panics", gives(|| panic!("spilt")));
    hub.register_contributor(
        "c",
        "hangs",
        Arc::new(std::future::pending::<Result<Option<Value>, TaskFailure>>),
    );
    hub.register_contributor("c", "last", gives(|| Some(json!(2))));
    let (given, failed) = hub.collect_contributions("c").await;
    assert_eq!(given, [json!(1), json!(2)]);
    assert_eq!(failed, ["`fails`: empty", "`panics`: panicked: spilt", "`hangs`: no answer within 2.0 s"]);
}

#[tokio::test]
async fn a_contributor_is_asked_anew_each_time() {
    let session = Stage::new().open().await;
    let open = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&open);
    let when_open = move || seen.load(Ordering::SeqCst).then(|| json!("now"));
    session.coordinator().register_contributor("c", "later", gives(when_open));
    assert_eq!(collected(session.coordinator(), "c").await, Vec::<Value>::new());
    open.store(true, Ordering::SeqCst);
    assert_eq!(collected(session.coordinator(), "c").await, [json!("now")]);
}

#[tokio::test]
async fn a_collector_that_goes_away_calls_no_further_contributor() {
    let session = Stage::new().open().await;
    let hub = session.coordinator();
    let diary = Diary::default();
    hub.register_contributor(
        "c",
        "hangs",
        Arc::new(std::future::pending::<Result<Option<Value>, TaskFailure>>),
    );
    let noted = diary.clone();
    hub.register_contributor(
        "c",
        "next",
        gives(move || {
            noted.note("asked");
            None
        }),
    );
    let collecting = tokio::time::timeout(Duration::from_millis(5), hub.collect_contributions("c")).await;
    assert!(collecting.is_err());
    assert_eq!(diary.read(), Vec::<String>::new());
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_with_the_names_that_are_near() {
    let session = Stage::new().tool(echo("read_file")).open().await;
    let call = ToolCall::new("1", "raed_file", json!({}));
    let error = session.coordinator().call_tool(&call).await.unwrap_err();
    assert_eq!(error.to_string(), "Tool 'raed_file' not found; did you mean `read_file`?");
}

#[tokio::test]
async fn each_step_of_a_cancel_is_told_once_and_reaches_children() {
    let stage = Stage::new();
    let session = stage.open().await;
    let child = session.child(stage.mount_plan()).open().await.unwrap();
    assert!(session.cancel(CancelLevel::Graceful).await);
    assert!(!session.cancel(CancelLevel::Graceful).await);
    assert_eq!(child.coordinator().cancel().level(), CancelLevel::Graceful);
    assert!(session.cancel(CancelLevel::Immediate).await);
    assert!(!session.cancel(CancelLevel::Graceful).await);
    assert!(child.coordinator().cancel().is_immediate());
    let states: Vec<_> =
        stage.ear.payloads("cancel:requested").into_iter().map(|told| told["state"].clone()).collect();
    assert_eq!(states, [json!("graceful"), json!("immediate")]);
    session.reset_cancel();
    assert!(child.coordinator().cancel().is_immediate(), "a reset does not reach children");
}

/// Something whose end comes back to the hub, as a module that unregisters itself would.
struct ComesBack(Coordinator, Diary);

impl Drop for ComesBack {
    fn drop(&mut self) {
        self.1.note(format!("{} tools left", self.0.tool_specs().len()));
    }
}

#[tokio::test]
async fn a_module_that_comes_back_to_the_hub_while_it_is_dropped_does_not_lock_it_up() {
    let diary = Diary::default();
    let session = Stage::new().open().await;
    let hub = session.coordinator();
    let tool_with = |name: &str| {
        let held = ComesBack(hub.clone(), diary.clone());
        tool(name, amplifier_protocol::tool::Effects::PURE, move |input, _| {
            let _held = &held;
            async move { Ok(input) }
        })
    };
    hub.mount_tool("tool-x".parse().unwrap(), tool_with("x"));
    hub.unmount(&MountPoint::Tools, Some("x")).unwrap();
    hub.mount_tool("tool-y".parse().unwrap(), tool_with("y"));
    hub.mount_tool("tool-y".parse().unwrap(), echo("y"));
    let held = ComesBack(hub.clone(), diary.clone());
    let id = hub.hooks().on(
        on("*"),
        hook(move |_| {
            let _held = &held;
            async { Ok(Default::default()) }
        }),
    );
    hub.hooks().unregister(id);
    assert_eq!(diary.read(), ["0 tools left", "1 tools left", "1 tools left"]);
}
