//! Credentials in addresses: they are used, and are nowhere to be seen.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use amplifier_app::bundles;
use amplifier_app::open::{OpenRequest, OpenSession, Which, open};
use amplifier_app::prepare::{BundleFault, PlanFile, PrepareOptions, prepare_bundle};
use amplifier_app::{BundleStrictness, tree};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::workshop::Workshop;

const TOKEN: &str = "t0ken-secret";
/// `u:` and the token, as a header has them.
const HEADER: &str = "authorization: basic dtp0mgtlbi1zzwnyzxq=";

/// A workshop whose repositories have an address on the loopback, with credentials; git finds them on the disk.
fn shop() -> (Workshop, impl Fn(&str) -> String) {
    let shop = Workshop::new();
    let host = "127.0.0.1:9/repos";
    let config =
        format!("[url \"file://{}/\"]\n\tinsteadOf = http://{host}/\n", shop.path("repos").display());
    std::fs::write(shop.path("user/.gitconfig"), config).unwrap();
    (shop, move |repo: &str| format!("git+http://u:{TOKEN}@{host}/{repo}@main"))
}

fn bundle(shop: &Workshop, address: impl Fn(&str) -> String) {
    shop.commit("module", &[("tool.py", "x = 1\n")]);
    let agent = "---\nmeta: {name: helper, description: d}\n---\nHelp.";
    shop.commit(
        "lib",
        &[("bundle.yaml", "bundle: {name: lib}\nagents: {include: [helper]}\n"), ("agents/helper.md", agent)],
    );
    shop.scripted(
        &format!(
            "includes: ['{}']\ntools:\n  - module: tool-far\n    source: {}",
            address("lib"),
            address("module")
        ),
        &json!(["ok"]),
        "Be brief.",
    );
}

/// The files below a folder that hold the token.
fn giving_away(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(giving_away(&path));
        } else if std::fs::read(&path).is_ok_and(|text| String::from_utf8_lossy(&text).contains(TOKEN)) {
            found.push(path);
        }
    }
    found
}

/// How the module with the address came up.
fn outcome(session: &OpenSession) -> String {
    let modules = &session.session.report().modules;
    modules.iter().find(|entry| entry.to_string().contains("tool-far")).unwrap().to_string()
}

#[tokio::test]
async fn a_bundle_with_credentials_works_and_gives_none_away() {
    let (shop, address) = shop();
    bundle(&shop, &address);
    let prepared = shop.prepare("./").await.unwrap();
    assert_eq!(prepared.missing, Vec::<String>::new());
    let hidden = "git+http://***@127.0.0.1:9/repos/module@main";
    let plan = prepared.loaded.plan.to_json();
    assert_eq!(plan["tools"][0]["source"], json!(hidden));
    // Told with the line and the cure, for the module and for the include.
    let told: Vec<_> = prepared.notices().iter().map(|notice| notice.render()).collect();
    let of =
        |words: &str| told.iter().find(|told| told.contains(words)).unwrap_or_else(|| panic!("{told:?}"));
    assert!(
        of(hidden).contains("work/bundle.md:10:13: ") && of(hidden).contains("credential helper"),
        "{told:?}"
    );
    assert!(of("repos/lib@main").contains("work/bundle.md:7:"), "{told:?}");
    let explained: Vec<_> = prepared.loaded.plan.explain().iter().map(ToString::to_string).collect();
    let drawn = serde_json::to_string(&tree(&prepared.loaded.graph)).unwrap();
    for shown in [told.join("\n"), explained.join("\n"), drawn] {
        assert!(!shown.contains(TOKEN), "{shown}");
    }

    bundles::lock("./", &shop.access()).await.unwrap();
    let session = shop.open(&shop.prepare("./").await.unwrap()).await;
    session.session.execute("hi").await.unwrap();
    let (id, first) = (session.session.id().clone(), outcome(&session));
    session.session.cleanup().await;
    drop(session);
    assert!(shop.home().session(&id).lock().is_file());
    assert_eq!(giving_away(&shop.path("home")), Vec::<PathBuf>::new());
    assert_eq!(
        giving_away(&shop.path("work")),
        [shop.path("work/bundle.md")],
        "only where its author wrote it"
    );

    // The session goes on, with the same plan and the module from the cache.
    let again = open(shop.request(Which::Resume(id, None))).await.unwrap();
    assert!(again.session.plan_change().is_none());
    assert_eq!(outcome(&again), first);
    again.session.cleanup().await;
}

#[tokio::test]
async fn strict_refuses_a_credential_and_shows_none() {
    let (shop, address) = shop();
    bundle(&shop, &address);
    let options = PrepareOptions { strictness: BundleStrictness::Strict, ..PrepareOptions::default() };
    let Err(BundleFault::Load(error)) = prepare_bundle("./", &shop.access(), options).await else {
        panic!("it was not refused")
    };
    let told: String =
        amplifier_app::prepare::complaints(&error).iter().map(|notice| notice.render()).collect();
    assert!(told.contains("holds a credential") && !told.contains(TOKEN), "{told}");
}

