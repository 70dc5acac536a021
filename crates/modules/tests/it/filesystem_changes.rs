//! `write_file`, `edit_file` and `multi_edit` on real files; `read_file` and `list_directory` where they are new.

use amplifier_protocol::content::ContentBlock;
use amplifier_protocol::event::{ArtifactRead, ArtifactWrite};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::workshop::Workshop;

fn edit(file: &str, old: &str, new: &str) -> Value {
    json!({"file_path": file, "old_string": old, "new_string": new})
}

/// Golden case 11.1: write_file of a new file.
#[tokio::test]
async fn a_new_file_is_written_with_its_folders_and_told() {
    let shop = Workshop::files(json!({})).await;
    let recorder = shop.hub.recorder();
    let input = json!({"file_path": "a/b.txt", "content": "one\ntwo\nthree"});
    let path = shop.path("a/b.txt");
    assert_eq!(shop.call("write_file", input).await.unwrap(), json!({"file_path": path, "bytes": 13}));
    assert_eq!(shop.text("a/b.txt"), "one\ntwo\nthree");
    assert_eq!(recorder.of::<ArtifactWrite>(), [ArtifactWrite { path, bytes: 13 }]);
}

#[tokio::test]
async fn what_was_just_written_may_be_written_again_without_reading() {
    let shop = Workshop::files(json!({})).await;
    let write = |content: &str| json!({"file_path": "a", "content": content});
    shop.call("write_file", write("one\n")).await.unwrap();
    let answer = shop.call("write_file", write("two\n")).await.unwrap();
    assert_eq!(answer["diff"], "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n");
}

/// Golden case 11.1: write_file without content. Better: refused.
#[tokio::test]
async fn writing_without_content_is_refused_where_others_empty_the_file() {
    let shop = Workshop::files(json!({})).await;
    shop.put("a", "precious");
    let failure = shop.refused("write_file", json!({"file_path": "a"})).await;
    assert!(failure.message.contains("missing field `content`"), "{failure}");
    assert_eq!(shop.text("a"), "precious");
}

#[tokio::test]
async fn a_file_is_not_written_over_unread_or_when_it_changed_since() {
    let shop = Workshop::files(json!({})).await;
    shop.put("a", "one");
    let write = json!({"file_path": "a", "content": "new"});
    assert_eq!(shop.refused("write_file", write.clone()).await.kind.as_deref(), Some("NotRead"));
    shop.read("a").await;
    shop.put("a", "two");
    for (tool, input) in [("write_file", write.clone()), ("edit_file", edit("a", "two", "2"))] {
        let failure = shop.refused(tool, input).await;
        assert_eq!(
            failure.message,
            "a has changed since it was read; read it again with read_file, then repeat the change"
        );
    }
    assert_eq!(shop.text("a"), "two");
    shop.read("a").await;
    shop.call("edit_file", edit("a", "two", "2")).await.unwrap();
    shop.call("write_file", write).await.unwrap();
    assert_eq!(shop.text("a"), "new");
}

#[tokio::test]
async fn the_stamp_can_be_switched_off() {
    let shop = Workshop::files(json!({"require_read_before_write": false})).await;
    shop.put("a", "one");
    shop.call("write_file", json!({"file_path": "a", "content": "new"})).await.unwrap();
    assert_eq!(shop.text("a"), "new");
}

#[tokio::test]
async fn an_edit_says_what_it_changed() {
    let shop = Workshop::files(json!({})).await;
    let recorder = shop.hub.recorder();
    shop.put("a", "one\ntwo\n");
    let answer = shop.call("edit_file", edit("a", "two", "2")).await.unwrap();
    let expected = json!({
        "file_path": shop.path("a"),
        "replacements_made": 1,
        "bytes_written": 6,
        "diff": "--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
    });
    assert_eq!(answer, expected);
    assert_eq!(recorder.of::<ArtifactWrite>(), [ArtifactWrite { path: shop.path("a"), bytes: 6 }]);
}

