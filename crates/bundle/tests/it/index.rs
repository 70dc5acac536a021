//! `tests/README.md` names what shows each case of the reference: every name must be a golden case or a test.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The names of all tests of the workspace.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    is_test = true;
                }
                if let Some((_, name)) = line.split_once("fn ").filter(|_| is_test) {
                    found.extend(name.split('(').next().map(str::to_owned));
                    is_test = false;
                }
            }
        }
    }
}

#[test]
fn every_name_of_the_index_is_there() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = BTreeSet::new();
    tests(&here.join("../../crates"), &mut known);
    for case in fs::read_dir(here.join("tests/cases")).unwrap() {
        known.insert(case.unwrap().file_name().into_string().unwrap());
    }
    let text = fs::read_to_string(here.join("tests/README.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let mut named = 0;
    let mut gone = Vec::new();
    for (_, shown) in rows.filter(|(case, _)| *case != "case") {
        for name in shown.split('`').skip(1).step_by(2).filter(|name| name.contains('_')) {
            named += 1;
            if !known.contains(name) {
                gone.push(name);
            }
        }
    }
    assert_eq!(gone, [""; 0], "of {named}");
    assert!(named > 80, "only {named} names were found");
}
