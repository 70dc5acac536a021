//! What changes and what stays.

use std::sync::Arc;

use amplifier_bundle::origin::SourceFile;
use amplifier_bundle::yaml::{self, YamlLimits};
use serde_json::json;

use super::*;

fn node(text: &str) -> Option<Node> {
    let file = Arc::new(SourceFile::new("s.yaml", text));
    yaml::read(&file, &YamlLimits::default()).unwrap().node
}

fn with(text: &str, path: &str, value: Value) -> Result<String, String> {
    let mut lines = Lines::of(text);
    let words: Vec<_> = path.split('.').collect();
    set(&mut lines, node(text).as_ref(), &words, &value).map_err(|refusal| refusal.reason)?;
    Ok(lines.text())
}

fn without(text: &str, path: &str) -> String {
    let mut lines = Lines::of(text);
    let words: Vec<_> = path.split('.').collect();
    unset(&mut lines, &node(text).unwrap(), &words).unwrap();
    lines.text()
}

#[test]
fn a_new_file_and_a_new_section_are_written_as_people_do() {
    assert_eq!(with("", "bundle.active", json!("x")).unwrap(), "bundle:\n  active: x\n");
    assert_eq!(
        with("# mine\nprefer: source\n\n# end\n", "bundle.app", json!(["a", "b c"])).unwrap(),
        "# mine\nprefer: source\nbundle:\n  app:\n    - a\n    - \"b c\"\n\n# end\n"
    );
}

#[test]
fn a_value_changes_and_its_comment_stays() {
    let text = "bundle:  # what I use\n    active: \"old # x\"   # for now\n    app: [a]\n\nprefer: source\n";
    assert_eq!(with(text, "bundle.active", json!("new")).unwrap(), text.replace("\"old # x\"", "new"));
    let text = "limits: # none\n  max_tokens: 5 # few\n";
    assert_eq!(with(text, "limits.max_tokens", json!(7)).unwrap(), text.replace('5', "7"));
}

#[test]
fn a_key_joins_its_section_at_the_end_with_the_indent_of_the_others() {
    let text = "bundle:\n    active: x\n    # about nothing\nui:\n    color: auto\n";
    assert_eq!(
        with(text, "bundle.app", json!(["a"])).unwrap(),
        "bundle:\n    active: x\n    app:\n      - a\n    # about nothing\nui:\n    color: auto\n"
    );
    let text = "overrides:\n  tool-bash:\n    config:\n      a: |\n        # text\n        b\n";
    assert_eq!(
        with(text, "overrides.tool-bash.source", json!("./x")).unwrap(),
        format!("{text}    source: ./x\n")
    );
}

#[test]
fn an_empty_section_is_filled() {
    assert_eq!(
        with("bundle:\nui: {}\n", "bundle.active", json!("x")).unwrap(),
        "bundle:\n  active: x\nui: {}\n"
    );
    assert_eq!(with("ui: {} # u\n", "ui.color", json!("never")).unwrap(), "ui: # u\n  color: never\n");
}

#[test]
fn a_list_is_replaced_whole_in_every_style() {
    for list in [" [a,\n    b]\n", "\n    - a\n    # c\n    - b\n", "\n  - a\n  - b\n"] {
        let text = format!("bundle:\n  app:{list}  active: x\n");
        let new = with(&text, "bundle.app", json!(["z"])).unwrap();
        assert_eq!(new, "bundle:\n  app:\n    - z\n  active: x\n", "{text}");
    }
}

#[test]
fn what_stands_in_braces_is_left_alone() {
    assert!(with("{bundle: {active: x}}\n", "bundle.active", json!("y")).is_err());
    assert!(with("bundle: {active: x}\n", "bundle.active", json!("y")).is_err());
    assert!(with("bundle: 3\n", "bundle.active", json!("y")).is_err());
}

#[test]
fn an_entry_goes_with_the_sections_it_leaves_empty() {
    let text = "# top\nbundle:\n  # one\n  active: x\nlimits:\n  max_tokens: 5\n  max_cost_usd: 1\n";
    assert_eq!(without(text, "limits.max_tokens"), text.replace("  max_tokens: 5\n", ""));
    assert_eq!(without("a: 1\nb:\n  c:\n    d: 1\n", "b.c.d"), "a: 1\n");
    assert_eq!(without("b:\n  c:\n    d: 1\n  e: 1\n", "b.c.d"), "b:\n  e: 1\n");
}

#[test]
fn items_come_and_go() {
    let text = "config:\n  providers:\n  - module: a\n    config:\n      x: 1\n  # second\n  - module: b\nui:\n  color: auto\n";
    let root = node(text).unwrap();
    let list = root.at("config").unwrap().at("providers").unwrap();
    let mut lines = Lines::of(text);
    push(&mut lines, list, &json!({"module": "c", "config": {"y": [1]}})).unwrap();
    // Older readers of YAML take a bare `y` for a yes.
    let added = "  - module: c\n    config:\n      \"y\":\n        - 1\n";
    assert_eq!(lines.text(), text.replace("ui:", &format!("{added}ui:")));
    let mut lines = Lines::of(text);
    pull(&mut lines, &list.as_list().unwrap()[0]).unwrap();
    assert_eq!(lines.text(), text.replace("  - module: a\n    config:\n      x: 1\n", ""));
    let flow = node("p: [{module: a}]\n").unwrap();
    assert!(push(&mut Lines::of("p: [{module: a}]\n"), flow.at("p").unwrap(), &json!({})).is_err());
}

#[test]
fn words_that_mean_something_else_are_quoted() {
    for (text, written) in [
        ("true", "\"true\""),
        ("1.0", "\"1.0\""),
        ("", "\"\""),
        ("a: b", "\"a: b\""),
        ("${KEY}", "${KEY}"),
        ("git+https://h/o/r@main", "git+https://h/o/r@main"),
        ("-x", "\"-x\""),
        ("Off", "\"Off\""),
        ("ü", "\"ü\""),
    ] {
        assert_eq!(quoted(text), written);
        let read = node(&format!("k: {written}\n")).unwrap();
        assert_eq!(read.at("k").unwrap().to_json(), json!(text));
    }
}

#[test]
fn lines_end_as_they_did() {
    assert_eq!(with("a: 1\r\nb: 2\r\n", "a", json!(3)).unwrap(), "a: 3\r\nb: 2\r\n");
}
