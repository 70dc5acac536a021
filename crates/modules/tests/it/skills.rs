//! `tool-skills` with real folders.

use std::path::Path;

use amplifier_core::contracts::Capability;
use amplifier_protocol::tool::{ToolCall, ToolResult};
use amplifier_testing::{Step, TestSession, TestSessionBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{calls, script, session, texts};

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn skill(folder: &Path, name: &str, about: &str) {
    let head = format!(
        "---\nname: {name}\ndescription: {about}\nversion: 1.2\nallowed-tools: bash read_file\n---\n"
    );
    write(folder, &format!("{name}/SKILL.md"), &format!("{head}\nDo {name} well.\n"));
}

/// A working folder with two skills in the usual place and one elsewhere.
fn folders() -> TempDir {
    let dir = TempDir::new().unwrap();
    let usual = dir.path().join(".amplifier/skills");
    skill(&usual, "pdf-tools", "Works with PDF files");
    skill(&usual, "unit-tests", "Writes tests");
    write(&usual, "pdf-tools/reference/forms.md", "All about forms.");
    skill(&dir.path().join("more"), "pdf-tools", "Another of the same name");
    skill(&dir.path().join("more/deep/er"), "extra", "From elsewhere");
    dir
}

fn at(builder: TestSessionBuilder, dir: &Path) -> TestSessionBuilder {
    let dir = Capability::Value(json!(dir.display().to_string()));
    builder.configure(|builder| builder.capability("session.working_dir", dir))
}

async fn open(dir: &Path, config: Value) -> TestSession {
    let builder = session(&script([Step::say("x")]), &[("tool-skills", config)]).await;
    at(builder, dir).open().await.unwrap()
}

async fn call(session: &TestSession, input: Value) -> ToolResult {
    session.coordinator().call_tool(&ToolCall::new("c", "load_skill", input)).await.unwrap()
}

fn said(result: &ToolResult) -> &str {
    result.error_message().unwrap_or_default()
}

#[tokio::test]
async fn a_skill_is_found_then_loaded_then_read_file_by_file() {
    let dir = folders();
    let session = open(dir.path(), json!({"skills_dirs": ["more"]})).await;
    let listed = call(&session, json!({"list": true})).await.output;
    let names: Vec<_> =
        listed["skills"].as_array().unwrap().iter().map(|skill| skill["name"].clone()).collect();
    assert_eq!(names, ["extra", "pdf-tools", "unit-tests"]);
    // Folders of the config come first, and the first of two counts.
    assert_eq!(listed["skills"][1]["description"], json!("Another of the same name"));
    let matches = call(&session, json!({"search": "TEST"})).await.output;
    assert_eq!(matches["matches"], json!([{"name": "unit-tests", "description": "Writes tests"}]));
    let info = call(&session, json!({"info": "unit-tests"})).await.output;
    assert_eq!((&info["version"], &info["allowed_tools"]), (&json!("1.2"), &json!(["bash", "read_file"])));

    let session = open(dir.path(), json!({})).await;
    let loaded = call(&session, json!({"skill_name": "pdf-tools"})).await.output;
    assert_eq!(loaded["content"], json!("# pdf-tools\n\nDo pdf-tools well."));
    assert_eq!(loaded["files"], json!(["reference/forms.md"]));
    let file = call(&session, json!({"skill_name": "pdf-tools", "file": "reference/forms.md"})).await.output;
    assert_eq!(file["content"], json!("All about forms."));
    session.cleanup().await;
    let names: Vec<_> = session.recorder().events("skill:*").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["skill:loaded", "skill:unloaded"]);
    let discovered = &session.recorder().events("skills:discovered")[0].1;
    assert_eq!(discovered["skill_names"], json!(["pdf-tools", "unit-tests"]));
}

