//! `amplifier plan show | explain | hash | diff` on bundles and plan files.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::desk::Desk;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("b/base.yaml", "bundle: {name: base}\nsession: {orchestrator: loop-basic, context: {module: context-simple, config: {max_tokens: 100}}}\ntools: [{module: tool-todo}, {module: tool-bash, config: {timeout: 5}}]\n");
    desk.file(
        "b/mid.yaml",
        "bundle: {name: mid}\nincludes: [./base.yaml]\ntools: [{module: tool-bash, config: {timeout: 6}}]\n",
    );
    desk.file("b/bundle.yaml", "bundle: {name: top}\nincludes: [./mid.yaml]\nproviders: [{module: provider-mock}]\nsession: {context: {config: {max_tokens: 300}}}\n");
    desk
}

#[test]
fn a_plan_is_shown_in_both_forms_and_runs() {
    let desk = desk();
    let nested = desk.amplifier(&["plan", "show", "--bundle", "b"]);
    assert_snapshot!("nested", nested.seen());
    let strings = desk.amplifier(&["plan", "show", "--bundle", "b", "--format", "string"]);
    assert_snapshot!("strings", strings.seen());
    let hash = |args: &[&str]| desk.amplifier(&[&["plan", "hash"][..], args].concat()).stdout;
    let of_bundle = hash(&["--bundle", "b"]);
    for (name, text) in [("nested.json", &nested.stdout), ("strings.json", &strings.stdout)] {
        desk.file(name, text);
        assert_eq!(hash(&["--plan", name]), of_bundle, "{name}");
    }
    assert_eq!(desk.amplifier(&["run", "--plan", "strings.json", "hi"]).code, 0);
    assert_eq!(desk.amplifier(&["plan", "show", "--bundle", "b", "--plan", "nested.json"]).code, 2);
}

#[test]
fn every_value_is_explained_with_file_and_line_and_what_it_overrode() {
    let desk = desk();
    assert_snapshot!("explained", desk.seen(&desk.amplifier(&["plan", "explain", "--bundle", "b"])));
    let one = desk.amplifier(&["plan", "explain", "/tools/1/config", "--bundle", "b", "--output", "json"]);
    let setting = &one.json()["settings"][0];
    assert_eq!((setting["value"].clone(), setting["overrode"][0]["value"].clone()), (json!(6), json!(5)));
    desk.file(
        "p.json",
        "{\n  \"session\": {\"orchestrator\": \"loop-basic\",\n    \"context\": \"context-simple\"}\n}",
    );
    assert_snapshot!("explained_file", desk.amplifier(&["plan", "explain", "--plan", "p.json"]).seen());
    let nothing = desk.amplifier(&["plan", "explain", "/nowhere", "--bundle", "b"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""), "{}", nothing.seen());
}

#[test]
fn what_differs_is_told_by_module_and_the_exit_code_says_so() {
    let desk = desk();
    let same = desk.amplifier(&["plan", "diff", "b", "b"]);
    assert_eq!((same.code, same.stdout.as_str()), (0, ""), "{}", same.seen());
    let differ = desk.amplifier(&["plan", "diff", "b", "./b/base.yaml"]);
    assert_snapshot!("differences", desk.seen(&differ));
    let json: Value = desk.amplifier(&["plan", "diff", "b", "b/base.yaml", "--output", "json"]).json();
    assert_eq!(json["differences"][0]["change"], json!("changed"));
    assert_eq!(desk.amplifier(&["plan", "diff", "b", "missing.json"]).code, 2);
}

#[test]
fn a_part_is_no_plan_and_says_what_is_missing() {
    let desk = Desk::new();
    desk.file("part.yaml", "bundle: {name: part}\ntools: [{module: tool-todo}]\n");
    assert_snapshot!("part", desk.seen(&desk.amplifier(&["plan", "show", "--bundle", "./part.yaml"])));
}
