//! `tool-apply-patch`, and the form of a patch that is one operation with its diff.

use amplifier_core::contracts::Capability;
use amplifier_testing::{Step, TestSession};
use serde_json::{Value, json};

use crate::stage::{self, calls, script};
use crate::workshop::Workshop;

async fn shop(config: Value) -> Workshop {
    Workshop::new("tool-apply-patch", config).await
}

fn operation(kind: &str, path: &str, diff: &str) -> Value {
    json!({"type": kind, "path": path, "diff": diff})
}

/// Golden case 11.4, native: create, update, delete. Better: the last line of a new file keeps its end.
#[tokio::test]
async fn an_operation_with_a_diff_makes_changes_and_deletes_a_file() {
    let shop = shop(json!({})).await;
    let recorder = shop.hub.recorder();
    let apply = async |kind: &str, diff: &str| {
        shop.call("apply_patch", operation(kind, "d/a.txt", diff)).await.unwrap()
    };
    assert_eq!(apply("create_file", "+a\n+b\n").await, "A d/a.txt");
    assert_eq!(shop.text("d/a.txt"), "a\nb\n");
    assert_eq!(apply("update_file", "@@\n a\n-b\n+2\n").await, "M d/a.txt");
    assert_eq!(shop.text("d/a.txt"), "a\n2\n");
    let answer = shop.call("apply_patch", json!({"type": "delete_file", "path": "d/a.txt"})).await.unwrap();
    assert_eq!((answer, shop.has("d/a.txt")), (json!("D d/a.txt"), false));
    let applied = recorder.events("apply-patch:applied");
    let told: Vec<_> =
        applied.iter().map(|(_, data)| (data["path"].clone(), data["operation"].clone())).collect();
    let expected = ["create", "update", "delete"].map(|operation| (json!("d/a.txt"), json!(operation)));
    assert_eq!(told, expected);
}

/// Golden case 11.4, native: lines without a mark make a file; a type nobody knows; what is there is not written over.
#[tokio::test]
async fn bare_lines_make_a_file_and_what_cannot_be_done_says_why() {
    let shop = shop(json!({})).await;
    shop.call("apply_patch", operation("create_file", "a", "one\ntwo")).await.unwrap();
    assert_eq!(shop.text("a"), "one\ntwo\n");
    let refused = async |kind: &str, path: &str, diff: &str| {
        shop.refused("apply_patch", operation(kind, path, diff)).await.message
    };
    assert!(refused("foo", "a", "").await.starts_with("Unknown operation type: foo"));
    let exists = refused("create_file", "a", "+x").await;
    assert!(exists.starts_with("File already exists: a; use `update_file`"), "{exists}");
    assert!(exists.ends_with("     1\tone\n     2\ttwo"), "{exists}");
    let misfit = refused("update_file", "a", "-three\n+3").await;
    assert!(
        misfit.starts_with("Context mismatch in a: Invalid Context 0:\nthree\n\nCurrent content"),
        "{misfit}"
    );
    assert!(refused("create_file", "../x", "+x").await.starts_with("Access denied: "));
    assert_eq!(refused("delete_file", "zz", "").await, "File not found: zz");
    let whole = refused("update_file", "a", "*** Begin Patch\n-one\n*** End Patch").await;
    assert!(whole.contains("belongs to a whole patch"), "{whole}");
    for neither in [json!({}), json!({"patch": "x", "path": "a"}), json!({"type": "delete_file"})] {
        let refused = shop.refused("apply_patch", neither).await;
        assert_eq!(refused.kind.as_deref(), Some("InvalidInput"), "{refused}");
    }
    assert_eq!(shop.text("a"), "one\ntwo\n");
}

