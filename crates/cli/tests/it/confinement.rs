//! What was fetched reads nothing of this machine but itself, and a download goes nowhere but where it was sent.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::desk::{Desk, Ran};
use crate::provider::{Manner, Server};

const SECRET: &str = "secret-of-the-user-9c2d";

/// A desk whose model is a server that remembers what it was asked, with a secret outside of everything that is fetched.
fn desk() -> (Desk, Server) {
    let (desk, server) = (Desk::new(), Server::start(Manner::Well));
    let provider = json!([{"module": "provider-chat-completions", "config": {"base_url": server.url(), "default_model": "m"}}]);
    desk.file("../home/settings.yaml", json!({"config": {"providers": provider}}).to_string());
    desk.file("../outside/secret.md", format!("{SECRET}\n"));
    desk.file("../outside/agents/secret.md", format!("{SECRET}\n"));
    desk.file("../user/secret.md", format!("{SECRET}\n"));
    (desk, server)
}

/// A fetched bundle with these keys and words, in a repository of its own.
fn commit(desk: &Desk, keys: &Value, words: &str) -> String {
    let repos = desk.path("repos");
    let repo = format!("far{}", std::fs::read_dir(&repos).map_or(0, Iterator::count));
    let dir = repos.join(&repo);
    std::fs::create_dir_all(dir.join("agents")).unwrap();
    desk.git(&repo, &["init", "--quiet", "--initial-branch=main"]);
    symlink(desk.path("outside/secret.md"), dir.join("link.md")).unwrap();
    symlink(desk.path("outside/secret.md"), dir.join("agents/link.md")).unwrap();
    symlink(desk.path("outside"), dir.join("folder")).unwrap();
    symlink("inside.md", dir.join("beside.md")).unwrap();
    let mut keys = keys.clone();
    keys["bundle"] = json!({"name": "far"});
    keys["session"] = json!({"orchestrator": "loop-basic", "context": "context-simple"});
    let bundle = format!("---\n{keys}\n---\n{words}\n");
    desk.commit(&repo, &[("bundle.md", &bundle), ("inside.md", "inside-of-it-51aa\n")]).0
}

/// Runs it, and says what the model saw.
fn run(desk: &Desk, server: &Server, keys: &Value, words: &str) -> (Ran, String) {
    let uri = commit(desk, keys, words);
    let before = server.asked().len();
    let ran = desk.with_git(&["run", "-v", "--bundle", &uri, "hi"]);
    (ran, server.asked().split_off(before).join("\n"))
}

#[test]
fn i25_a_fetched_bundle_reads_nothing_outside_of_itself() {
    let (desk, server) = desk();
    let outside = desk.path("outside/secret.md").display().to_string();
    let mut includes = vec![
        "../../outside/secret.md".to_owned(),
        "./folder/secret.md".to_owned(),
        "./link.md".to_owned(),
        "far:../../outside/secret.md".to_owned(),
        "far:link.md".to_owned(),
        outside.clone(),
        format!("file://{outside}"),
        format!("FILE://{outside}"),
        format!(" file://{outside}"),
        format!("file://localhost{outside}"),
        "~/secret.md".to_owned(),
    ];
    for include in includes.drain(..) {
        let (ran, asked) = run(&desk, &server, &json!({"includes": [include]}), "Hi.");
        assert!(
            !asked.contains(SECRET) && !ran.seen().contains(SECRET),
            "{include}: {}\n{asked}",
            ran.seen()
        );
        assert!(ran.seen().contains("leads out of"), "{include}: {}", ran.seen());
    }
    for context in
        ["../outside/secret.md", "link.md", "folder/secret.md", "far:link.md", "far:../secret.md", &outside]
    {
        let (ran, asked) = run(&desk, &server, &json!({"context": {"include": [context]}}), "Hi.");
        assert!(
            !asked.contains(SECRET) && !ran.seen().contains(SECRET),
            "{context}: {}\n{asked}",
            ran.seen()
        );
    }
    for agent in
        ["../../outside/secret", "link", "far:link", "far:../folder/agents/secret", "../folder/secret"]
    {
        let keys = json!({"agents": {"include": [agent]}, "tools": [{"module": "tool-task"}]});
        let (ran, asked) = run(&desk, &server, &keys, "Hi.");
        assert!(!asked.contains(SECRET) && !ran.seen().contains(SECRET), "{agent}: {}\n{asked}", ran.seen());
        let uri = commit(&desk, &keys, "Hi.");
        let shown = desk.with_git(&["agents", "show", agent, "--bundle", &uri]);
        assert!(!shown.seen().contains(SECRET), "{agent}: {}", shown.seen());
    }
}

