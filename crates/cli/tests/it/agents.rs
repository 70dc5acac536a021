//! `amplifier agents list` and `agents show`.

use insta::assert_snapshot;
use serde_json::json;

use crate::desk::Desk;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.file(
        "b/bundle.md",
        "---\nbundle: {name: mine}\nincludes: [minimal]\nproviders: [{module: provider-mock}]\nagents:\n  include: [scout]\n  \
         quick: {description: Answers at once., instruction: Be quick.}\n---\nMine.\n",
    );
    desk.file(
        "b/agents/scout.md",
        "---\nmeta:\n  name: scout\n  description: |\n    Looks around and reports.\n\n    Use it before you plan.\ntools: [{module: \
         tool-filesystem}, {module: tool-search}]\nprovider_preferences:\n  - {provider: mock, model: small}\n---\nYou look \
         around.\n\nSay where you looked.\n",
    );
    desk
}

#[test]
fn agents_are_listed_with_where_they_were_written() {
    let desk = desk();
    assert_snapshot!("list", desk.seen(&desk.amplifier(&["agents", "list", "--bundle", "b"])));
    let listed = desk.amplifier(&["agents", "list", "--bundle", "b", "--output", "json"]).json();
    let scout = listed["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "scout").unwrap();
    let at = scout["at"].as_str().unwrap();
    assert!(at.contains("agents/scout.md:"), "{at}");
    assert_eq!(scout["tools"], json!(["tool-filesystem", "tool-search"]));
    assert_eq!(scout["model"], "mock/small");
}

#[test]
fn one_agent_is_told_with_its_instruction() {
    let desk = desk();
    assert_snapshot!("show", desk.seen(&desk.amplifier(&["agents", "show", "scout", "--bundle", "b"])));
    let told = desk.amplifier(&["agents", "show", "quick", "--bundle", "b", "--output", "json"]).json();
    assert_eq!((&told["tools"], &told["entry"]["instruction"]), (&json!(null), &json!("Be quick.")));
    assert_snapshot!("unknown", desk.seen(&desk.amplifier(&["agents", "show", "scot", "--bundle", "b"])));
    assert_eq!(desk.sessions().len(), 0);
}

#[test]
fn the_agents_of_a_plan_file_have_their_line_and_one_without_agents_says_so() {
    let desk = Desk::new();
    desk.file(
        "p.json",
        "{\n  \"session\": {\"orchestrator\": \"loop-basic\", \"context\": \"context-simple\"},\n  \"agents\": {\n    \
         \"a/b\": {\"description\": \"x\"}\n  }\n}",
    );
    let listed = desk.amplifier(&["agents", "list", "--plan", "p.json", "--output", "json"]).json();
    assert_eq!(listed["agents"][0]["at"], "p.json:4:12");
    let none = desk.amplifier(&["agents", "list", "--bundle", "minimal"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, "there are no agents\n"), "{}", none.seen());
}
