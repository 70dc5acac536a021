//! Pictures that tools give, on their way to the model, into the log and past redaction.

use std::sync::Arc;

use amplifier_core::contracts::{Capability, HookHandler};
use amplifier_core::hooks::HookSpec;
use amplifier_protocol::hook::{HookAction, HookResult, Injection, InjectionRole};
use amplifier_protocol::message::Content;
use amplifier_testing::{MockTool, Step};
use serde_json::{Value, json};

use crate::hooks_kit::{Desk, json_lines};
use crate::kit::on;
use crate::stage::{calls, script, session};

/// The blocks of the last message of a request.
fn last_blocks(content: &Content) -> Value {
    match content {
        Content::Blocks(blocks) => serde_json::to_value(blocks).unwrap(),
        Content::Text(text) => panic!("only text: {text}"),
    }
}

/// A picture whose bytes look like secrets: random, long, and with digits like a telephone number.
fn bytes() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut state = 1_u32;
    for _ in 0..60_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.push(state.to_be_bytes()[0]);
    }
    bytes
}

#[tokio::test]
async fn a_picture_that_is_read_reaches_the_model_as_a_picture_whatever_hooks_listen() {
    let desk = Desk::new();
    std::fs::write(desk.path("p.png"), bytes()).unwrap();
    let dir = desk.dir().display().to_string();
    let model = script([calls("c1", "read_file", json!({"file_path": "p.png"})), Step::say("a cat")]);
    let modules =
        [("tool-filesystem", json!({})), ("hooks-redaction", json!({})), ("hooks-logging", json!({}))];
    let builder = session(&model, &modules).await.configure(move |builder| {
        builder.capability("session.working_dir", Capability::Value(Value::String(dir)))
    });
    let session = builder.open().await.unwrap();
    session.execute("what is it?").await.unwrap();
    let request = &model.requests()[1];
    let blocks = last_blocks(&request.messages.last().unwrap().content);
    assert_eq!(blocks.as_array().unwrap().len(), 2, "{blocks}");
    assert!(blocks[0]["text"].as_str().unwrap().contains("p.png"));
    assert_eq!(
        (&blocks[1]["type"], &blocks[1]["source"]["media_type"]),
        (&json!("image"), &json!("image/png"))
    );
    let expected = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(bytes())
    };
    assert_eq!(blocks[1]["source"]["data"], expected);
    assert_eq!(session.cleanup().await.failed, Vec::<String>::new());
    let post = json_lines(&desk.path(".amplifier/logs/test-session.jsonl"))
        .into_iter()
        .find(|line| line["event"] == "tool:post")
        .unwrap();
    assert_eq!(post["data"]["result"]["output"]["source"]["data"], format!("[{} bytes]", bytes().len()));
    assert!(post.to_string().len() < 4_000, "{post}");
}

/// Words for the next request, behind the last result.
fn passing_behind(text: &str) -> (HookSpec, Arc<dyn HookHandler>) {
    let injection = Injection {
        text: text.to_owned(),
        role: InjectionRole::User,
        ephemeral: true,
        append_to_last_tool_result: true,
    };
    on("provider:request", HookResult::from(HookAction::InjectContext(injection)))
}

#[tokio::test]
async fn words_of_hooks_stand_behind_the_picture() {
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let output = json!({"content": [{"type": "text", "text": "seen"}, picture]});
    let model = script([calls("c1", "look", json!({})), Step::say("done")]);
    let tool = Arc::new(MockTool::new("look").return_value(output));
    let reminder = passing_behind("think");
    let session = session(&model, &[]).await.tool(tool).hook(reminder.0, reminder.1).open().await.unwrap();
    session.execute("go").await.unwrap();
    let blocks = last_blocks(&model.requests()[1].messages.last().unwrap().content);
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(blocks, json!([text("seen"), picture, text("think")]));
}
