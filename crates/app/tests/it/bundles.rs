//! Preparing bundles from real repositories: once with the network, then without; locked, moved and refused.

use amplifier_app::bundles;
use amplifier_app::library::Access;
use amplifier_app::open::{OpenRequest, OpenSession, Which, open};
use amplifier_app::prepare::{BundleFault, PrepareOptions, prepare_bundle};
use amplifier_app::registry::Registry;
use amplifier_app::sessions::{self, ForkRequest};
use amplifier_app::store::SessionStore;
use amplifier_app::{BundleStrictness, Freshness};
use amplifier_core::report::LoadOutcome;
use serde_json::json;

use crate::workshop::Workshop;

const SESSION: &str = "session: {orchestrator: loop-basic, context: context-simple}\n";

/// A bundle in the working folder that includes one from a repository, whose agent brings a module of another repository.
fn shop() -> (Workshop, [String; 2]) {
    let shop = Workshop::new();
    let (module, _) = shop.commit("module", &[("tool.py", "x = 1\n")]);
    let agent = format!(
        "---\nmeta: {{name: helper, description: d}}\ntools: [{{module: tool-far, source: \"{module}\"}}]\n---\nHelp."
    );
    let (lib, _) = shop.commit(
        "lib",
        &[
            ("bundle.yaml", "bundle: {name: lib}\nincludes: [./parts/x.yaml]\nagents: {include: [helper]}\ntools: [{module: tool-todo}]\n"),
            ("parts/x.yaml", "bundle: {name: part}\ntools: [{module: tool-search}]\n"),
            ("agents/helper.md", &agent),
        ],
    );
    shop.file(
        "b/bundle.yaml",
        format!("bundle: {{name: mine}}\nincludes: [\"{lib}\", ../side.yaml]\n{SESSION}"),
    );
    shop.file("side.yaml", "bundle: {name: side}\nhooks: [{module: hooks-logging}]\n");
    (shop, [lib, module])
}

#[tokio::test]
async fn what_was_prepared_opens_without_the_network() {
    let (shop, _) = shop();
    let (module, commit) = shop.commit("own", &[("sub/tool.py", "x = 1\n")]);
    shop.file("m/bundle.yaml", format!("bundle: {{name: m}}\nincludes: [../b]\ntools: [{{module: tool-own, source: \"{module}#subdirectory=sub\"}}, {{module: tool-bash, source: \"git+file:///nowhere@main\"}}]\nproviders: [{{module: provider-mock, config: {{responses: [ok]}}}}]\n"));
    let bundle = shop.prepare("./m").await.unwrap();
    assert_eq!(bundle.missing, [""; 0]);
    std::fs::remove_dir_all(shop.path("repos")).unwrap();
    let session = shop.open(&bundle).await;
    assert_eq!(session.session.execute("hi").await.unwrap(), "ok");
    let outcome = |id: &str| {
        let entry =
            session.session.report().modules.iter().find(|entry| entry.module.as_str() == id).unwrap();
        (entry.outcome.clone(), entry.found_in.as_deref().unwrap_or_default().to_owned())
    };
    // The source of a standard module is not even fetched.
    assert!(matches!(outcome("tool-bash"), (LoadOutcome::Mounted { .. }, place) if place.contains("native")));
    let (LoadOutcome::Failed { error }, _) = outcome("tool-own") else {
        panic!("nothing here runs folders yet")
    };
    assert!(error.contains(&commit) && error.contains("sub"), "found in the cache: {error}");
    // And the whole bundle can be prepared again.
    assert_eq!(shop.prepare("./m").await.unwrap().plan().unwrap(), bundle.plan().unwrap());
}

#[tokio::test]
async fn w19_agents_are_whole_in_a_prepared_bundle() {
    let (shop, _) = shop();
    let plan = shop.prepare("./b").await.unwrap().plan().unwrap();
    let helper = &plan.agents["helper"];
    assert_eq!(helper["instruction"], json!("Help."));
    assert_eq!(helper["tools"][0]["module"], json!("tool-far"));
}