/// Golden case 11.1: edit_file with CRLF in the file and in old_string. Better: found, and the ends stay.
#[tokio::test]
async fn windows_line_ends_survive_edits_and_rewrites_where_others_lose_them() {
    let shop = Workshop::files(json!({})).await;
    shop.put("a", "x\r\ny\r\nz");
    shop.call("edit_file", edit("a", "x\ny", "1\n2")).await.unwrap();
    assert_eq!(shop.text("a"), "1\r\n2\r\nz");
    shop.call("edit_file", edit("a", "1\r\n2", "x\r\ny")).await.unwrap();
    assert_eq!(shop.text("a"), "x\r\ny\r\nz");
    shop.call("write_file", json!({"file_path": "a", "content": "p\nq\n"})).await.unwrap();
    assert_eq!(shop.text("a"), "p\r\nq\r\n");
}

/// Golden case 11.1: edit_file with three matches, with and without replace_all.
#[tokio::test]
async fn an_edit_that_fits_nowhere_or_too_often_says_so_in_the_known_words() {
    let shop = Workshop::files(json!({})).await;
    shop.put("a", "x x x");
    let failure = shop.refused("edit_file", edit("a", "y", "z")).await;
    assert_eq!(failure.message, "old_string not found in file: a");
    let failure = shop.refused("edit_file", edit("a", "x", "z")).await;
    assert_eq!(
        failure.message,
        "old_string appears 3 times in file. Either provide more context to make it unique or set replace_all=true"
    );
    assert_eq!((&failure.details["occurrences"], &failure.details["old_string"]), (&json!(3), &json!("x")));
    let mut all = edit("a", "x", "z");
    all["replace_all"] = json!(true);
    assert_eq!(shop.call("edit_file", all).await.unwrap()["replacements_made"], 3);
    assert_eq!(shop.refused("edit_file", edit("zz", "x", "z")).await.message, "File not found: zz");
    assert_eq!(shop.refused("edit_file", edit("", "x", "z")).await.message, "file_path is required");
    let same = shop.refused("edit_file", edit("a", "x", "x")).await;
    assert_eq!(same.message, "old_string and new_string must be different");
}

#[tokio::test]
async fn several_edits_are_made_all_or_none() {
    let shop = Workshop::files(json!({})).await;
    shop.put("a", "one two three");
    let both = |second: &str| {
        json!({"file_path": "a", "edits": [
            {"old_string": "one", "new_string": "1"}, {"old_string": second, "new_string": "2"},
        ]})
    };
    let failure = shop.refused("multi_edit", both("zwei")).await;
    let told = "edit 2 of 2: old_string not found in file: a; no edit was made";
    assert_eq!(failure.message, told);
    assert_eq!(shop.text("a"), "one two three");
    let answer = shop.call("multi_edit", both("two")).await.unwrap();
    assert_eq!((&answer["edits_made"], &answer["replacements_made"]), (&json!(2), &json!(2)));
    assert_eq!(shop.text("a"), "1 2 three");
}

#[tokio::test]
async fn edits_side_by_side_do_not_lose_each_other() {
    let shop = Workshop::files(json!({})).await;
    let names: Vec<_> = (0..16).map(|n| format!("<{n}>")).collect();
    shop.put("a", names.join("\n"));
    let tool = shop.hub.tool("edit_file").unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..16 {
        let tool = tool.clone();
        let input = edit("a", &format!("<{n}>"), &format!("[{n}]"));
        calls.spawn(async move { tool.execute(input, &Default::default()).await.unwrap() });
    }
    while let Some(joined) = calls.join_next().await {
        joined.unwrap();
    }
    let expected: Vec<_> = (0..16).map(|n| format!("[{n}]")).collect();
    assert_eq!(shop.text("a"), expected.join("\n"));
}

