//! Which files a call names, wherever in its input: under keys that say so, in lists, in objects below, and in the text of
//! a patch. The rules of `hooks-approval` and the copies of `hooks-backup` see the same paths.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The last word of keys under which tools take the path of a file or a directory, one or several: `path`, `file_path`,
/// `notebookPath`, `save_to_file`, `source_files`, `cwd`.
const WORDS: [&str; 23] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "filepath",
    "filepaths",
    "dir",
    "dirs",
    "directory",
    "directories",
    "folder",
    "folders",
    "cwd",
    "root",
    "roots",
    "source",
    "sources",
    "destination",
    "dest",
    "target",
    "targets",
];
/// Keys whose text is what a file holds, never a path or a patch.
const TEXTS: [&str; 4] = ["content", "contents", "old_string", "new_string"];
/// How lines of a patch begin that name a file.
const PATCH_LINES: [&str; 4] = ["*** Update File:", "*** Delete File:", "*** Add File:", "*** Move to:"];
/// How lines of a unified diff begin that name one.
const DIFF_LINES: [&str; 2] = ["--- ", "+++ "];
/// More files than this in one call are a mistake or an attack.
const MOST: usize = 200;
/// Inputs come from JSON readers, which go no deeper than this.
const DEEPEST: usize = 128;

/// The paths that a call of a tool names, as they are written, each once.
pub(crate) fn named<'a>(tool: &str, input: &'a Value) -> Vec<&'a str> {
    let mut found = Vec::new();
    search(input, 0, &mut found);
    // What it looks for may lead anywhere too.
    if tool == "glob" {
        found.extend(input.get("pattern").and_then(Value::as_str));
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|path| !path.is_empty() && seen.insert(*path));
    found
}

/// The files that a call of a tool may change, absolute: as many as are worth a copy.
pub(super) fn absolute(tool: &str, input: &Value, base: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for text in named(tool, input) {
        // Home and mentions mean something to the tool alone; guessing would copy the wrong file.
        let is_plain = !text.starts_with(['~', '@']) && !text.contains('\0');
        let path = base.join(text);
        if is_plain && path.is_absolute() && !paths.contains(&path) && paths.len() < MOST {
            paths.push(path);
        }
    }
    paths
}

fn search<'a>(value: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    _ if TEXTS.contains(&key.as_str()) => {}
                    Value::String(text) if names_paths(key) => found.push(local(text)),
                    Value::String(text) => {
                        found.extend(text.strip_prefix("file://"));
                        found.extend(in_patch(text));
                    }
                    Value::Array(items) if names_paths(key) => {
                        found.extend(items.iter().filter_map(Value::as_str).map(local));
                        search(value, depth + 1, found);
                    }
                    other => search(other, depth + 1, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| search(item, depth + 1, found)),
        _ => {}
    }
}

/// Whether a key is one for paths, by its last word: `save_to_file`, `savePath`, `PATH`.
fn names_paths(key: &str) -> bool {
    let last = key.rsplit(['_', '-', '.', ' ']).next().unwrap_or(key);
    let mut humps = last.char_indices().filter(|(at, c)| *at > 0 && c.is_uppercase()).map(|(at, _)| at);
    let tails = humps.next_back().and_then(|at| last.get(at..)).into_iter().chain([last]);
    tails.into_iter().any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

fn local(text: &str) -> &str {
    text.strip_prefix("file://").unwrap_or(text)
}

/// The files of a patch, in either of the two forms that are common.
fn in_patch(text: &str) -> impl Iterator<Item = &str> {
    let is_patch = text.contains("*** ");
    let is_diff = text.contains("\n+++ ") || text.starts_with("+++ ");
    let lines = text.lines().filter(move |_| is_patch || is_diff);
    lines.filter_map(move |line| {
        let line = line.trim_start();
        let of_patch = PATCH_LINES.iter().find_map(|head| line.strip_prefix(head)).map(str::trim);
        of_patch.or_else(|| {
            let path = DIFF_LINES.iter().find_map(|head| line.strip_prefix(head)).filter(|_| is_diff)?;
            let path = path.split('\t').next().unwrap_or(path).trim();
            let bare = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
            Some(bare.unwrap_or(path)).filter(|path| *path != "/dev/null")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_found_under_keys_in_lists_and_in_patches() {
        let of = |input: Value| absolute("t", &input, Path::new("/w"));
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(of(json!({"file_path": "a", "content": "path"})), paths(&["/w/a"]));
        assert_eq!(of(json!({"edits": [{"file_path": "a"}, {"file_path": "/b"}]})), paths(&["/w/a", "/b"]));
        assert_eq!(of(json!({"paths": ["a", "a", "~/x", "@b:c", ""]})), paths(&["/w/a"]));
        let patch = "*** Begin Patch\n*** Update File: x/y.rs\n@@\n-a\n+b\n*** Delete File: z\n*** End Patch";
        assert_eq!(of(json!({"patch": patch})), paths(&["/w/x/y.rs", "/w/z"]));
        assert_eq!(of(json!("text")), paths(&[]));
    }

    #[test]
    fn every_spelling_of_a_key_and_every_depth_counts() {
        for input in [
            json!({"save_to_file": "s"}),
            json!({"savePath": "s"}),
            json!({"a": [{"b": {"notebook-path": "s"}}]}),
            json!({"source_files": ["s"]}),
            json!({"cwd": "s"}),
            json!({"uri": "file://s"}),
            json!({"diff": "--- a/s\n+++ b/s\n@@ -1 +1 @@\n-x\n+y\n"}),
            json!({"input": "*** Begin Patch\n*** Add File:s\n+x\n*** End Patch"}),
            json!({"patch": "*** Begin Patch\n*** Move to:  s \n*** End Patch"}),
        ] {
            assert_eq!(named("t", &input), ["s"], "{input}");
        }
        assert_eq!(named("glob", &json!({"pattern": "s"})), ["s"]);
        for input in [
            json!({"file_type": "rust", "output_mode": "content", "query": "q", "url": "https://h/s"}),
            json!({"content": "*** Add File: s", "old_string": "--- a/s\n+++ b/s"}),
        ] {
            assert!(named("t", &input).is_empty(), "{input}");
        }
    }
}