#[tokio::test]
async fn w22_a_check_covers_includes_and_the_modules_of_agents() {
    let (shop, [lib, module]) = shop();
    let access = shop.access();
    assert_eq!(bundles::check("./b", &access).await.unwrap().changes, []);
    let (_, lib_commit) =
        shop.commit("lib", &[("parts/x.yaml", "bundle: {name: part}\ntools: [{module: tool-bash}]\n")]);
    let (_, module_commit) = shop.commit("module", &[("tool.py", "x = 2\n")]);
    let found = bundles::check("./b", &access).await.unwrap();
    assert_eq!(found.changes.len(), 2, "{found:?}");
    for (source, commit) in [(&lib, &lib_commit), (&module, &module_commit)] {
        assert!(
            found
                .changes
                .iter()
                .any(|change| change.source.contains(source.as_str()) && change.to.as_ref() == Some(commit)),
            "{found:?}"
        );
    }
    // A check changes nothing; an update does.
    assert!(
        shop.prepare("./b")
            .await
            .unwrap()
            .plan()
            .unwrap()
            .tools
            .iter()
            .all(|tool| tool.module.as_str() != "tool-bash")
    );
    let pending = bundles::update("./b", &access).await.unwrap();
    assert_eq!(pending.update.changes.len(), 2, "{:?}", pending.update);
    pending.write(&access).unwrap();
    assert!(
        !shop.path("work/b/bundle.lock").exists(),
        "a bundle that was not locked is not locked by an update"
    );
    assert!(
        shop.prepare("./b")
            .await
            .unwrap()
            .plan()
            .unwrap()
            .tools
            .iter()
            .any(|tool| tool.module.as_str() == "tool-bash")
    );
}

#[tokio::test]
async fn a_locked_bundle_is_the_same_whatever_moves_and_refuses_what_is_not_locked() {
    let (shop, [lib, _]) = shop();
    let access = shop.access();
    let (path, sources) = bundles::lock("./b", &access).await.unwrap();
    assert_eq!((path, sources), (shop.path("work/b/bundle.lock"), 3));
    let before = shop.prepare("./b").await.unwrap().plan().unwrap();
    let moved = [("bundle.yaml", "bundle: {name: lib}\ntools: [{module: tool-echo}]\n")];
    shop.commit("lib", &moved);
    // Another machine, which never saw the old commit under that name.
    std::fs::remove_dir_all(shop.path("home")).unwrap();
    assert_eq!(shop.prepare("./b").await.unwrap().plan().unwrap(), before);
    std::fs::rename(shop.path("repos"), shop.path("away")).unwrap();
    assert_eq!(shop.prepare("./b").await.unwrap().plan().unwrap(), before, "and offline");
    std::fs::rename(shop.path("away"), shop.path("repos")).unwrap();

    // A file beside the bundle that changed, and a source that is new.
    shop.file("side.yaml", "bundle: {name: side}\nhooks: [{module: hooks-backup}]\n");
    let drift = |fault: Option<BundleFault>| match fault {
        Some(BundleFault::Drift { problems, .. }) => problems.join("\n"),
        other => panic!("{other:?}"),
    };
    let told = drift(shop.prepare("./b").await.err());
    assert!(told.contains("`../side.yaml` is not what was locked"), "{told}");
    let (other, _) = shop.commit("other", &[("bundle.yaml", "bundle: {name: other}\n")]);
    shop.file(
        "b/bundle.yaml",
        format!("bundle: {{name: mine}}\nincludes: [\"{lib}\", \"{other}\"]\n{SESSION}"),
    );
    let told = drift(shop.prepare("./b").await.err());
    assert!(told.contains(&other) && told.contains("does not name it"), "{told}");

    let pending = bundles::update("./b", &access).await.unwrap();
    assert_eq!(pending.update.changes.len(), 4, "{:?}", pending.update.changes);
    assert!(
        drift(shop.prepare("./b").await.err()).contains(&other),
        "nothing is written before it was shown"
    );
    pending.write(&access).unwrap();
    let plan = shop.prepare("./b").await.unwrap().plan().unwrap();
    assert_eq!(plan.tools.iter().map(|tool| tool.module.as_str()).collect::<Vec<_>>(), ["tool-echo"]);
}

#[tokio::test]
async fn a_cache_that_was_tampered_with_does_not_pass_a_lock() {
    let (shop, _) = shop();
    bundles::lock("./b", &shop.access()).await.unwrap();
    let kept = shop.home().git_cache();
    for entry in std::fs::read_dir(kept).unwrap() {
        let file = entry.unwrap().path().join("parts/x.yaml");
        if file.exists() {
            let text = "bundle: {name: part}\ntools: [{module: tool-bash}]\n";
            std::fs::write(file, text).unwrap();
        }
    }
    assert!(matches!(shop.prepare("./b").await.err(), Some(BundleFault::Drift { .. })));
}

#[tokio::test]
async fn a_bundle_from_elsewhere_is_not_locked_where_it_lies() {
    let (shop, [lib, _]) = shop();
    let refused = bundles::lock(&lib, &shop.access()).await.unwrap_err();
    assert!(matches!(refused, BundleFault::NoFolder { .. }), "{refused}");
}

