//! `web_fetch` and `web_search` against a server on loopback.

use std::time::Duration;

use amplifier_core::cancel::CancelToken;
use amplifier_core::contracts::ToolCx;
use amplifier_testing::conformance;
use base64::Engine as _;
use serde_json::{Value, json};

use crate::kit::{built_in, object};
use crate::stage;
use crate::web_server::{Reply, Server, ok, redirect, whole};
use crate::workshop::Workshop;

/// The tools, allowed to reach this machine by its address and not by its name.
async fn open(mut config: Value) -> Workshop {
    config["private_hosts"] = json!(["127.0.0.1"]);
    Workshop::new("tool-web", config).await
}

async fn fetch(shop: &Workshop, url: &str) -> Value {
    shop.call("web_fetch", json!({ "url": url })).await.unwrap()
}

#[tokio::test]
async fn a_page_comes_as_markdown_with_where_it_came_from() {
    let page = "<title>Hi</title><h1>Hello</h1><p>See <a href=\"/next\">next</a>.</p>";
    let server = Server::new([("/a", redirect("b?x=1")), ("/b", ok("text/html", page))]).await;
    let shop = open(json!({})).await;
    let answer = fetch(&shop, &server.url("/a")).await;
    let text = format!("# Hello\n\nSee [next]({}).", server.url("/next"));
    let expected = json!({
        "url": server.url("/b?x=1"), "title": "Hi", "content": text, "content_type": "text/html", "truncated": false,
        "total_bytes": text.len(), "offset": 0, "limit": 50_000, "returned_bytes": text.len(),
    });
    assert_eq!(answer, expected);
    assert!(server.asked()[0].contains("user-agent: amplifier/"), "{:?}", server.asked());
    let raw = open(json!({"extract_text": false})).await;
    assert_eq!(fetch(&raw, &server.url("/b")).await["content"], page);
}

#[tokio::test]
async fn text_stays_as_it_is_and_what_is_no_text_is_refused_unread() {
    let pdf = Reply::Stuck(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/pdf\r\ncontent-length: 999\r\n\r\n".to_vec(),
    );
    let server = Server::new([("/j", ok("application/json", "{\"a\":  1}")), ("/p", pdf)]).await;
    let shop = open(json!({})).await;
    assert_eq!(fetch(&shop, &server.url("/j")).await["content"], "{\"a\":  1}");
    let refused = shop.refused("web_fetch", json!({"url": server.url("/p")})).await;
    assert_eq!(refused.kind.as_deref(), Some("NotText"));
    assert!(refused.message.contains("application/pdf document of 999 bytes"), "{refused}");
    let missing = shop.refused("web_fetch", json!({"url": server.url("/none")})).await;
    assert!(missing.message.starts_with("HTTP 404 Not Found from "), "{missing}");
    assert_eq!(missing.details["status"], 404);
}