/// Golden case 11.1: write_file outside and through links; 11.4: apply_patch outside.
#[cfg(unix)]
#[tokio::test]
async fn nothing_is_written_outside_the_allowed_paths_by_any_way() {
    let shop = Workshop::files(json!({"denied_write_paths": ["in/locked"]})).await;
    let outside = tempfile::TempDir::new().unwrap();
    shop.put("in/locked/a", "x").put("file", "x");
    std::os::unix::fs::symlink(outside.path(), shop.path("folder")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("new"), shop.path("dangling")).unwrap();
    std::os::unix::fs::symlink(shop.path("in/locked"), shop.path("way")).unwrap();
    for path in ["../x", "/etc/x", "folder/x", "folder/deep/x", "dangling", "in/../../x"] {
        let failure = shop.refused("write_file", json!({"file_path": path, "content": "x"})).await;
        let shown = shop.folder.path().join(path);
        let told = format!("Access denied: {} is not within allowed write paths", shown.display());
        assert_eq!((failure.message, failure.kind.as_deref()), (told, Some("AccessDenied")));
    }
    for path in ["in/locked/a", "way/b", "in/locked"] {
        let failure = shop.refused("write_file", json!({"file_path": path, "content": "y"})).await;
        assert!(failure.message.ends_with("is within denied write paths"), "{path}: {failure}");
    }
    let patch = "*** Begin Patch\n*** Add File: ../x\n+x\n*** End Patch";
    let failure = shop.refused("apply_patch", json!({"patch": patch})).await;
    assert!(failure.message.starts_with("Access denied: "), "{failure}");
    assert_eq!(outside.path().read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn allowed_paths_open_and_close_reading_and_writing() {
    let other = tempfile::TempDir::new().unwrap();
    let root = other.path().to_str().unwrap();
    let shop = Workshop::files(json!({"allowed_paths": ["in"], "allowed_write_paths": ["in", root]})).await;
    shop.put("in/a", "x").put("out/b", "x");
    shop.read("in/a").await;
    let denied = shop.refused("read_file", json!({"file_path": "out/b"})).await;
    assert!(denied.message.contains("is not within allowed read paths"), "{denied}");
    let file = other.path().join("new/file");
    shop.call("write_file", json!({"file_path": file, "content": "x"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "x");
}

#[tokio::test]
async fn by_default_only_the_working_folder_is_read_where_others_read_everything() {
    let (shop, other) = (Workshop::files(json!({})).await, tempfile::NamedTempFile::new().unwrap());
    let failure = shop.refused("read_file", json!({"file_path": other.path()})).await;
    assert_eq!(failure.kind.as_deref(), Some("AccessDenied"));
    let open = Workshop::files(json!({"allowed_read_paths": ["/"]})).await;
    open.call("read_file", json!({"file_path": other.path()})).await.unwrap();
}

/// Golden case 11.1: write_file onto a folder.
#[tokio::test]
async fn a_folder_and_a_file_too_large_are_not_written() {
    let shop = Workshop::files(json!({"max_file_bytes": 10})).await;
    shop.put("folder/x", "").put("big", "0123456789ab");
    let failure = shop.refused("write_file", json!({"file_path": "folder", "content": "x"})).await;
    assert!(failure.message.starts_with("OS error writing file: [Errno 21] "), "{failure}");
    assert_eq!((failure.kind.as_deref(), &failure.details["errno"]), (Some("OSError"), &json!(21)));
    let failure = shop.refused("write_file", json!({"file_path": "a", "content": "0123456789ab"})).await;
    assert_eq!(failure.kind.as_deref(), Some("TooLarge"));
    assert_eq!(shop.refused("edit_file", edit("big", "0", "1")).await.kind.as_deref(), Some("TooLarge"));
}

#[tokio::test]
async fn what_is_no_text_is_not_edited() {
    let shop = Workshop::files(json!({})).await;
    shop.put("bin", [0xff, 0xfe, 0]).put("zero", "a\0b");
    for name in ["bin", "zero"] {
        let failure = shop.refused("edit_file", edit(name, "a", "b")).await;
        assert_eq!(failure.message, format!("Cannot read file: {name} (not a text file or encoding issue)"));
    }
}

#[tokio::test]
async fn a_picture_is_an_image_block_and_a_large_one_is_refused() {
    let shop = Workshop::files(json!({"max_image_bytes": 20})).await;
    let recorder = shop.hub.recorder();
    shop.put("p.png", b"\x89PNG\r\n\x1a\nrest")
        .put("big.png", [&b"\x89PNG\r\n\x1a\n"[..], &[0; 99]].concat());
    let image = shop.call("read_file", json!({"file_path": "p.png"})).await.unwrap();
    let expected = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgpyZXN0"});
    assert_eq!((&image["type"], &image["source"]), (&json!("image"), &expected));
    let block: ContentBlock = serde_json::from_value(image).unwrap();
    assert_eq!(block.kind(), "image");
    assert_eq!(recorder.of::<ArtifactRead>()[0].bytes, 12);
    let failure = shop.refused("read_file", json!({"file_path": "big.png"})).await;
    assert!(failure.message.contains("make it smaller first"), "{failure}");
}

#[tokio::test]
async fn a_folder_is_listed_in_parts() {
    let shop = Workshop::files(json!({})).await;
    shop.put("b/x", "").put("a.txt", "1234").put("c.txt", "");
    let all = shop.call("list_directory", json!({})).await.unwrap();
    let entries = json!([
        {"name": "b", "type": "dir"},
        {"name": "a.txt", "type": "file", "size": 4},
        {"name": "c.txt", "type": "file", "size": 0},
    ]);
    assert_eq!((&all["entries"], &all["entry_count"]), (&entries, &json!(3)));
    let part = shop.call("list_directory", json!({"path": ".", "offset": 1, "limit": 1})).await.unwrap();
    assert_eq!((&part["entries"][0]["name"], &part["results_capped"]), (&json!("a.txt"), &json!(true)));
    let failure = shop.refused("list_directory", json!({"path": "a.txt"})).await;
    assert!(failure.message.contains("is not a directory"), "{failure}");
}

/// A text of short lines that all end the same way, or a last one that does not end.
fn texts() -> impl Strategy<Value = String> {
    let lines = proptest::collection::vec("[a-cé ]{0,4}", 1..8);
    (lines, prop_oneof!["\n", "\r\n"], any::<bool>()).prop_map(|(lines, end, ends)| {
        let last = if ends { end.as_str() } else { "" };
        lines.join(&end) + last
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn an_edit_and_its_reverse_restore_every_byte(text in texts(), at in 0..40usize, length in 1..9usize, new in "[x-z\n]{1,6}") {
        let plain = text.replace("\r\n", "\n");
        let start = plain.floor_char_boundary(at.min(plain.len()));
        let old = &plain[start..plain.floor_char_boundary((start + length).min(plain.len()))];
        let edited = plain.replacen(old, &new, 1);
        // An edit that changes nothing is refused, and told elsewhere.
        prop_assume!(!old.is_empty() && old != new && plain.matches(old).count() == 1);
        prop_assume!(edited.matches(new.as_str()).count() == 1 && edited.find(new.as_str()) == Some(start));
        // Without any line end left there is nothing to tell how lines should end.
        prop_assume!(!text.contains("\r\n") || edited.replacen(&new, "", 1).contains('\n'));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let restored = runtime.block_on(async {
            let shop = Workshop::files(json!({})).await;
            shop.put("a", &text);
            shop.call("edit_file", edit("a", old, &new)).await.unwrap();
            assert_ne!(shop.text("a"), text);
            shop.call("edit_file", edit("a", &new, old)).await.unwrap();
            shop.text("a")
        });
        prop_assert_eq!(restored, text);
    }
}
