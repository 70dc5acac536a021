//! The registry holds what a person registered, and nothing else: loading writes nothing into it.

use amplifier_app::bundles;
use amplifier_app::prepare::{BundleFault, PrepareOptions, prepare_bundle};
use amplifier_app::registry::{Registry, RegistryError};
use amplifier_app::{BundleStrictness, tree};

use crate::workshop::Workshop;

const SESSION: &str = "session: {orchestrator: loop-basic, context: context-simple}\n";

fn bytes(shop: &Workshop) -> Vec<u8> {
    std::fs::read(shop.home().registry()).unwrap_or_default()
}

fn modules(plan: &amplifier_protocol::mount_plan::MountPlan) -> Vec<&str> {
    plan.tools.iter().map(|tool| tool.module.as_str()).collect()
}

#[tokio::test]
async fn only_a_person_registers_names() {
    let shop = Workshop::new();
    let (lib, _) =
        shop.commit("lib", &[("bundle.yaml", "bundle: {name: lib}\ntools: [{module: tool-todo}]\n")]);
    shop.file("b/bundle.yaml", format!("bundle: {{name: mine}}\nincludes: [\"{lib}\"]\n{SESSION}"));
    shop.prepare("./b").await.unwrap();
    assert_eq!(bytes(&shop), b"", "a load registers nothing");
    bundles::add("./b", None, &shop.access()).await.unwrap();
    let before = bytes(&shop);
    for reference in ["mine", "./b", lib.as_str()] {
        shop.prepare(reference).await.unwrap();
    }
    bundles::check("mine", &shop.access()).await.unwrap();
    assert_eq!(bytes(&shop), before, "neither does a load by name, of an include, or a check");
    let names = Registry::new(&shop.home()).read().unwrap().names();
    assert_eq!(names.keys().collect::<Vec<_>>(), ["mine"], "what it includes is not registered with it");
}

#[tokio::test]
async fn a_renamed_child_is_seen_under_its_new_name_alone() {
    let shop = Workshop::new();
    let child = |name: &str| format!("bundle: {{name: {name}}}\ntools: [{{module: tool-todo}}]\n");
    shop.file("b/bundle.yaml", format!("bundle: {{name: mine}}\nincludes: [./child.yaml]\n{SESSION}"));
    shop.file("b/child.yaml", child("before"));
    bundles::add("./b", None, &shop.access()).await.unwrap();
    let drawn = async || format!("{:?}", tree(&shop.prepare("mine").await.unwrap().loaded.graph));
    assert!(drawn().await.contains("before"));
    shop.file("b/child.yaml", child("after"));
    let now = drawn().await;
    assert!(now.contains("after") && !now.contains("before"), "{now}");
}

#[tokio::test]
async fn a_removed_name_leads_nowhere_and_the_others_stay() {
    let shop = Workshop::new();
    shop.file("a/bundle.yaml", "bundle: {name: a}\ntools: [{module: tool-todo}]\n");
    shop.file("b/bundle.yaml", "bundle: {name: b}\ntools: [{module: tool-search}]\n");
    shop.file("c/bundle.yaml", format!("bundle: {{name: c}}\nincludes: [a, b]\n{SESSION}"));
    for reference in ["./a", "./b"] {
        bundles::add(reference, None, &shop.access()).await.unwrap();
    }
    let registry = Registry::new(&shop.home());
    registry.activate("a").unwrap();
    let whole = shop.prepare("./c").await.unwrap().plan().unwrap();
    assert_eq!(modules(&whole), ["tool-todo", "tool-search"]);
    registry.remove("a").unwrap();
    // As another process reads it.
    let read = Registry::new(&shop.home()).read().unwrap();
    assert_eq!((read.names().into_keys().collect::<Vec<_>>(), read.active), (vec!["b".to_owned()], None));
    let left = shop.prepare("./c").await.unwrap();
    assert_eq!(modules(&left.plan().unwrap()), ["tool-search"]);
    let told = left.notices().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(told.contains("`a`"), "{told}");
    let options = PrepareOptions { strictness: BundleStrictness::Strict, ..PrepareOptions::default() };
    let refused = prepare_bundle("./c", &shop.access(), options).await.err();
    assert!(matches!(refused, Some(BundleFault::Load(_))), "{refused:?}");
}

