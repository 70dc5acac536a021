//! Agents in the chat: named in a prompt, and seen at work.

use serde_json::{Value, json};

use crate::chat::{WIDE, desk, open};
use crate::desk::{Desk, read};

/// A desk whose model hands a task to `scout`, which reads a file and answers.
fn with_scout() -> Desk {
    let looks = json!([
        {"tool_calls": [{"name": "read_file", "input": {"file_path": "a.txt"}}]},
        {"text": "It says one."},
    ]);
    with_scout_that(&looks)
}

/// A desk whose model hands a task to a `scout` that does this.
fn with_scout_that(looks: &Value) -> Desk {
    let task = json!({"tool_calls": [{"name": "task", "input": {"agent": "scout", "instruction": "look at a.txt"}}]});
    let scout = json!({
        "description": "Looks around.",
        "providers": [{"module": "provider-mock", "config": {"responses": looks}}],
    });
    let usage = json!({"input_tokens": 1200, "output_tokens": 30, "cost_usd": "0.01"});
    let mut first = task;
    first["usage"] = usage;
    let tools = json!([{"module": "tool-filesystem"}, {"module": "tool-bash", "config": {"require_approval": "never"}}, {"module": "tool-task"}]);
    let desk =
        desk(json!([first, "The scout is back."]), json!({"tools": tools, "agents": {"scout": scout}}));
    desk.file("a.txt", "one\n");
    desk
}

/// What the person said, as the model reads it.
fn asked(desk: &Desk) -> Vec<String> {
    let folder = desk.sessions().into_iter().find(|folder| !folder.to_string_lossy().contains('_')).unwrap();
    let messages = read(&folder.join("transcript.jsonl"));
    let messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_user = messages.filter(|message| message["role"] == "user");
    of_user.map(|message| message["content"].to_string()).collect()
}

#[test]
fn what_an_agent_does_is_seen_below_the_call_that_started_it() {
    // It works until it is let go, however long a busy machine takes to draw that.
    let waits = "until [ -e go.txt ]; do sleep 0.05; done";
    let desk = with_scout_that(&json!([
        {"tool_calls": [{"name": "read_file", "input": {"file_path": "a.txt"}}]},
        {"tool_calls": [{"name": "bash", "input": {"command": waits, "timeout": 600}}]},
        {"text": "It says one."},
    ]));
    let terminal = open(&desk, WIDE);
    terminal.types("go\r");
    // While it works, with what was spent so far. A screen may be seen when half of it is drawn, so both are waited for.
    let spent = "1.2k in · 30 out · $0.0100";
    let is_drawn = |screen: &str| screen.contains("  ✓ read_file  a.txt") && screen.contains(spent);
    let screen = terminal.until("the agent at work and what was spent", is_drawn);
    let lines: Vec<&str> = screen.lines().collect();
    let at = lines.iter().position(|line| line.contains("read_file  a.txt")).unwrap();
    assert!(lines[at - 1].contains("task  scout") && !screen.contains("is back"), "{screen}");
    // And when it is done.
    desk.file("go.txt", "");
    let screen = terminal.sees("The scout is back.");
    let lines: Vec<&str> = screen.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("✓ task  scout")).unwrap();
    assert!(lines[at + 1].starts_with("  ✓ read_file  a.txt"), "{screen}");
    terminal.prompt();
    terminal.types("/expand\r");
    terminal.sees("\"instruction\": \"look at a.txt\"");
}

