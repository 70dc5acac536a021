//! The flags of `amplifier run`, and what programs read of it.

use std::time::Instant;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::approve::at_a_terminal;
use crate::desk::{Desk, Ran, plan, read, says};

/// The plan that the newest session was opened with.
fn kept_plan(desk: &Desk) -> Value {
    serde_json::from_str(&read(&desk.sessions().pop().unwrap().join("mount_plan.json"))).unwrap()
}

fn first_message(desk: &Desk) -> String {
    let transcript = read(&desk.sessions().pop().unwrap().join("transcript.jsonl"));
    let first: Value = serde_json::from_str(transcript.lines().next().unwrap()).unwrap();
    first["content"].as_str().unwrap().to_owned()
}

#[test]
fn values_of_the_plan_can_be_set_from_the_command_line() {
    let desk = Desk::new();
    desk.plan("a.json", &says("no"));
    let ran = desk.amplifier(&[
        "run",
        "--plan",
        "a.json",
        "--set",
        "providers.mock.config.responses=[\"set\"]",
        "--set",
        "/tools/0/config/max_image_bytes=7",
        "--max-tokens",
        "11",
        "--max-cost",
        "0.25",
        "hi",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "set\n"), "{}", ran.seen());
    let kept = kept_plan(&desk);
    assert_eq!(kept["tools"][0]["config"], json!({"max_image_bytes": 7}));
    assert_eq!(kept["providers"][0]["config"]["max_tokens"], json!(11));
    assert_eq!(kept["session"]["limits"], json!({"cost_usd": "0.25"}));
    // A session that is taken up again can be changed too.
    let id = desk.sessions().pop().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let set = "providers.0.config.responses=[\"again\"]";
    let ran = desk.amplifier(&["run", "--resume", &id, "--set", set, "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "again\n"), "{}", ran.seen());
    assert!(!ran.stderr.contains("the plan changed"), "who gives a flag knows: {}", ran.stderr);
}

#[test]
fn a_path_that_leads_nowhere_is_told_with_the_nearest() {
    let desk = Desk::new();
    desk.plan("a.json", &says("no"));
    let set = |set: &str| desk.amplifier(&["run", "--plan", "a.json", "--set", set, "hi"]);
    assert_snapshot!("set_unknown", set("tools.tool-filesystm.config.x=1").seen());
    assert_snapshot!("set_form", set("tools").seen());
    assert_eq!(set("session.limits.stepz=1").code, 2);
    assert!(desk.sessions().is_empty());
}

#[test]
fn money_that_is_spent_ends_the_turn_and_says_who_spent_it() {
    let desk = Desk::new();
    let call = json!({"text": "x", "tool_calls": [{"name": "list_directory", "arguments": {}}],
        "usage": {"input_tokens": 1, "output_tokens": 1, "cost_usd": "0.30"}});
    desk.plan("a.json", &plan(json!({"responses": [call, "never"]})));
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--max-cost", "0.20", "--output", "json", "hi"]);
    assert_eq!(ran.code, 3, "{}", ran.seen());
    let told = ran.json();
    assert_eq!(
        (&told["status"], &told["exit_code"], &told["cost_usd"]),
        (&json!("limit_reached"), &json!(3), &json!("0.3"))
    );
    let error = told["error"].as_str().unwrap();
    assert!(error.contains("$0.2") && error.contains("provider-mock"), "{error}");
}

#[test]
fn a_limit_that_cannot_be_kept_is_told() {
    let desk = Desk::new();
    desk.plan("a.json", &says("free?"));
    let ran = desk.amplifier(&["run", "--plan", "a.json", "--max-cost", "1", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "free?\n"));
    assert!(ran.stderr.contains("no price is known"), "{}", ran.stderr);
}

#[test]
fn the_time_ends_a_turn_with_124_and_keeps_the_session() {
    let desk = Desk::new();
    desk.plan("slow.json", &plan(json!({"responses": [{"text": "late", "delay_ms": 60_000}]})));
    let began = Instant::now();
    let ran =
        desk.amplifier(&["run", "--plan", "slow.json", "--timeout", "500ms", "--output", "json", "wait"]);
    assert_eq!(ran.code, 124, "{}", ran.seen());
    assert!(began.elapsed().as_secs() < 30);
    assert!(ran.stderr.contains("not done in 500 ms"), "{}", ran.stderr);
    let told = ran.json();
    assert_eq!((&told["status"], &told["answer"]), (&json!("timed_out"), &Value::Null), "{told}");
    assert!(told["session_id"].is_string() && first_message(&desk) == "wait");
    for time in ["0", "soon", "-3"] {
        assert_eq!(
            desk.amplifier(&["run", "--plan", "slow.json", &format!("--timeout={time}"), "x"]).code,
            2
        );
    }
}

#[test]
fn what_is_piped_in_stands_behind_the_prompt() {
    let desk = Desk::new();
    desk.plan("a.json", &says("ok")).file("secret.txt", "hidden\n");
    let args = ["run", "--plan", "a.json", "what is this?"];
    let ran = desk.amplifier_with_input(&args, b"line one\nsee @secret.txt\n");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.seen());
    assert_eq!(first_message(&desk), "what is this?\n\n<stdin>\nline one\nsee @secret.txt\n</stdin>");
}

#[test]
fn piped_text_has_bounds_and_must_be_text() {
    let desk = Desk::new();
    desk.plan("a.json", &says("ok"));
    let bytes = desk.amplifier_with_input(&["run", "--plan", "a.json", "x"], &[b'a', 0xff, 0xfe]);
    assert_snapshot!("piped_bytes", bytes.seen());
    // It stops reading when it has seen enough, so the writer may be cut off.
    let mut command = desk.command(&["run", "--plan", "a.json", "x"]);
    let huge = desk.work().join("huge.txt");
    std::fs::write(&huge, vec![b'a'; 9 * 1024 * 1024]).unwrap();
    let ran = Ran::of(command.stdin(std::fs::File::open(huge).unwrap()).output().unwrap());
    assert_snapshot!("piped_too_much", ran.seen());
    assert!(desk.sessions().is_empty());
}

#[test]
fn quiet_says_nothing_but_errors_and_verbose_tells_every_step() {
    let desk = Desk::new();
    let call =
        json!({"text": "x", "tool_calls": [{"name": "read_file", "arguments": {"file_path": "n.txt"}}]});
    let mut noisy = plan(json!({"responses": [call, "done"]}));
    noisy["tools"] = json!([{"module": "tool-filesystem"}, {"module": "tool-nowhere"}]);
    desk.plan("a.json", &noisy).file("n.txt", "x\n");
    let quiet = desk.amplifier(&["run", "--plan", "a.json", "-q", "hi"]);
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (0, "done\n", ""));
    let failed = desk.amplifier(&["run", "--plan", "none.json", "-q", "hi"]);
    assert!(failed.code == 2 && failed.stderr.contains("none.json"), "{}", failed.seen());
    let verbose = desk.amplifier(&["run", "--plan", "a.json", "-v", "hi"]);
    assert_eq!(verbose.stdout, "done\n");
    for words in [
        "`read_file` n.txt …",
        "`read_file` n.txt: done",
        "`provider-mock`",
        "tokens in",
        "1 tool call; session ",
    ] {
        assert!(verbose.stderr.contains(words), "{words}: {}", verbose.stderr);
    }
    assert_eq!(desk.amplifier(&["run", "-q", "-v", "hi"]).code, 2);
}

