//! What adding and removing does to the text of the registry.

use super::*;

const AT: &str = "2025-11-28T10:30:00Z";

fn registry(text: &str) -> Collections {
    Collections::parse(Path::new("collections.yaml"), text).unwrap()
}

fn added(text: &str, source: &str) -> String {
    registry(text).with(Path::new("collections.yaml"), &"mine".parse().unwrap(), source, AT).unwrap()
}

fn removed(text: &str, name: &str) -> String {
    registry(text).without(Path::new("collections.yaml"), &name.parse().unwrap()).unwrap()
}

#[test]
fn an_entry_is_added_and_the_lines_of_others_stay() {
    let entry =
        "  mine:\n    source: git+https://h/o/r@v1#subdirectory=p\n    installed_at: 2025-11-28T10:30:00Z\n";
    let source = "git+https://h/o/r@v1#subdirectory=p";
    assert_eq!(added("", source), format!("collections:\n{entry}"));
    assert_eq!(added("# ours\ncollections:\n", source), format!("# ours\ncollections:\n{entry}"));
    let old = "# ours\ncollections:\n  a:\n    source: /x # here\n";
    assert_eq!(added(old, source), format!("{old}{entry}"));
    assert_eq!(removed(&format!("{old}{entry}"), "mine"), old);
    assert_eq!(removed(&format!("{old}{entry}"), "a"), format!("# ours\ncollections:\n{entry}"));
}

#[test]
fn a_file_in_another_style_keeps_its_values() {
    let text = added("{collections: {a: {source: /x, note: 'b: c'}}}\n", "/y z");
    let read = registry(&text);
    let sources: Vec<_> =
        read.entries.iter().map(|(name, entry)| (name.as_str(), entry.source.as_deref())).collect();
    assert_eq!(sources, [("a", Some("/x")), ("mine", Some("/y z"))]);
    assert!(text.contains("note: \"b: c\""), "{text}");
    assert_eq!(registry(&removed(&text, "a")).entries.len(), 1);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let parse = |text| Collections::parse(Path::new("collections.yaml"), text);
    assert_eq!(
        parse("collections:\n  ../x:\n    source: /y\n").unwrap_err().to_string(),
        "collections.yaml:2:3: `../x` is no name of a collection or profile"
    );
    assert_eq!(
        parse("collections:\n  - a\n").unwrap_err().to_string(),
        "collections.yaml:2:3: `collections` must be a mapping, not a list"
    );
    let said = parse("collections:\n  a: [\n").unwrap_err().to_string();
    assert!(said.starts_with("collections.yaml:"), "{said}");
}
