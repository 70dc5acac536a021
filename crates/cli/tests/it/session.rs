//! `amplifier session …`: looking at sessions and going back and forth in them.

use insta::{Settings, assert_snapshot};
use serde_json::{Value, json};

use crate::desk::{Desk, Ran, read};

fn plan(responses: &Value) -> Value {
    json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": responses}}],
        "tools": [{"module": "tool-filesystem", "config": {"require_read_before_write": false}}],
        "hooks": [{"module": "hooks-backup", "config": {"transcripts": false}}],
    })
}

/// Snapshots without what differs from run to run.
fn scope(desk: &Desk, check: impl FnOnce()) {
    let mut settings = Settings::clone_current();
    let root = desk.path("");
    settings.add_filter(root.to_str().unwrap().trim_end_matches('/'), "<desk>");
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "SESSION");
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}(-[0-9a-f]*)*", "SHORT-ID");
    settings.add_filter(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)", "TIME");
    settings.add_filter(r"sha256:[0-9a-f]{64}", "HASH");
    settings.add_filter(r"\d+(\.\d)? (B|KiB)\b", "SIZE");
    settings.bind(check);
}

/// The ids of all sessions, the oldest first.
fn ids(desk: &Desk) -> Vec<String> {
    desk.sessions().iter().map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{}", ran.seen());
    ran
}

/// A desk with one session of three turns, in which a file was written in the second.
fn desk() -> (Desk, String) {
    let desk = Desk::new();
    desk.file("notes.txt", "as it was\n");
    let call = json!({"name": "write_file", "arguments": {"file_path": "notes.txt", "content": "changed"}});
    desk.plan("first.json", &plan(&json!(["The first answer."])));
    desk.plan(
        "second.json",
        &plan(&json!([{"text": "I write.", "tool_calls": [call]}, "The second answer."])),
    );
    ok(desk.amplifier(&["run", "--plan", "first.json", "What is the first?"]));
    let id = ids(&desk).remove(0);
    let short = &id[..13];
    ok(desk.amplifier(&["run", "--resume", short, "--plan", "second.json", "Write <it> down."]));
    ok(desk.amplifier(&["run", "--resume", short, "--plan", "first.json", "And the third?"]));
    (desk, id)
}

fn texts(desk: &Desk, id: &str) -> Vec<String> {
    let path = desk.home().join("state/sessions").join(id).join("transcript.jsonl");
    let messages =
        read(&path).lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    messages.iter().map(text).collect()
}

#[test]
fn sessions_are_listed_for_this_folder_and_shown() {
    let (desk, id) = desk();
    let elsewhere = desk.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let plan = desk.work().join("first.json");
    let mut command = desk.command(&["run", "--plan", plan.to_str().unwrap(), "Somewhere else"]);
    ok(Ran::of(command.current_dir(&elsewhere).output().unwrap()));
    scope(&desk, || {
        assert_snapshot!("list", desk.amplifier(&["session", "list"]).seen());
        assert_snapshot!("list_all", desk.amplifier(&["session", "list", "--all", "--limit", "1"]).seen());
        assert_snapshot!("show", desk.amplifier(&["session", "show", &id[..20], "--transcript"]).seen());
    });
    let listed =
        ok(desk.amplifier(&["session", "list", "--project", "../elsewhere", "--output", "json"])).json();
    assert_eq!(listed["total"], json!(1));
    let session = &listed["sessions"][0];
    assert_eq!(session["title"], json!("Somewhere else"));
    assert_eq!(session["working_dir"], json!(elsewhere));
    assert_eq!(session["bundle"]["kind"], json!("plan"));
    assert!(session["bundle"]["reference"].as_str().unwrap().ends_with("/first.json"));
    assert!(session["model"].is_string() && session["in_use_by"].is_null(), "{session}");
    assert!(session.get("views").is_none(), "{session}");
    assert_eq!((&session["usage"]["output_tokens"], &session["cost_usd"]), (&json!(4), &json!(null)));
    let shown = ok(desk.amplifier(&["session", "show", &id, "--transcript", "--output", "json"])).json();
    assert_eq!(shown["turn_list"].as_array().unwrap().len(), 3);
    assert_eq!(shown["transcript"][0]["text"], json!("What is the first?"));
}

