//! Times and sizes at which a call is given up: answers in one piece, places that cannot be reached, waits that a service
//! asks for, and time-outs that are longer than the kernel's patience. `fault_rows.rs` has the rest of what goes wrong.

use std::time::{Duration, Instant};

use amplifier_core::contracts::ProviderCx;
use amplifier_protocol::event::ProviderRetry;
use amplifier_protocol::llm_error::LlmErrorKind as Kind;
use amplifier_testing::TestCoordinator;
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::asking::hi;
use crate::fault::{Act, FaultServer, refuses, says};
use crate::fault_rows::{fails, model_error, resident, session};
use crate::kit::built_in;
use crate::stage::offer;

const JSON: &str = "application/json";

/// The beginning of an answer in one piece.
fn begun() -> Vec<Act> {
    let half = r#"{"choices": [{"message": {"role": "assistant", "content": "half of it"#;
    vec![Act::Chunked(200, JSON), Act::Chunk(half.to_owned())]
}

#[tokio::test]
async fn an_answer_in_one_piece_that_is_not_whole_is_tried_again_and_told() {
    let garbage = [begun(), vec![Act::Chunk("}}{".to_owned()), Act::Last]].concat();
    let cut = [begun(), vec![Act::Send(b"40\r\n, \"x".to_vec())]].concat();
    let stall = [begun(), vec![Act::Hang]].concat();
    let rows =
        [(garbage, Kind::Stream, "no JSON"), (cut, Kind::Stream, ""), (stall, Kind::Timeout, "stalled")];
    for (acts, kind, told) in rows {
        let server = FaultServer::start(vec![acts.clone()]).await;
        let whole = json!({"use_streaming": false, "idle_timeout": 0.2});
        let (error, session) = fails(&server, whole.clone()).await;
        assert_eq!((error.kind, error.retryable, server.asked().len()), (kind, true, 3), "{error}");
        assert!(error.message.contains(told), "{error}");
        assert_eq!(session.recorder().of::<ProviderRetry>().len(), 2);

        let answer = json!({"choices": [{"finish_reason": "stop", "message": {"content": "all of it"}}]});
        let server = FaultServer::start(vec![acts, refuses(200, &[], answer)]).await;
        let recovered = self::session(&server, whole).await.execute("hi").await;
        assert_eq!(recovered.unwrap(), "all of it", "{kind:?}");
    }
}

#[tokio::test]
async fn a_hundred_megabytes_are_cut_at_the_usual_limit_and_never_held() {
    let hundred = std::iter::repeat_n(Act::Send(vec![b'x'; 1 << 20]), 100);
    let head = Act::Head(200, vec![("content-type", JSON.to_owned())]);
    let server = FaultServer::start(vec![std::iter::once(head).chain(hundred).collect()]).await;
    let before = resident();
    let (error, _) = fails(&server, json!({"use_streaming": false})).await;
    assert_eq!((error.kind, error.retryable, server.asked().len()), (Kind::Stream, false, 1), "{error}");
    assert!(error.message.contains("larger than 33554432 bytes"), "{error}");
    let grown = resident().saturating_sub(before);
    assert!(grown < 200 << 20, "memory grew by {grown} bytes");
}

#[tokio::test]
async fn seconds_that_a_service_asks_for_are_waited() {
    let limited = refuses(429, &[("retry-after", "1")], json!({"error": {"message": "slow down"}}));
    let server = FaultServer::start(vec![limited, says("all is well")]).await;
    let session = session(&server, json!({})).await;
    let began = Instant::now();
    assert_eq!(session.execute("hi").await.unwrap(), "all is well");
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert!(session.recorder().of::<ProviderRetry>()[0].delay >= 1.0);
}

#[tokio::test]
async fn a_place_that_takes_no_connection_is_given_up_in_time() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = socket.listen(1).unwrap();
    let address = full.local_addr().unwrap();
    // Nobody is taken off the queue, so after a few the next is not answered at all.
    let mut queue = Vec::new();
    while let Ok(taken) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
        queue.push(taken.unwrap());
        assert!(queue.len() < 64, "this machine has no end of its queue");
    }
    let server = FaultServer::start(vec![]).await;
    let place = json!({"base_url": format!("http://{address}/v1"), "connect_timeout": 0.2, "max_retries": 1});
    let began = Instant::now();
    let (error, session) = fails(&server, place).await;
    assert_eq!((error.kind, error.retryable), (Kind::Network, true), "{error}");
    assert_eq!(session.recorder().of::<ProviderRetry>().len(), 1);
    assert!(began.elapsed() < Duration::from_secs(10), "the usual limit is ten seconds a try");
}

#[tokio::test]
async fn a_time_out_longer_than_the_kernel_waits_is_waited() {
    let server = FaultServer::start(vec![vec![Act::Hang]]).await;
    let patient = json!({"first_byte_timeout": 1500, "timeout": 2000, "max_retries": 0});
    let session = session(&server, patient).await;
    let mut turn = std::pin::pin!(session.execute("hi"));
    tokio::select! {
        _ = &mut turn => panic!("the service is silent"),
        () = async { while server.asked().is_empty() { tokio::task::yield_now().await } } => {}
    }
    // From here on only clocks are waited for.
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let error = model_error(turn.await);
    assert_eq!(error.kind, Kind::Timeout, "{error}");
    assert!(error.message.contains("no answer began within 1500.0 s"), "{error}");
    assert!(began.elapsed() >= Duration::from_secs(1499));
}

#[tokio::test]
async fn a_place_that_no_proxy_names_is_reached_directly() {
    let (proxy, server) =
        (FaultServer::start(vec![says("by proxy")]).await, FaultServer::start(vec![says("direct")]).await);
    // This machine by a name that does not show it, for proxies are never used for it otherwise.
    let place = server.url().replace("127.0.0.1", "[::ffff:127.0.0.1]");
    let rows = [
        ("127.0.0.2,elsewhere.invalid", "by proxy"),
        ("*.invalid", "by proxy"),
        ("::ffff:127.0.0.1", "direct"),
        ("*", "direct"),
        ("elsewhere.invalid, *", "direct"),
    ];
    for (except, expected) in rows {
        let through = proxy.url().trim_end_matches("/v1").to_owned();
        let hub = TestCoordinator::new();
        let offered = offer(move |asked: Value| {
            let told = match asked["name"].as_str() {
                Some("HTTP_PROXY") => json!(through),
                Some("NO_PROXY") => json!(except),
                _ => Value::Null,
            };
            async move { Ok(told) }
        });
        hub.register_capability("environment.variable", offered);
        let module = built_in("provider-chat-completions").await;
        hub.mount(&*module, json!({"base_url": place, "max_retries": 0})).await.unwrap();
        let answer = hub.providers().remove(0).1.complete(hi(), &ProviderCx::default()).await.unwrap();
        assert_eq!(answer.visible_text(), expected, "{except}");
    }
    assert_eq!((proxy.asked().len(), server.asked().len()), (2, 3));
}
