//! What a call of a tool that changes files would change, for whoever asks a person about it.
//!
//! Nothing is checked and nothing is written here: whether the call may be made is the tool's to say. How a file is read is
//! the caller's. A change that does not fit the file is shown as it was meant; the tool will say what is wrong with it.

use serde_json::Value;

use super::apply_patch::{self, ByPatch, Operation};
use super::changing::Changes as _;
use super::diff;
use super::edit::Edit;
use super::edit_file::EditFile;
use super::multi_edit::MultiEdit;
use super::write_file::WriteFile;

/// How the sections of a patch begin that name a file.
const SECTIONS: [&str; 3] = ["*** Add File:", "*** Update File:", "*** Delete File:"];

/// What stands in a file now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// This text.
    Text(String),
    /// There is no such file.
    Absent,
    /// It is there and cannot be shown: too large, no text, or not to be read.
    Hidden,
}

/// What would become of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The file, as the call names it.
    pub path: String,
    /// What happens to it beside what the diff shows, in a few words; empty for a plain change.
    pub note: String,
    /// What changes, as a unified diff, all of it.
    pub diff: String,
}

/// What a call would change; nothing for other tools, and where the input cannot be read.
pub fn preview(tool: &str, input: &Value, read: &dyn Fn(&str) -> Now) -> Option<Vec<Preview>> {
    match tool {
        WriteFile::NAME => {
            let WriteFile { file_path, content } = serde_json::from_value(input.clone()).ok()?;
            Some(vec![written(&file_path, &content, read)])
        }
        EditFile::NAME => {
            let input: EditFile = serde_json::from_value(input.clone()).ok()?;
            Some(vec![edited(&input.file_path, &[input.edit()], read)])
        }
        MultiEdit::NAME => {
            let MultiEdit { file_path, edits } = serde_json::from_value(input.clone()).ok()?;
            Some(vec![edited(&file_path, &edits, read)])
        }
        ByPatch::NAME => {
            let input: ByPatch = serde_json::from_value(input.clone()).ok()?;
            Some(input.operations()?.into_iter().map(|operation| patched(operation, read)).collect())
        }
        _ => None,
    }
}

/// The files that a patch names, in its order; none where the input holds no patch.
pub fn patched_files(input: &Value) -> Vec<&str> {
    let patch = ["patch", "input"].iter().find_map(|key| input.get(key).and_then(Value::as_str));
    let lines = patch.unwrap_or_default().lines();
    lines.filter_map(|line| SECTIONS.iter().find_map(|head| line.strip_prefix(head)).map(str::trim)).collect()
}

fn written(path: &str, content: &str, read: &dyn Fn(&str) -> Now) -> Preview {
    let (before, note) = match read(path) {
        Now::Text(text) => (text, ""),
        Now::Absent => (String::new(), "a new file"),
        Now::Hidden => (String::new(), "existing content (not shown) is replaced"),
    };
    Preview { path: path.to_owned(), note: note.to_owned(), diff: diff::whole(path, &before, content) }
}

fn edited(path: &str, edits: &[Edit], read: &dyn Fn(&str) -> Now) -> Preview {
    let made = match read(path) {
        Now::Text(before) => {
            let after =
                edits.iter().try_fold(before.clone(), |text, edit| edit.apply(&text).map(|(text, _)| text));
            after.ok().map(|after| diff::whole(path, &before, &after))
        }
        Now::Absent | Now::Hidden => None,
    };
    let meant = || edits.iter().map(|edit| diff::whole(path, &edit.old_string, &edit.new_string)).collect();
    let note = if made.is_some() { "" } else { "it does not fit the file; this is what is asked for" };
    Preview { path: path.to_owned(), note: note.to_owned(), diff: made.unwrap_or_else(meant) }
}

