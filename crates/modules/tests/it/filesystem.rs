//! `read_file` on real files.

use std::path::Path;

use amplifier_core::contracts::{Capability, ToolCx, ToolFailure};
use amplifier_protocol::event::ArtifactRead;
use amplifier_testing::TestCoordinator;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::built_in;

struct Stage {
    folder: TempDir,
    hub: TestCoordinator,
}

impl Stage {
    async fn new(config: Value) -> Self {
        let (folder, hub) = (TempDir::new().unwrap(), TestCoordinator::new());
        let path = folder.path().to_str().unwrap();
        hub.register_capability("session.working_dir", Capability::Value(json!(path)));
        hub.mount(&*built_in("tool-filesystem").await, config).await.unwrap();
        Self { folder, hub }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    async fn read(&self, input: Value) -> Result<Value, ToolFailure> {
        self.hub.tool("read_file").unwrap().execute(input, &ToolCx::default()).await
    }

    async fn refused(&self, input: Value) -> (String, String) {
        let failure = self.read(input).await.unwrap_err();
        (failure.message, failure.kind.unwrap_or_default())
    }
}

/// Golden case 11.1: read_file of three lines, and with an offset and a limit.
#[tokio::test]
async fn a_file_is_shown_with_numbered_lines_and_the_reading_is_told() {
    let stage = Stage::new(json!({})).await;
    let recorder = stage.hub.recorder();
    stage.write("a/b.txt", "one\ntwo\nthree");
    let path = stage.path("a/b.txt");
    assert_eq!(
        stage.read(json!({"file_path": "a/b.txt"})).await.unwrap(),
        json!({
            "file_path": path,
            "content": "     1\tone\n     2\ttwo\n     3\tthree",
            "total_lines": 3,
            "lines_read": 3,
            "offset": 1,
        })
    );
    assert_eq!(recorder.of::<ArtifactRead>(), [ArtifactRead { path, bytes: 13 }]);
    let part = stage.read(json!({"file_path": "a/b.txt", "offset": 2, "limit": 1})).await.unwrap();
    assert_eq!(
        (&part["content"], &part["lines_read"], &part["offset"]),
        (&json!("     2\ttwo"), &json!(1), &json!(2))
    );
}

/// Golden case 11.1: read_file with offset 0, -1 and past the end. Better: refused with the reason.
#[tokio::test]
async fn a_window_that_makes_no_sense_is_refused() {
    let stage = Stage::new(json!({})).await;
    stage.write("a", "one\ntwo\nthree");
    for (window, told) in [
        (json!({"offset": 0}), "offset must be 1 or more"),
        (json!({"limit": 0}), "limit must be 1 or more"),
        (json!({"offset": -1}), "does not fit"),
        (json!({"offset": 99}), "offset 99 is past the end of a, which has 3 lines"),
        (json!({"ofset": 1}), "unknown field"),
    ] {
        let mut input = window.clone();
        input["file_path"] = json!("a");
        let (message, kind) = stage.refused(input).await;
        assert!(message.contains(told) && kind == "InvalidInput", "{window}: {message} ({kind})");
    }
}

/// Golden case 11.1: read_file of an empty file.
#[tokio::test]
async fn an_empty_file_is_said_to_be_empty() {
    let stage = Stage::new(json!({})).await;
    stage.write("e", "");
    let read = stage.read(json!({"file_path": "e"})).await.unwrap();
    assert_eq!((&read["content"], &read["total_lines"]), (&json!(""), &json!(0)));
    assert_eq!(read["warning"], "File exists but has empty contents");
}

/// Golden case 11.1: read_file of a folder.
#[tokio::test]
async fn a_folder_is_listed_folders_first() {
    let stage = Stage::new(json!({})).await;
    stage.write("a/b.txt", "x").write("0", "").write("e", "");
    let path = stage.folder.path().to_str().unwrap();
    assert_eq!(
        stage.read(json!({"file_path": "."})).await.unwrap(),
        json!({
            "file_path": path,
            "content": format!("Directory: {path}\n\n  DIR  a\n  FILE 0\n  FILE e"),
            "is_directory": true,
            "entry_count": 3,
        })
    );
}

/// Golden case 11.1: read_file of what is missing and of bytes.
#[tokio::test]
async fn what_is_not_there_or_no_text_is_refused_in_words_the_model_can_use() {
    let stage = Stage::new(json!({})).await;
    stage.write("bin", [0xff, 0xfe, 0]);
    assert_eq!(
        stage.refused(json!({"file_path": "zz"})).await,
        ("Path not found: zz".to_owned(), "NotFound".to_owned())
    );
    assert_eq!(
        stage.refused(json!({"file_path": "bin"})).await,
        (
            "Cannot read file: bin (not a text file or encoding issue)".to_owned(),
            "UnicodeDecodeError".to_owned()
        )
    );
    assert_eq!(stage.refused(json!({"file_path": " "})).await.0, "file_path is required");
    assert!(stage.refused(json!({"file_path": "@docs:a"})).await.0.contains("mention_resolver"));
    assert!(stage.refused(json!({"file_path": "~/a"})).await.0.contains("give the whole path"));
    if Path::new("/dev/null").exists() {
        let open = Stage::new(json!({"allowed_read_paths": ["/"]})).await;
        assert!(open.refused(json!({"file_path": "/dev/null"})).await.0.contains("not a regular file"));
    }
}

#[tokio::test]
async fn without_a_working_folder_only_absolute_paths_are_read() {
    let hub = TestCoordinator::new();
    hub.mount(&*built_in("tool-filesystem").await, json!({})).await.unwrap();
    let tool = hub.tool("read_file").unwrap();
    let refused = tool.execute(json!({"file_path": "a"}), &ToolCx::default()).await.unwrap_err();
    assert!(refused.message.contains("give an absolute path"), "{refused}");
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_outside_the_allowed_paths_is_read_by_any_way() {
    for key in ["allowed_paths", "allowed_read_paths"] {
        let stage = Stage::new(json!({key: ["in"]})).await;
        stage.write("in/a", "yes").write("out/b", "no").write("inside", "no");
        std::os::unix::fs::symlink(stage.path("out/b"), stage.path("in/link")).unwrap();
        std::os::unix::fs::symlink(stage.path("in/a"), stage.path("out/link")).unwrap();
        assert!(stage.read(json!({"file_path": "in/a"})).await.is_ok());
        assert!(stage.read(json!({"file_path": "out/link"})).await.is_ok());
        assert_eq!(stage.refused(json!({"file_path": "in/zz"})).await.1, "NotFound");
        for outside in ["out/b", "in/../out/b", "in/link", "inside", "out/zz", "/etc/hostname", "."] {
            let (message, kind) = stage.refused(json!({"file_path": outside})).await;
            assert!(kind == "AccessDenied" && message.contains("allowed read paths"), "{outside}: {message}");
        }
    }
}
