//! Which files a call names: under the usual keys, in lists of edits, and in the text of a patch.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Keys under which tools take the path of a file they change.
const KEYS: [&str; 9] = [
    "file_path",
    "path",
    "filename",
    "notebook_path",
    "destination",
    "target",
    "save_to_file",
    "new_path",
    "old_path",
];
/// Keys under which tools take lists of paths.
const LISTS: [&str; 3] = ["paths", "file_paths", "files"];
/// Lines of a patch that name a file.
const PATCH_LINES: [&str; 4] = ["*** Update File: ", "*** Delete File: ", "*** Add File: ", "*** Move to: "];
/// More files than this in one call are a mistake or an attack.
const MOST: usize = 200;
const DEEPEST: usize = 5;

/// The files a call names, absolute.
pub(super) fn of(input: &Value, base: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    search(input, 0, &mut found);
    let mut paths: Vec<PathBuf> = Vec::new();
    for text in found {
        // Home and mentions mean something to the tool alone; guessing would copy the wrong file.
        let is_plain = !text.is_empty() && !text.starts_with(['~', '@']) && !text.contains('\0');
        let path = base.join(text);
        if is_plain && path.is_absolute() && !paths.contains(&path) && paths.len() < MOST {
            paths.push(path);
        }
    }
    paths
}

fn search<'a>(value: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
    if depth > DEEPEST || found.len() > MOST * 2 {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if KEYS.contains(&key.as_str()) => found.push(text),
                    Value::String(text) if text.contains("*** ") => found.extend(in_patch(text)),
                    Value::Array(items) if LISTS.contains(&key.as_str()) => {
                        found.extend(items.iter().filter_map(Value::as_str));
                        search(value, depth + 1, found);
                    }
                    other => search(other, depth + 1, found),
                }
            }
        }
        Value::Array(items) => items.iter().take(MOST).for_each(|item| search(item, depth + 1, found)),
        _ => {}
    }
}

fn in_patch(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| PATCH_LINES.iter().find_map(|start| line.strip_prefix(start)))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_found_under_keys_in_lists_and_in_patches() {
        let of = |input: Value| of(&input, Path::new("/w"));
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(of(json!({"file_path": "a", "content": "path"})), paths(&["/w/a"]));
        assert_eq!(of(json!({"edits": [{"file_path": "a"}, {"file_path": "/b"}]})), paths(&["/w/a", "/b"]));
        assert_eq!(of(json!({"paths": ["a", "a", "~/x", "@b:c", ""]})), paths(&["/w/a"]));
        let patch = "*** Begin Patch\n*** Update File: x/y.rs\n@@\n-a\n+b\n*** Delete File: z\n*** End Patch";
        assert_eq!(of(json!({"patch": patch})), paths(&["/w/x/y.rs", "/w/z"]));
        assert_eq!(of(json!("text")), paths(&[]));
    }
}
