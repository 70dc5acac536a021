//! Detection against servers that these tests open themselves, on this machine alone.

use std::net::SocketAddr;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Environment::Fixed(variables.collect())
}

/// A port where nobody listens: it was given to us and closed again.
async fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Answers requests for one path with a document, and others with 404.
async fn serves(path: &'static str, document: Value) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0_u8; 2048];
            let read = stream.read(&mut head).await.unwrap_or(0);
            let asked = String::from_utf8_lossy(&head[..read]).into_owned();
            let found = asked.starts_with(&format!("GET {path} "));
            let (status, body) = if found { (200, document.to_string()) } else { (404, "{}".to_owned()) };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap_or(());
        }
    });
    address
}

/// Takes connections and says nothing.
async fn silent() -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            kept.push(stream);
        }
    });
    (address, task)
}

fn places(ollama: SocketAddr, llama_cpp: SocketAddr) -> Places {
    let (ollama, llama_cpp) = (ollama.to_string(), llama_cpp.to_string());
    // Generous: a machine that builds at the same time answers late.
    Places { ollama, llama_cpp, vllm: None, patience: Duration::from_secs(10) }
}

async fn missed(environment: &Environment, places: &Places) -> NothingFound {
    match detect(environment, places).await {
        Err(DetectError::Nothing(nothing)) => nothing,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_variable_is_enough_and_then_no_server_is_asked() {
    let (address, task) = silent().await;
    let environment = environment(&[("GEMINI_API_KEY", "sk-1"), ("OPENAI_API_KEY", "sk-2")]);
    let found = detect(&environment, &places(address, address)).await.unwrap();
    assert_eq!(found.spec, ModuleSpec::new(ModuleId::fixed("provider-openai")));
    assert_eq!(found.reason, "`OPENAI_API_KEY` is set");
    task.abort();
}

#[tokio::test]
async fn a_key_goes_where_its_own_service_is_said_to_be() {
    let place = "http://127.0.0.1:18380";
    let (own, short) = (format!("{place}/openai/v1"), place.strip_suffix('0').unwrap());
    for other in [place, short] {
        let variables =
            [("OPENAI_API_KEY", "sk-2"), ("OPENAI_BASE_URL", own.as_str()), ("ANTHROPIC_BASE_URL", other)];
        let found = detect(&environment(&variables), &places(closed().await, closed().await)).await.unwrap();
        assert_eq!(found.spec.config.get("base_url"), Some(&json!(own)));
    }
}

#[tokio::test]
async fn a_tape_is_no_key() {
    let environment = environment(&[("AMPLIFIER_REPLAY", "/nowhere")]);
    let nothing = missed(&environment, &places(closed().await, closed().await)).await;
    assert!(nothing.is_replaying);
    assert_eq!(nothing.missed.len(), 7, "{nothing}");
}

#[tokio::test]
async fn where_nobody_is_found_the_demo_answers_but_never_from_a_tape() {
    let plan = || MountPlan::new(ModuleId::fixed("loop-basic"), ModuleId::fixed("context-simple"));
    let places = places(closed().await, closed().await);
    let mut empty = plan();
    let filled = fill_or_demo(&mut empty, &environment(&[]), &places).await.unwrap();
    assert!(matches!(filled, Filled::Demo(nothing) if nothing.missed.len() == 7));
    assert_eq!(empty.providers, [ModuleSpec::new(ModuleId::fixed("provider-demo"))]);
    assert_eq!(fill_or_demo(&mut empty, &environment(&[]), &places).await.unwrap(), Filled::Named);
    let tape = environment(&[("AMPLIFIER_REPLAY", "/nowhere")]);
    assert!(fill_or_demo(&mut plan(), &tape, &places).await.is_err());
}

#[tokio::test]
async fn an_ollama_server_is_found_with_a_model_that_it_has() {
    let tags = json!({"models": [{"name": "qwen3:4b", "model": "qwen3:4b"}]});
    let address = serves("/api/tags", tags).await;
    let found = detect(&environment(&[]), &places(address, closed().await)).await.unwrap();
    assert_eq!(found.spec.module.as_str(), "provider-ollama");
    let expected = json!({"base_url": format!("http://{address}"), "default_model": "qwen3:4b"});
    assert_eq!(Value::Object(found.spec.config), expected);
}

#[tokio::test]
async fn an_ollama_server_is_named_as_ollama_reads_it() {
    let tags = json!({"models": [{"name": "qwen3:4b", "model": "qwen3:4b"}]});
    let port = serves("/api/tags", tags).await.port();
    let nobody = closed().await.to_string();
    for named in [
        format!(":{port}"),
        format!("0.0.0.0:{port}"),
        format!("127.0.0.1:{port}"),
        format!("http://:{port}/"),
    ] {
        let environment = environment(&[("OLLAMA_HOST", &named), ("LLAMA_CPP_HOST", &nobody)]);
        let places = Places { patience: Duration::from_secs(10), ..Places::of(&environment) };
        let found = detect(&environment, &places).await.unwrap();
        assert_eq!(found.spec.config["base_url"], json!(format!("http://127.0.0.1:{port}")), "{named}");
    }
}

#[tokio::test]
async fn a_llama_cpp_server_is_asked_by_chat_completions() {
    let models = json!({"object": "list", "data": [{"id": "smol", "owned_by": "llamacpp"}]});
    let address = serves("/v1/models", models).await;
    let mut plan = MountPlan::new(ModuleId::fixed("loop-basic"), ModuleId::fixed("context-simple"));
    let places = places(closed().await, address);
    fill(&mut plan, &environment(&[]), &places).await.unwrap().unwrap();
    let [spec] = plan.providers.as_slice() else { panic!("{:?}", plan.providers) };
    assert_eq!(spec.module.as_str(), "provider-chat-completions");
    let expected = json!({"base_url": format!("http://{address}/v1"), "default_model": "smol"});
    assert_eq!(Value::Object(spec.config.clone()), expected);
    // A plan that has one keeps it.
    assert_eq!(fill(&mut plan, &environment(&[]), &places).await.unwrap(), None);
    assert_eq!(plan.providers.len(), 1);
}

#[tokio::test]
async fn what_was_looked_for_is_told() {
    let (silent, task) = silent().await;
    let empty = serves("/api/tags", json!({"models": []})).await;
    let mut places = places(empty, silent);
    places.patience = Duration::from_millis(200);
    let nothing = missed(&environment(&[("ANTHROPIC_API_KEY", " ")]), &places).await;
    let told = nothing.to_string();
    for word in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "GEMINI_API_KEY"] {
        assert!(told.contains(word), "{told}");
    }
    assert!(told.contains(&format!("llama.cpp: no answer from http://{silent}/v1 in time")), "{told}");
    let reason = nothing.missed.iter().find(|missed| missed.what == "Ollama").unwrap();
    // The server has 200 ms and a busy machine may need more, but it never counts as one that can be asked.
    assert!(reason.reason.contains(&empty.to_string()), "{told}");
    task.abort();
}

#[tokio::test]
async fn every_provider_stands_somewhere_and_no_value_is_told() {
    let environment =
        environment(&[("ANTHROPIC_API_KEY", "sk-secret-value"), ("GOOGLE_API_KEY", "sk-secret-too")]);
    let standings = standings(&environment, &places(closed().await, closed().await)).await.unwrap();
    let rows: Vec<_> = standings.providers.iter().map(|row| (row.name.as_str(), row.usable)).collect();
    let expected = [
        ("anthropic", true),
        ("azure-openai", false),
        ("chat-completions", false),
        ("demo", true),
        ("gemini", true),
        ("mock", true),
        ("ollama", false),
        ("openai", false),
        ("vllm", false),
    ];
    assert_eq!(rows, expected);
    assert_eq!(standings.detected.as_ref().map(ModuleId::as_str), Some("provider-anthropic"));
    let gemini = standings.providers.iter().find(|row| row.name == "gemini").unwrap();
    let set: Vec<_> =
        gemini.variables.iter().map(|variable| (variable.name.as_str(), variable.set)).collect();
    assert_eq!(set, [("GEMINI_API_KEY", false), ("GOOGLE_API_KEY", true)]);
    let openai = standings.providers.iter().find(|row| row.name == "openai").unwrap();
    assert_eq!(openai.variables, [Variable { name: "OPENAI_API_KEY".to_owned(), set: false }]);
    assert!(!json!(standings).to_string().contains("secret"));
}
