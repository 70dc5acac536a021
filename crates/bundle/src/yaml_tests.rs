//! What YAML texts become.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::node::Mark;
use crate::notice::Code;

fn file(text: &str) -> Arc<SourceFile> {
    Arc::new(SourceFile::new("b.yaml", text))
}

fn document(text: &str) -> Document {
    read(&file(text), &YamlLimits::default()).unwrap()
}

fn value(text: &str) -> Value {
    document(text).node.map_or(Value::Null, |node| node.to_json())
}

fn fault(text: &str) -> (u32, u32, YamlFault) {
    let error = read(&file(text), &YamlLimits::default()).unwrap_err();
    (error.place.line, error.place.column, error.fault)
}

#[test]
fn scalars_follow_the_core_types() {
    let cases = [
        ("1", json!(1)),
        ("-7", json!(-7)),
        ("+7", json!(7)),
        ("18446744073709551615", json!(u64::MAX)),
        ("0x1F", json!(31)),
        ("0o17", json!(15)),
        ("1.5", json!(1.5)),
        ("1e3", json!(1000.0)),
        (".5", json!(0.5)),
        ("1.0", json!(1.0)),
        ("1.0.0", json!("1.0.0")),
        ("1:30", json!("1:30")),
        ("2026-01-02", json!("2026-01-02")),
        ("-", json!([null])),
        (".", json!(".")),
        ("1_000", json!("1_000")),
        ("~", json!(null)),
        ("null", json!(null)),
        ("True", json!(true)),
        ("'1'", json!("1")),
        ("\"a\\nb\"", json!("a\nb")),
        ("!!str 1.0", json!("1.0")),
        ("!!int '3'", json!(3)),
        ("! 12", json!("12")),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn old_booleans_and_doubtful_numbers_are_read_and_told() {
    for (text, expected) in [
        ("on", json!(true)),
        ("No", json!(false)),
        ("0644", json!(644)),
        (".inf", json!(".inf")),
        ("99999999999999999999", json!("99999999999999999999")),
    ] {
        let document = document(text);
        assert_eq!(document.node.unwrap().to_json(), expected, "{text}");
        assert_eq!(
            document.notices.iter().map(|notice| notice.code).collect::<Vec<_>>(),
            [Code::AmbiguousScalar]
        );
    }
    // A key is a name, whatever it looks like.
    let document = document("on: 1\n1: 2\n");
    assert_eq!(document.node.unwrap().to_json(), json!({"on": 1, "1": 2}));
    assert_eq!(document.notices, []);
}

#[test]
fn every_value_knows_its_place() {
    let node = document("# top\ntools:\n  - module: tool-x\n    config: {é: [1, 2]}\n").node.unwrap();
    let place = |node: &Node| (node.place.line, node.place.column);
    let tool = &node.at("tools").unwrap().as_list().unwrap()[0];
    assert_eq!(place(tool), (3, 5));
    assert_eq!(place(tool.at("module").unwrap()), (3, 13));
    assert_eq!(place(&tool.at("config").unwrap().at("é").unwrap().as_list().unwrap()[1]), (4, 21));
    let key = &tool.as_map().unwrap()["config"].key;
    assert_eq!((key.line, key.column), (4, 5));
}

#[test]
fn broken_yaml_points_at_the_character() {
    let error = read(&file("a: 1\nb: [1, 2\nc: 3\n"), &YamlLimits::default()).unwrap_err();
    assert!(matches!(error.fault, YamlFault::Syntax(_)), "{error}");
    assert!(error.to_string().starts_with("b.yaml:3:"), "{error}");
    assert!(error.place.excerpt().unwrap().starts_with("3 | c: 3\n  | "), "{:?}", error.place.excerpt());
}

#[test]
fn a_key_written_twice_is_told_and_the_last_counts() {
    let document = document("a: 1\nb: 2\na: 3\n");
    assert_eq!(document.node.unwrap().to_json(), json!({"a": 3, "b": 2}));
    let notice = &document.notices[0];
    assert_eq!((notice.code, notice.place.as_ref().unwrap().line), (Code::DuplicateKey, 3));
}

#[test]
fn aliases_and_merge_keys_work() {
    let text = "base: &b {x: 1, y: [1]}\nother: &o {z: 9, x: 5}\nuse:\n  <<: [*b, *o]\n  x: 2\nagain: *b\n\"<<\": 1\n";
    let node = document(text).node.unwrap();
    assert_eq!(
        node.to_json(),
        json!({
            "base": {"x": 1, "y": [1]}, "other": {"z": 9, "x": 5},
            "use": {"x": 2, "y": [1], "z": 9}, "again": {"x": 1, "y": [1]}, "<<": 1
        })
    );
    assert_eq!(node.at("again").unwrap().place.line, 6);
    assert_eq!(fault("a: &a [*a]\n").2, YamlFault::EndlessAlias);
    assert_eq!(fault("<<: 3\n").2, YamlFault::MergeKey);
}

#[test]
fn marks_are_read_from_tags() {
    let node = document("a: !replace [1]\nb: !delete\nc: !replace {x: 1}\n").node.unwrap();
    let mark = |key| node.at(key).unwrap().mark;
    assert_eq!((mark("a"), mark("b"), mark("c")), (Mark::Replace, Mark::Delete, Mark::Replace));
    assert_eq!(fault("a: !Ref x\n"), (1, 9, YamlFault::UnknownTag("!Ref".into())));
    assert!(matches!(fault("a: !!int x\n").2, YamlFault::TagMismatch { .. }));
    assert!(matches!(fault("a: !!python/object [1]\n").2, YamlFault::UnknownTag(_)));
}

#[test]
fn one_document_a_file() {
    assert_eq!(value("---\na: 1\n"), json!({"a": 1}));
    assert_eq!(value("---\na: 1\n...\n"), json!({"a": 1}));
    assert_eq!(fault("---\na: 1\n---\nb: 1\n").2, YamlFault::SecondDocument);
    assert_eq!(document("").node, None);
    assert_eq!(document("# only a comment\n").node, None);
    assert_eq!(fault("? [a]\n: 1\n").2, YamlFault::KeyNotText);
}

#[test]
fn bombs_and_depth_are_bounded() {
    let mut bomb = String::from("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*l{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("l{level}: &l{level} [{before}]\n"));
    }
    assert!(matches!(fault(&bomb).2, YamlFault::TooManyNodes(_)));
    assert!(matches!(fault(&"[".repeat(100_000)).2, YamlFault::TooDeep(_) | YamlFault::Syntax(_)));
    let deep: String = (0..5000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert!(matches!(
        fault(&deep).2,
        YamlFault::TooDeep(_) | YamlFault::Syntax(_) | YamlFault::TooLong { .. }
    ));
    assert!(matches!(fault(&"a".repeat(5 << 20)).2, YamlFault::TooLong { .. }));
    // Aliases cannot nest deeper than text may.
    let mut nested = String::from("l0: &l0 [x]\n");
    for level in 1..100 {
        nested.push_str(&format!("l{level}: &l{level} [*l{}]\n", level - 1));
    }
    assert!(matches!(fault(&nested).2, YamlFault::TooDeep(_)));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _answer = read(&file(&text), &YamlLimits::default());
    }

    #[test]
    fn json_is_yaml(text in "[a-z]{1,8}", number in proptest::num::i64::ANY, flag in proptest::bool::ANY) {
        let json = json!({"a": [text, number, flag, null], "b": {"c": text.clone() + ": #"}});
        proptest::prop_assert_eq!(value(&json.to_string()), json);
    }
}

#[test]
fn a_tab_is_told_on_its_own_line() {
    let places = ["a:\n  b: c\n\td: e\n", "a:\n  b: c\n\n \td: e\n", "a: |\n\tx\n"].map(|text| {
        let (line, column, _) = fault(text);
        (line, column)
    });
    assert_eq!(places, [(3, 1), (4, 2), (2, 1)]);
}