#[tokio::test]
async fn names_lead_to_bundles_also_as_namespaces_and_are_checked_first() {
    let (shop, [lib, _]) = shop();
    let access = shop.access();
    let (name, _) = bundles::add("./b", None, &access).await.unwrap();
    assert_eq!(name, "mine");
    bundles::add(&lib, Some("shelf"), &access).await.unwrap();
    let names = Registry::new(&shop.home()).read().unwrap().names();
    assert_eq!(names["mine"], format!("file://{}", shop.path("work/b").display()));
    // From another folder, by name, and by a path in what the name stands for.
    shop.file(
        "c/bundle.yaml",
        format!("bundle: {{name: c}}\nincludes: [mine, \"shelf:parts/x\"]\n{SESSION}"),
    );
    let plan = shop.prepare("./c").await.unwrap().plan().unwrap();
    let tools: Vec<_> = plan.tools.iter().map(|tool| tool.module.as_str()).collect();
    assert_eq!(tools, ["tool-search", "tool-todo"]);
    assert!(bundles::add("./missing", None, &access).await.is_err());
    let secret =
        bundles::add("git+https://me:hunter2@example.invalid/r@main", None, &access).await.err().unwrap();
    assert!(secret.to_string().contains("credential") && !secret.to_string().contains("hunter2"), "{secret}");
}

#[tokio::test]
async fn strict_mode_refuses_what_lenient_mode_tells() {
    let shop = Workshop::new();
    shop.file("bundle.yaml", format!("bundle: {{name: m}}\n{SESSION}tools: [{{module: tool-x, source: \"git+file:///nowhere/at/all@main\"}}]\n"));
    let bundle = shop.prepare("./").await.unwrap();
    assert!(
        bundle.missing[0].contains("tool-x") && bundle.missing[0].contains("/nowhere/at/all"),
        "{:?}",
        bundle.missing
    );
    let options = PrepareOptions { strictness: BundleStrictness::Strict, ..PrepareOptions::default() };
    let refused = prepare_bundle("./", &shop.access(), options).await.err();
    assert!(matches!(refused, Some(BundleFault::Modules { .. })));
}

#[tokio::test]
async fn a_bundle_that_makes_no_session_says_what_is_missing_and_where() {
    let shop = Workshop::new();
    shop.file("part.yaml", "bundle: {name: part}\ntools: [{module: tool-todo}]\n");
    let fault = shop.prepare("./part.yaml").await.unwrap().plan().unwrap_err();
    assert!(fault.to_string().contains("`part` makes no session"), "{fault}");
    assert!(fault.hint().unwrap().contains("foundation"));
}

#[tokio::test]
async fn a_resumed_session_takes_its_modules_as_its_bundle_had_locked_them() {
    let shop = Workshop::new();
    let (module, locked) = shop.commit("own", &[("tool.py", "x = 1\n")]);
    let tools = format!("tools: [{{module: tool-own, source: \"{module}\"}}]\n");
    let provider = "providers: [{module: provider-mock, config: {responses: [ok]}}]\n";
    shop.file("b/bundle.yaml", format!("bundle: {{name: b}}\n{SESSION}{tools}{provider}"));
    shop.file("c/bundle.yaml", format!("bundle: {{name: c}}\n{SESSION}{tools}{provider}"));
    bundles::lock("./b", &shop.access()).await.unwrap();
    let first = shop.open(&shop.prepare("./b").await.unwrap()).await;
    let id = first.session.id().clone();
    first.session.cleanup().await;
    drop(first);

    // Somebody else brings the branch up to date, and the bundle is gone.
    let (_, newer) = shop.commit("own", &[("tool.py", "x = 2\n")]);
    let fresh = Access { freshness: Freshness::Refresh, ..shop.access() };
    let moved = prepare_bundle("./c", &fresh, PrepareOptions::default()).await.unwrap();
    std::fs::remove_dir_all(shop.path("work/b")).unwrap();

    let found = |session: &OpenSession| {
        let entry = session.session.report().failed().next().unwrap().to_string();
        (entry.contains(&locked), entry.contains(&newer))
    };
    let resumed = open(shop.request(Which::Resume(id.clone(), None))).await.unwrap();
    assert_eq!(found(&resumed), (true, false), "{:?}", resumed.session.report());
    let lock = resumed.folder.lock();
    assert!(lock.is_file());
    resumed.session.cleanup().await;
    drop(resumed);

    // A fork takes the same.
    let store = SessionStore::new(shop.home());
    let fork = sessions::fork(&store, &id, &ForkRequest::default()).unwrap();
    let forked = open(shop.request(Which::Resume(fork.id, None))).await.unwrap();
    assert_eq!(found(&forked), (true, false), "{:?}", forked.session.report());
    forked.session.cleanup().await;
    drop(forked);

    // With the plan of another bundle the old lock has nothing to say any more.
    let plan = moved.plan().unwrap();
    let (prompt, resolver) = (Some(moved.prompt()), moved.resolver(&plan));
    let request = shop.request(Which::Resume(id, Some(Box::new(plan))));
    let other = open(OpenRequest { prompt, resolver, ..request }).await.unwrap();
    assert_eq!(found(&other), (false, true), "{:?}", other.session.report());
    assert!(!lock.exists());
}
