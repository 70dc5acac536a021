//! Whatever bytes come: reading YAML, a bundle, an agent or a profile never panics, and every place that is told is a
//! place of the text.
#![no_main]

use std::sync::Arc;

use amplifier_bundle::bundle;
use amplifier_bundle::home::Home;
use amplifier_bundle::node::{Node, NodeValue};
use amplifier_bundle::origin::{Place, SourceFile};
use amplifier_bundle::yaml::{self, YamlLimits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Small, so that a bomb is found to be one within the time of an input.
    let limits = YamlLimits { bytes: 1 << 16, nodes: 10_000, depth: 64 };
    for name in ["/b/bundle.md", "/b/bundle.yaml"] {
        let home = Arc::new(Home::local(name, "/b"));
        if let Ok((bundle, notices)) = bundle::read(bytes.to_vec(), &home, &limits) {
            notices.iter().for_each(|notice| drop(notice.render()));
            drop(format!("{bundle:?}"));
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let file = Arc::new(SourceFile::new("/b/x.yaml", text));
    match yaml::read(&file, &limits) {
        Ok(document) => {
            if let Some(node) = &document.node {
                assert!(node.count() <= limits.nodes, "more values than are allowed");
                walk(node, &file);
                let json = serde_json::to_string(&node.to_json()).expect("what was read can be written");
                let again: serde_json::Value = serde_json::from_str(&json).expect("and read as JSON");
                assert_eq!(again, node.to_json());
            }
        }
        Err(error) => within(&error.place, &file),
    }
});

fn walk(node: &Node, file: &SourceFile) {
    within(&node.place, file);
    match &node.value {
        NodeValue::Map(mapping) => mapping.values().for_each(|entry| walk(&entry.node, file)),
        NodeValue::List(items) => items.iter().for_each(|item| walk(item, file)),
        _ => {}
    }
}

/// A place is on a line of the text, or just behind its end. In YAML a carriage return alone ends a line too.
fn within(place: &Place, file: &SourceFile) {
    let lines = file.text.replace("\r\n", "\n").split(['\n', '\r']).count();
    let lines = u32::try_from(lines).unwrap_or(u32::MAX);
    assert!(place.line >= 1 && place.line <= lines.saturating_add(1), "{place} of {lines} lines");
    drop(place.excerpt());
}
