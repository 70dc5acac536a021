//! Several providers: what each is called, which is the first, and what happens when one declines.

use std::sync::Arc;

use amplifier_core::contracts::{DeltaSink, Module, Mounted};
use amplifier_core::coordinator::{Coordinator, MountPoint};
use amplifier_core::session::OpenFault;
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::module_info::ModuleKind;
use serde_json::json;

use crate::kit::*;

/// A module whose provider answers with the model of its config; without one it declines.
fn modelled() -> Arc<dyn Module> {
    module("provider-m", ModuleKind::Provider, |config, cx| {
        let Some(model) = config["model"].as_str().map(str::to_owned) else {
            return Ok(Mounted::Skipped { reason: "no model".to_owned() });
        };
        cx.mount_provider(provider("m", move |_, _| {
            let model = model.clone();
            async move { Ok(ChatResponse::text(model)) }
        }));
        Ok(Mounted::Ready)
    })
}

/// A session with these entries of `provider-m`, and nothing but them.
async fn with(entries: serde_json::Value) -> amplifier_core::session::Session {
    let mut stage = Stage::new().on_shelf(modelled());
    stage.plan["providers"] = entries;
    stage.open().await
}

async fn answer(hub: &Coordinator, name: &str) -> String {
    let request = ChatRequest::new(Vec::new());
    hub.call_provider(name, request, DeltaSink::default()).await.unwrap().visible_text()
}

#[tokio::test]
async fn one_entry_without_an_instance_id_keeps_its_own_name() {
    let session = with(json!([{"module": "provider-m", "config": {"model": "a"}}])).await;
    assert_eq!(session.coordinator().mounted(&MountPoint::Providers), ["m"]);
}

#[tokio::test]
async fn one_entry_with_an_instance_id_is_found_under_it_and_not_under_its_own_name() {
    let entry = json!([{"module": "provider-m", "instance_id": "fast", "config": {"model": "a"}}]);
    let session = with(entry).await;
    assert_eq!(session.coordinator().mounted(&MountPoint::Providers), ["fast"]);
    assert!(session.coordinator().provider("m").is_none());
    assert_eq!(session.report().modules[2].instance_id.as_deref(), Some("fast"));
}

#[tokio::test]
async fn two_named_entries_are_two_instances_each_with_its_own_config() {
    let session = with(json!([
        {"module": "provider-m", "instance_id": "fast", "config": {"model": "small"}},
        {"module": "provider-m", "instance_id": "deep", "config": {"model": "large"}},
    ]))
    .await;
    let hub = session.coordinator();
    assert_eq!((answer(hub, "fast").await, answer(hub, "deep").await), ("small".into(), "large".into()));
    assert_eq!(hub.mounted(&MountPoint::Providers), ["fast", "deep"]);
}

#[tokio::test]
async fn a_default_and_a_named_entry_stand_side_by_side_in_either_order() {
    let default = json!({"module": "provider-m", "config": {"model": "plain"}});
    let named = json!({"module": "provider-m", "instance_id": "deep", "config": {"model": "large"}});
    for (entries, order) in
        [(json!([default, named]), ["m", "deep"]), (json!([named, default]), ["deep", "m"])]
    {
        let session = with(entries).await;
        let hub = session.coordinator();
        assert_eq!((answer(hub, "m").await, answer(hub, "deep").await), ("plain".into(), "large".into()));
        assert_eq!(hub.mounted(&MountPoint::Providers), order, "the first provider is the plan's first");
    }
}

#[tokio::test]
async fn two_entries_of_one_module_without_instance_ids_are_refused_before_anything_mounts() {
    let diary = Diary::default();
    let mut stage = Stage::new().tidy("a", &diary);
    stage.plan["providers"] = json!([{"module": "provider-m"}, {"module": "provider-m"}]);
    let error = stage.open_error().await;
    assert!(matches!(error.fault, OpenFault::Instances { count: 2, .. }));
    assert!(error.to_string().contains("`instance_id`") && error.to_string().contains("`provider-m`"));
    assert_eq!(diary.read(), Vec::<String>::new());
}

#[tokio::test]
async fn a_named_entry_that_declines_leaves_the_default_untouched() {
    let session = with(json!([
        {"module": "provider-m", "config": {"model": "plain"}},
        {"module": "provider-m", "instance_id": "deep"},
    ]))
    .await;
    assert_eq!(session.coordinator().mounted(&MountPoint::Providers), ["m"]);
    assert_eq!(answer(session.coordinator(), "m").await, "plain");
}

#[tokio::test]
async fn an_unknown_provider_is_refused_with_the_names_that_are_near() {
    let session =
        with(json!([{"module": "provider-m", "instance_id": "sonnet", "config": {"model": "a"}}])).await;
    let call =
        session.coordinator().call_provider("sonet", ChatRequest::new(Vec::new()), DeltaSink::default());
    assert_eq!(
        call.await.unwrap_err().to_string(),
        "provider `sonet` is not mounted; did you mean `sonnet`?"
    );
}
