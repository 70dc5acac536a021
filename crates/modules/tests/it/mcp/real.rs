//! The servers of the protocol's authors.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use super::*;
use crate::parts;

const NPM: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];
const PYPI: &[&str] = &["mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19"];

async fn node_script(server: &str) -> String {
    let folder = tokio::task::spawn_blocking(|| parts::npm(NPM)).await.unwrap();
    let path = folder.join(format!("node_modules/@modelcontextprotocol/{server}/dist/index.js"));
    assert!(path.is_file(), "{}", path.display());
    path.to_str().unwrap().to_owned()
}

async fn python() -> String {
    let python = tokio::task::spawn_blocking(|| parts::python(PYPI)).await.unwrap();
    python.to_str().unwrap().to_owned()
}

fn patient(servers: Value) -> Value {
    json!({"servers": servers, "wait": 50, "start_timeout": 50, "call_timeout": 30})
}

#[tokio::test]
async fn everything_over_stdio_gives_tools_resources_and_prompts() {
    let script = node_script("server-everything").await;
    let config = patient(json!({"every thing": {"command": "node", "args": [script, "stdio"]}}));
    let stage = Stage::open(
        config,
        &[
            ("mcp__every_thing__echo", json!({"message": "hello"})),
            ("mcp__every_thing__get-sum", json!({"a": 2, "b": 40})),
            ("mcp__every_thing__get-structured-content", json!({"location": "New York"})),
            ("mcp__every_thing__get-sum", json!({"a": "no number"})),
        ],
    )
    .await;
    assert_eq!(stage.warnings(), Vec::<String>::new());
    assert_eq!(stage.status("every thing").await["protocol"], json!("2025-11-25"));
    assert_eq!(stage.turn().await, "Echo: hello");
    assert!(stage.turn().await.contains("42"));
    let weather: Value = serde_json::from_str(&stage.turn().await).unwrap();
    assert!(weather["temperature"].is_number(), "{weather}");
    let refused = stage.turn().await;
    assert!(refused.contains("number"), "{refused}");
    see_resources_prompts_and_pictures(&stage, "mcp__every_thing__").await;
    stage.close().await;
}

async fn see_resources_prompts_and_pictures(stage: &Stage, prefix: &str) {
    let picture = stage.call(&format!("{prefix}get-tiny-image"), json!({})).await.output;
    let blocks = picture.as_array().unwrap();
    assert!(blocks.iter().any(|block| block["source"]["media_type"] == json!("image/png")), "{picture}");
    let listed = stage.call(&format!("{prefix}list_resources"), json!({})).await.output;
    let uri = listed["resources"][0]["uri"].as_str().unwrap().to_owned();
    let read = stage.call(&format!("{prefix}read_resource"), json!({"uri": uri})).await;
    assert!(read.success && read.output.as_str().unwrap().contains(&uri), "{read:?}");
    let missing = stage.call(&format!("{prefix}read_resource"), json!({"uri": "demo://none"})).await;
    assert!(!missing.success && missing.error_message().unwrap().contains("refused"), "{missing:?}");
    let about = stage.spec(&format!("{prefix}get_prompt")).description.unwrap();
    assert!(about.contains("args-prompt(city*, state)"), "{about}");
    let prompt = json!({"name": "args-prompt", "arguments": {"city": "Rome"}});
    let prompt = stage.call(&format!("{prefix}get_prompt"), prompt).await.output;
    assert!(
        prompt.as_str().unwrap().starts_with("[user]\n") && prompt.to_string().contains("Rome"),
        "{prompt}"
    );
}

#[tokio::test]
async fn a_real_server_killed_in_the_middle_of_a_call_is_a_tool_error_and_comes_back() {
    let script = node_script("server-everything").await;
    let config = patient(json!({"every": {"command": "node", "args": [script, "stdio"]}}));
    let stage = Stage::open(config, &[("mcp__every__echo", json!({"message": "again"}))]).await;
    let status = stage.status("every").await;
    let pid = i32::try_from(status["process_id"].as_i64().unwrap()).unwrap();
    let cx = ToolCx::default();
    let long = json!({"duration": 60, "steps": 600});
    let call = stage.execute("mcp__every__trigger-long-running-operation", long, &cx);
    let killed_in_the_middle = async {
        // Progress has come: the call is running for certain.
        until("progress", async || cx.pulse.count() > 0).await;
        kill(pid);
    };
    let (answer, ()) = tokio::join!(call, killed_in_the_middle);
    let failure = answer.unwrap_err();
    assert_eq!(failure.kind.as_deref(), Some("McpServerEnded"));
    assert!(
        failure.message.contains("`every` ended during the call: its process ended (signal: 9"),
        "{failure}"
    );
    assert_eq!(stage.turn().await, "Echo: again");
    let status = stage.status("every").await;
    assert_eq!((&status["state"], &status["starts"]), (&json!("up"), &json!(2)));
    assert_ne!(status["process_id"], json!(pid));
    assert_eq!(stage.session.recorder().count("mcp:server_failed"), 1);
    stage.close().await;
}

