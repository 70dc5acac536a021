//! `amplifier plan validate`.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::desk::Desk;

fn minimal() -> Value {
    json!({"session": {"orchestrator": "loop-basic", "context": "context-simple"}, "providers": [{"module": "provider-mock"}]})
}

#[test]
fn every_plan_of_the_specification_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/plans");
    let desk = Desk::new();
    let mut plans = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ran = desk.amplifier(&["plan", "validate", path.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}: {}", path.display(), ran.seen());
        assert!(ran.stdout.starts_with("PASSED"), "{}", ran.stdout);
        plans += 1;
    }
    assert!(plans >= 9, "only {plans} plans");
}

#[test]
fn an_invalid_plan_is_told_with_file_line_and_cure() {
    let desk = Desk::new();
    desk.file(
        "bad.json",
        r#"{
  "session": {"context": {"modul": "context-simple"}},
  "providers": {"module": "provider-mock"},
  "tools": [{"module": 7}, {"source": "x"}, {"module": "tool-x", "config": []}],
  "hook": []
}"#,
    );
    assert_snapshot!(desk.amplifier(&["plan", "validate", "bad.json"]).seen());
}

#[test]
fn a_number_that_would_change_is_refused_with_its_place() {
    let desk = Desk::new();
    desk.file(
        "long.json",
        r#"{
  "session": {"orchestrator": "loop-basic", "context": "context-simple"},
  "providers": [{"module": "provider-mock", "config": {"seed": 123456789012345678901234}}]
}"#,
    );
    let ran = desk.amplifier(&["plan", "validate", "long.json"]);
    assert_eq!(ran.code, 1);
    let told = ran.seen();
    assert!(told.contains("long.json:3:64"), "{told}");
    assert!(told.contains("the whole number `123456789012345678901234` does not fit into 64 bits"), "{told}");
}

#[test]
fn the_report_for_programs_is_stable() {
    let desk = Desk::new();
    desk.plan("bad.json", &json!({"session": {"orchestrator": "loop-basic", "context": "context-simple"}, "providers": [{"module": ""}]}));
    let ran = desk.amplifier(&["plan", "validate", "bad.json", "--json"]);
    assert_eq!(ran.code, 1);
    assert_snapshot!(ran.stdout);
}

#[test]
fn what_is_not_json_is_invalid_and_what_cannot_be_read_is_a_wrong_call() {
    let desk = Desk::new();
    desk.file("broken.json", "{\n  \"session\": {,}\n}").file("bytes.json", [0xff, 0xfe, 0x00]);
    assert_snapshot!("broken", desk.amplifier(&["plan", "validate", "broken.json"]).seen());
    let broken = desk.amplifier(&["plan", "validate", "broken.json", "--json"]);
    assert_eq!((broken.code, broken.json()["passed"].clone()), (1, json!(false)));
    assert_snapshot!("missing", desk.amplifier(&["plan", "validate", "missing.json"]).seen());
    assert_snapshot!("bytes", desk.amplifier(&["plan", "validate", "bytes.json"]).seen());
    assert_eq!(desk.amplifier(&["plan", "validate"]).code, 2);
    assert_eq!(desk.amplifier(&["plan", "validate", "a", "--nonsense"]).code, 2);
}

#[test]
fn a_byte_order_mark_is_no_error() {
    let desk = Desk::new();
    desk.file("bom.json", format!("\u{feff}{}", minimal()));
    assert_eq!(desk.amplifier(&["plan", "validate", "bom.json"]).code, 0);
}

#[test]
fn a_huge_or_deep_file_ends_with_an_error_and_not_with_the_program() {
    let desk = Desk::new();
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    desk.file("deep.json", deep).file("huge.json", vec![b' '; 17 * 1024 * 1024]);
    assert_eq!(desk.amplifier(&["plan", "validate", "deep.json"]).code, 1);
    let huge = desk.amplifier(&["plan", "validate", "huge.json"]);
    assert_eq!(huge.code, 2);
    assert!(huge.stderr.contains("more than 16777216 bytes"), "{}", huge.stderr);
    desk.file("half.json", "{\"session\": \n");
    let half = desk.amplifier(&["plan", "validate", "half.json"]);
    assert!(half.stderr.contains("half.json:1:12: not JSON"), "{}", half.stderr);
}

