//! What the application offers modules by name.

use std::collections::BTreeSet;

use serde_json::json;

use crate::workshop::Workshop;

#[tokio::test]
async fn the_page_lists_what_is_offered_and_nothing_else() {
    let shop = Workshop::new();
    shop.scripted("", &json!(["ok"]), "Be brief.");
    let session = shop.session().await;
    let mut offered: BTreeSet<_> = session.session.coordinator().capability_names().into_iter().collect();
    assert!(offered.remove("session.steer"), "the loop offers this one");
    let page = include_str!("../../../../docs/reference/capabilities.md");
    let listed = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(offered, listed.map(str::to_owned).collect());
    session.session.cleanup().await;
}

#[tokio::test]
async fn modules_can_ask_who_hears_which_events() {
    let shop = Workshop::new();
    shop.scripted("hooks: [{module: hooks-redaction}]", &json!(["ok"]), "Be brief.");
    let session = shop.session().await;
    let at = session.session.coordinator();
    let heard = at.call_capability("hook_metadata", json!({})).await.unwrap();
    let heard = heard.as_object().unwrap();
    assert!(!heard.is_empty());
    for timing in at.hooks().timings() {
        let patterns = heard[&timing.name].as_array().unwrap();
        assert!(patterns.contains(&json!(timing.pattern)), "{heard:?}");
    }
    session.session.cleanup().await;
}
