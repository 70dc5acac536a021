//! Agents in the chat: named in a prompt, and seen at work.

use serde_json::{Value, json};

use crate::chat::{WIDE, desk, open};
use crate::desk::{Desk, read};

/// A desk whose model hands a task to `scout`, which reads a file and takes its time to answer.
fn with_scout() -> Desk {
    let task = json!({"tool_calls": [{"name": "task", "input": {"agent": "scout", "instruction": "look at a.txt"}}]});
    let looks = json!([
        {"tool_calls": [{"name": "read_file", "input": {"file_path": "a.txt"}}]},
        {"text": "It says one.", "delay_ms": 1_500},
    ]);
    let scout = json!({
        "description": "Looks around.",
        "providers": [{"module": "provider-mock", "config": {"responses": looks}}],
    });
    let usage = json!({"input_tokens": 1200, "output_tokens": 30, "cost_usd": "0.01"});
    let mut first = task;
    first["usage"] = usage;
    let tools = json!([{"module": "tool-filesystem"}, {"module": "tool-task"}]);
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
    let desk = with_scout();
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
