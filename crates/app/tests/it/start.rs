//! A session is started, changed, left and ended without a terminal: what every front end shares.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use amplifier_app::approval::{Approvals, Grant};
use amplifier_app::choice::Choice;
use amplifier_app::ended::{Cause, Ended, ToldError};
use amplifier_app::failure::{Doors, Front};
use amplifier_app::output::{Existing, Output};
use amplifier_app::seat::{Ground, Lost, Move, Patience, Seat, Unopened};
use amplifier_app::settings::Approve;
use amplifier_app::start::{self, ProviderFault, Start, StartError, Wish};
use amplifier_app::store::SessionStore;
use amplifier_app::told::Told;
use amplifier_app::turns::TurnWatch;
use amplifier_app::{CancelToken, Prompt};
use amplifier_protocol::ids::SessionId;
use amplifier_protocol::run::RunStatus;
use amplifier_testing::RecordingDisplay;
use serde_json::json;

use crate::workshop::Workshop;

fn shop() -> Workshop {
    let shop = Workshop::new();
    shop.scripted("", &json!(["one", "two"]), "Help.");
    shop
}

fn mine() -> Wish {
    Wish { choice: Choice::Bundle("./".to_owned()), ..Wish::default() }
}

/// What comes of a wish, and what is told on the way.
async fn found(
    shop: &Workshop,
    wish: &Wish,
    resumed: Option<&SessionId>,
) -> (Result<Start, StartError>, Vec<String>) {
    let told = Mutex::new(Vec::new());
    let tell = |new: Told| told.lock().unwrap().push(new.to_string());
    let start = start::find(wish, resumed, shop.access(), &tell).await;
    (start, told.into_inner().unwrap())
}

async fn seat(shop: &Workshop) -> Seat {
    let (start, told) = found(shop, &mine(), None).await;
    assert_eq!(told, [""; 0]);
    let ground = Ground {
        access: shop.access(),
        wish: mine(),
        approvals: Arc::new(Approvals::of_policy(Approve::None, None)),
        display: Arc::new(RecordingDisplay::default()),
        tap: Arc::new(TurnWatch::default()),
    };
    Seat::take(start.unwrap(), ground).await.unwrap()
}

fn kept(shop: &Workshop, id: &SessionId) -> bool {
    SessionStore::new(shop.home()).open(id).is_ok()
}

/// Waits for everything.
struct Calm;

impl Patience for Calm {
    type Stop = Infallible;

    async fn wait_for<T: Send>(
        &mut self,
        work: impl Future<Output = T> + Send,
        _cancel: &CancelToken,
    ) -> Result<T, Infallible> {
        Ok(work.await)
    }

    fn ends_all(stop: &Infallible) -> bool {
        match *stop {}
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    This,
    All,
}

/// Gives up the first thing it waits for.
struct Hasty(Option<Ends>);

impl Patience for Hasty {
    type Stop = Ends;

    async fn wait_for<T: Send>(
        &mut self,
        work: impl Future<Output = T> + Send,
        _cancel: &CancelToken,
    ) -> Result<T, Ends> {
        match self.0.take() {
            Some(stop) => Err(stop),
            None => Ok(work.await),
        }
    }