#[tokio::test]
async fn nothing_reaches_an_address_that_is_not_public() {
    let server = Server::new([("/", ok("text/plain", "secret"))]).await;
    let shop = Workshop::new("tool-web", json!({})).await;
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0", "[::1]"] {
        let refused = shop.refused("web_fetch", json!({"url": format!("http://{host}:{port}/")})).await;
        assert_eq!(refused.kind.as_deref(), Some("AccessDenied"), "{host}: {refused}");
    }
    for url in ["file:///etc/passwd", "http://u:p@127.0.0.1/"] {
        let refused = shop.refused("web_fetch", json!({ "url": url })).await;
        assert_eq!(refused.kind.as_deref(), Some("AccessDenied"), "{url}: {refused}");
    }
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn every_hop_is_checked() {
    let inner = Server::new([("/", ok("text/plain", "secret"))]).await;
    let port = inner.address.port();
    let targets = [
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:7f00:2]:{port}/"),
        "file:///etc/passwd".to_owned(),
    ];
    let [by_name, by_address, by_file] = targets.map(|target| redirect(&target));
    let outer = Server::new([("/name", by_name), ("/address", by_address), ("/file", by_file)]).await;
    let shop = open(json!({})).await;
    for path in ["/name", "/address", "/file"] {
        let refused = shop.refused("web_fetch", json!({"url": outer.url(path)})).await;
        assert_eq!(refused.kind.as_deref(), Some("AccessDenied"), "{path}: {refused}");
    }
    assert_eq!(inner.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_is_checked_by_what_it_resolves_to_when_connecting() {
    let server = Server::new([("/", ok("text/plain", "mine"))]).await;
    let url = format!("http://localhost:{}/", server.address.port());
    // The name passes; the address it turns out to have does not.
    let blocked = json!({"private_hosts": ["localhost"], "blocked_hosts": ["127.0.0.0/8", "::1"]});
    let shop = Workshop::new("tool-web", blocked).await;
    let refused = shop.refused("web_fetch", json!({ "url": url })).await;
    assert_eq!(refused.kind.as_deref(), Some("AccessDenied"), "{refused}");
    assert!(refused.message.contains("`blocked_hosts`"), "{refused}");
    assert_eq!(server.asked(), Vec::<String>::new());
    let named = Workshop::new("tool-web", json!({"private_hosts": ["localhost"]})).await;
    assert_eq!(fetch(&named, &url).await["content"], "mine");
    let all = Workshop::new("tool-web", json!({"allow_private": true})).await;
    assert_eq!(fetch(&all, &url).await["content"], "mine");
    let others =
        Workshop::new("tool-web", json!({"allow_private": true, "allowed_domains": ["example.com"]})).await;
    let refused = others.refused("web_fetch", json!({ "url": url })).await;
    assert!(refused.message.contains("`allowed_hosts`"), "{refused}");
}

#[tokio::test]
async fn redirects_without_end_end() {
    let server = Server::new([("/", redirect("/"))]).await;
    let shop = open(json!({"max_redirects": 3})).await;
    let refused = shop.refused("web_fetch", json!({"url": server.url("/")})).await;
    assert_eq!(refused.kind.as_deref(), Some("TooManyRedirects"));
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test]
async fn long_pages_are_read_in_parts_from_one_fetch() {
    let text: String = (0..50).map(|line| format!("line {line} é\n")).collect();
    let server = Server::new([("/", ok("text/plain; charset=utf-8", &text))]).await;
    let shop = open(json!({"default_limit": 100})).await;
    let (mut read, mut offset, mut parts) = (String::new(), json!(0), 0);
    while !offset.is_null() {
        let answer = shop.call("web_fetch", json!({"url": server.url("/"), "offset": offset})).await.unwrap();
        let content = answer["content"].as_str().unwrap();
        assert!(content.len() <= 100 && content.ends_with('\n'), "{content:?}");
        read.push_str(content);
        offset = answer["next_offset"].clone();
        assert_eq!(answer["truncated"], !offset.is_null());
        parts += 1;
    }
    assert_eq!((read, server.asked().len()), (text.clone(), 1));
    assert!(parts > 5);
    let past = shop.refused("web_fetch", json!({"url": server.url("/"), "offset": text.len()})).await;
    assert!(past.message.contains("past the end"), "{past}");
    let tiny =
        shop.call("web_fetch", json!({"url": server.url("/"), "offset": 7, "limit": 1})).await.unwrap();
    assert_eq!((tiny["content"].as_str(), &tiny["next_offset"]), (Some("é"), &json!(9)));
}

/// A megabyte of blanks in about a kilobyte of gzip.
const BOMB: &str = include_str!("web_bomb.b64");

#[tokio::test]
async fn what_is_too_large_is_cut_also_when_it_was_packed() {
    let bomb = base64::engine::general_purpose::STANDARD.decode(BOMB.trim()).unwrap();
    assert!(bomb.len() < 2_000);
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        bomb.len()
    );
    let packed = Reply::Whole([head.into_bytes(), bomb].concat());
    let server = Server::new([("/bomb", packed), ("/long", ok("text/plain", "x".repeat(5_000)))]).await;
    let shop = open(json!({"max_bytes": 1_000})).await;
    for path in ["/bomb", "/long"] {
        let answer = fetch(&shop, &server.url(path)).await;
        assert_eq!((&answer["total_bytes"], &answer["truncated"]), (&json!(1_000), &json!(true)), "{path}");
        assert!(answer["warning"].as_str().unwrap().contains("its end is missing"));
    }
}