#[tokio::test]
async fn the_model_is_shown_the_form_of_the_engine_and_both_modules_take_both() {
    let add = json!({"patch": "*** Begin Patch\n*** Add File: p\n+1\n*** End Patch"});
    for (module, config, shown, engine) in [
        ("tool-apply-patch", json!({}), "path", Some("native")),
        ("tool-apply-patch", json!({"engine": "function"}), "patch", Some("function")),
        ("tool-filesystem", json!({}), "patch", None),
    ] {
        let shop = Workshop::new(module, config).await;
        let specs = shop.hub.tool_specs();
        let spec = specs.iter().find(|spec| spec.name == "apply_patch").unwrap();
        assert!(module == "tool-filesystem" || specs.len() == 1, "{module}: only the patch");
        assert!(spec.description.is_some() && spec.parameters["type"] == "object", "{spec:?}");
        let required = spec.parameters["required"].as_array().unwrap();
        assert!(required.contains(&json!(shown)), "{spec:?}");
        assert_eq!(shop.hub.capability_text("apply_patch.engine").as_deref(), engine);
        shop.call("apply_patch", add.clone()).await.unwrap();
        shop.call("apply_patch", operation("create_file", "d", "+2")).await.unwrap();
        assert_eq!((shop.text("p").as_str(), shop.text("d").as_str()), ("1\n", "2\n"));
    }
    let native = shop(json!({})).await.hub.tool_specs()[0].parameters.clone();
    assert_eq!(native["required"], json!(["type", "path"]));
    let kinds = json!(["create_file", "update_file", "delete_file"]);
    assert_eq!(native["properties"]["type"]["enum"], kinds, "{native}");
}

#[tokio::test]
async fn the_rules_for_paths_are_its_own() {
    let shop =
        shop(json!({"working_dir": "w", "allowed_write_paths": ["in"], "denied_write_paths": ["in/no"]}))
            .await;
    shop.call("apply_patch", operation("create_file", "in/a", "+x")).await.unwrap();
    assert_eq!(shop.text("w/in/a"), "x\n");
    for (path, word) in
        [("b", "allowed write paths"), ("in/no/a", "denied write paths"), ("in/../b", "allowed")]
    {
        let refused = shop.refused("apply_patch", operation("create_file", path, "+x")).await;
        assert_eq!(refused.kind.as_deref(), Some("AccessDenied"));
        assert!(refused.message.contains(word), "{refused}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(shop.folder.path(), shop.path("w/in/out")).unwrap();
        let refused = shop.refused("apply_patch", operation("create_file", "in/out/a", "+x")).await;
        assert_eq!(refused.kind.as_deref(), Some("AccessDenied"));
    }
}

#[tokio::test]
async fn a_change_nobody_was_asked_about_is_not_made_here_either() {
    let shop = shop(json!({"require_approval": true})).await;
    let failure = shop.refused("apply_patch", operation("create_file", "a", "+x")).await;
    assert_eq!((failure.kind.as_deref(), shop.has("a")), (Some("NotApproved"), false));
}

/// A plan with both modules: this one patches, and the other knows of it.
#[tokio::test]
async fn beside_tool_filesystem_it_patches_and_edits_go_on_without_reading_again() {
    let folder = tempfile::tempdir().unwrap();
    let steps = || {
        script([
            calls("c1", "read_file", json!({"file_path": "a"})),
            calls("c2", "apply_patch", operation("update_file", "a", "@@\n-one\n+1")),
            calls("c3", "edit_file", json!({"file_path": "a", "old_string": "two", "new_string": "2"})),
            Step::say("done"),
        ])
    };
    for order in [["tool-filesystem", "tool-apply-patch"], ["tool-apply-patch", "tool-filesystem"]] {
        std::fs::write(folder.path().join("a"), "one\ntwo\n").unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let session: TestSession = stage::session(&steps(), &order.map(|id| (id, json!({}))))
            .await
            .configure(move |builder| {
                builder.capability("session.working_dir", Capability::Value(json!(path)))
            })
            .open()
            .await
            .unwrap();
        let entries: Vec<_> = session.report().modules.iter().map(ToString::to_string).collect();
        assert!(!entries.iter().any(|entry| entry.contains("replaced")), "{entries:?}");
        let specs = session.coordinator().tool_specs();
        let spec = specs.iter().find(|spec| spec.name == "apply_patch").unwrap();
        assert!(spec.parameters["properties"].get("diff").is_some(), "{spec:?}");
        session.execute("go").await.unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("a")).unwrap(), "1\n2\n", "{order:?}");
    }
}
