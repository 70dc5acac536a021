//! The journal: every record in sequence, durable before an effect, and the way back from records to a session.

use std::sync::Arc;
use std::time::Duration;

use amplifier_core::contracts::{DeltaSink, TurnError};
use amplifier_core::history::{History, InterruptedState, Replay};
use amplifier_core::journal::{Journal, JournalError};
use amplifier_core::session::ExecuteError;
use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::message::{Content, Message, Role};
use amplifier_protocol::record::{CallOutcome, Record, RecordBody};
use amplifier_protocol::tool::{Effects, ToolCall};
use amplifier_protocol::usage::Usage;
use serde_json::json;

use crate::kit::*;

/// Reads records as a process that starts anew would.
fn replay(records: &[Record]) -> History {
    let mut replay = Replay::default();
    records.iter().for_each(|record| replay.push(record));
    replay.finish()
}

/// A message of the model that makes these calls.
fn calling(calls: &[(&str, &str)]) -> Arc<Message> {
    let mut message = Message::new(Role::Assistant, Content::Text(String::new()));
    message.tool_calls = calls.iter().map(|(id, tool)| ToolCall::new(*id, *tool, json!({}))).collect();
    Arc::new(message)
}

/// A loop like a real one: store the prompt and the call, run the tool the prompt names, store its result.
fn storing_loop() -> Arc<dyn amplifier_core::contracts::Orchestrator> {
    orchestrator(|prompt, cx| async move {
        let amplifier_core::contracts::Prompt::Text(name) = prompt else { return Ok(String::new()) };
        let context = cx.coordinator.context().unwrap();
        context.add_message(Arc::new(Message::user(name.clone()))).await?;
        let call = ToolCall::new(format!("c{}", cx.turn), name.clone(), json!({}));
        context.add_message(calling(&[(&call.id, &name)])).await?;
        let text = cx.coordinator.call_tool(&call).await?.to_model_text();
        context.add_message(Arc::new(Message::tool_result(&call, text.clone()))).await?;
        Ok(text)
    })
}

fn write_tool(journal: &MemoryJournal, diary: &Diary) -> Arc<dyn amplifier_core::contracts::Tool> {
    let (journal, diary) = (journal.clone(), diary.clone());
    tool("write", Effects::WRITES, move |_, _| {
        let announced = journal.durable().iter().any(|record| {
            matches!(&record.body, RecordBody::CallStarted { operation, .. } if operation == "write")
        });
        diary.note(format!("ran, announced durably: {announced}"));
        async { Ok(json!("written")) }
    })
}

#[tokio::test]
async fn records_are_numbered_without_gaps_and_tell_the_whole_story_in_order() {
    let journal = MemoryJournal::default();
    let stage = Stage::new().orchestrator(storing_loop()).tool(echo("t"));
    let session = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    session.execute("t").await.unwrap();
    session.cleanup().await;
    let records = journal.records();
    let numbers: Vec<_> = records.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let story: Vec<_> = records
        .iter()
        .map(|record| match &record.body {
            RecordBody::Opened { .. } => "opened".to_owned(),
            RecordBody::Event { name, .. } => name.to_string(),
            RecordBody::Message(message) => format!("{:?}", message.role),
            RecordBody::CallStarted { operation, .. } => format!("{operation} begins"),
            RecordBody::CallFinished { .. } => "call ended".to_owned(),
            other => format!("{other:?}"),
        })
        .collect();
    let expected =
        ["opened", "session:start", "User", "Assistant", "t begins", "call ended", "Tool", "session:end"];
    assert_eq!(story, expected);
    assert_eq!(records[0].turn, 0);
    assert_eq!(records[2].turn, 1);
    assert_eq!(journal.durable(), records, "an answer is durable before it is shown, and the end too");
}

