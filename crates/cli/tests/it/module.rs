//! `amplifier module list` and `amplifier module info`.

use insta::assert_snapshot;

use crate::desk::Desk;

#[test]
fn the_list_shows_every_module_by_kind_in_80_columns() {
    let ran = Desk::new().amplifier(&["module", "list"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
    let (first_kinds, _) = ran.stdout.split_once("Providers").unwrap();
    assert_snapshot!("list", first_kinds);
    let other_names = ran.stdout.find("Other names").unwrap();
    assert_snapshot!("list_other_names", &ran.stdout[other_names..]);
    let listed = Desk::new().amplifier(&["module", "list", "--output", "json"]).json();
    let modules = listed["modules"].as_array().unwrap();
    assert!(modules.len() >= 23, "{}", modules.len());
    for module in modules {
        let (id, kind) = (module["id"].as_str().unwrap(), module["type"].as_str().unwrap());
        assert!(ran.stdout.contains(&format!("\n  {id}")), "{id} is not in the list for people");
        assert!(!module["description"].as_str().unwrap().is_empty() && !kind.is_empty(), "{id}");
    }
}

#[test]
fn everything_about_a_module_is_told() {
    let desk = Desk::new();
    assert_snapshot!("info_tool", desk.amplifier(&["module", "info", "tool-echo"]).seen());
    assert_snapshot!("info_hook", desk.amplifier(&["module", "info", "hooks-shell"]).seen());
    let told = desk.amplifier(&["module", "info", "tool-filesystem", "--output", "json"]).json();
    assert_eq!(told["type"], "tool");
    assert_eq!(told["config_schema"]["properties"]["require_approval"]["default"], false);
    let names: Vec<_> = told["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.iter().any(|name| *name == "apply_patch"), "{names:?}");
    assert_eq!(told["tools"][0]["parameters"]["type"], "object");
    assert_eq!(told["events"][0]["name"], "artifact:read");
    assert_eq!(desk.sessions().len(), 0, "looking at a module leaves no session");
}

#[test]
fn every_module_can_be_told_about_in_80_columns() {
    let desk = Desk::new();
    let listed = desk.amplifier(&["module", "list", "--output", "json"]).json();
    for module in listed["modules"].as_array().unwrap() {
        let id = module["id"].as_str().unwrap();
        let ran = desk.amplifier(&["module", "info", id]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{id}");
        // A single word may be longer than the page, such as a long name with its brackets.
        let too_long = |line: &&str| line.chars().count() > 80 && line.trim().contains(' ');
        assert_eq!(ran.stdout.lines().find(too_long), None, "{id}");
    }
}

#[test]
fn another_name_is_told_and_shows_the_module_it_means() {
    let desk = Desk::new();
    let (real, other) = (
        desk.amplifier(&["module", "info", "hooks-shell"]),
        desk.amplifier(&["module", "info", "hook-shell"]),
    );
    assert_eq!(other.stdout, format!("`hook-shell` is another name of `hooks-shell`.\n\n{}", real.stdout));
    let told = desk.amplifier(&["module", "info", "hook-shell", "--output", "json"]).json();
    assert_eq!((&told["id"], &told["asked_as"]), (&"hooks-shell".into(), &"hook-shell".into()));
}

#[test]
fn a_wrong_id_is_a_wrong_call_with_a_way_out() {
    let desk = Desk::new();
    assert_snapshot!("unknown", desk.amplifier(&["module", "info", "tool-filesytem"]).seen());
    assert_snapshot!("unknown_far", desk.amplifier(&["module", "info", "../etc"]).seen());
    assert_eq!(desk.amplifier(&["module", "info"]).code, 2);
    assert_eq!(desk.amplifier(&["module", "list", "--output", "xml"]).code, 2);
}