#[test]
fn run_tells_what_agents_do_to_those_who_want_to_know() {
    let desk = with_scout();
    let ran = desk.amplifier(&["run", "--verbose", "--plan", "plan.json", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let at = lines.iter().position(|line| line.ends_with("`task` scout …")).unwrap();
    let below = lines.iter().position(|line| line.ends_with("  `read_file` a.txt …")).unwrap();
    let done = lines.iter().position(|line| line.contains("`task` scout: done")).unwrap();
    assert!(at < below && below < done, "{}", ran.stderr);
    let quiet = desk.amplifier(&["run", "--plan", "plan.json", "go"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""), "{}", quiet.seen());
}

#[test]
fn an_agent_that_is_named_is_to_do_it() {
    let desk = with_scout();
    let terminal = open(&desk, WIDE);
    terminal.types("@agent:sc\t");
    terminal.sees("> @agent:scout");
    terminal.types("look at a.txt\r");
    terminal.sees("The scout is back.");
    let screen = terminal.prompt();
    assert!(!screen.contains("warning"), "{screen}");
    let said = asked(&desk);
    assert!(said[0].contains("@agent:scout look at a.txt") && said[0].contains("call `task`"), "{said:?}");
    assert!(said[0].contains("The person names the agent `scout`"), "{said:?}");
}

#[test]
fn an_agent_that_cannot_be_asked_is_told() {
    let desk = with_scout();
    let ran = desk.amplifier(&["run", "--plan", "plan.json", "@agent:nobody look"]);
    let told = "warning: mention `@agent:nobody`: there is no such agent; known are `scout`";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(!asked(&desk)[0].contains("system-reminder"), "{:?}", asked(&desk));
    let desk = crate::chat::desk(json!(["x"]), json!({"agents": {"scout": {"description": "Looks."}}}));
    let ran = desk.amplifier(&["run", "--plan", "plan.json", "@agent:scout look"]);
    assert!(ran.stderr.contains("the session has no tool that hands work to agents"), "{}", ran.stderr);
}

/// A desk whose model hands a task to an agent that wants to write; both tell what they used.
fn with_writer() -> Desk {
    let usage = |sent: u64, received: u64, cost: &str| json!({"input_tokens": sent, "output_tokens": received, "cost_usd": cost});
    let writes = json!([
        {"tool_calls": [{"name": "write_file", "input": {"file_path": "b.txt", "content": "x"}}],
         "usage": usage(200, 20, "0.02")},
        {"text": "I may not.", "usage": usage(300, 30, "0.03")},
    ]);
    let writer = json!({
        "description": "Writes.",
        "providers": [{"module": "provider-mock", "config": {"responses": writes}}],
    });
    let task = json!({
        "tool_calls": [{"name": "task", "input": {"agent": "writer", "instruction": "write b.txt"}}],
        "usage": usage(1000, 1, "0.01"),
    });
    let tools = json!([{"module": "tool-filesystem"}, {"module": "tool-task"}]);
    let rules = json!([{"module": "hooks-approval", "config": {"default_action": "deny",
        "rules": [{"tool": "task", "action": "allow"}]}}]);
    let answer = json!({"text": "It may not.", "usage": usage(100, 10, "0.04")});
    desk(json!([task, answer]), json!({"tools": tools, "hooks": rules, "agents": {"writer": writer}}))
}

#[test]
fn what_agents_used_and_were_refused_is_part_of_what_a_run_came_to() {
    let desk = with_writer();
    let ran = desk.amplifier(&["run", "--output", "json", "--plan", "plan.json", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let told = ran.json();
    let usage = json!({"input_tokens": 1600, "output_tokens": 61});
    assert_eq!((&told["usage"], &told["cost_usd"]), (&usage, &json!("0.1")), "{told}");
    assert_eq!(told["session"], json!({"usage": usage, "cost_usd": "0.1"}), "{told}");
    assert_eq!(told["tool_calls"], json!(1), "{told}");
    let denied = &told["denied"];
    assert_eq!(denied.as_array().unwrap().len(), 1, "{denied}");
    assert_eq!((&denied[0]["tool_name"], &denied[0]["agent"]), (&json!("write_file"), &json!("writer")));
    let session = denied[0]["agent_session_id"].as_str().unwrap();
    assert!(desk.home().join("state/sessions").join(session).is_dir(), "{denied}");
    let id = told["session_id"].as_str().unwrap();

    // The lists of sessions, and a run that goes on, know it too.
    let shown = desk.amplifier(&["session", "show", id, "--output", "json"]).json();
    assert!(shown.to_string().contains(&usage.to_string()), "{shown}");
    let ran = desk.amplifier(&["run", "--output", "json", "--resume", id, "more"]).json();
    assert_eq!(ran["session"]["usage"]["input_tokens"], json!(3200), "{ran}");
    assert_eq!(ran["usage"]["input_tokens"], json!(1600), "{ran}");

    let ran = desk.amplifier(&["run", "--verbose", "--plan", "plan.json", "go"]);
    assert!(ran.stderr.contains("$0.1, 1 tool call;"), "{}", ran.stderr);
    let lines = "go\n/status\n/cost\n".as_bytes();
    let chat = desk.amplifier_with_input(&["--plan", "plan.json"], lines);
    assert!(chat.stderr.contains("1.6k in, 61 out") && chat.stderr.contains("$0.10"), "{}", chat.stderr);
}

/// Point 20 of issue 25: agents whose first calls are cheap and whose second ones are not pass a limit of money by one call.
#[test]
fn agents_side_by_side_pass_a_limit_of_money_by_one_call_at_most() {
    let usage = |cost: &str| json!({"input_tokens": 10, "output_tokens": 1, "cost_usd": cost});
    let works = json!([
        {"tool_calls": [{"name": "list_directory", "input": {}}], "usage": usage("0.01")},
        {"text": "Dear.", "usage": usage("0.4"), "delay_ms": 300},
    ]);
    let agent = json!({
        "description": "Works.",
        "providers": [{"module": "provider-mock", "config": {"responses": works}}],
    });
    let task = json!({"name": "task", "input": {"agent": "worker", "instruction": "work"}});
    let tools = json!([{"module": "tool-filesystem"}, {"module": "tool-task"}]);
    let mut many = crate::chat::plan(
        json!([{"tool_calls": vec![task; 6]}, "Over."]),
        json!({"tools": tools, "agents": {"worker": agent}}),
    );
    many["session"]["limits"] = json!({"cost_usd": "0.5"});
    let desk = Desk::new();
    desk.plan("plan.json", &many);
    let ran = desk.amplifier(&["run", "--output", "json", "--plan", "plan.json", "go"]);
    let told = ran.json();
    let cost: f64 = told["cost_usd"].as_str().unwrap().parse().unwrap();
    assert!((0.4..=0.9).contains(&cost), "{cost}: {}", ran.seen());
    // Under a limit with room for all of them nothing is refused.
    many["session"]["limits"] = json!({"cost_usd": "5"});
    desk.plan("plan.json", &many);
    let ran = desk.amplifier(&["run", "--output", "json", "--plan", "plan.json", "go"]);
    assert_eq!((ran.code, &ran.json()["cost_usd"]), (0, &json!("2.46")), "{}", ran.seen());
}
