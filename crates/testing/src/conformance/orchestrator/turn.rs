//! Checks of a turn as a whole: what is asked, kept, denied, told.

use std::sync::Arc;

use amplifier_core::contracts::{Orchestrator, TurnError};
use amplifier_protocol::chat::ChatResponse;
use amplifier_protocol::event::TurnStatus;
use amplifier_protocol::hook::{HookAction, HookResult, Injection, InjectionRole};
use amplifier_protocol::llm_error::{LlmError, LlmErrorKind};
use amplifier_protocol::message::{Message, Messages, Role};
use serde_json::json;

use super::stage::{Played, Stage};
use crate::conformance::report::{Seen, ensure};
use crate::{EchoTool, Step};

type Made = Arc<dyn Orchestrator>;

async fn plain(made: Made) -> Result<Played, String> {
    Stage::new(["hello"]).tool(Arc::new(EchoTool)).play(made, "hi").await
}

pub(super) async fn answers(made: Made) -> Seen {
    plain(made).await?.answered("hello")
}

pub(super) async fn asks(made: Made) -> Seen {
    let played = plain(made).await?;
    played.asked_times(1)?;
    let request = played.request(0)?;
    says(&request.messages, Role::User, "hi")?;
    let offered: Vec<_> = request.tools.unwrap_or_default().iter().map(|tool| tool.name.clone()).collect();
    ensure(offered == ["echo"], || format!("the tools on offer are {offered:?}"))
}

pub(super) async fn keeps(made: Made) -> Seen {
    let messages = plain(made).await?.messages();
    let said: Vec<_> = messages.iter().map(|m| (m.role, m.content.visible_text().into_owned())).collect();
    let expected = [(Role::User, "hi".to_owned()), (Role::Assistant, "hello".to_owned())];
    ensure(said == expected, || format!("the context holds {said:?}"))
}

pub(super) async fn keeps_blocks(made: Made) -> Seen {
    let content = r#"[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"x_new", "n": 1.50},{"type":"text","text":"hello"}]"#;
    let blocks = serde_json::from_str(content).map_err(|error| error.to_string())?;
    let response = ChatResponse { content: blocks, ..ChatResponse::default() };
    let played = Stage::new([response]).play(made, "hi").await?;
    let messages = played.messages();
    let kept = messages.iter().find(|message| message.role == Role::Assistant);
    let text = kept.map(|message| serde_json::to_string(&message.content).unwrap_or_default());
    ensure(text.as_deref() == Some(content), || format!("kept {text:?}"))
}

pub(super) async fn goes_on(made: Made) -> Seen {
    let mut played = Stage::new(["one", "two"]).play(made, "first").await?;
    played.again("second").await?;
    played.answered("two")?;
    let messages = played.request(1)?.messages;
    says(&messages, Role::User, "first")?;
    says(&messages, Role::Assistant, "one")?;
    says(&messages, Role::User, "second")
}

pub(super) async fn ends_once(made: Made) -> Seen {
    plain(made).await?.ended(&[TurnStatus::Success])
}

pub(super) async fn fails(made: Made) -> Seen {
    let error = LlmError::new(LlmErrorKind::Authentication, "no such key");
    let played = Stage::new([error.clone()]).play(made, "hi").await?;
    played.ended(&[TurnStatus::Error])?;
    // The original error travels, or the text tells it.
    match &played.answer {
        Err(TurnError::Model(found)) => ensure(*found == error, || format!("the error became {found:?}")),
        Err(other) => Err(format!("the error became {other:?}")),
        Ok(text) => ensure(text.contains("no such key"), || format!("the answer is `{text}`")),
    }
}

pub(super) async fn empty(made: Made) -> Seen {
    let played = Stage::new(["hello"]).play(made, "").await?;
    played.ended(&[TurnStatus::Success, TurnStatus::Incomplete, TurnStatus::Denied, TurnStatus::Error])
}

pub(super) async fn denied_prompt(made: Made) -> Seen {
    let stage = Stage::new(["hello"]).hook("prompt:submit", HookResult::deny("not today"));
    told_the_reason(&stage.play(made, "hi").await?)
}

pub(super) async fn denied_request(made: Made) -> Seen {
    let stage = Stage::new(["hello"]).hook("provider:request", HookResult::deny("not today"));
    told_the_reason(&stage.play(made, "hi").await?)
}

fn told_the_reason(played: &Played) -> Seen {
    played.asked_times(0)?;
    played.ended(&[TurnStatus::Denied])?;
    let told = matches!(&played.answer, Ok(text) if text.contains("not today"));
    ensure(told, || format!("the answer is {:?}", played.answer))
}

pub(super) async fn lasting_words(made: Made) -> Seen {
    let stage = Stage::new(["hello"]).hook("prompt:submit", HookResult::inject("mind the gap"));
    let played = stage.play(made, "hi").await?;
    says(&played.request(0)?.messages, Role::System, "mind the gap")?;
    says(&played.messages(), Role::System, "mind the gap")
}

pub(super) async fn passing_words(made: Made) -> Seen {
    let injection = Injection {
        text: "mind the gap".to_owned(),
        role: InjectionRole::User,
        ephemeral: true,
        append_to_last_tool_result: false,
    };
    // One that lasts stands beside it: the two must not be mixed up.
    let lasting = HookResult::inject("for good");
    let passing = HookResult::from(HookAction::InjectContext(injection));
    let stage = Stage::new([Step::say("hello")]);
    let stage = stage.hook("provider:request", lasting).hook("provider:request", passing);
    let played = stage.play(made, "hi").await?;
    let (sent, kept) = (played.request(0)?.messages, played.messages());
    ensure(times(&sent, "mind the gap") == 1, || format!("the request holds {}", json!(sent)))?;
    ensure(times(&kept, "mind the gap") == 0, || format!("the context holds {}", json!(kept)))?;
    ensure(times(&sent, "for good") == 1 && times(&kept, "for good") == 1, || {
        format!("the request holds {}", json!(sent))
    })
}

fn times(messages: &Messages, text: &str) -> usize {
    messages.iter().map(|message| message.content.visible_text().matches(text).count()).sum()
}

fn says(messages: &Messages, role: Role, text: &str) -> Seen {
    let said = |message: &Arc<Message>| message.role == role && message.content.visible_text() == text;
    ensure(messages.iter().any(said), || format!("no {role:?} says `{text}` in {}", json!(messages)))
}
