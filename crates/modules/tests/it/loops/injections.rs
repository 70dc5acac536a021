//! Where the words of hooks stand: in which request, at which place, and in the conversation or not.

use std::sync::Arc;

use amplifier_protocol::hook::{HookAction, HookResult, Injection, InjectionRole};
use amplifier_protocol::message::Role::{Assistant, Tool, User};
use amplifier_testing::{MockTool, Step};

use super::stage::{LOOPS, Open, Stage, calls};

/// Whether the words are put behind the last tool result.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Apart,
    BehindResult,
}

fn words(injection: Injection) -> HookResult {
    HookAction::InjectContext(injection).into()
}

fn lasting() -> Injection {
    let (text, role) = ("INJ".to_owned(), InjectionRole::User);
    Injection { text, role, ephemeral: false, append_to_last_tool_result: false }
}

fn passing(at: At) -> Injection {
    let append_to_last_tool_result = at == At::BehindResult;
    Injection { ephemeral: true, append_to_last_tool_result, ..lasting() }
}

/// A turn of two questions with a tool between them.
async fn played(id: &str, event: &str, result: HookResult) -> Open {
    let tool = Arc::new(MockTool::new("t").return_value("ok"));
    let stage = Stage::new(id, [calls(1), Step::say("done")]).tool(tool).hook(event, result);
    stage.play().await.0
}

/// Who says `INJ`, and how, in the two requests and in the conversation.
fn places(open: &Open) -> [Vec<(usize, String)>; 3] {
    let find = |said: Vec<(_, String)>| {
        let numbered = said.into_iter().enumerate().map(|(at, (_, text))| (at, text));
        numbered.filter(|(_, text)| text.contains("INJ")).collect()
    };
    [find(open.asked(0)), find(open.asked(1)), find(open.said())]
}

fn alone(at: usize) -> Vec<(usize, String)> {
    vec![(at, "INJ".to_owned())]
}

/// Golden case 11.7: ephemeral provider:request, first and later calls, with the append flag.
#[tokio::test]
async fn passing_words_stand_at_the_end_of_every_request_they_were_said_for() {
    for id in LOOPS {
        let open = played(id, "provider:request", words(passing(At::Apart))).await;
        assert_eq!(places(&open), [alone(1), alone(3), vec![]], "{id}");
        let open = played(id, "provider:request", words(passing(At::BehindResult))).await;
        let behind = vec![(2, "ok\n\nINJ".to_owned())];
        assert_eq!(
            places(&open),
            [alone(1), behind, vec![]],
            "{id}: a message of its own where no result is last"
        );
    }
}

/// Golden case 11.7: ephemeral tool:pre and tool:post. Better: those of tool:pre are sent.
#[tokio::test]
async fn passing_words_around_a_tool_stand_in_the_next_request_also_those_said_before_it() {
    for (id, event) in LOOPS.into_iter().flat_map(|id| [(id, "tool:pre"), (id, "tool:post")]) {
        let open = played(id, event, words(passing(At::Apart))).await;
        assert_eq!(places(&open), [vec![], alone(3), vec![]], "{id} {event}");
    }
}

/// Golden case 11.7: ephemeral prompt:submit. Better: in every loop.
#[tokio::test]
async fn passing_words_to_a_prompt_stand_in_the_first_request_only() {
    for id in LOOPS {
        let open = played(id, "prompt:submit", words(passing(At::Apart))).await;
        assert_eq!(places(&open), [alone(1), vec![], vec![]], "{id}");
    }
}

/// Golden case 11.7: persistent tool:pre and tool:post. Better: behind the result.
#[tokio::test]
async fn lasting_words_around_a_tool_are_stored_behind_its_result() {
    for (id, event) in LOOPS.into_iter().flat_map(|id| [(id, "tool:pre"), (id, "tool:post")]) {
        let open = played(id, event, words(lasting())).await;
        let roles: Vec<_> = open.said().into_iter().map(|(role, _)| role).collect();
        assert_eq!(roles, [User, Assistant, Tool, User, Assistant], "{id} {event}");
        assert_eq!(places(&open), [vec![], alone(3), alone(3)], "{id} {event}");
    }
}
