//! A server that misbehaves: every fault is an answer, and the session goes on.

use amplifier_testing::{Step, TestCoordinator, conformance};

use super::*;
use crate::stage::{self, script, texts};

/// The config of the misbehaving server in one of its moods. Needs `python3`.
fn fake(folder: &TempDir, arguments: &[&str]) -> Value {
    let path = folder.path().join("fake_server.py");
    std::fs::write(&path, include_str!("fake_server.py")).unwrap();
    let mut args = vec![path.to_str().unwrap()];
    args.extend(arguments);
    json!({"command": "python3", "args": args})
}

async fn with_fake(mut extra: Value, calls: &[(&str, Value)]) -> Stage {
    let folder = TempDir::new().unwrap();
    extra["servers"] = json!({"fake": fake(&folder, &[])});
    if extra.get("wait").is_none() {
        extra["wait"] = json!(30);
    }
    let stage = Stage::open_in(folder, extra, calls).await;
    let missing = "the server did not start; this test needs `python3`";
    assert_eq!(stage.warnings(), Vec::<String>::new(), "{missing}");
    stage
}

fn pid_in(said: &str) -> i32 {
    said.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_changes_at_the_server_changes_in_the_session_and_a_storm_of_news_is_one_look() {
    let calls = [
        ("mcp__fake__grow", json!({})),
        ("mcp__fake__grown", json!({"words": "x"})),
        ("mcp__fake__shrink", json!({})),
    ];
    let stage = with_fake(json!({}), &calls).await;
    let has = |name: &str| stage.names().iter().any(|known| known == name);
    assert!(!has("mcp__fake__grown"));
    stage.turn().await;
    until("the new tool", async || has("mcp__fake__grown")).await;
    assert!(stage.turn().await.starts_with("said x"));
    stage.turn().await;
    until("the tool goes", async || !has("mcp__fake__grown")).await;
    let changes = stage.session.recorder().events("mcp:tools_changed");
    let told: Vec<_> =
        changes.iter().map(|(_, data)| (data["added"].clone(), data["removed"].clone())).collect();
    assert_eq!(told, [(json!(["mcp__fake__grown"]), json!([])), (json!([]), json!(["mcp__fake__grown"]))],);
    assert_eq!(stage.status("fake").await["starts"], json!(1));
    stage.close().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_says_its_last_words_and_is_there_for_the_next() {
    let say = ("mcp__fake__say", json!({"words": "hi"}));
    let stage = with_fake(json!({}), &[say.clone(), ("mcp__fake__die", json!({})), say]).await;
    let first = pid_in(&stage.turn().await);
    let told = stage.turn().await;
    assert!(told.contains("`fake` ended during the call: its process ended (exit status: 3)"), "{told}");
    assert!(told.contains("a bad thing happened"), "{told}");
    assert_ne!(pid_in(&stage.turn().await), first);
    stage.close().await;
}

#[tokio::test]
async fn a_server_that_never_answers_its_start_delays_nothing_beyond_its_time_and_is_reported() {
    let folder = TempDir::new().unwrap();
    let mut mute = fake(&folder, &["mute"]);
    mute["start_timeout"] = json!(0.5);
    let config =
        json!({"servers": {"mute": mute, "fake": fake(&folder, &[])}, "wait": 30, "max_restarts": 0});
    let stage = Stage::open_in(folder, config, &[("mcp__fake__say", json!({"words": "hi"}))]).await;
    assert_eq!(
        stage.warnings(),
        [
            "not ready: MCP server `mute` is not available: it did not start within 0.5 s; `start_timeout` sets how long it may take"
        ]
    );
    assert!(stage.turn().await.starts_with("said hi"));
    assert_eq!(stage.status("mute").await["state"], json!("down"));
    stage.close().await;
}

#[tokio::test]
async fn a_server_that_is_slow_to_start_joins_later() {
    let stage = with_fake_late().await;
    assert!(stage.warnings()[0].contains("`fake` is still starting"), "{:?}", stage.warnings());
    until("the server", async || stage.names().contains(&"mcp__fake__say".to_owned())).await;
    assert!(stage.turn().await.starts_with("said hi"));
    stage.close().await;
}

async fn with_fake_late() -> Stage {
    let folder = TempDir::new().unwrap();
    let config = json!({"servers": {"fake": fake(&folder, &[])}, "wait": 0.001});
    Stage::open_in(folder, config, &[("mcp__fake__say", json!({"words": "hi"}))]).await
}

#[tokio::test]
async fn a_server_that_cannot_start_costs_the_session_nothing_but_itself() {
    let folder = TempDir::new().unwrap();
    let servers = json!({
        "absent": {"command": "/no/such/program"},
        "exits": fake(&folder, &["exit"]),
        "odd": {"type": "sse", "url": "http://127.0.0.1:9/"},
        "off": {"command": "/no/such/program", "disabled": true},
    });
    let config = json!({"servers": servers, "wait": 30, "max_restarts": 0});
    let stage = Stage::open_in(folder, config, &[("mcp_servers", json!({}))]).await;
    let warnings = stage.warnings().join("\n");
    for said in [
        "`absent` is not available: `/no/such/program` cannot be started",
        "this server has no licence",
        "`odd` is not started",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
    assert!(!warnings.contains("`off`"), "{warnings}");
    assert_eq!(
        stage.outcome(),
        LoadOutcome::Mounted {
            names: vec!["mcp_servers".to_owned(), "hooks-mcp-visibility".to_owned()].into()
        }
    );
    let told = stage.turn().await;
    assert!(told.contains("exit status: 7") && told.contains("\"refused\""), "{told}");
    assert_eq!(stage.session.recorder().count("mcp:server_failed"), 2);
    stage.close().await;
}

#[tokio::test]
async fn a_call_without_an_answer_ends_in_time_and_progress_keeps_one_alive() {
    let folder = TempDir::new().unwrap();
    let mut server = fake(&folder, &[]);
    server["call_timeout"] = json!(1.0);
    let config = json!({"servers": {"fake": server}, "wait": 30});
    let calls = [("mcp__fake__hang", json!({})), ("mcp__fake__progress", json!({}))];
    let stage = Stage::open_in(folder, config, &calls).await;
    let told = stage.turn().await;
    assert!(told.contains("no answer and no sign of progress for 1.0 s"), "{told}");
    // It takes two seconds, with a word every quarter of one.
    assert_eq!(stage.turn().await, "slow and steady");
    stage.close().await;
}

#[tokio::test]
async fn a_cancelled_call_is_over_at_once() {
    let stage = with_fake(json!({}), &[]).await;
    let cx = ToolCx::default();
    let call = stage.execute("mcp__fake__hang", json!({}), &cx);
    let cancel = async {
        tokio::task::yield_now().await;
        cx.cancel.request_immediate();
    };
    let (answer, ()) = tokio::join!(call, cancel);
    assert_eq!(answer.unwrap_err().kind.as_deref(), Some("Cancelled"));
    stage.close().await;
}

#[tokio::test]
async fn floods_end_the_server_and_not_the_session() {
    let say = ("mcp__fake__say", json!({"words": "hi"}));
    let calls = [("mcp__fake__endless", json!({})), say.clone(), ("mcp__fake__noise", json!({})), say];
    let stage = with_fake(json!({}), &calls).await;
    let told = stage.turn().await;
    assert!(told.contains("it wrote a message of more than 16 MiB"), "{told}");
    assert!(stage.turn().await.starts_with("said hi"));
    let told = stage.turn().await;
    assert!(told.contains("it floods its output"), "{told}");
    assert!(stage.turn().await.starts_with("said hi"));
    stage.close().await;
}

#[tokio::test]
async fn bad_json_is_passed_over_a_wrong_answer_is_an_error_and_a_huge_one_is_cut() {
    let calls =
        [("mcp__fake__broken", json!({})), ("mcp__fake__wrong", json!({})), ("mcp__fake__huge", json!({}))];
    let stage = with_fake(json!({"max_content_size": 1000}), &calls).await;
    assert_eq!(stage.turn().await, "after all that");
    let told = stage.turn().await;
    assert!(told.contains("the answer is not what was asked for"), "{told}");
    let told = stage.turn().await;
    assert!(told.len() < 1200 && told.contains("999000 more bytes"), "{told}");
    stage.close().await;
}

#[tokio::test]
async fn a_server_thrown_off_by_the_newer_generation_is_started_for_the_older() {
    let folder = TempDir::new().unwrap();
    let config = json!({"servers": {"nervous": fake(&folder, &["nervous"])}, "wait": 30});
    let stage = Stage::open_in(folder, config, &[("mcp__nervous__say", json!({"words": "hi"}))]).await;
    assert!(stage.turn().await.starts_with("said hi"));
    assert_eq!(stage.status("nervous").await["protocol"], json!("2025-06-18"));
    stage.close().await;
}

#[tokio::test]
async fn when_the_session_ends_the_server_and_what_it_started_end() {
    let folder = TempDir::new().unwrap();
    let note = folder.path().join("pids");
    let server = fake(&folder, &["stubborn", note.to_str().unwrap()]);
    let stage = Stage::open_in(folder, json!({"servers": {"stubborn": server}, "wait": 30}), &[]).await;
    let pids = std::fs::read_to_string(&note).unwrap();
    let pids: Vec<i32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    stage.close().await;
    until("the processes end", async || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn servers_see_what_they_are_given_and_no_key_of_ours() {
    let folder = TempDir::new().unwrap();
    let mut server = fake(&folder, &[]);
    server["env"] = json!({"GIVEN": "yes"});
    let stage = Stage::open_in(
        folder,
        json!({"servers": {"fake": server}, "wait": 30}),
        &[("mcp__fake__env", json!({}))],
    )
    .await;
    let seen: Value = serde_json::from_str(&stage.turn().await).unwrap();
    assert_eq!(seen["GIVEN"], json!("yes"));
    // Cargo sets this for every test; it is neither harmless nor named.
    #[expect(clippy::disallowed_methods, reason = "the test shows that what this process has does not pass")]
    let mut own = std::env::vars_os();
    assert!(own.any(|(name, _)| name == "CARGO_MANIFEST_DIR"));
    assert_eq!(seen.get("CARGO_MANIFEST_DIR"), None);
    stage.close().await;
}

#[tokio::test]
async fn a_tool_may_do_anything_unless_its_server_is_believed_when_it_says_it_only_reads() {
    let stage = with_fake(json!({}), &[]).await;
    assert_eq!(stage.effects("mcp__fake__say"), Effects::UNKNOWN);
    stage.close().await;
    let stage = with_fake(json!({"trust_annotations": true}), &[]).await;
    assert_eq!(stage.effects("mcp__fake__say"), Effects::READS);
    assert_eq!(stage.effects("mcp__fake__grow"), Effects::UNKNOWN);
    stage.close().await;
}

#[tokio::test]
async fn servers_of_the_working_folder_are_never_believed_also_under_a_name_of_the_users() {
    for (name, config) in [
        (".mcp.json", json!({"project_files": "allow"})),
        ("team/mcp.json", json!({"config_file": "team/mcp.json"})),
    ] {
        let folder = TempDir::new().unwrap();
        let server = fake(&folder, &[]);
        for name in [name, ".amplifier/mcp.json"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, json!({"mcpServers": {"fake": server}}).to_string()).unwrap();
        }
        let mut config = object(config);
        config.insert("trust_annotations".to_owned(), json!(true));
        config.insert("servers".to_owned(), json!({"mine": server}));
        config.insert("wait".to_owned(), json!(30));
        let stage = Stage::open_in(folder, Value::Object(config), &[]).await;
        assert_eq!(stage.effects("mcp__fake__say"), Effects::UNKNOWN, "{name}");
        assert_eq!(stage.effects("mcp__mine__say"), Effects::READS, "{name}");
        stage.close().await;
    }
}

#[tokio::test]
async fn what_a_server_asks_for_is_refused_and_its_tools_take_no_name_of_another() {
    let folder = TempDir::new().unwrap();
    let heard = folder.path().join("heard");
    let server = fake(&folder, &["asks", heard.to_str().unwrap()]);
    let config = json!({"servers": {"bash": server}, "wait": 30});
    let stage = Stage::open_in(folder, config, &[("mcp__bash__say", json!({"words": "hi"}))]).await;
    assert!(stage.turn().await.starts_with("said hi"));
    until("three answers", async || {
        std::fs::read_to_string(&heard).is_ok_and(|heard| heard.lines().count() == 3)
    })
    .await;
    let heard = std::fs::read_to_string(&heard).unwrap();
    let answers: Vec<Value> = heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |id: &str| answers.iter().find(|answer| answer["id"] == id).unwrap();
    // No model is asked, no folder is named, no user is asked.
    assert_eq!(answer("sampling")["error"]["code"], json!(-32601), "{heard}");
    assert_eq!(answer("roots").pointer("/result/roots"), Some(&json!([])), "{heard}");
    assert_eq!(answer("elicitation").pointer("/result/action"), Some(&json!("decline")), "{heard}");
    // It offers tools called `bash`, `read_file` and `../x`.
    for name in stage.names() {
        assert!(name.starts_with("mcp__bash__") || name == "mcp_servers" || name == "task", "{name}");
    }
    assert!(stage.names().contains(&"mcp__bash__read_file".to_owned()), "{:?}", stage.names());
    let spec = stage.spec("mcp__bash__read_file");
    assert!(spec.description.unwrap().len() <= 10_000);
    let linked = stage.call("mcp__bash__link", json!({})).await.output;
    assert_eq!(linked, json!("[resource passwd: file:///etc/passwd]"));
    stage.close().await;
}

#[tokio::test]
async fn files_name_servers_and_those_of_the_project_only_when_they_are_trusted() {
    for (trust, expected) in
        [("ignore", vec!["mcp__home__say"]), ("allow", vec!["mcp__dot__say", "mcp__home__say"])]
    {
        let folder = TempDir::new().unwrap();
        let only = |mut server: Value| {
            server["include_tools"] = json!(["say"]);
            server
        };
        let server = only(fake(&folder, &[]));
        let file = |name: &str, servers: Value| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, json!({"mcpServers": servers}).to_string()).unwrap();
        };
        file(".mcp.json", json!({"dot": server}));
        file("extra/mcp.json", json!({"home": server, "bad": {"url": "${AMPLIFIER_NO_SUCH_VARIABLE}"}}));
        let config = json!({"config_file": "extra/mcp.json", "project_files": trust, "wait": 30, "visibility": {"enabled": false}});
        let stage = Stage::open_in(folder, config, &[]).await;
        let mut names = stage.names();
        names.retain(|name| name.starts_with("mcp__"));
        assert_eq!(names, expected);
        let warnings = stage.warnings().join("\n");
        assert!(
            warnings.contains("`bad` is not started: `${AMPLIFIER_NO_SUCH_VARIABLE}` is not set"),
            "{warnings}"
        );
        assert_eq!(warnings.contains("set `project_files: allow`"), trust == "ignore", "{warnings}");
        stage.close().await;
    }
}

#[tokio::test]
async fn without_servers_the_module_steps_aside() {
    let stage = Stage::open(json!({}), &[]).await;
    assert!(matches!(stage.outcome(), LoadOutcome::Skipped { reason } if reason.contains("no MCP server")));
    stage.close().await;
}

#[tokio::test]
async fn the_model_and_the_hooks_hear_which_servers_there_are() {
    let folder = TempDir::new().unwrap();
    let servers = json!({"fake": fake(&folder, &[]), "gone": {"command": "/no/such/program"}});
    let config = json!({"servers": servers, "wait": 30, "max_restarts": 0});
    let provider = script([Step::say("hi")]);
    let session = stage::session(&provider, &[("tool-mcp", config)]).await.open().await.unwrap();
    session.execute("hello").await.unwrap();
    let seen = texts(&provider.requests()[0]).join("\n");
    assert!(seen.contains("- fake\n- gone (not available; `mcp_servers` says why)"), "{seen}");
    let ready = session.recorder().events("mcp:server_ready");
    assert_eq!(ready.len(), 1);
    assert_eq!((&ready[0].1["server"], &ready[0].1["tools"][0]), (&json!("fake"), &json!("mcp__fake__say")));
    assert_eq!(session.recorder().count("mcp:server_failed"), 1);
    session.cleanup().await;
}

#[tokio::test]
async fn what_servers_offer_keeps_the_tool_contract() {
    let folder = TempDir::new().unwrap();
    let hub = TestCoordinator::new();
    let config = json!({"servers": {"fake": fake(&folder, &[])}, "wait": 30});
    hub.mount(&*built_in("tool-mcp").await, config).await.unwrap();
    for name in ["mcp__fake__say", "mcp_servers"] {
        conformance::tool(async || hub.tool(name).unwrap()).await.assert();
    }
}

#[tokio::test]
async fn error_output_goes_to_the_log_and_to_those_who_ask_for_it() {
    let config = json!({"verbose_servers": true, "server_log_dir": "logs"});
    let stage = with_fake(config, &[("mcp__fake__die", json!({}))]).await;
    stage.turn().await;
    let heard = || stage.session.recorder().events("mcp:server_output");
    until("the line", async || !heard().is_empty()).await;
    assert_eq!(heard()[0].1["line"], json!("a bad thing happened"));
    let log = stage.folder.path().join("logs/fake.log");
    until("the log", async || std::fs::read_to_string(&log).is_ok_and(|log| log == "a bad thing happened\n"))
        .await;
    stage.close().await;
}
