//! `apply_patch` on real files, and the question that `require_approval` asks before any change.

use std::sync::Arc;

use amplifier_core::contracts::{Capability, ToolFailure};
use amplifier_core::loader::ModuleFinder;
use amplifier_modules::BuiltIns;
use amplifier_protocol::tool::ToolCall;
use amplifier_testing::{ScriptedApproval, ScriptedProvider, Step, TestSession};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::workshop::Workshop;

fn patch(body: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch\n")})
}

async fn refused(shop: &Workshop, body: &str) -> ToolFailure {
    shop.refused("apply_patch", patch(body)).await
}

/// Golden case 11.4: add, update, move, delete. Better: an added file ends with a line end.
#[tokio::test]
async fn files_are_added_changed_moved_and_deleted() {
    let shop = Workshop::files(json!({})).await;
    let recorder = shop.hub.recorder();
    let apply = async |body: &str| shop.call("apply_patch", patch(body)).await.unwrap();
    assert_eq!(apply("*** Add File: a.txt\n+one\n+two").await, "A a.txt");
    // Better than the known behaviour: an added file ends with a line end.
    assert_eq!(shop.text("a.txt"), "one\ntwo\n");
    assert_eq!(apply("*** Update File: a.txt\n@@\n one\n-two\n+2").await, "M a.txt");
    let moved = apply("*** Update File: a.txt\n*** Move to: d/b.txt\n@@\n-one\n+1\n 2").await;
    assert_eq!(moved, "R a.txt -> d/b.txt");
    assert_eq!((shop.text("d/b.txt").as_str(), shop.has("a.txt")), ("1\n2\n", false));
    assert_eq!(apply("*** Delete File: d/b.txt").await, "D d/b.txt");
    assert!(!shop.has("d/b.txt"));
    let applied = recorder.events("apply-patch:applied");
    let operations: Vec<_> = applied.iter().map(|(_, data)| data["operation"].clone()).collect();
    assert_eq!(operations, ["add", "update", "rename", "delete"]);
    assert_eq!(recorder.count("artifact:write"), 3);
}

/// Golden case 11.4: a context that does not match.
#[tokio::test]
async fn one_section_that_does_not_fit_leaves_every_file_as_it_was() {
    let shop = Workshop::files(json!({})).await;
    shop.put("a", "one\n").put("b", "x\ny\n");
    let failure =
        refused(&shop, "*** Update File: a\n-one\n+1\n*** Add File: c\n+c\n*** Update File: b\n-zz\n+z")
            .await;
    assert_eq!(
        failure.message,
        "Context mismatch in b: Invalid Context 0:\nzz\n\nCurrent content of b:\n     1\tx\n     2\ty"
    );
    assert_eq!((shop.text("a").as_str(), shop.has("c")), ("one\n", false));
}

#[cfg(unix)]
#[tokio::test]
async fn what_was_written_before_the_disk_said_no_is_taken_back() {
    use std::os::unix::fs::PermissionsExt;
    let shop = Workshop::files(json!({})).await;
    shop.put("a", "one\n").put("fixed", "x\n");
    std::fs::set_permissions(shop.path("fixed"), std::fs::Permissions::from_mode(0o444)).unwrap();
    let failure =
        refused(&shop, "*** Update File: a\n-one\n+1\n*** Add File: c\n+c\n*** Update File: fixed\n-x\n+y")
            .await;
    assert!(failure.message.contains("the file is read-only"), "{failure}");
    assert_eq!((shop.text("a").as_str(), shop.has("c")), ("one\n", false));
}