    fn ends_all(stop: &Ends) -> bool {
        *stop == Ends::All
    }
}

async fn went(seat: Seat, to: Move) -> Seat {
    let Ok((seat, arrival)) = seat.go(to, &mut Calm).await else { panic!("one of them opens") };
    assert!(arrival.outcome.is_ok() && arrival.problems.is_empty());
    seat
}

#[tokio::test]
async fn a_wish_that_cannot_be_granted_is_told_by_its_kind_with_a_way_out() {
    let shop = shop();
    let refused = async |wish: Wish, resumed: Option<SessionId>| {
        let error = found(&shop, &wish, resumed.as_ref()).await.0.err().unwrap();
        let hint = error.hint().unwrap();
        (error, hint)
    };
    let wish = Wish { provider: Some("antropic".to_owned()), ..mine() };
    let (error, _) = refused(wish, None).await;
    let StartError::Provider(error) = error else { panic!("{error}") };
    assert!(matches!(&error.fault, ProviderFault::Unknown(_)) && error.keys.is_empty());
    let wish = Wish { set: vec!["nowhere.at=1".parse().unwrap()], ..mine() };
    assert!(matches!(refused(wish, None).await.0, StartError::Set(_)));
    let (error, _) = refused(mine(), Some("20".parse().unwrap())).await;
    assert!(matches!(error, StartError::Session(_)), "{error}");
    let wish = Wish { choice: Choice::Bundle("fundation".to_owned()), ..Wish::default() };
    let (error, hint) = refused(wish, None).await;
    assert!(matches!(error, StartError::Choice(_)) && hint.contains("did you mean `foundation`?"), "{hint}");
}

#[tokio::test]
async fn a_session_goes_on_with_its_plan_and_is_told_what_its_bundle_became() {
    let shop = shop();
    let seat = seat(&shop).await;
    let id = seat.opened.session.id().clone();
    seat.opened.session.execute("hi").await.unwrap();
    assert_eq!(seat.close().await.kept, Some(id.clone()));
    shop.scripted("", &json!(["one", "two"]), "Help more.");
    let wish = Wish { model: Some("m".to_owned()), ..Wish::default() };
    let (start, told) = found(&shop, &wish, Some(&id)).await;
    let start = start.unwrap();
    assert!(told.len() == 1 && told[0].contains("changed since this session began"), "{told:?}");
    assert!(start.before.is_some() && start.parts.prompt.is_none());
}

#[tokio::test]
async fn who_leaves_an_empty_session_leaves_nothing_and_takes_no_permission_along() {
    let shop = shop();
    let first = seat(&shop).await;
    first.opened.session.execute("hi").await.unwrap();
    let talked = first.opened.session.id().clone();
    first.close().await;
    let second = seat(&shop).await;
    let empty = second.opened.session.id().clone();
    second.approvals().allow_in_session(Grant { tool: "bash".to_owned(), input: None, module: None });
    let to = second.other(talked.clone());
    let Ok((third, arrival)) = second.go(to, &mut Calm).await else { panic!("it opens") };
    assert!(arrival.outcome.is_ok_and(|arrived| arrived.forgot_grants && arrived.before.is_none()));
    assert_eq!((third.opened.session.id(), third.approvals().allowed_in_session().len()), (&talked, 0));
    assert!(!kept(&shop, &empty));
    let third = {
        let to = third.with_model("m");
        went(third, to).await
    };
    assert_eq!(third.model().1.as_deref(), Some("m"));
    assert_eq!(third.close().await.kept, Some(talked));
}

#[tokio::test]
async fn where_the_other_does_not_open_the_session_goes_on_as_it_was() {
    let shop = shop();
    let seat = seat(&shop).await;
    let id = seat.opened.session.id().clone();
    let to = seat.other("nowhere".parse().unwrap());
    let Ok((seat, arrival)) = seat.go(to, &mut Calm).await else { panic!("the old one opens") };
    assert!(matches!(arrival.outcome, Err(Unopened::Failed(_))));
    let to = seat.with_model("m");
    let Ok((seat, arrival)) = seat.go(to, &mut Hasty(Some(Ends::This))).await else {
        panic!("the old one opens")
    };
    assert!(matches!(arrival.outcome, Err(Unopened::Stopped(Ends::This))));
    assert_eq!((seat.opened.session.id(), seat.model().1.as_deref()), (&id, Some("mock-1")));
    assert_eq!(seat.opened.session.execute("hi").await.unwrap(), "one");
    let to = seat.with_model("m");
    let Err(Lost { why, ending }) = seat.go(to, &mut Hasty(Some(Ends::All))).await else {
        panic!("nobody wants it any more")
    };
    assert!(matches!(why, Unopened::Stopped(Ends::All)));
    assert_eq!(ending.kept, Some(id));
}

#[tokio::test]
async fn what_a_run_came_to_is_told_without_a_terminal() {
    let shop = shop();
    let seat = seat(&shop).await;
    let opened = &seat.opened;
    let doors = Doors::of(opened, &seat.access().settings);
    let result = opened.session.execute(Prompt::Text("hi".to_owned())).await;
    let ended = |result, stopped| Ended {
        opened,
        watch: &seat.turns,
        doors: &doors,
        front: Front::Shell,
        result,
        stopped,
        kept: Some(opened.session.id()),
    };
    // It came to its end although the time was up meanwhile.
    let answered = ended(Some(&result), Some(Cause::TimeUp)).result(None);
    assert_eq!((answered.status, answered.exit_code), (RunStatus::Completed, 0));
    assert_eq!((answered.answer.as_deref(), answered.error, answered.turn), (Some("one"), None, 1));
    assert_eq!(answered.session_id.as_ref(), Some(opened.session.id()));
    assert_eq!(answered.session.map(|all| all.usage), Some(answered.usage));
    assert!(answered.plan_hash.is_some() && answered.load_report.is_some());

    let told = || Some(ToldError { error: "not done in 1 s".to_owned(), ..ToldError::default() });
    let late = ended(None, Some(Cause::TimeUp)).result(told());
    assert_eq!((late.status, late.exit_code, late.answer), (RunStatus::TimedOut, 124, None));
    assert_eq!(late.error.as_deref(), Some("not done in 1 s"));
    let left = ended(None, Some(Cause::Wish)).result(told());
    assert_eq!((left.status, left.exit_code), (RunStatus::Cancelled, 130));
}

#[tokio::test]
async fn a_conversation_is_kept_in_a_file_and_forgotten_and_models_are_listed_without_a_terminal() {
    let shop = shop();
    let seat = seat(&shop).await;
    seat.opened.session.execute(Prompt::Text("hi".to_owned())).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("said.json");
    let output = Output::at(&path, Existing::Kept).unwrap();
    let saved = seat.opened.save(&output).await.unwrap();
    let said: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((saved, said[saved - 1]["role"].as_str()), (said.len(), Some("assistant")));
    assert!(seat.opened.clear().await.unwrap().stale.is_none());
    assert_eq!(seat.opened.save(&output).await.unwrap(), 0);
    assert!(seat.models().await.unwrap().iter().any(|model| Some(&model.id) == seat.model().1.as_ref()));
}