#[test]
fn nothing_and_no_such_session_are_told_with_a_way_on() {
    let (desk, id) = desk();
    let empty = Desk::new();
    scope(&empty, || {
        assert_snapshot!("nothing", empty.amplifier(&["session", "list"]).seen());
        assert_snapshot!("nothing_at_all", empty.amplifier(&["session", "list", "--all"]).seen());
        assert_snapshot!("nothing_to_continue", empty.amplifier(&["continue", "hi"]).seen());
    });
    scope(&desk, || {
        assert_snapshot!("unknown", desk.amplifier(&["session", "show", "zzz"]).seen());
        let near = format!("{}xxxx", &id[..9]);
        assert_snapshot!("near", desk.amplifier(&["session", "show", &near]).seen().replace(&near, "NEAR"));
        assert_snapshot!("escape", desk.amplifier(&["session", "show", "../x"]).seen());
        assert_snapshot!("dots", desk.amplifier(&["session", "show", ".."]).seen());
        assert_snapshot!("no_number", desk.amplifier(&["session", "fork", &id, "--at", "-1"]).seen());
        assert_snapshot!("nothing_to_find", desk.amplifier(&["session", "search", " "]).seen());
        assert_snapshot!("unknown_resume", desk.amplifier(&["resume", "zzz"]).seen());
        assert_snapshot!("unknown_session_resume", desk.amplifier(&["session", "resume", "zzz"]).seen());
        assert_snapshot!("no_turn", desk.amplifier(&["session", "fork", &id, "--at", "9"]).seen());
        assert_snapshot!("bad_name", desk.amplifier(&["session", "rename", &id, " "]).seen());
        assert_snapshot!("unconfirmed", desk.amplifier(&["session", "delete", &id]).seen());
    });
    ok(desk.amplifier(&["session", "fork", &id]));
    scope(&desk, || {
        let ran = desk.amplifier(&["run", "--resume", "0", "hi"]);
        let mut lines: Vec<_> = ran.seen().lines().map(str::to_owned).collect();
        lines.sort();
        assert_snapshot!("ambiguous", lines.join("\n"));
        let chat = desk.amplifier(&["chat", "--resume", "0"]);
        assert_eq!((chat.code, chat.stderr), (ran.code, ran.stderr));
    });
}

#[test]
fn a_fork_goes_its_own_way_and_the_first_stays() {
    let (desk, id) = desk();
    let ran = ok(desk.amplifier(&["session", "fork", &id[..15], "--at", "1", "--name", "second try"]));
    let fork = ran.stdout.trim().to_owned();
    scope(&desk, || assert_snapshot!("fork", ran.seen()));
    ok(desk.amplifier(&["run", "--resume", &fork, "What else?"]));
    assert_eq!(
        texts(&desk, &fork),
        ["What is the first?", "The first answer.", "What else?", "The first answer."]
    );
    assert_eq!(texts(&desk, &id).len(), 8);
    scope(&desk, || {
        assert_snapshot!("tree", desk.amplifier(&["session", "list", "--tree", &id]).seen());
        assert_snapshot!("list_with_fork", desk.amplifier(&["session", "list"]).seen());
    });
    let forked = ok(desk.amplifier(&["session", "fork", &fork, "--output", "json"])).json();
    assert_eq!(forked["forked_from"], json!({"session": fork, "turn": 2}));
}

#[test]
fn the_conversation_goes_back_and_forth_and_files_go_back_when_asked() {
    let (desk, id) = desk();
    scope(&desk, || {
        assert_snapshot!("rewind", desk.amplifier(&["session", "rewind", &id, "--to", "1"]).seen());
    });
    assert_eq!(texts(&desk, &id), ["What is the first?", "The first answer."]);
    assert_eq!(read(&desk.work().join("notes.txt")), "changed", "files stay");
    // What is said now follows the first turn.
    let ran = ok(desk.amplifier(&["run", "--resume", &id, "--output", "json", "Once more"])).json();
    assert_eq!(ran["turn"], json!(4));
    assert_eq!(
        texts(&desk, &id),
        ["What is the first?", "The first answer.", "Once more", "The first answer."]
    );
    scope(&desk, || {
        assert_snapshot!("shown_after", desk.amplifier(&["session", "show", &id]).seen());
        assert_snapshot!(
            "forward",
            desk.amplifier(&["session", "rewind", &id, "--to", "3", "--files"]).seen()
        );
    });
    assert_eq!(texts(&desk, &id).len(), 8);
    scope(&desk, || {
        assert_snapshot!("files", desk.amplifier(&["session", "rewind", &id, "--to", "1", "--files"]).seen());
        assert_snapshot!(
            "files_again",
            desk.amplifier(&["session", "rewind", &id, "--to", "1", "--files"]).seen()
        );
    });
    assert_eq!(read(&desk.work().join("notes.txt")), "as it was\n");
}