#[test]
fn i25_a_fetched_bundle_mentions_and_takes_modules_from_nothing_outside_of_itself() {
    let (desk, server) = desk();
    let outside = desk.path("outside/secret.md").display().to_string();
    for mention in [
        "../../outside/secret.md",
        "link.md",
        "folder/secret.md",
        "far:link.md",
        "far:folder/secret.md",
        "far:../secret.md",
        "~/secret.md",
        &outside,
    ] {
        let (ran, asked) = run(&desk, &server, &json!({}), &format!("See @{mention} now."));
        assert!(
            !asked.contains(SECRET) && !ran.seen().contains(SECRET),
            "{mention}: {}\n{asked}",
            ran.seen()
        );
    }
    for source in [outside.as_str(), "~/x", "file:///x", " FILE:///x", "../../outside", "a/../../outside"] {
        let (ran, _) =
            run(&desk, &server, &json!({"tools": [{"module": "tool-x", "source": source}]}), "Hi.");
        assert_eq!(ran.code, 2, "{source}: {}", ran.seen());
        assert!(ran.seen().contains("leads out of"), "{source}: {}", ran.seen());
    }
}

#[test]
fn i25_a_fetched_bundle_reads_its_own_files() {
    let (desk, server) = desk();
    for (keys, words) in [
        (json!({"context": {"include": ["inside.md"]}}), "Hi."),
        (json!({"context": {"include": ["far:beside.md"]}}), "Hi."),
        (json!({}), "See @far:beside.md now."),
        (json!({"includes": ["./inside.md"]}), ""),
    ] {
        let (ran, asked) = run(&desk, &server, &keys, words);
        assert_eq!(ran.code, 0, "{keys} {words}: {}", ran.seen());
        assert!(asked.contains("inside-of-it-51aa"), "{keys} {words}: {}\n{asked}", ran.seen());
    }
}

#[test]
fn i25_a_trusted_project_shows_the_files_outside_that_it_includes() {
    let (desk, server) = desk();
    let outside = desk.path("outside/secret.md").display().to_string();
    desk.file(".amplifier/settings.yaml", "bundle: {active: ./b}\n");
    desk.file("part.md", "Part of the project.\n");
    desk.file("b/bundle.md", "---\nbundle: {name: b}\nincludes: [minimal, ../part.md]\n---\nHi.\n");
    assert_eq!(desk.with_git(&["trust"]).code, 0);
    assert_eq!(desk.with_git(&["run", "hi"]).code, 0);
    desk.file(
        "b/bundle.md",
        "---\nbundle: {name: b}\nincludes: [minimal, ../part.md, ../../outside/secret.md]\n---\n",
    );
    let before = server.asked().len();
    let ran = desk.with_git(&["run", "hi"]);
    assert_eq!(ran.code, 3, "{}", ran.seen());
    assert!(
        ran.stderr.contains(&format!("uses the path `{outside}` (bundle, `includes`)")),
        "{}",
        ran.seen()
    );
    assert_eq!(server.asked().len(), before);
    assert_eq!(desk.with_git(&["trust"]).code, 0);
    assert_eq!(desk.with_git(&["run", "hi"]).code, 0);
    assert!(server.asked().pop().unwrap().contains(SECRET));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i25_a_redirect_takes_no_credential_elsewhere_and_leads_nowhere_but_to_the_web() {
    use std::sync::{Arc, Mutex};

    use amplifier_testing::http::{Reply, Request, Server as Web};

    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let other = Web::start(move |request: &Request| {
        noted.lock().unwrap().push(format!("{} {:?}", request.path, request.headers));
        Reply::new(200, "---\nbundle: {name: far}\nincludes: [minimal]\n---\nFar.\n")
    })
    .await;
    let (desk, elsewhere) = (Desk::new(), other.url("/b.md"));
    desk.file("secret.md", SECRET);
    let file = format!("file://{}", desk.path("work/secret.md").display());
    let first = Web::start(move |request: &Request| match request.path.as_str() {
        "/other.md" => Reply::new(302, "").with("Location", &elsewhere),
        _ => Reply::new(302, "").with("Location", &file),
    })
    .await;
    let address = |path: &str| first.url(path).replace("http://", "http://me:t0ken-5f1e@");
    let show =
        |path: &str| tokio::task::block_in_place(|| desk.with_git(&["bundle", "show", &address(path)]));
    let ran = show("/other.md");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let seen = seen.lock().unwrap().join("\n").to_lowercase();
    assert!(seen.contains("/b.md"), "{seen}");
    for word in ["authorization", "t0ken", "referer", "cookie"] {
        assert!(!seen.contains(word), "{word}: {seen}");
    }
    let ran = show("/file.md");
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(!ran.seen().contains(SECRET) && !ran.seen().contains("t0ken"), "{}", ran.seen());
}