#[tokio::test]
async fn a_server_that_stops_talking_does_not_hold_the_call() {
    let begun = || Reply::Stuck(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nbegun".to_vec());
    let mut server = Server::new([("/head", Reply::Stuck(Vec::new())), ("/body", begun())]).await;
    let shop = open(json!({"timeout": 0.2})).await;
    for path in ["/head", "/body"] {
        let refused = shop.refused("web_fetch", json!({"url": server.url(path)})).await;
        assert_eq!(refused.kind.as_deref(), Some("Timeout"), "{path}: {refused}");
        server.left.recv().await.unwrap();
    }
}

#[tokio::test]
async fn a_cancelled_fetch_closes_its_connection() {
    let mut server = Server::new([("/", Reply::Stuck(Vec::new()))]).await;
    let shop = open(json!({"timeout": 60})).await;
    let cancel = CancelToken::new();
    let cx = ToolCx { cancel: cancel.clone(), ..ToolCx::default() };
    let (tool, input) = (shop.hub.tool("web_fetch").unwrap(), json!({"url": server.url("/")}));
    let call = tokio::spawn(async move { tool.execute(input, &cx).await });
    while server.asked().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    cancel.request_immediate();
    assert_eq!(call.await.unwrap().unwrap_err().kind.as_deref(), Some("Cancelled"));
    server.left.recv().await.unwrap();
}

#[tokio::test]
async fn without_a_service_a_search_says_what_to_configure() {
    for (config, word) in [
        (json!({}), "`backend`"),
        (json!({"search_engine": "mock"}), "`backend`"),
        (json!({"search_engine": "duckduckgo"}), "`duckduckgo` is not known"),
        (json!({"search_engine": "brave"}), "`brave` needs `api_key`"),
        (json!({"search_engine": "searxng"}), "`searxng` needs `base_url`"),
    ] {
        let shop = Workshop::new("tool-web", config).await;
        let refused = shop.refused("web_search", json!({"query": "x"})).await;
        assert_eq!(refused.kind.as_deref(), Some("NotConfigured"));
        assert!(refused.message.contains(word), "{refused}");
    }
}

#[tokio::test]
async fn each_service_is_asked_in_its_own_way_and_answers_alike() {
    let hit = |excerpt: &str| json!({"title": "T &amp; <b>t</b>", "url": "http://e.example/", excerpt: "<strong>S</strong> s"});
    let bad = json!({"title": "no address"});
    let listed = json!({"results": [bad, hit("content"), hit("content")]}).to_string();
    let brave = json!({"web": {"results": [hit("description"), hit("description")]}}).to_string();
    let server = Server::new([
        ("/s/search", ok("application/json", listed)),
        ("/b/web/search", ok("application/json", brave)),
    ])
    .await;
    let found = json!({"title": "T & t", "url": "http://e.example/", "snippet": "S s"});
    let expected = json!({"query": "a b&c", "results": [found], "count": 1});
    for (backend, path) in [("searxng", "/s"), ("tavily", "/s/"), ("brave", "/b")] {
        let config =
            json!({"backend": backend, "base_url": server.url(path), "api_key": "KEY", "max_results": 1});
        let shop = Workshop::new("tool-web", config).await;
        let answer = shop.call("web_search", json!({"query": "a b&c"})).await.unwrap();
        assert_eq!(answer, expected, "{backend}");
    }
    let asked = server.asked();
    assert!(asked[0].starts_with("GET /s/search?q=a+b%26c&format=json "), "{}", asked[0]);
    assert!(
        asked[1].starts_with("POST /s/search ") && asked[1].contains("authorization: Bearer KEY"),
        "{}",
        asked[1]
    );
    assert!(asked[1].ends_with(r#"{"query":"a b&c","max_results":1}"#), "{}", asked[1]);
    assert!(asked[2].contains("x-subscription-token: KEY") && asked[2].contains("count=1"), "{}", asked[2]);
}

#[tokio::test]
async fn a_service_that_fails_is_told_and_no_result_is_made_up() {
    let refusal = Reply::Whole(whole("429 Too Many Requests", "text/plain", "slow down"));
    let server = Server::new([
        ("/r/search", refusal),
        ("/h/search", ok("text/html", "<html>no json</html>")),
        ("/m/search", redirect("http://127.0.0.1:9/elsewhere")),
    ])
    .await;
    for (path, words) in
        [("/r", "HTTP 429 Too Many Requests: slow down"), ("/h", "no list of results"), ("/m", "HTTP 302")]
    {
        let config = json!({"backend": "tavily", "base_url": server.url(path), "api_key": "KEY"});
        let shop = Workshop::new("tool-web", config).await;
        let refused = shop.refused("web_search", json!({"query": "x"})).await;
        assert!(refused.message.contains(words) && !refused.message.contains("KEY"), "{refused}");
    }
}

#[tokio::test]
async fn a_model_reads_a_page_in_a_session() {
    let server = Server::new([("/", ok("text/html", "<h2>News</h2>"))]).await;
    let model = stage::script([
        stage::calls("c1", "web_fetch", json!({"url": server.url("/")})),
        amplifier_testing::Step::say("done"),
    ]);
    let session = stage::session(&model, &[("tool-web", json!({"private_hosts": ["127.0.0.1"]}))]).await;
    let session = session.open().await.unwrap();
    session.execute("read").await.unwrap();
    let requests = model.requests();
    assert!(
        stage::texts(&requests[1]).last().unwrap().contains("## News"),
        "{:?}",
        stage::texts(&requests[1])
    );
}

#[tokio::test]
async fn the_module_keeps_its_contracts_and_refuses_what_it_cannot_keep() {
    conformance::module(async || built_in("tool-web").await, object(json!({}))).await.assert();
    let hub = amplifier_testing::TestCoordinator::new();
    for (config, word) in [
        (json!({"timeout": 0}), "`timeout`"),
        (json!({"allowed_hosts": ["a b"]}), "`a b`"),
        (json!({"proxy": "::"}), "`proxy`"),
    ] {
        let refused = hub.mount(&*built_in("tool-web").await, config).await.unwrap_err();
        assert!(refused.to_string().contains(word), "{refused}");
    }
}