#[test]
fn exports_are_whole_escaped_and_without_secrets() {
    let (desk, id) = desk();
    let key = format!("sk-ant-api03-{}", "a1B2".repeat(20));
    ok(desk.amplifier(&["run", "--resume", &id, &format!("My key is {key} <script>alert(1)</script>")]));
    ok(desk.amplifier(&["session", "rewind", &id, "--to", "2"]));
    ok(desk.amplifier(&["session", "rewind", &id, "--to", "4"]));
    scope(&desk, || {
        assert_snapshot!("markdown", desk.amplifier(&["session", "export", &id]).seen());
        assert_snapshot!("html", desk.amplifier(&["session", "export", &id, "--format", "html"]).seen());
        assert_snapshot!("to_file", desk.amplifier(&["session", "export", &id, "--to", "out.json"]).seen());
    });
    let written: Value = serde_json::from_str(&read(&desk.work().join("out.json"))).unwrap();
    assert_eq!(written["turns"].as_array().unwrap().len(), 4);
    assert_eq!(written["turns"][1]["moments"][2]["type"], json!("called"));
    for format in ["md", "json", "html"] {
        let text = ok(desk.amplifier(&["session", "export", &id, "--format", format])).stdout;
        assert!(!text.contains(&key) && text.contains("REDACTED"), "{text}");
        assert!(format != "html" || !text.contains("<script"), "{text}");
    }
    let ran = desk.amplifier(&["session", "export", &id, "--to", "no/such/folder.md"]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
}

#[test]
fn what_was_said_is_found() {
    let (desk, id) = desk();
    scope(&desk, || {
        assert_snapshot!("search", desk.amplifier(&["session", "search", "ANSWER"]).seen());
        assert_snapshot!("search_nothing", desk.amplifier(&["session", "search", "no such words"]).seen());
    });
    let found = ok(desk.amplifier(&["session", "search", "<it>", "--all", "--output", "json"])).json();
    let hit = &found["hits"][0];
    assert_eq!((hit["session_id"].as_str(), hit["turn"].as_u64()), (Some(id.as_str()), Some(2)));
    let (from, to) = (hit["at"][0].as_u64().unwrap(), hit["at"][1].as_u64().unwrap());
    let span = usize::try_from(from).unwrap()..usize::try_from(to).unwrap();
    assert_eq!(&hit["text"].as_str().unwrap()[span], "<it>");
    let one = ok(desk.amplifier(&["session", "search", "answer", "--limit", "1"]));
    assert!(one.stderr.contains("there is more"), "{}", one.stderr);
    assert_eq!(desk.amplifier(&["session", "search", " "]).code, 2);
}

#[test]
fn a_session_gets_a_name_and_goes_on() {
    let (desk, id) = desk();
    scope(&desk, || {
        assert_snapshot!("rename", desk.amplifier(&["session", "rename", &id[..13], " my\tnotes "]).seen());
        assert_snapshot!("continue", desk.amplifier(&["continue", "And now?"]).seen());
        assert_snapshot!("resume", desk.amplifier_with_input(&["resume", &id], b"One more.\n").seen());
        let resumed = desk.amplifier_with_input(&["session", "resume", &id[..13]], b"The last.\n");
        assert_snapshot!("session_resume", resumed.seen());
    });
    assert!(texts(&desk, &id).ends_with(&["The last.".to_owned(), "The first answer.".to_owned()]));
}

#[test]
fn an_export_replaces_nothing_unasked_and_goes_where_it_is_sent() {
    let (desk, id) = desk();
    let export = |args: &[&str]| desk.amplifier(&[&["session", "export", &id, "--to"], args].concat());
    desk.file("mine.md", "mine").file("folder/x", "");
    std::os::unix::fs::symlink("mine.md", desk.work().join("link.md")).unwrap();
    std::os::unix::fs::symlink("nowhere", desk.work().join("dead.md")).unwrap();
    scope(&desk, || {
        assert_snapshot!("export_exists", export(&["mine.md"]).seen());
        assert_snapshot!("export_folder", export(&["folder"]).seen());
        assert_snapshot!("export_no_folder", export(&["none/"]).seen());
        assert_snapshot!("export_no_place", export(&["none/x.md"]).seen());
        assert_snapshot!("export_dead", export(&["dead.md", "--force"]).seen());
    });
    assert_eq!(export(&["link.md"]).code, 1);
    let ran = export(&["x.pdf"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("`x.pdf`") && ran.stderr.contains(".md, .json or .html"), "{}", ran.seen());
    assert!(!desk.work().join("x.pdf").exists());
    ok(export(&["x.pdf", "--format", "md"]));
    assert_eq!(read(&desk.work().join("mine.md")), "mine");
    // Behind a link the file is replaced, and the link stays.
    ok(export(&["link.md", "--force"]));
    assert!(desk.work().join("link.md").is_symlink());
    assert!(read(&desk.work().join("mine.md")).contains("The first answer."));
    // One dash is standard output, and a pipe is written through.
    assert!(ok(export(&["-"])).stdout.contains("The first answer."));
    assert!(!desk.work().join("-").exists());
    let pipe = desk.work().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || read(&pipe)
    });
    ok(export(&["pipe"]));
    assert!(reader.join().unwrap().contains("The first answer."));
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&pipe.metadata().unwrap().file_type()));
    ok(export(&["/dev/null"]));
}