/// Golden case 11.4: an add over a file, and a text without marks.
#[tokio::test]
async fn what_cannot_be_done_says_what_is_there() {
    let shop = Workshop::files(json!({})).await;
    shop.put("a", "one\n").put("folder/x", "");
    let failure = refused(&shop, "*** Add File: a\n+new").await;
    assert!(failure.message.starts_with("File already exists: a"), "{failure}");
    assert!(failure.message.ends_with("     1\tone"), "{failure}");
    assert_eq!(refused(&shop, "*** Delete File: zz").await.message, "File not found: zz");
    assert!(refused(&shop, "*** Delete File: folder").await.message.contains("is a directory"));
    let onto = refused(&shop, "*** Update File: a\n*** Move to: folder/x\n-one\n+1").await;
    assert!(onto.message.starts_with("File already exists: folder/x"), "{onto}");
    let twice = refused(&shop, "*** Delete File: a\n*** Update File: ./a\n-one\n+1").await;
    assert!(twice.message.contains("named by two sections"), "{twice}");
    let none = shop.refused("apply_patch", json!({"patch": "hello"})).await;
    assert_eq!(none.message, "Patch parse error: Patch must start with '*** Begin Patch'");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_patch_and_its_reverse_restore_every_byte(
        lines in proptest::collection::vec("[a-c ]{0,3}", 3..10),
        crlf in any::<bool>(),
        ends in any::<bool>(),
        new in proptest::collection::vec("[x-z]{1,3}", 1..4),
        at in 0..10usize,
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut lines = lines;
        let at = at % lines.len();
        lines[at] = "the one".to_owned();
        let text = lines.join(end) + if ends { end } else { "" };
        let body = |old: &[String], new: &[String]| {
            let old = old.iter().map(|line| format!("-{line}\n"));
            let hunk: String = old.chain(new.iter().map(|line| format!("+{line}\n"))).collect();
            format!("*** Update File: a\n@@\n{}", hunk.trim_end_matches('\n'))
        };
        let one = ["the one".to_owned()];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let restored = runtime.block_on(async {
            let shop = Workshop::files(json!({})).await;
            shop.put("a", &text);
            shop.call("apply_patch", patch(&body(&one, &new))).await.unwrap();
            assert!(!shop.text("a").contains("the one"));
            shop.call("apply_patch", patch(&body(&new, &one))).await.unwrap();
            shop.text("a")
        });
        prop_assert_eq!(restored, text);
    }
}

/// Runs one turn in which the model writes a file, in a real session that asks first.
async fn asked(approval: Arc<ScriptedApproval>, folder: &tempfile::TempDir) -> (TestSession, String) {
    let path = folder.path().to_str().unwrap().to_owned();
    let built_in = async |id: &str| BuiltIns.find(&id.parse().unwrap()).await.unwrap().unwrap();
    let call =
        ToolCall::new("c1", "edit_file", json!({"file_path": "a", "old_string": "one", "new_string": "1"}));
    let script = [Step::call([call]), Step::say("done")];
    let config = json!({"require_approval": true}).as_object().unwrap().clone();
    let session = TestSession::builder()
        .module(built_in("loop-basic").await)
        .module(built_in("context-simple").await)
        .module_with(built_in("tool-filesystem").await, config)
        .provider(Arc::new(ScriptedProvider::new(script)))
        .configure(move |builder| {
            let folder = Capability::Value(json!(path));
            builder.approval(approval).capability("session.working_dir", folder)
        })
        .open()
        .await
        .unwrap();
    let answer = session.execute("go").await.unwrap();
    (session, answer)
}

#[tokio::test]
async fn a_person_sees_the_diff_before_a_change_and_a_no_is_a_no() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("a");
    std::fs::write(&file, "one\n").unwrap();
    let denying = Arc::new(ScriptedApproval::denying());
    let (session, _) = asked(denying.clone(), &folder).await;
    let prompt = &denying.questions()[0].prompt;
    assert!(prompt.starts_with("Allow edit_file to make this change?"), "{prompt}");
    assert!(prompt.contains("@@ -1 +1 @@\n-one\n+1\n"), "{prompt}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
    assert_eq!(session.recorder().count("artifact:write"), 0);

    let allowing = Arc::new(ScriptedApproval::allowing());
    let (_session, answer) = asked(allowing.clone(), &folder).await;
    assert_eq!((answer.as_str(), allowing.questions().len()), ("done", 1));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\n");
}

#[tokio::test]
async fn a_change_nobody_was_asked_about_is_not_made() {
    let shop = Workshop::files(json!({"require_approval": true})).await;
    let failure = shop.refused("write_file", json!({"file_path": "a", "content": "x"})).await;
    assert_eq!(failure.kind.as_deref(), Some("NotApproved"));
    assert!(!shop.has("a"));
}
