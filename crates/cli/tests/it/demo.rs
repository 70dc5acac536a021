//! Nothing is set up: the first command still does the main job, offline, and says what it is.

use insta::assert_snapshot;
use serde_json::json;

use crate::desk::{Desk, Ran};
use crate::provider::with;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("README.md", "# Kitchen\n\nRecipes and a parser for them.\n")
        .file("recipes/soup.txt", "the parser reads soup\n")
        .file("notes.txt", "buy salt\n");
    desk
}

#[test]
fn without_any_key_the_demo_looks_at_the_folder_and_tells_what_it_saw() {
    let desk = desk();
    let ran = with(&desk, &[], &["run", "where is the parser?"]);
    assert_snapshot!("demo", ran.seen());
    let told = with(&desk, &[], &["run", "--output", "json", "where is the parser?"]).json();
    assert_eq!((&told["status"], &told["tool_calls"]), (&json!("completed"), &json!(4)), "{told}");
    assert_eq!(told["denied"], json!([]));
}

#[test]
fn the_demo_is_not_taken_where_somebody_wants_more() {
    let desk = desk();
    let refused = |args: &[&str]| -> Ran {
        let ran = with(&desk, &[], args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}: {}", ran.seen());
        ran
    };
    refused(&["run", "--strict", "hi"]);
    refused(&["run", "-m", "some-model", "hi"]);
    refused(&["provider", "test"]);
    assert!(desk.sessions().is_empty());
    // Who asks for a provider gets that one or why not.
    let named = with(&desk, &[], &["run", "-p", "openai", "hi"]);
    assert_eq!((named.code, named.stdout.contains("demo")), (2, false), "{}", named.seen());
    // And who has a key never meets it.
    let key = with(
        &desk,
        &[("OPENAI_API_KEY", "sk-x"), ("OPENAI_BASE_URL", "http://127.0.0.1:9")],
        &["run", "--timeout", "20", "hi"],
    );
    assert!(!key.seen().contains("demo"), "{}", key.seen());
}

#[test]
fn the_demo_answers_in_an_empty_folder_and_without_tools() {
    let desk = Desk::new();
    let empty = with(&desk, &[], &["run", "hello there"]);
    assert!(empty.code == 0 && empty.stdout.contains("the folder is empty"), "{}", empty.seen());
    let bare = json!({"session": {"orchestrator": "loop-basic", "context": "context-simple"}});
    desk.plan("bare.json", &bare);
    let bare = with(&desk, &[], &["run", "--plan", "bare.json", "hi"]);
    assert!(bare.code == 0 && bare.stdout.contains("has no tools"), "{}", bare.seen());
}

#[test]
fn a_session_of_the_demo_goes_on_with_a_model_as_soon_as_there_is_one() {
    let desk = desk();
    assert_eq!(with(&desk, &[], &["run", "hi"]).code, 0);
    let still = with(&desk, &[], &["continue", "now"]);
    assert!(still.code == 0 && still.stderr.contains("no model is connected"), "{}", still.seen());
    desk.file(".amplifier/settings.yaml", "config:\n  providers:\n  - module: provider-mock\n");
    assert_eq!(desk.amplifier(&["trust"]).code, 0);
    let told = "note: the demo answered so far; `provider-mock` is asked from here on";
    for (prompt, is_told) in [("again", true), ("and again", false)] {
        let ran = with(&desk, &[], &["continue", prompt]);
        assert_eq!((ran.code, ran.stdout), (0, format!("You said: {prompt}\n")));
        assert_eq!(ran.stderr.contains(told), is_told, "{}", ran.stderr);
    }
}