#[tokio::test]
async fn a_plan_file_with_credentials_works_and_gives_none_away() {
    let (shop, address) = shop();
    shop.commit("module", &[("tool.py", "x = 1\n")]);
    let plan = json!({
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-mock", "config": {"responses": ["ok"]}}],
        "tools": [{"module": "tool-far", "source": address("module"), "config": {"source": "http://u:kept@h/x"}}],
    });
    shop.file("plan.json", serde_json::to_string_pretty(&plan).unwrap());
    let file = PlanFile::read(&shop.path("work/plan.json")).unwrap();
    let told: Vec<_> = file.validation.warnings().map(|check| file.describe(check)).collect();
    assert!(told[0].contains("plan.json:") && told[0].contains("credential helper"), "{told:?}");
    let typed = file.plan().unwrap();
    for shown in [file.value().to_string(), serde_json::to_string(&typed).unwrap(), told.join("\n")] {
        assert!(!shown.contains(TOKEN), "{shown}");
    }
    // What a module is configured with is its own affair.
    assert_eq!(typed.tools[0].config["source"], json!("http://u:kept@h/x"));
    let resolver = file.resolver(&typed, &shop.access());
    let request = shop.request(Which::New(Box::new(typed)));
    let session = open(OpenRequest { resolver, ..request }).await.unwrap();
    let found = outcome(&session);
    assert!(!found.contains("cannot") || !found.contains("git"), "{found}");
    session.session.execute("hi").await.unwrap();
    session.session.cleanup().await;
    assert_eq!(giving_away(&shop.path("home")), Vec::<PathBuf>::new());
    assert!(shop.home().cache().join("git").is_dir(), "the module was fetched");
}

#[tokio::test]
async fn a_plan_that_is_changed_by_hand_is_kept_without_its_credentials_too() {
    let (shop, address) = shop();
    shop.commit("module", &[("tool.py", "x = 1\n")]);
    shop.scripted("", &json!(["ok"]), "Be brief.");
    let mut plan = shop.prepare("./").await.unwrap().loaded.plan.to_json();
    plan["tools"] = json!([{"module": "tool-far", "source": address("module")}]);
    let plan = serde_json::from_value(plan).unwrap();
    let session = open(shop.request(Which::New(Box::new(plan)))).await.unwrap();
    let id = session.session.id().clone();
    session.session.execute("hi").await.unwrap();
    session.session.cleanup().await;
    drop(session);
    assert_eq!(giving_away(&shop.path("home")), Vec::<PathBuf>::new());
    assert!(shop.home().cache().join("git").is_dir(), "the module was fetched");
    // One that an older program kept is mended when the session goes on.
    let kept = shop.home().session(&id).mount_plan();
    let text = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, text.replace("***@", &format!("u:{TOKEN}@"))).unwrap();
    assert_eq!(giving_away(&shop.path("home")), [kept]);
    let again = open(shop.request(Which::Resume(id, None))).await.unwrap();
    again.session.cleanup().await;
    assert_eq!(giving_away(&shop.path("home")), Vec::<PathBuf>::new());
}

/// A server that wants to know who asks, and then has nothing.
struct Porter {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Porter {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                        break;
                    }
                    head.extend(byte);
                }
                let head = String::from_utf8_lossy(&head).to_lowercase();
                let status = match head.contains("\r\nauthorization: ") {
                    true => "404 Not Found",
                    false => "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"",
                };
                kept.lock().unwrap().push(head);
                let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                // Who has heard enough may be gone.
                stream.write_all(reply.as_bytes()).await.ok();
            }
        });
        Self { port, heads, serving }
    }

    fn heads(&self) -> Vec<String> {
        std::mem::take(&mut self.heads.lock().unwrap())
    }
}

impl Drop for Porter {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[tokio::test]
async fn what_was_written_reaches_the_server_and_what_is_shown_does_not() {
    let porter = Porter::start().await;
    let shop = Workshop::new();
    let source = |user: &str| format!("git+http://{user}@127.0.0.1:{}/repos/module@main", porter.port);
    for (user, arrives) in [(format!("u:{TOKEN}"), true), ("***".to_owned(), false)] {
        let tools = format!("tools: [{{module: tool-far, source: '{}'}}]", source(&user));
        shop.scripted(&tools, &json!(["ok"]), "Be brief.");
        let prepared = shop.prepare("./").await.unwrap();
        assert_eq!(prepared.missing.len(), 1, "{:?}", prepared.missing);
        assert!(
            prepared.missing[0].contains(&source("***")) && !prepared.missing[0].contains(TOKEN),
            "{:?}",
            prepared.missing
        );
        let heads = porter.heads();
        assert!(!heads.is_empty());
        assert_eq!(heads.iter().any(|head| head.contains(HEADER)), arrives, "{heads:?}");
        assert_eq!(heads.iter().any(|head| head.contains("\r\nauthorization: ")), arrives, "{heads:?}");
    }
}

#[tokio::test]
async fn an_address_that_was_overridden_as_part_of_a_whole_shows_none_either() {
    let shop = Workshop::new();
    let session = "session: {orchestrator: loop-basic, context: context-simple}\n";
    let entry = |address: &str| format!("[{{module: tool-todo, source: \"git+http://{address}/r@main\"}}]");
    let base =
        format!("bundle: {{name: base}}\n{session}tools: {}\n", entry(&format!("u:{TOKEN}@127.0.0.1:9")));
    let top =
        format!("bundle: {{name: b}}\nincludes: [./base.yaml]\ntools: !replace {}\n", entry("127.0.0.1:9"));
    shop.file("base.yaml", base).file("bundle.yaml", top);
    let settings = shop.prepare("./").await.unwrap().loaded.plan.explain();
    let source = settings.iter().find(|setting| setting.pointer() == "/tools/0/source").unwrap();
    assert_eq!(source.overrode.len(), 1, "{source}");
    assert!(!format!("{settings:?}").contains(TOKEN), "{source}");
}