#[tokio::test]
async fn many_tasks_at_once_leave_no_gap_and_no_disorder() {
    let journal = MemoryJournal::default();
    let stage = Stage::new();
    let session = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let hub = session.coordinator().clone();
            tokio::spawn(async move {
                for m in 0..20 {
                    let data = map(json!({"n": n, "m": m}));
                    hub.emit_named("my:event".parse().unwrap(), data).await;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let numbers: Vec<_> = journal.records().iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=401).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_call_that_writes_is_durable_before_it_runs_and_one_that_reads_does_not_wait_for_the_disk() {
    let (journal, diary) = (MemoryJournal::default(), Diary::default());
    let reads = tool("read", Effects::READS, |_, _| async { Ok(json!("text")) });
    let stage = Stage::new().tool(write_tool(&journal, &diary)).tool(reads);
    let session = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    let hub = session.coordinator();
    hub.call_tool(&ToolCall::new("1", "read", json!({}))).await.unwrap();
    assert_eq!(journal.syncs(), 0);
    hub.call_tool(&ToolCall::new("2", "write", json!({}))).await.unwrap();
    assert_eq!(journal.syncs(), 1);
    assert_eq!(diary.read(), ["ran, announced durably: true"]);
}

#[tokio::test]
async fn a_model_call_is_durable_before_it_is_made() {
    let journal = MemoryJournal::default();
    let seen = journal.clone();
    let stage = Stage::new().provider(provider("m", move |_, _| {
        let announced =
            seen.durable().iter().any(|record| matches!(record.body, RecordBody::CallStarted { .. }));
        async move { Ok(ChatResponse::text(announced.to_string())) }
    }));
    let session = stage.builder().journal(Arc::new(journal)).open().await.unwrap();
    let request = ChatRequest::new(Vec::new());
    let answer = session.coordinator().call_provider("m", request, DeltaSink::default()).await.unwrap();
    assert_eq!(answer.visible_text(), "true");
}

#[tokio::test]
async fn a_journal_that_fails_stops_the_effect_and_the_turn_says_why_and_nothing_is_charged() {
    let (journal, diary) = (MemoryJournal::with_room_for(3), Diary::default());
    let stage = Stage::new().orchestrator(storing_loop()).tool(write_tool(&journal, &diary));
    let session = stage.builder().journal(Arc::new(journal)).open().await.unwrap();
    let error = session.execute("write").await.unwrap_err();
    let message = "no space left in memory".to_owned();
    assert_eq!(error, ExecuteError::Turn(TurnError::Journal { message }));
    assert_eq!(diary.read(), Vec::<String>::new(), "the tool was not run");
    assert_eq!(session.coordinator().ledger().statement().total.tool_calls, 0);
    let report = session.cleanup().await;
    assert!(report.failed[0].contains("no space left"), "{report:?}");
}

#[tokio::test]
async fn a_journal_that_fails_under_a_reading_turn_fails_the_turn_at_its_end() {
    let journal = MemoryJournal::with_room_for(4);
    let stage = Stage::new().orchestrator(storing_loop()).tool(echo("t"));
    let session = stage.builder().journal(Arc::new(journal)).open().await.unwrap();
    let error = session.execute("t").await.unwrap_err();
    assert!(matches!(error, ExecuteError::Turn(TurnError::Journal { .. })), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_costs_the_turn_and_never_the_session() {
    struct Hung;

    #[async_trait::async_trait]
    impl Journal for Hung {
        fn append(&self, _record: &Record) -> Result<(), JournalError> {
            Ok(())
        }

        async fn sync(&self) -> Result<(), JournalError> {
            std::future::pending().await
        }
    }

    let session = Stage::new().tool(echo("t")).builder().journal(Arc::new(Hung)).open().await.unwrap();
    let error = session.execute("t").await.unwrap_err();
    assert!(
        matches!(&error, ExecuteError::Turn(TurnError::Journal { message }) if message.contains("60")),
        "{error}"
    );
    assert_eq!(session.cleanup().await.failed.len(), 1);
}

#[tokio::test]
async fn secrets_in_events_are_redacted_in_the_journal() {
    let journal = MemoryJournal::default();
    let stage = Stage::new();
    let session = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    let secret = "sk-ant-REDACTED";
    session.coordinator().emit_named("my:event".parse().unwrap(), map(json!({"api_key": secret}))).await;
    assert!(!format!("{:?}", journal.records()).contains(secret));
    assert_eq!(stage.ear.payloads("my:event")[0]["api_key"], secret, "hooks see what it was");
}

fn record(seq: u64, body: RecordBody) -> Record {
    Record { seq, ts: Default::default(), turn: 1, body }
}

/// A conversation that was killed after these records.
fn killed(after: Vec<RecordBody>) -> History {
    let opened = RecordBody::Opened {
        session_id: "s".parse().unwrap(),
        parent_id: None,
        plan_hash: "then".to_owned(),
    };
    let mut bodies = vec![
        opened,
        RecordBody::Message(Arc::new(Message::user("do it"))),
        RecordBody::Message(calling(&[("c1", "write"), ("c2", "read")])),
    ];
    bodies.extend(after);
    let records: Vec<_> = bodies.into_iter().zip(1..).map(|(body, seq)| record(seq, body)).collect();
    replay(&records)
}

fn started(id: &str, effects: Effects) -> RecordBody {
    RecordBody::CallStarted {
        call_id: id.to_owned(),
        owner: "tool".to_owned(),
        operation: "write".to_owned(),
        effect: effects.class,
        input: json!({}),
    }
}

fn answered(id: &str, output: &str) -> RecordBody {
    let result = json!({"success": true, "output": output});
    RecordBody::CallFinished { call_id: id.to_owned(), outcome: CallOutcome::Answered { result } }
}

fn states(history: &History) -> Vec<(String, InterruptedState)> {
    history.interrupted.iter().map(|call| (call.call_id.clone(), call.state)).collect()
}

#[test]
fn a_call_that_never_began_is_told_as_such() {
    let history = killed(vec![]);
    let expected = [("c1", InterruptedState::NotStarted), ("c2", InterruptedState::NotStarted)];
    assert_eq!(states(&history), expected.map(|(id, state)| (id.to_owned(), state)));
    assert_eq!((history.last_sequence, history.last_turn), (3, 1));
    let ids: Vec<_> = history.mended.iter().map(|message| message.tool_call_id.clone().unwrap()).collect();
    assert_eq!(ids, ["c1", "c2"], "every call has its result again, in order");
}

#[test]
fn a_write_that_began_and_did_not_end_has_an_unknown_outcome_and_a_read_may_be_repeated() {
    let history = killed(vec![started("c1", Effects::WRITES), started("c2", Effects::READS)]);
    let expected = [("c1", InterruptedState::UnknownOutcome), ("c2", InterruptedState::Repeatable)];
    assert_eq!(states(&history), expected.map(|(id, state)| (id.to_owned(), state)));
    assert!(history.mended[0].content.visible_text().contains("outcome is unknown"));
    assert_eq!(history.spent.tool_calls, 2);
}

#[test]
fn a_call_that_ended_and_was_not_stored_is_recovered_with_its_own_result() {
    let failed = CallOutcome::Failed { error: "`tool` panicked: spilt".to_owned() };
    let history = killed(vec![
        started("c1", Effects::WRITES),
        started("c2", Effects::READS),
        answered("c1", "forty-two bytes"),
        RecordBody::CallFinished { call_id: "c2".to_owned(), outcome: failed },
    ]);
    let expected = [("c1", InterruptedState::Recovered), ("c2", InterruptedState::Recovered)];
    assert_eq!(states(&history), expected.map(|(id, state)| (id.to_owned(), state)));
    assert!(history.mended[0].content.visible_text().contains("forty-two bytes"));
    assert!(history.mended[1].content.visible_text().contains("spilt"));
}

#[test]
fn what_was_stored_is_not_mended_and_a_conversation_that_went_on_needs_nothing() {
    let call = ToolCall::new("c1", "write", json!({}));
    let stored = RecordBody::Message(Arc::new(Message::tool_result(&call, "ok")));
    let history = killed(vec![started("c1", Effects::WRITES), answered("c1", "ok"), stored.clone()]);
    assert_eq!(states(&history), [("c2".to_owned(), InterruptedState::NotStarted)]);
    let went_on = RecordBody::Message(Arc::new(Message::user("never mind")));
    assert_eq!(states(&killed(vec![stored, went_on])), []);
}

#[test]
fn a_context_that_was_replaced_as_a_whole_is_what_counts() {
    let history = killed(vec![RecordBody::Messages(vec![Arc::new(Message::user("fresh start"))])]);
    assert_eq!((history.messages.len(), history.interrupted.len()), (1, 0));
}

#[tokio::test]
async fn a_session_killed_in_a_write_goes_on_with_everything_said_and_the_outcome_told() {
    let journal = MemoryJournal::default();
    let hang = tool("write", Effects::WRITES, |_, _| std::future::pending());
    let stage = Stage::new().orchestrator(storing_loop()).tool(hang);
    let session = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.execute("write").await }
    });
    while session.coordinator().in_flight().is_empty() {
        tokio::task::yield_now().await;
    }
    // The kill: what is durable now is all that is left.
    let survived = journal.durable();
    turn.abort();
    let history = replay(&survived);
    assert_eq!(states(&history), [("c1".to_owned(), InterruptedState::UnknownOutcome)]);

    let again = MemoryJournal::default();
    let stage = Stage::new().tool(echo("t"));
    let builder = stage.builder().journal(Arc::new(again.clone())).resume(history.clone());
    let resumed = builder.session_id(session.id().clone()).open().await.unwrap();
    assert_eq!(resumed.interrupted(), history.interrupted);
    let roles: Vec<_> = stage.context.stored().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert!(stage.context.texts()[2].contains("outcome is unknown"));
    let first = &again.records()[0];
    assert_eq!(first.seq, history.last_sequence + 1, "the numbers go on");
    assert!(
        again.records().iter().any(|record| matches!(record.body, RecordBody::Message(_))),
        "mended, recorded"
    );
    resumed.execute("t").await.unwrap();
    assert_eq!(resumed.coordinator().turn(), history.last_turn + 1);
    let statement = resumed.coordinator().ledger().statement();
    assert_eq!(statement.by_spender["earlier"].tool_calls, 1, "spent before, and still spent");
}

#[tokio::test]
async fn limits_outlive_a_restart() {
    let journal = MemoryJournal::default();
    let spending = provider("m", |_, _| async {
        Ok(ChatResponse { usage: Some(Usage::new(60, 50)), ..ChatResponse::text("rich") })
    });
    let stage = Stage::new().session(json!({"limits": {"tokens": 100}})).provider(spending);
    let session = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    let call = |session: amplifier_core::session::Session| async move {
        let request = ChatRequest::new(Vec::new());
        session.coordinator().call_provider("m", request, DeltaSink::default()).await
    };
    call(session.clone()).await.unwrap();
    session.cleanup().await;
    let history = replay(&journal.records());
    assert_eq!((history.spent.tokens, history.spent.steps), (110, 1));
    let resumed = stage.builder().resume(history).open().await.unwrap();
    let refused = call(resumed).await.unwrap_err().to_string();
    assert!(refused.contains("limit of 100 tokens") && refused.contains("earlier"), "{refused}");
}

#[tokio::test]
async fn a_plan_that_changed_since_is_told_and_an_equal_one_is_not() {
    let journal = MemoryJournal::default();
    let stage = Stage::new();
    let session = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    assert_eq!(session.plan_change(), None, "a new session has nothing to compare with");
    let history = replay(&journal.records());
    let same = stage.builder().resume(history.clone()).open().await.unwrap();
    assert_eq!(same.plan_change(), None);
    let other = Stage::new().tool(echo("t")).builder().resume(history).open().await.unwrap();
    let change = other.plan_change().unwrap();
    assert_eq!((change.was, &change.is), (session.plan_hash().to_string(), other.plan_hash()));
    assert_ne!(session.plan_hash(), other.plan_hash());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_is_recorded_as_failed() {
    let journal = MemoryJournal::default();
    let hang = tool("hang", Effects::WRITES, |_, _| std::future::pending());
    let stage = Stage::new().session(json!({"deadlines": {"tool": 5}})).tool(hang);
    let session = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    let began = tokio::time::Instant::now();
    session.coordinator().call_tool(&ToolCall::new("1", "hang", json!({}))).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    let last = journal.records().pop().unwrap();
    assert!(matches!(last.body, RecordBody::CallFinished { outcome: CallOutcome::Failed { .. }, .. }));
}

#[tokio::test]
async fn what_children_spent_outlives_a_restart_and_is_counted_once() {
    let (journal, of_child) = (MemoryJournal::default(), MemoryJournal::default());
    let spending = provider("m", |_, _| async {
        let usage = Usage { cost_usd: Some("0.25".parse().unwrap()), ..Usage::new(60, 50) };
        Ok(ChatResponse { usage: Some(usage), ..ChatResponse::text("rich") })
    });
    let stage = Stage::new().session(json!({"limits": {"cost_usd": "0.7", "spawns": 3}})).provider(spending);
    let call = |session: amplifier_core::session::Session| async move {
        let request = ChatRequest::new(Vec::new());
        session.coordinator().call_provider("m", request, DeltaSink::default()).await
    };
    let mut plan = stage.mount_plan();
    plan.session.limits = serde_json::Map::new();
    let parent = stage.builder().journal(Arc::new(journal.clone())).open().await.unwrap();
    let open = |parent: &amplifier_core::session::Session| parent.child(plan.clone());
    let child = open(&parent).journal(Arc::new(of_child.clone())).open().await.unwrap();
    let grandchild = open(&child).open().await.unwrap();
    call(grandchild).await.unwrap();
    // Killed here: only what the parent was told so far is left.
    let survived = replay(&journal.records()).spent;
    assert_eq!(
        (survived.cost_nanos, survived.tokens, survived.steps, survived.spawns),
        (250_000_000, 110, 1, 2)
    );

    call(child.clone()).await.unwrap();
    child.cleanup().await;
    let total = parent.coordinator().ledger().statement().total;
    let history = replay(&journal.records());
    assert_eq!(history.spent, total, "the journal tells what the ledger knows");
    assert_eq!((total.cost_nanos, total.spawns), (500_000_000, 2));
    let earlier = replay(&of_child.records());
    assert_eq!(earlier.spent.cost_nanos, 500_000_000);

    // The child goes on in the same process: what it spent before is in the books above already.
    let again = open(&parent).session_id(child.id().clone()).resume(earlier).open().await.unwrap();
    assert_eq!(again.coordinator().ledger().statement().total.cost_nanos, 500_000_000);
    assert_eq!(parent.coordinator().ledger().statement().total.cost_nanos, 500_000_000);
    parent.cleanup().await;

    let resumed = stage.builder().resume(history).open().await.unwrap();
    call(resumed.clone()).await.unwrap();
    let refused = call(resumed).await.unwrap_err().to_string();
    assert!(refused.contains("limit of $0.7 cost") && refused.contains("earlier $0.5"), "{refused}");
}