#[tokio::test]
async fn nothing_outside_a_skill_is_read_through_it() {
    let dir = folders();
    std::fs::write(dir.path().join("secret.txt"), "secret").unwrap();
    let inside = dir.path().join(".amplifier/skills/pdf-tools");
    std::os::unix::fs::symlink(dir.path().join("secret.txt"), inside.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(dir.path(), inside.join("up")).unwrap();
    let outside = TempDir::new().unwrap();
    skill(outside.path(), "foreign", "Not ours");
    std::os::unix::fs::symlink(outside.path(), dir.path().join(".amplifier/skills/foreign-link")).unwrap();
    std::fs::write(inside.join("blob.bin"), b"a\0b").unwrap();
    let session = open(dir.path(), json!({})).await;
    for file in [
        "../../../secret.txt",
        "/etc/passwd",
        "link.txt",
        "up/secret.txt",
        "",
        "..",
        "reference",
        "blob.bin",
        "none.md",
        "reference/../../unit-tests/SKILL.md",
    ] {
        let result = call(&session, json!({"skill_name": "pdf-tools", "file": file})).await;
        assert!(!result.success && !said(&result).is_empty(), "{file}: {result:?}");
    }
    let listed = call(&session, json!({"list": true})).await.output;
    assert!(!listed.to_string().contains("foreign"), "{listed}");
}

#[tokio::test]
async fn sources_elsewhere_and_unknown_names_are_refused_with_a_way_out() {
    let dir = folders();
    let config = json!({"skills": ["git+https://example.org/skills@main"]});
    let session = open(dir.path(), config).await;
    let warned = session.report().modules.iter().any(|entry| entry.to_string().contains("are not fetched"));
    assert!(warned, "{:?}", session.report());
    for (input, expected) in [
        (json!({"source": "git+https://example.org/x"}), "`source` is not supported"),
        (json!({"skill_name": "nope"}), "Skill 'nope' not found. Available: pdf-tools, unit-tests"),
        (json!({}), "give `skill_name`, `list`, `search` or `info`"),
    ] {
        let result = call(&session, input).await;
        assert!(said(&result).contains(expected), "{result:?}");
    }
}

#[tokio::test]
async fn a_broken_skill_is_a_warning_and_a_new_one_is_found_at_the_next_call() {
    let dir = folders();
    let usual = dir.path().join(".amplifier/skills");
    write(&usual, "broken/SKILL.md", "no head at all");
    write(&usual, "nameless/SKILL.md", "---\ndescription: x\n---\n");
    let session = open(dir.path(), json!({})).await;
    let warnings = session.report().modules.iter().map(ToString::to_string).collect::<String>();
    assert!(
        warnings.contains("broken/SKILL.md` is no skill") && warnings.contains("no `name`"),
        "{warnings}"
    );
    skill(&usual, "late", "Came later");
    assert!(call(&session, json!({"skill_name": "late"})).await.success);
    let long = "x".repeat(300_000);
    write(&usual, "late/long.md", &long);
    let cut = call(&session, json!({"skill_name": "late", "file": "long.md"})).await.output;
    assert_eq!(cut["total_bytes"], json!(300_000));
    assert!(cut["content"].as_str().unwrap().ends_with("[cut: 100000 of 300000 bytes are shown]"));
}

#[tokio::test]
async fn the_model_sees_the_list_with_each_request_and_nobody_stores_it() {
    let dir = folders();
    for (config, seen, stored) in [
        (json!({}), 2, 0),
        (json!({"visibility": {"enabled": false}}), 0, 0),
        (json!({"visibility": {"ephemeral": false}}), 2, 1),
    ] {
        let provider = script([calls("1", "load_skill", json!({"list": true})), Step::say("done")]);
        let builder = session(&provider, &[("tool-skills", config.clone())]).await;
        let session = at(builder, dir.path()).open().await.unwrap();
        session.execute("go").await.unwrap();
        let list = "- pdf-tools: Works with PDF files";
        let requests = provider.requests();
        let told =
            requests.iter().filter(|request| texts(request).iter().any(|text| text.contains(list))).count();
        assert_eq!(told, seen, "{config}");
        let messages = session.coordinator().context().unwrap().messages().await.unwrap();
        let kept = messages.iter().filter(|message| message.content.visible_text().contains(list)).count();
        assert_eq!(kept, stored, "{config}");
    }
}

#[tokio::test]
async fn skills_of_an_untrusted_directory_are_not_used_also_when_they_come_later_or_by_a_link() {
    let (dir, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let root = dir.path().canonicalize().unwrap();
    skill(elsewhere.path(), "outside", "From elsewhere");
    for untrusted in [vec![root.clone()], Vec::new()] {
        let trust = Capability::Value(json!({"untrusted": untrusted}));
        let builder = session(&script([Step::say("x")]), &[("tool-skills", json!({}))]).await;
        let builder = at(builder, &root).configure(|builder| builder.capability("workspace.trust", trust));
        let session = builder.open().await.unwrap();
        skill(&root.join(".amplifier/skills"), "late", "Came later");
        #[cfg(unix)]
        if !root.join(".amplifier/skills/out").exists() {
            std::os::unix::fs::symlink(elsewhere.path(), root.join(".amplifier/skills/out")).unwrap();
        }
        let listed = call(&session, json!({"list": true})).await.output;
        let names: Vec<_> =
            listed["skills"].as_array().unwrap().iter().map(|skill| skill["name"].clone()).collect();
        let expected = if untrusted.is_empty() { vec![json!("late")] } else { Vec::new() };
        assert_eq!(names, expected);
        std::fs::remove_dir_all(root.join(".amplifier")).unwrap();
    }
}
