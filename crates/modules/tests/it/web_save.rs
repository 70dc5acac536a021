//! `web_fetch` with `save_to_file`, where the config allows it.

use serde_json::{Value, json};

use crate::web_server::{Reply, Server, ok, whole};
use crate::workshop::Workshop;

async fn open(mut config: Value) -> Workshop {
    config["private_hosts"] = json!(["127.0.0.1"]);
    Workshop::new("tool-web", config).await
}

fn request(server: &Server, path: &str, file: &str) -> Value {
    json!({"url": server.url(path), "save_to_file": file})
}

#[tokio::test]
async fn saving_is_offered_and_declared_only_where_it_is_configured() {
    let offered = async |config: Value| {
        let tool = open(config).await.hub.tool("web_fetch").unwrap();
        let (spec, effects) = (tool.spec(), tool.effects());
        (spec.parameters["properties"].get("save_to_file").is_some(), effects.writes, effects.network)
    };
    assert_eq!(offered(json!({})).await, (false, false, true));
    assert_eq!(offered(json!({"allowed_write_paths": ["."]})).await, (true, true, true));
    let server = Server::new([("/", ok("text/plain", "x"))]).await;
    let shop = open(json!({})).await;
    let refused = shop.refused("web_fetch", request(&server, "/", "a.txt")).await;
    assert_eq!((refused.kind.as_deref(), shop.has("a.txt")), (Some("InvalidInput"), false));
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_document_is_saved_as_it_came_and_a_page_as_markdown_when_its_name_says_so() {
    let page = "<title>T</title><h1>Hello</h1>";
    let pdf = [b"%PDF\0".to_vec(), vec![0xff; 2_000]].concat();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/pdf\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        pdf.len()
    );
    let long = "é".repeat(3_000);
    let server = Server::new([
        ("/page", ok("text/html", page)),
        ("/pdf", Reply::Whole([head.into_bytes(), pdf.clone()].concat())),
        ("/long", ok("text/plain; charset=utf-8", long.as_str())),
    ])
    .await;
    let shop = open(json!({"allowed_write_paths": ["."]})).await;
    let recorder = shop.hub.recorder();
    let saved = shop.call("web_fetch", request(&server, "/page", "new/p.md")).await.unwrap();
    let expected = json!({
        "url": server.url("/page"), "title": "T", "content": "# Hello", "content_type": "text/html",
        "saved_to": shop.path("new/p.md"), "saved_bytes": 7, "truncated": false,
    });
    assert_eq!((saved, shop.text("new/p.md").as_str()), (expected, "# Hello"));
    shop.call("web_fetch", request(&server, "/page", "p.html")).await.unwrap();
    assert_eq!(shop.text("p.html"), page);
    let saved = shop.call("web_fetch", request(&server, "/pdf", "d.pdf")).await.unwrap();
    assert_eq!((&saved["content"], &saved["saved_bytes"]), (&json!(""), &json!(2_005)));
    assert_eq!(std::fs::read(shop.path("d.pdf")).unwrap(), pdf);
    let saved = shop.call("web_fetch", request(&server, "/long", "l.txt")).await.unwrap();
    assert_eq!((saved["content"].as_str().unwrap().chars().count(), shop.text("l.txt")), (1_000, long));
    assert_eq!(recorder.count("artifact:write"), 4);
    // Reading goes on as ever, and an empty name is none.
    let read = shop.call("web_fetch", request(&server, "/page", "")).await.unwrap();
    assert_eq!((&read["content"], read.get("saved_to")), (&json!("# Hello"), None));
}

#[tokio::test]
async fn nothing_is_fetched_for_a_file_that_may_not_be_written() {
    let server = Server::new([("/", ok("text/plain", "x"))]).await;
    let shop = open(json!({"allowed_write_paths": ["in"], "denied_write_paths": ["in/no"]})).await;
    shop.put("in/there", "old").put("out/x", "");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(shop.path("out"), shop.path("in/link")).unwrap();
        std::os::unix::fs::symlink(shop.path("out/new"), shop.path("in/dangling")).unwrap();
    }
    #[cfg(unix)]
    let links = ["in/link/a", "in/dangling"];
    #[cfg(not(unix))]
    let links: [&str; 0] = [];
    for file in ["a", "../a", "/etc/a", "in/../a", "in/no/a"].into_iter().chain(links) {
        let refused = shop.refused("web_fetch", request(&server, "/", file)).await;
        assert_eq!(refused.kind.as_deref(), Some("AccessDenied"), "{file}: {refused}");
    }
    for file in ["in/there", "in"] {
        let refused = shop.refused("web_fetch", request(&server, "/", file)).await;
        assert_eq!(refused.kind.as_deref(), Some("AlreadyExists"), "{file}: {refused}");
    }
    assert_eq!((server.asked(), shop.text("in/there").as_str()), (Vec::<String>::new(), "old"));
}

#[tokio::test]
async fn what_is_too_large_or_fails_leaves_no_file() {
    let gone = Reply::Whole(whole("500 Internal Server Error", "text/plain", "no"));
    let server = Server::new([("/long", ok("text/plain", "x".repeat(5_000))), ("/gone", gone)]).await;
    let shop = open(json!({"allowed_write_paths": ["."], "max_bytes": 1_000})).await;
    let refused = shop.refused("web_fetch", request(&server, "/long", "a")).await;
    assert_eq!(refused.kind.as_deref(), Some("TooLarge"), "{refused}");
    assert!(shop.refused("web_fetch", request(&server, "/gone", "b")).await.message.contains("HTTP 500"));
    assert_eq!(shop.folder.path().read_dir().unwrap().count(), 0);
}