#[test]
fn a_folder_can_be_named_instead_of_gone_to() {
    let desk = Desk::new();
    desk.plan("there/a.json", &plan(json!({}))).file("there/notes.txt", "plugh\n");
    let ran = desk.amplifier(&["--cwd", "there", "run", "--plan", "a.json", "read notes.txt"]);
    assert!(ran.code == 0 && ran.stdout.contains("plugh"), "{}", ran.seen());
    let ran = desk.amplifier(&["run", "--cwd", "nowhere", "--plan", "a.json", "hi"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("nowhere") && ran.stderr.contains("--cwd"),
        "{}",
        ran.seen()
    );
}

#[test]
fn programs_are_told_in_json_also_when_there_is_no_session() {
    let desk = Desk::new();
    desk.plan("a.json", &says("no")).plan("strict.json", &{
        let mut plan = says("no");
        plan["tools"] = json!([{"module": "tool-nowhere"}]);
        plan
    });
    for (args, code) in [
        (&["--plan", "none.json"][..], 2),
        (&["--plan", "strict.json", "--strict"], 2),
        (&["--plan", "a.json", "--set", "x=1"], 2),
        (&["--resume", "no-such-session"], 2),
        (&["--resume", "../escape"], 2),
        (&["--bundle", "nowhere"], 2),
    ] {
        for form in ["json", "jsonl"] {
            let ran = desk.amplifier(&[&["run", "--output", form], args, &["hi"]].concat());
            assert_eq!(ran.code, code, "{args:?}: {}", ran.seen());
            // Records of the attempt may come first; the last word is the result.
            let last = if form == "json" {
                ran.stdout.as_str()
            } else {
                ran.stdout.lines().last().unwrap_or_default()
            };
            let told: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{}", ran.seen()));
            assert_eq!((&told["status"], &told["exit_code"]), (&json!("error"), &json!(code)), "{told}");
            let error = told["error"].as_str().unwrap();
            let first = error.lines().next().unwrap();
            assert!(ran.stderr.contains(first) && told["session_id"].is_null(), "{}", ran.seen());
        }
    }
}

#[test]
fn the_older_names_of_flags_are_known() {
    let desk = Desk::new();
    desk.plan("a.json", &says("ok")).file("b/bundle.md", "---\nbundle: {name: b}\nsession: {orchestrator: {module: loop-basic}, context: {module: context-simple}}\n---\nHi.\n");
    assert_eq!(
        desk.amplifier(&["run", "--plan", "a.json", "--output-format", "json", "x"]).json()["answer"],
        json!("ok")
    );
    let ran = desk.amplifier(&["run", "-B", "b", "-p", "mock", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "You said: hello\n"), "{}", ran.seen());
}

#[test]
fn no_colours_where_nobody_sees_them() {
    let desk = Desk::new();
    let ran = desk.amplifier(&["--no-color", "run", "--plan", "none.json", "hi"]);
    let piped = desk.amplifier(&["run", "--plan", "none.json", "hi"]);
    assert_eq!((ran.stderr.contains('\u{1b}'), ran.stderr == piped.stderr), (false, true));
}

#[test]
fn on_a_terminal_the_answer_is_shown_as_the_chat_shows_it() {
    let desk = Desk::new();
    desk.plan("a.json", &says("Some **bold** words\u{1b}[2J"));
    let shown = at_a_terminal(&desk, "", &["run", "--plan", "a.json", "hi"]).stdout;
    assert!(shown.contains("\u{1b}[1mbold") && !shown.contains("**") && !shown.contains("[2J"), "{shown:?}");
    let plain = at_a_terminal(&desk, "", &["--no-color", "run", "--plan", "a.json", "hi"]).stdout;
    assert!(plain.contains("Some bold words") && !plain.contains('\u{1b}'), "{plain:?}");
}

#[test]
fn a_number_that_leaves_nothing_is_told_for_what_it_is() {
    let desk = Desk::new();
    for flag in ["--max-cost", "--max-tokens", "--timeout"] {
        for number in ["-1", "-0.5", "0", "-5s"] {
            let ran = desk.amplifier(&["run", flag, number, "hi"]);
            assert_eq!(ran.code, 2, "{}", ran.seen());
            let said = format!("invalid value '{number}' for '{flag} ");
            assert!(
                ran.stderr.contains(&said) && ran.stderr.contains("must be more than 0"),
                "{}",
                ran.seen()
            );
        }
    }
    let listed = desk.amplifier(&["session", "list", "--limit", "-3"]);
    assert!(listed.code == 2 && listed.stderr.contains("not a whole number"), "{}", listed.seen());
}

#[test]
fn strict_does_not_begin_without_a_server_that_the_plan_names() {
    let desk = Desk::new();
    let mut plan = says("x");
    plan["tools"] = json!([{"module": "tool-mcp", "config": {
        "servers": {"gone": {"command": "/no/such/program"}}, "wait": 30, "max_restarts": 0,
    }}]);
    desk.plan("mcp.json", &plan);
    let ran = desk.amplifier(&["run", "--plan", "mcp.json", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "x\n"), "{}", ran.seen());
    assert!(ran.stderr.contains("MCP server `gone` is not available: `/no/such/program`"), "{}", ran.seen());
    let ran = desk.amplifier(&["run", "--plan", "mcp.json", "--strict", "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.seen());
    assert!(ran.stderr.contains("strict mode: `tool-mcp` is not ready: MCP server `gone`"), "{}", ran.seen());
    assert_eq!(desk.sessions().len(), 1, "nothing is left of what did not begin");
}

#[test]
fn a_name_that_is_empty_is_refused_with_its_flag() {
    let desk = Desk::new();
    for flag in ["--model", "--provider"] {
        for text in ["", " "] {
            let ran = desk.amplifier(&["run", flag, text, "hi"]);
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.seen());
            assert!(ran.stderr.contains(flag) && ran.stderr.contains("it is empty"), "{}", ran.seen());
        }
    }
    assert!(desk.sessions().is_empty());
}

#[test]
fn a_prompt_that_is_no_command_or_looks_like_flags_is_told_where_it_belongs() {
    let desk = Desk::new();
    desk.plan("a.json", &says("yes"));
    let ran = desk.amplifier(&["what's here"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains(r"hint: `amplifier run 'what'\''s here'` asks that"), "{}", ran.seen());
    // What is wrong with a command is no prompt.
    let ran = desk.amplifier(&["session", "what is here"]);
    assert!(ran.code == 2 && !ran.stderr.contains("asks that"), "{}", ran.seen());
    for prompt in ["-v what", "--explain this", "- one\n- two"] {
        let ran = desk.amplifier(&["run", "--plan", "a.json", prompt]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.seen());
        let first = prompt.lines().next().unwrap();
        assert!(ran.stderr.contains(&format!("`{first}` begins with a dash")), "{}", ran.seen());
        assert!(ran.stderr.contains("`amplifier run -- PROMPT`"), "{}", ran.seen());
        let ran = desk.amplifier(&["run", "--plan", "a.json", "--", prompt]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "yes\n"), "{}", ran.seen());
    }
}

#[test]
fn many_sessions_that_begin_alike_are_counted() {
    let desk = Desk::new();
    for number in 10..22 {
        std::fs::create_dir_all(desk.home().join(format!("state/sessions/0-{number}"))).unwrap();
    }
    let ran = desk.amplifier(&["run", "--resume", "0", "hi"]);
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.stderr.contains("12 sessions begin with `0`"), "{}", ran.seen());
    assert_eq!(ran.stderr.matches("\n  0-").count(), 10, "{}", ran.seen());
    assert!(ran.stderr.ends_with("\n  and 2 more\n"), "{}", ran.seen());
}

#[test]
fn the_time_ends_a_command_that_runs_when_it_is_up() {
    // One that ends when it is asked to, and one that does not. Neither gets the time to finish.
    for ignore in ["", "trap '' TERM; "] {
        let command = format!("{ignore}touch begun; for i in $(seq 47); do sleep 0.1; done; touch ended");
        let call = json!({"tool_calls": [{"name": "bash", "arguments": {"command": command}}]});
        let mut waits = plan(json!({"responses": [call, "done"]}));
        waits["tools"] = json!([{"module": "tool-bash"}]);
        let desk = Desk::new();
        desk.plan("a.json", &waits);
        let args =
            ["run", "--plan", "a.json", "--approve", "all", "--timeout", "3s", "--output", "json", "go"];
        let mut command = desk.command(&args);
        let ran = Ran::of(command.env("PATH", "/usr/bin:/bin").output().unwrap());
        assert_eq!((ran.code, &ran.json()["status"]), (124, &json!("timed_out")), "{}", ran.seen());
        assert!(desk.work().join("begun").exists(), "{}", ran.seen());
        assert!(!desk.work().join("ended").exists(), "{}", ran.seen());
    }
}