/// A real server over HTTP on a free port.
struct HttpServer {
    child: tokio::process::Child,
    port: u16,
}

impl HttpServer {
    async fn start(script: &str, port: u16) -> Self {
        let mut command = tokio::process::Command::new("node");
        command.arg(script).arg("streamableHttp").env("PORT", port.to_string());
        command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let server = Self { child, port };
        until("the server listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
        server
    }

    fn config(&self) -> Value {
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        json!({"type": "streamable-http", "url": url, "headers": {"x-test": "yes"}})
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn everything_over_http_answers_and_is_reached_again_after_it_was_killed() {
    let script = node_script("server-everything").await;
    let mut server = HttpServer::start(&script, free_port()).await;
    let echo = ("mcp__every__echo", json!({"message": "over http"}));
    let calls = [echo.clone(), echo.clone(), echo.clone(), echo.clone(), echo];
    let stage = Stage::open(patient(json!({"every": server.config()})), &calls).await;
    assert_eq!(stage.warnings(), Vec::<String>::new());
    assert_eq!(stage.turn().await, "Echo: over http");
    see_resources_prompts_and_pictures(&stage, "mcp__every__").await;

    server.child.kill().await.unwrap();
    let refused = stage.turn().await;
    assert!(refused.contains("MCP server `every`"), "{refused}");
    let mut server = HttpServer::start(&script, server.port).await;
    assert_eq!(stage.turn().await, "Echo: over http");

    // Killed and started anew between two calls: the session is forgotten, which costs one call at most.
    server.child.kill().await.unwrap();
    let again = HttpServer::start(&script, server.port).await;
    let mut told = stage.turn().await;
    if told.contains("the next call will reconnect") {
        told = stage.turn().await;
    }
    assert_eq!(told, "Echo: over http");
    stage.close().await;
    drop(again);
}

#[tokio::test]
async fn the_filesystem_server_works_in_its_folder_and_nowhere_else() {
    let script = node_script("server-filesystem").await;
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("a.txt"), "some words").unwrap();
    let allowed = folder.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let mut config = patient(json!({"files": {"command": "node", "args": [script, allowed]}}));
    config["trust_annotations"] = json!(true);
    let stage = Stage::open_in(
        folder,
        config,
        &[
            ("mcp__files__read_text_file", json!({"path": format!("{allowed}/a.txt")})),
            ("mcp__files__read_text_file", json!({"path": "/etc/hostname"})),
            ("mcp__files__write_file", json!({"path": format!("{allowed}/b.txt"), "content": "new"})),
        ],
    )
    .await;
    assert!(stage.turn().await.contains("some words"));
    assert!(stage.turn().await.contains("Access denied"));
    stage.turn().await;
    assert_eq!(std::fs::read_to_string(stage.folder.path().join("b.txt")).unwrap(), "new");
    assert!(!stage.effects("mcp__files__read_text_file").writes);
    assert!(stage.effects("mcp__files__write_file").writes);
    stage.close().await;
}

fn git(folder: &Path, arguments: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test]
async fn time_and_git_start_side_by_side_and_speak_the_stateless_generation() {
    let python = python().await;
    let folder = TempDir::new().unwrap();
    git(folder.path(), &["init", "-q"]);
    std::fs::write(folder.path().join("new.txt"), "x").unwrap();
    let repository = folder.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let config = patient(json!({
        "time": {"command": python, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]},
        "old": {"command": python, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"], "protocol": "initialize"},
        "git": {"command": python, "args": ["-m", "mcp_server_git", "--repository", repository]},
    }));
    let calls = [
        ("mcp__time__get_current_time", json!({"timezone": "Europe/Paris"})),
        ("mcp__old__get_current_time", json!({"timezone": "UTC"})),
        ("mcp__git__git_status", json!({"repo_path": repository})),
        ("mcp__time__get_current_time", json!({"timezone": "Nowhere/None"})),
    ];
    let stage = Stage::open_in(folder, config, &calls).await;
    assert_eq!(stage.warnings(), Vec::<String>::new());
    assert_eq!(stage.status("time").await["protocol"], json!("2026-07-28"));
    assert_eq!(stage.status("old").await["protocol"], json!("2025-11-25"));
    assert!(stage.turn().await.contains("Europe/Paris"));
    assert!(stage.turn().await.contains("UTC"));
    assert!(stage.turn().await.contains("new.txt"));
    assert!(stage.turn().await.contains("Nowhere/None"));
    stage.close().await;
}
