//! Bundles from servers and from archives, the same as those of folders.

use std::io::Write;

use amplifier_app::Freshness;
use amplifier_app::library::Access;
use amplifier_app::prepare::{PrepareOptions, prepare_bundle};
use amplifier_testing::http::{Reply, Request, Server};
use zip::write::SimpleFileOptions;

use crate::workshop::{Workshop, system};

const BUNDLE: &str = "---\nbundle: {name: far}\nsession: {orchestrator: loop-basic, context: context-simple}\n\
                      providers: [{module: provider-mock, config: {responses: [from afar]}}]\nNOTES---\nFar.\n";

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[tokio::test]
async fn w9_a_bundle_of_a_server_answers_also_when_the_server_is_gone() {
    let shop = Workshop::new();
    // The address has a query, and another query is another bundle.
    let server = Server::start(|request: &Request| match (request.path.as_str(), request.query.as_str()) {
        ("/b/bundle.md", "token=1") => {
            Reply::new(200, BUNDLE.replace("NOTES", "tools: [{module: tool-todo}]\n"))
        }
        ("/b/bundle.md", "token=2") => Reply::new(200, BUNDLE.replace("NOTES", "")),
        _ => Reply::new(404, "nothing"),
    })
    .await;
    let [one, two] = ["1", "2"].map(|token| server.url(&format!("/b/bundle.md?token={token}")));
    let tools = async |uri: &str| shop.prepare(uri).await.unwrap().plan().unwrap().tools.len();
    assert_eq!((tools(&one).await, tools(&two).await), (1, 0));
    let asked = server.log().len();
    drop(server);
    let bundle = shop.prepare(&one).await.unwrap();
    assert_eq!(bundle.missing, [""; 0]);
    let session = shop.open(&bundle).await;
    assert_eq!(session.session.execute("hi").await.unwrap(), "from afar");
    assert!(system(&session).await.contains("Far."));
    assert_eq!(asked, 2, "one question each");
}

#[tokio::test]
async fn w9_a_bundle_of_an_archive_is_whole_and_a_refresh_sees_a_new_one() {
    let shop = Workshop::new();
    let texts = |notes: &str| {
        let head = "includes: [./more.yaml]\ncontext: {include: [notes.md]}\n";
        let bundle = BUNDLE.replace("NOTES", head);
        let more = "bundle: {name: more}\ntools: [{module: tool-todo}]\n";
        archive(&[("top/b/bundle.md", &bundle), ("top/b/more.yaml", more), ("top/b/notes.md", notes)])
    };
    let served = std::sync::Arc::new(std::sync::Mutex::new(texts("OLD NOTES")));
    let current = served.clone();
    let server = Server::start(move |request: &Request| match request.path.as_str() {
        "/all.zip" => Reply::new(200, current.lock().unwrap().clone()),
        _ => Reply::new(404, "nothing"),
    })
    .await;
    shop.file("local.zip", texts("LOCAL NOTES"));
    let far = format!("zip+{}", server.url("/all.zip#subdirectory=top/b"));
    let near = format!("zip+file://{}#subdirectory=top/b", shop.path("work/local.zip").display());
    for (uri, notes) in [(&far, "OLD NOTES"), (&near, "LOCAL NOTES")] {
        let bundle = shop.prepare(uri).await.unwrap();
        assert_eq!(bundle.plan().unwrap().tools.len(), 1, "{uri}");
        let session = shop.open(&bundle).await;
        let text = system(&session).await;
        assert!(text.contains("Far.") && text.contains(notes), "{text}");
    }
    *served.lock().unwrap() = texts("NEW NOTES");
    let fresh = Access { freshness: Freshness::Refresh, ..shop.access() };
    let bundle = prepare_bundle(&far, &fresh, PrepareOptions::default()).await.unwrap();
    assert!(system(&shop.open(&bundle).await).await.contains("NEW NOTES"));
}