#[test]
fn help_and_version_are_answers() {
    let desk = Desk::new();
    for args in [&["--help"][..], &["plan", "validate", "--help"], &["run", "--help"], &["--version"]] {
        let ran = desk.amplifier(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        assert!(ran.stdout.contains("amplifier"), "{}", ran.stdout);
    }
    assert_snapshot!("run_help", desk.amplifier(&["run", "--help"]).stdout);
}

#[test]
fn programs_may_ask_for_json_everywhere() {
    let desk = Desk::new();
    desk.plan("a.json", &minimal());
    let shown = desk.amplifier(&["plan", "show", "--plan", "a.json", "--output", "json"]);
    assert_eq!(
        (shown.code, &shown.json()["providers"][0]["module"]),
        (0, &json!("provider-mock")),
        "{}",
        shown.seen()
    );
    let hash = desk.amplifier(&["plan", "hash", "--plan", "a.json"]).stdout;
    let told = desk.amplifier(&["plan", "hash", "--plan", "a.json", "--output", "json"]);
    assert_eq!(told.json(), json!({"hash": hash.trim()}), "{}", told.seen());
    let checked = desk.amplifier(&["plan", "validate", "a.json", "--output", "json"]);
    let older = desk.amplifier(&["plan", "validate", "a.json", "--json"]);
    assert_eq!((checked.code, checked.json()), (0, older.json()), "{}", checked.seen());
}

#[test]
fn a_file_that_is_no_plan_is_told_once_with_what_helps() {
    let desk = Desk::new();
    for text in ["", " \n\n", "\u{feff}"] {
        let ran = desk.file("p.json", text).amplifier(&["run", "--plan", "p.json", "hi"]);
        assert_eq!(ran.code, 2, "{}", ran.seen());
        let told = "error: p.json:1:1: the file is empty, and a plan is a JSON object\n  \
                    hint: `amplifier plan show --bundle foundation > p.json` writes one to start from\n";
        assert_eq!(ran.stderr, told);
        let ran = desk.amplifier(&["plan", "validate", "p.json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (1, told));
    }
    let written = desk.amplifier(&["plan", "show", "--bundle", "foundation"]);
    desk.file("p.json", &written.stdout);
    assert_eq!(desk.amplifier(&["plan", "validate", "p.json"]).code, 0);
    for text in ["[]", "null", "\"x\"", "{}", "{\"session\": 3}"] {
        let ran = desk.file("p.json", text).amplifier(&["run", "--plan", "p.json", "hi"]);
        assert_eq!(ran.code, 2, "{}", ran.seen());
        assert!(ran.stderr.starts_with("error: p.json:1:"), "{}", ran.seen());
        assert_eq!(ran.stderr.matches("error:").count(), 1, "{}", ran.seen());
        assert!(
            ran.stderr.contains("hint: `amplifier plan validate p.json` lists every check"),
            "{}",
            ran.seen()
        );
    }
}

#[test]
fn modules_that_nobody_has_are_told_as_a_session_would_and_nothing_is_fetched_for_a_look() {
    let desk = Desk::new();
    let place = crate::provider::closed();
    let source = format!("git+http://{place}/x.git");
    let mut plan = minimal();
    plan["tools"] = json!([{"module": "tool-bsh"}, {"module": "tool-mine", "source": source}]);
    plan["agents"] = json!({"helper": {"tools": [{"module": "tool-serch"}]}});
    desk.plan("a.json", &plan);
    let said = "Module 'tool-bsh' not found; tried built-in modules; did you mean `tool-bash`?";
    let cure = "`amplifier module list` shows the built-in ones; others need a `source` in their entry";
    let ran = desk.amplifier(&["plan", "validate", "a.json"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(
        ran.stdout.contains(&format!("error: [tools[0]_module_found] {said} ({cure})")),
        "{}",
        ran.seen()
    );
    assert!(ran.stdout.contains("[agents.helper.tools[0]_module_found]"), "{}", ran.seen());
    assert!(ran.stdout.contains("did you mean `tool-search`"), "{}", ran.seen());
    let unseen = format!("module `tool-mine` comes from `{source}`, which was not looked at");
    assert!(ran.stderr.starts_with("note: a.json:1:") && ran.stderr.contains(&unseen), "{}", ran.seen());
    let told = desk.amplifier(&["plan", "validate", "a.json", "--json"]).json();
    assert_eq!((&told["passed"], told["errors"].as_array().unwrap().len()), (&json!(false), 2), "{told}");

    // The same words as of a session.
    plan["tools"] = json!([{"module": "tool-bsh"}]);
    desk.plan("b.json", &plan);
    let ran = desk.amplifier(&["run", "--plan", "b.json", "hi"]);
    assert!(ran.stderr.contains(said) && ran.stderr.contains(cure), "{}", ran.seen());

    // One that only has a source passes, and so does a module of this program that names one.
    let native = json!({"module": "tool-bash", "source": source});
    plan["tools"] = json!([native, {"module": "tool-mine", "source": source}]);
    plan["agents"] = json!({});
    desk.plan("c.json", &plan);
    let ran = desk.amplifier(&["plan", "validate", "c.json"]);
    assert_eq!((ran.code, ran.stderr.matches("was not looked at").count()), (0, 1), "{}", ran.seen());
}

#[test]
fn bundles_and_profiles_that_name_a_module_nobody_has_are_not_fine() {
    let desk = Desk::new();
    let told = "Module 'tool-bsh' not found; tried built-in modules; did you mean `tool-bash`?";
    desk.file("b.md", "---\nbundle: {name: b}\nincludes: [minimal]\ntools:\n- module: tool-bsh\n---\n");
    let ran = desk.amplifier(&["bundle", "validate", "./b.md"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(ran.stdout.contains(&format!("b.md:5:11: {told}")), "{}", ran.seen());
    // Who includes a part may bring what it names.
    desk.file("part.md", "---\nbundle: {name: part}\ntools:\n- module: tool-bsh\n---\n");
    let ran = desk.amplifier(&["bundle", "validate", "./part.md"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert!(ran.stdout.contains("warning: ") && ran.stdout.contains(told), "{}", ran.seen());
    let head = "---\nprofile: {name: p, version: 1.0.0, schema_version: 2}\n";
    let session = "session:\n  orchestrator: {module: loop-basic}\n  context: {module: context-simple}\n";
    desk.file("c/p/profile.md", format!("{head}{session}tools:\n- module: tool-bsh\n---\n"));
    let added = desk.with_git(&["collection", "add", "mine", "./c"]);
    assert_eq!(added.code, 0, "{}", added.seen());
    let ran = desk.with_git(&["profile", "check", "mine/p"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(ran.stdout.contains(&format!("profile.md:7:11: {told}")), "{}", ran.seen());
    let ran = desk.with_git(&["profile", "check", "mine/p", "--output", "json"]);
    assert_eq!(ran.json()["unknown_modules"].as_array().unwrap().len(), 1, "{}", ran.seen());
}