fn patched(operation: Operation, read: &dyn Fn(&str) -> Now) -> Preview {
    match operation {
        Operation::Add { path, content } => written(&path, &content, read),
        Operation::Delete { path } => {
            let diff = match read(&path) {
                Now::Text(before) => diff::whole(&path, &before, ""),
                Now::Absent | Now::Hidden => String::new(),
            };
            Preview { path, note: "deleted".to_owned(), diff }
        }
        Operation::Update { path, target, hunks } => {
            let moved = target.map(|target| format!("moved to {target}"));
            let before = match read(&path) {
                Now::Text(before) => Some(before),
                Now::Absent | Now::Hidden => None,
            };
            let after = before.as_deref().and_then(|before| apply_patch::apply(before, &hunks).ok());
            let (diff, misfit) = match (&before, after) {
                (Some(before), Some(after)) => (diff::whole(&path, before, &after), None),
                _ => {
                    (apply_patch::meant(&hunks), Some("it does not fit the file; this is what is asked for"))
                }
            };
            let notes: Vec<String> = moved.into_iter().chain(misfit.map(str::to_owned)).collect();
            Preview { path, note: notes.join("; "), diff }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(tool: &str, input: Value) -> Vec<(String, String, String)> {
        let read = |path: &str| match path {
            "a" => Now::Text("one\n  two\nthree\n".to_owned()),
            "big" => Now::Hidden,
            _ => Now::Absent,
        };
        let previews = preview(tool, &input, &read).unwrap();
        previews.into_iter().map(|preview| (preview.path, preview.note, preview.diff)).collect()
    }

    fn one(path: &str, note: &str, diff: &str) -> Vec<(String, String, String)> {
        let diff =
            if diff.starts_with("@@") { format!("--- {path}\n+++ {path}\n{diff}") } else { diff.to_owned() };
        vec![(path.to_owned(), note.to_owned(), diff)]
    }

    #[test]
    fn every_tool_that_changes_files_shows_what_it_would_change() {
        let diff = "@@ -1,3 +1,3 @@\n one\n-  two\n+  2\n three\n";
        let edit = json!({"old_string": "two", "new_string": "2"});
        let mut single = edit.clone();
        single["file_path"] = json!("a");
        assert_eq!(shown("edit_file", single), one("a", "", diff));
        assert_eq!(shown("multi_edit", json!({"file_path": "a", "edits": [edit]})), one("a", "", diff));
        let all = json!({"file_path": "a", "content": "one\n  2\nthree\n"});
        assert_eq!(shown("write_file", all), one("a", "", diff));
        let patch = "*** Begin Patch\n*** Update File: a\n@@\n one\n-  two\n+  2\n*** End Patch";
        assert_eq!(shown("apply_patch", json!({ "patch": patch })), one("a", "", diff));
        let native = json!({"type": "update_file", "path": "a", "diff": "@@\n one\n-  two\n+  2\n"});
        assert_eq!(shown("apply_patch", native), one("a", "", diff));
        assert!(preview("bash", &json!({"command": "ls"}), &|_| Now::Absent).is_none());
    }

    #[test]
    fn what_does_not_fit_is_shown_as_it_was_meant() {
        let note = "it does not fit the file; this is what is asked for";
        let edit = json!({"file_path": "a", "old_string": "four\n", "new_string": "4\n"});
        assert_eq!(shown("edit_file", edit), one("a", note, "@@ -1 +1 @@\n-four\n+4\n"));
        let patch = "*** Begin Patch\n*** Update File: a\n@@ fn x\n  kept\n-four\n+4\n*** End Patch";
        assert_eq!(
            shown("apply_patch", json!({ "patch": patch })),
            vec![("a".to_owned(), note.to_owned(), "@@ fn x\n  kept\n-four\n+4\n".to_owned())]
        );
        let over = json!({"file_path": "big", "content": "x\n"});
        let note = "existing content (not shown) is replaced";
        assert_eq!(shown("write_file", over), one("big", note, "@@ -0,0 +1 @@\n+x\n"));
    }

    #[test]
    fn a_patch_is_told_file_by_file() {
        let patch = "*** Begin Patch\n*** Add File: n\n+x\n*** Delete File: a\n*** Update File: b\n*** Move to: c\n@@\n-y\n+z\n*** End Patch";
        let input = json!({ "patch": patch });
        assert_eq!(patched_files(&input), ["n", "a", "b"]);
        let told: Vec<_> =
            shown("apply_patch", input).into_iter().map(|(path, note, _)| (path, note)).collect();
        let misfit = "moved to c; it does not fit the file; this is what is asked for";
        let expected = [("n", "a new file"), ("a", "deleted"), ("b", misfit)];
        assert_eq!(told, expected.map(|(path, note)| (path.to_owned(), note.to_owned())));
        assert!(patched_files(&json!({"command": "ls"})).is_empty());
    }
}