#[test]
fn a_session_is_printed_as_it_happened() {
    let (desk, id) = desk();
    scope(&desk, || {
        assert_snapshot!("replay", desk.amplifier(&["session", "replay", &id]).seen());
        let last = ["session", "replay", &id, "--from", "3", "--speed", "1000"];
        assert_snapshot!("replay_last", desk.amplifier(&last).seen());
        assert_snapshot!("replay_none", desk.amplifier(&["session", "replay", &id, "--from", "7"]).seen());
    });
    for speed in ["0", "-1", "-0.5", "NaN", "inf", "fast"] {
        let ran = desk.amplifier(&["session", "replay", &id, "--speed", speed]);
        let told =
            format!("invalid value '{speed}' for '--speed <N>': not a number above 0, such as 2 or 0.5");
        assert_eq!(ran.code, 2, "{}", ran.seen());
        assert!(ran.stderr.contains(&told), "{}", ran.seen());
    }
    let told = ok(desk.amplifier(&["session", "replay", &id, "--from", "2", "--output", "json"])).json();
    assert_eq!((&told["session_id"], &told["moments"][0]["turn"]), (&json!(id), &json!(2)), "{told}");
}

#[test]
fn deleted_is_gone_and_old_ones_are_cleaned_up() {
    let (desk, id) = desk();
    ok(desk.amplifier(&["session", "rename", &id, "the old one"]));
    ok(desk.amplifier(&["session", "fork", &id]));
    scope(&desk, || {
        let none = desk.amplifier(&["session", "cleanup", "--home", "none"]);
        assert!(none.stdout.starts_with("there is no session"), "{}", none.seen());
        assert_snapshot!("cleanup_none", desk.amplifier(&["session", "cleanup"]).seen());
        let dry = desk.amplifier(&["session", "cleanup", "--days", "0", "--dry-run"]);
        assert_snapshot!("cleanup_dry", dry.seen());
        assert_snapshot!("delete", desk.amplifier(&["session", "delete", &id, "--yes"]).seen());
    });
    assert_eq!(ids(&desk).len(), 1);
    assert_eq!(desk.amplifier(&["session", "show", &id]).code, 2);
    scope(&desk, || {
        assert_snapshot!("cleanup", desk.amplifier(&["session", "cleanup", "--days", "0", "--yes"]).seen());
    });
    assert!(desk.sessions().is_empty());
}

#[test]
fn damaged_files_are_made_again_from_the_journal_and_it_is_told() {
    let (desk, id) = desk();
    let folder = desk.home().join("state/sessions").join(&id);
    let whole = read(&folder.join("transcript.jsonl"));
    std::fs::write(folder.join("metadata.json"), "{").unwrap();
    let ran = ok(desk.amplifier(&["session", "show", &id]));
    assert!(ran.stderr.contains("made again from its journal"), "{}", ran.stderr);
    std::fs::write(folder.join("transcript.jsonl"), whole.replace("first", "worst")).unwrap();
    let ran = ok(desk.amplifier(&["run", "--resume", &id, "hi"]));
    assert!(ran.stderr.contains("made again from the journal"), "{}", ran.stderr);
    assert!(read(&folder.join("transcript.jsonl")).starts_with(&whole));
    // The index is only a view, too.
    std::fs::write(desk.home().join("state/sessions.idx"), [0xff, b'\n', b'{']).unwrap();
    let listed = ok(desk.amplifier(&["session", "list", "--output", "json"])).json();
    assert_eq!(listed["sessions"][0]["turns"], json!(4));
    // Damage to the truth itself is told, not mended.
    let events = read(&folder.join("events.jsonl"));
    std::fs::write(folder.join("events.jsonl"), events.replacen("prompt", "tpromp", 1)).unwrap();
    let ran = desk.amplifier(&["session", "replay", &id]);
    assert_eq!(ran.code, 1, "{}", ran.seen());
    assert!(ran.stderr.contains("is damaged"), "{}", ran.stderr);
}

#[test]
fn every_command_says_what_it_does() {
    let desk = Desk::new();
    let commands = [
        "list", "show", "resume", "fork", "rewind", "rename", "export", "search", "replay", "delete",
        "cleanup",
    ];
    let mut helps = ok(desk.amplifier(&["session", "--help"])).stdout;
    for command in commands {
        helps += &format!("\n=== {command}\n{}", ok(desk.amplifier(&["session", command, "--help"])).stdout);
    }
    assert_snapshot!("helps", helps);
    for command in ["continue", "resume"] {
        let help = ok(desk.amplifier(&[command, "--help"])).stdout;
        assert!(help.contains("--force-bundle"), "{help}");
    }
}
