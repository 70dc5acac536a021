//! Input that means harm: it ends soon, in little memory, with an error that says what was too much.

use std::fmt::Write;
use std::path::Path;

use amplifier_bundle::error::BundleError;
use amplifier_bundle::include::{LoadLimits, LoadOptions};
use amplifier_bundle::load::load_bundle;
use amplifier_bundle::notice::Code;
use serde_json::json;

use crate::memory::{Memory, codes, modules};

#[tokio::test]
async fn ten_thousand_includes_are_refused_before_any_is_fetched() {
    let includes: String = (0..10_000).fold(String::from("includes:\n"), |mut text, n| {
        writeln!(text, "- git+https://h/r{n}@main").unwrap();
        text
    });
    let world = Memory::new(&[("/b/bundle.yaml", &includes)]);
    let error = world.load("/b").await.unwrap_err();
    assert!(matches!(error, BundleError::Limit { what: "the number of includes", .. }), "{error}");
    assert_eq!(world.fetched.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_tree_of_ten_thousand_files_is_refused() {
    let mut world = Memory::default();
    for n in 0..10_000 {
        let children: Vec<_> = (1..=3).map(|child| format!("./{}.yaml", n * 3 + child)).collect();
        world.put(&format!("/b/{n}.yaml"), &format!("includes: {children:?}\n"));
    }
    let error = world.load("/b/0.yaml").await.unwrap_err();
    let BundleError::Include { source, .. } = error else { panic!("{error}") };
    assert!(matches!(*source, BundleError::Limit { what: "the number of bundle files", .. }), "{source}");
}

#[tokio::test]
async fn a_chain_of_includes_is_bounded() {
    let mut world = Memory::default();
    for n in 0..200 {
        world.put(&format!("/b/{n}.yaml"), &format!("includes: [./{}.yaml]\n", n + 1));
    }
    let error = world.load("/b/0.yaml").await.unwrap_err();
    let BundleError::Include { source, .. } = error else { panic!("{error}") };
    assert!(matches!(*source, BundleError::Limit { what: "the depth of includes", limit: 64 }), "{source}");
}

#[tokio::test]
async fn diamonds_upon_diamonds_cost_no_more_than_their_files() {
    let mut world = Memory::default();
    for level in 0..60 {
        for side in ["l", "r"] {
            let below = format!("[./l{}.yaml, ./r{}.yaml]", level + 1, level + 1);
            let text = format!(
                "includes: {below}\ntools: [{{module: t, config: {{x: {level}{side}, list: [{level}]}}}}]\n"
            );
            world.put(&format!("/b/{side}{level}.yaml"), &text);
        }
    }
    for side in ["l60", "r60"] {
        world.put(&format!("/b/{side}.yaml"), "tools: [{module: t}]\n");
    }
    let loaded = world.load("/b/l0.yaml").await.unwrap();
    assert_eq!(loaded.graph.files.len(), 121);
    assert_eq!(modules(&loaded.plan.to_json(), "tools"), ["t"]);
    let settings = loaded.plan.explain();
    let x = settings.iter().find(|setting| setting.pointer() == "/tools/0/config/x").unwrap();
    assert_eq!(x.value, json!("0l"));
    assert!(x.overrode.len() <= 121, "{}", x.overrode.len());
}

#[tokio::test]
async fn everything_including_everything_ends() {
    let mut world = Memory::default();
    let all: Vec<_> = (0..60).map(|n| format!("./{n}.yaml")).collect();
    for n in 0..60 {
        world.put(&format!("/b/{n}.yaml"), &format!("includes: {all:?}\ntools: [{{module: t{n}}}]\n"));
    }
    let loaded = world.load("/b/0.yaml").await.unwrap();
    assert_eq!(loaded.graph.files.len(), 60);
    assert_eq!(modules(&loaded.plan.to_json(), "tools").len(), 60);
    assert!(codes(&loaded).iter().all(|code| *code == Code::Cycle));
}

#[tokio::test]
async fn merging_has_a_budget() {
    let mut world = Memory::default();
    let items: Vec<_> = (0..10_000).collect();
    for level in 0..60 {
        for side in ["l", "r"] {
            let below = format!("[./l{}.yaml, ./r{}.yaml]", level + 1, level + 1);
            world.put(&format!("/b/{side}{level}.yaml"), &format!("includes: {below}\n"));
        }
    }
    let big = format!("tools: [{{module: t, config: {{list: {items:?}}}}}]\n");
    world.put("/b/l60.yaml", &big);
    world.put("/b/r60.yaml", &big);
    let limits = LoadLimits { values: 100_000, ..LoadLimits::default() };
    let options = LoadOptions { limits, ..LoadOptions::default() };
    let error = load_bundle(&world, "/b/l0.yaml", Path::new("/"), &options).await.unwrap_err();
    assert!(
        matches!(error, BundleError::Limit { what: "the number of values merged", limit: 100_000 }),
        "{error}"
    );
}

#[tokio::test]
async fn bombs_deep_nesting_and_huge_files_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        writeln!(bomb, "a{level}: &a{level} [{}]", format!("*a{}, ", level - 1).repeat(10)).unwrap();
    }
    let deep = format!("tools: {}", "[".repeat(100_000));
    let huge = format!("bundle: {{name: {}}}\n", "x".repeat(5 << 20));
    for text in [bomb.as_str(), deep.as_str(), huge.as_str()] {
        let error = Memory::new(&[("/b/bundle.yaml", text)]).load("/b").await.unwrap_err();
        assert!(matches!(error, BundleError::Yaml(_)), "{error}");
    }
    let body = format!("---\nbundle: {{name: x}}\n---\n{}", "x".repeat(9 << 20));
    let error = Memory::new(&[("/b/bundle.md", &body)]).load("/b").await.unwrap_err();
    assert!(matches!(error, BundleError::Read { .. }), "{error}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_makes_a_load_panic(head in "\\PC{0,80}", body in "\\PC{0,80}") {
        let text = format!("---\n{head}\n---\n{body}");
        let world = Memory::new(&[("/b/bundle.md", text.as_str())]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _answer = runtime.block_on(world.load("/b"));
    }
}