#[tokio::test]
async fn a_name_that_moves_is_changed_by_a_person_and_stays_changed() {
    let shop = Workshop::new();
    let text = format!("bundle: {{name: lib}}\n{SESSION}tools: [{{module: tool-todo}}]\n");
    let (far, _) = shop.commit("lib", &[("bundle.yaml", &text)]);
    shop.file("near/bundle.yaml", text.replace("tool-todo", "tool-search"));
    let access = shop.access();
    bundles::add(&far, None, &access).await.unwrap();
    let Some(BundleFault::Registry(RegistryError::Taken { uri, .. })) =
        bundles::add("./near", None, &access).await.err()
    else {
        panic!("a name does not change under somebody's hands")
    };
    assert_eq!(uri, far);
    let registry = Registry::new(&shop.home());
    registry.remove("lib").unwrap();
    bundles::add("./near", None, &access).await.unwrap();
    let near = format!("file://{}", shop.path("work/near").display());
    assert_eq!(registry.read().unwrap().names()["lib"], near);
    bundles::update("lib", &access).await.unwrap().write(&access).unwrap();
    assert_eq!(Registry::new(&shop.home()).read().unwrap().names()["lib"], near);
    assert_eq!(modules(&shop.prepare("lib").await.unwrap().plan().unwrap()), ["tool-search"]);
}

#[tokio::test]
async fn a_registered_root_keeps_its_place_against_a_behavior_of_its_name() {
    let shop = Workshop::new();
    let root = format!("bundle: {{name: same}}\nincludes: [./behaviors/b.yaml]\n{SESSION}");
    shop.file("b/bundle.yaml", root)
        .file("b/behaviors/b.yaml", "bundle: {name: same}\ntools: [{module: tool-todo}]\n");
    let access = shop.access();
    bundles::add("./b", None, &access).await.unwrap();
    let place = format!("file://{}", shop.path("work/b").display());
    assert_eq!(modules(&shop.prepare("same").await.unwrap().plan().unwrap()), ["tool-todo"]);
    shop.prepare("./b/behaviors/b.yaml").await.unwrap();
    bundles::update("same", &access).await.unwrap().write(&access).unwrap();
    assert_eq!(Registry::new(&shop.home()).read().unwrap().names()["same"], place);
}

#[tokio::test]
async fn of_three_modules_the_two_that_cannot_be_had_are_named() {
    let shop = Workshop::new();
    let (module, _) = shop.commit("good", &[("tool.py", "x = 1\n")]);
    let entry = |id: &str, source: &str| format!("- {{module: {id}, source: \"{source}\"}}\n");
    let tools = [
        entry("tool-bad", "git+file:///nowhere/one@main"),
        entry("tool-good", &module),
        entry("tool-worse", "git+file:///nowhere/two@main"),
        "- {module: tool-todo}\n".to_owned(),
    ];
    shop.file("bundle.yaml", format!("bundle: {{name: m}}\n{SESSION}tools:\n{}", tools.concat()));
    let lenient = shop.prepare("./").await.unwrap();
    assert_eq!(modules(&lenient.plan().unwrap()), ["tool-bad", "tool-good", "tool-worse", "tool-todo"]);
    assert_eq!((lenient.fetched, lenient.missing.len()), (3, 2));
    let options = PrepareOptions { strictness: BundleStrictness::Strict, ..PrepareOptions::default() };
    let refused = prepare_bundle("./", &shop.access(), options).await.err().unwrap();
    assert!(matches!(refused, BundleFault::Modules { of: 3, .. }), "{refused:?}");
    let said = refused.to_string();
    assert!(said.starts_with("2 of 3 modules cannot be had:\n  module `tool-bad`: "), "{said}");
    assert!(said.contains("\n  module `tool-worse`: ") && !said.contains("tool-good"), "{said}");
}
