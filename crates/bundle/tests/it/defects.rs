//! One test for each defect of the public implementation that concerns this crate, named after its number.

use std::path::Path;

use amplifier_bundle::bundle::read;
use amplifier_bundle::disk::Disk;
use amplifier_bundle::error::BundleError;
use amplifier_bundle::home::Home;
use amplifier_bundle::include::LoadOptions;
use amplifier_bundle::load::load_bundle;
use amplifier_bundle::notice::{Code, Severity};
use amplifier_bundle::yaml::YamlLimits;
use serde_json::json;

use crate::memory::{Memory, codes, modules};

#[tokio::test]
async fn w01_relative_includes_start_at_the_declaring_file() {
    let world = Memory::new(&[
        ("/b/top/bundle.md", "---\nincludes: [../shared/a.yaml]\n---\n"),
        ("/b/shared/a.yaml", "includes: [./b.yaml]\ntools: [{module: tool-a}]\n"),
        ("/b/shared/b.yaml", "tools: [{module: tool-b}]\n"),
        // What a process standing in `/` would find instead.
        ("/shared/a.yaml", "tools: [{module: tool-wrong}]\n"),
    ]);
    assert_eq!(modules(&world.plan("/b/top").await, "tools"), ["tool-b", "tool-a"]);
    let missing = Memory::new(&[("/x/bundle.md", "---\nincludes: [./gone.yaml]\n---\n")]);
    let loaded = missing.load("/x").await.unwrap();
    assert_eq!(codes(&loaded), [Code::IncludeFailed], "never an empty bundle in silence");
    assert!(matches!(missing.strict("/x").await, Err(BundleError::Include { .. })));
}

#[tokio::test]
async fn w02_bundles_that_include_each_other_load_and_the_circle_is_told() {
    // Two parts of one repository, each by `#subdirectory=`.
    let mutual = Memory::new(&[
        (
            "/c/one/bundle.yaml",
            "includes: ['git+https://h/r@main#subdirectory=two']\ntools: [{module: tool-one}]\n",
        ),
        (
            "/c/two/bundle.yaml",
            "includes: ['git+https://h/r@main#subdirectory=one']\ntools: [{module: tool-two}]\n",
        ),
    ])
    .tree("git+https://h/r@main", "/c");
    let loaded = mutual.load("git+https://h/r@main#subdirectory=one").await.unwrap();
    assert_eq!(modules(&loaded.plan.to_json(), "tools"), ["tool-two", "tool-one"]);
    assert_eq!(codes(&loaded), [Code::Cycle]);
    // Two siblings, each including the other.
    let siblings = Memory::new(&[
        ("/s/bundle.yaml", "includes: [./b.yaml, ./c.yaml]\n"),
        ("/s/b.yaml", "includes: [./c.yaml]\ntools: [{module: tool-b}]\n"),
        ("/s/c.yaml", "includes: [./b.yaml]\ntools: [{module: tool-c}]\n"),
    ]);
    let loaded = siblings.load("/s").await.unwrap();
    assert_eq!(modules(&loaded.plan.to_json(), "tools"), ["tool-c", "tool-b"]);
    assert_eq!(codes(&loaded), [Code::Cycle]);
}

#[tokio::test]
async fn w03_strict_mode_reports_what_is_amiss_at_any_depth_with_the_way_to_it() {
    let world = Memory::new(&[
        ("/b/bundle.yaml", "bundle: {name: top}\nincludes: [./mid.yaml]\n"),
        ("/b/mid.yaml", "bundle: {name: mid}\nincludes: [./low.yaml]\n"),
        ("/b/low.yaml", "bundle: {name: low}\nincludes: [./gone.yaml]\n"),
    ]);
    let Err(BundleError::Include { chain, reference, place, .. }) = world.strict("/b").await else {
        panic!()
    };
    assert_eq!(chain, ["`top` (/b/bundle.yaml)", "`mid` (/b/mid.yaml)", "`low` (/b/low.yaml)"]);
    assert_eq!((reference.as_str(), place.to_string().as_str()), ("./gone.yaml", "/b/low.yaml:2:12"));
    let circle = Memory::new(&[
        ("/b/top.yaml", "includes: [./mid.yaml]\n"),
        ("/b/mid.yaml", "includes: [./low.yaml]\n"),
        ("/b/low.yaml", "includes: [./mid.yaml]\n"),
    ]);
    let Err(BundleError::Cycle { chain, .. }) = circle.strict("/b/top.yaml").await else { panic!() };
    assert_eq!(chain, ["`/b/mid.yaml`", "`/b/low.yaml`", "`/b/mid.yaml`"]);
}

#[tokio::test]
async fn w04_a_namespace_that_is_only_registered_brings_its_whole_content() {
    let world = Memory::new(&[
        ("/b/bundle.yaml", "includes: [ns, ns:behaviors/x]\n"),
        ("/ns/bundle.yaml", "bundle: {name: ns}\nincludes: [./base.yaml]\ntools: [{module: tool-ns}]\n"),
        ("/ns/base.yaml", "tools: [{module: tool-base}]\n"),
        ("/ns/behaviors/x.yaml", "tools: [{module: tool-x}]\n"),
    ])
    .tree("git+https://h/ns@main", "/ns")
    .register("ns", "git+https://h/ns@main");
    assert_eq!(modules(&world.plan("/b").await, "tools"), ["tool-base", "tool-ns", "tool-x"]);
    // The same the other way round, and by name alone.
    let loaded = world.load("ns:behaviors/x").await.unwrap();
    assert_eq!(modules(&loaded.plan.to_json(), "tools"), ["tool-x"]);
    assert_eq!(modules(&world.plan("ns").await, "tools"), ["tool-base", "tool-ns"]);
}

#[tokio::test]
async fn w10_namespaces_of_nested_bundles_and_of_roots_below_the_top_lead_to_their_own_folder() {
    let world = Memory::new(&[
        ("/c/pack/bundle.md", "---\nbundle: {name: pack}\nincludes: [pack:sub, inner:parts/p]\n---\n"),
        ("/c/pack/sub/bundle.yaml", "bundle: {name: inner}\ntools: [{module: tool-inner, source: ./m}]\n"),
        ("/c/pack/sub/parts/p.yaml", "tools: [{module: tool-right}]\n"),
        ("/c/parts/p.yaml", "tools: [{module: tool-wrong}]\n"),
        ("/c/sub/bundle.yaml", "tools: [{module: tool-wrong}]\n"),
    ])
    .tree("git+https://h/r@main", "/c");
    let loaded = world.load("git+https://h/r@main#subdirectory=pack").await.unwrap();
    let plan = loaded.plan.to_json();
    assert_eq!(modules(&plan, "tools"), ["tool-inner", "tool-right"]);
    assert_eq!(plan["tools"][0]["source"], "git+https://h/r@c0ffee#subdirectory=pack/sub/m");
    let dirs: Vec<_> =
        loaded.composed.namespaces.iter().map(|own| (own.name.as_str(), own.dir.as_path())).collect();
    assert_eq!(dirs, [("inner", Path::new("/c/pack/sub")), ("pack", Path::new("/c/pack"))]);
}

#[test]
fn w11_every_mistake_is_a_typed_error_with_file_and_key() {
    let fails = |name: &str, text: &str| {
        let home = Home::local(format!("/b/{name}"), "/b").into();
        read(text.into(), &home, &YamlLimits::default()).unwrap_err()
    };
    for section in ["bundle", "includes", "session", "providers", "tools", "hooks", "context", "spawn"] {
        let BundleError::Invalid(notices) = fails("x.yaml", &format!("{section}: text\n")) else {
            panic!("{section}")
        };
        assert_eq!(notices[0].code, Code::WrongType);
        let text = notices[0].to_string();
        assert!(text.starts_with("/b/x.yaml:1:") && text.contains(&format!("`{section}")), "{text}");
    }
    let error = fails("x.md", "---\ntools: [\n---\n");
    assert_eq!(error.place().unwrap().to_string(), "/b/x.md:2:8");
    assert!(matches!(error, BundleError::Yaml(_)));
    let home = Home::local("/b/x.md", "/b").into();
    let bytes = b"---\nbundle: {name: x}\n---\nok\nbad \xff\n".to_vec();
    let error = read(bytes, &home, &YamlLimits::default()).unwrap_err();
    assert!(matches!(error, BundleError::NotText { line: 5, .. }), "{error}");
}

#[tokio::test]
async fn w12_what_has_no_effect_is_told_once_and_is_an_error_in_strict_mode() {
    let bundle = "---\nbundle: {name: b, nmae: x}\ntolls: []\nincludes: [{behaviour: x}]\n\
                  context: {include: [gone.md]}\nagents: {include: [gone]}\n---\n";
    let world = Memory::new(&[("/b/bundle.md", bundle)]);
    let loaded = world.load("/b").await.unwrap();
    let unknown = Code::UnknownKey;
    assert_eq!(
        codes(&loaded),
        [unknown, unknown, Code::NoEffect, unknown, Code::MissingAgent, Code::MissingContext]
    );
    assert!(
        loaded.notices().iter().all(|notice| notice.severity == Severity::Warning && notice.place.is_some())
    );
    assert_eq!(loaded.notices()[0].hint.as_deref(), Some("did you mean `name`?"));
    assert_eq!(loaded.notices()[3].hint.as_deref(), Some("did you mean `tools`?"));
    let Err(BundleError::Invalid(notices)) = world.strict("/b").await else { panic!() };
    assert_eq!(notices.len(), 6, "all of them at once");
}

#[cfg(unix)]
#[tokio::test]
async fn w13_includes_context_and_agents_stay_inside_what_was_fetched() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::TempDir::new().unwrap();
    let root = std::fs::canonicalize(dir.path()).unwrap();
    std::fs::create_dir_all(root.join("b/agents")).unwrap();
    std::fs::write(root.join("secret.md"), "S").unwrap();
    symlink(root.join("secret.md"), root.join("b/agents/spy.md")).unwrap();
    symlink(root.join("secret.md"), root.join("b/link.md")).unwrap();
    let bundle = "bundle: {name: b}\nagents: {include: [spy, ../../secret]}\n\
                  context: {include: [link.md, ../secret.md, b:../secret.md], abs: /etc/hostname}\n";
    std::fs::write(root.join("b/bundle.yaml"), bundle).unwrap();
    let loaded = load_bundle(&Disk::default(), "./b", &root, &LoadOptions::default()).await.unwrap();
    assert_eq!(loaded.context, []);
    assert_eq!(
        codes(&loaded).iter().filter(|code| **code == Code::Escape).count(),
        4,
        "{:#?}",
        loaded.notices()
    );
    assert!(!loaded.plan.to_json().to_string().contains("instruction"));

    // A fetched bundle sees nothing of this machine, however it spells it.
    let reach =
        "[/secret.yaml, ../secret.yaml, 'file:///secret.yaml', 'git+file:///r', 'me:../secret', '~/x']";
    let world = Memory::new(&[
        ("/c/bundle.yaml", &format!("bundle: {{name: me}}\nincludes: {reach}\n")),
        ("/secret.yaml", "tools: [{module: tool-secret}]\n"),
    ])
    .tree("git+https://h/r@main", "/c");
    let loaded = world.load("git+https://h/r@main").await.unwrap();
    assert_eq!(loaded.plan.to_json(), json!({}));
    assert_eq!(codes(&loaded), [Code::IncludeFailed; 6]);
    assert_eq!(world.fetched.lock().unwrap().len(), 1, "nothing local was even asked for");
    let sources = Memory::new(&[("/c/bundle.yaml", "tools: [{module: tool-x, source: ../../etc}]\n")])
        .tree("git+https://h/r@main", "/c");
    let Err(BundleError::Invalid(notices)) = sources.load("git+https://h/r@main").await else { panic!() };
    assert_eq!(notices[0].code, Code::Escape);
}

#[tokio::test]
async fn w19_agents_are_filled_without_being_asked() {
    let world = Memory::new(&[
        ("/b/bundle.md", "---\nbundle: {name: b}\nagents: {include: [b:one]}\n---\n"),
        (
            "/b/agents/one.md",
            "---\nmeta: {name: one, description: One.}\ntools: [{module: tool-x, source: ./x}]\n---\nBe.\n",
        ),
    ]);
    let expected = json!({"agents": {"b:one": {
        "name": "b:one", "description": "One.",
        "tools": [{"module": "tool-x", "source": "/b/agents/x"}], "instruction": "Be.",
    }}});
    assert_eq!(world.plan("/b").await, expected);
}

#[tokio::test]
async fn w20_what_the_bundle_says_about_an_agent_wins_even_when_it_is_empty() {
    let world = Memory::new(&[
        ("/b/bundle.yaml", "agents: {one: {tools: [], description: '', hooks: null}}\n"),
        (
            "/b/agents/one.md",
            "---\nmeta: {description: File.}\ntools: [{module: t}]\nhooks: [{module: h}]\n---\nText.\n",
        ),
    ]);
    let agent = world.plan("/b").await["agents"]["one"].clone();
    assert_eq!((&agent["tools"], &agent["description"]), (&json!([]), &json!("")));
    assert_eq!(agent["instruction"], "Text.");
}

#[tokio::test]
async fn w21_an_overlay_without_a_version_keeps_the_one_below_and_the_root_keeps_its_includes() {
    let world = Memory::new(&[
        ("/b/bundle.yaml", "bundle: {name: top}\nincludes: [./base.yaml]\n"),
        ("/b/base.yaml", "bundle: {name: base, version: 2.1, display_name: Base}\nincludes: [./low.yaml]\n"),
        ("/b/low.yaml", "bundle: {version: 9.9.9}\n"),
    ]);
    let composed = world.load("/b").await.unwrap().composed;
    assert_eq!(composed.head.version.unwrap().text, "2.1");
    assert_eq!(composed.head.name.unwrap().text, "top");
    assert_eq!(composed.head.display_name, None, "a label is nobody else's");
    let includes: Vec<_> = composed.includes.iter().map(|include| include.reference.as_str()).collect();
    assert_eq!(includes, ["./base.yaml"]);
}

#[tokio::test]
async fn w24_changing_a_plan_changes_neither_the_bundle_nor_another_plan() {
    let world = Memory::new(&[("/b/bundle.yaml", "tools: [{module: t, config: {a: [1]}}]\n")]);
    let loaded = world.load("/b").await.unwrap();
    let mut first = loaded.plan.to_json();
    first["tools"][0]["config"]["a"] = json!("changed");
    assert_eq!(loaded.plan.to_json()["tools"][0]["config"]["a"], json!([1]));
}

#[tokio::test]
async fn w27_lists_are_replaced_and_keys_deleted_only_when_the_author_says_so() {
    let base = "tools: [{module: t, config: {l: [a], k: 1}}, {module: u}]\nspawn: {exclude_tools: [a]}\n";
    let with = |own: &str| {
        let own = format!("includes: [./base.yaml]\n{own}");
        Memory::new(&[("/b/bundle.yaml", own.as_str()), ("/b/base.yaml", base)])
    };
    let plain = with("tools: [{module: t, config: {l: [b]}}]\n").plan("/b").await;
    assert_eq!(plain["tools"][0]["config"], json!({"l": ["a", "b"], "k": 1}));
    let said =
        "tools: [{module: t, config: {l: !replace [b], k: !delete }}, !delete {module: u}]\nspawn: !delete\n";
    assert_eq!(with(said).plan("/b").await, json!({"tools": [{"module": "t", "config": {"l": ["b"]}}]}));
    let whole = with("tools: !replace [{module: v}]\n").plan("/b").await;
    assert_eq!(modules(&whole, "tools"), ["v"]);
    let loaded = with("tools: [{module: t, config: {gone: !delete }}]\n").load("/b").await.unwrap();
    assert_eq!(codes(&loaded), [Code::NothingToDelete]);
}

#[tokio::test]
async fn w28_fetches_run_at_the_same_time_and_their_order_does_not_matter() {
    let names = ["a", "b", "c", "d", "e"];
    let build = |delays: [usize; 5]| {
        let includes: Vec<_> = names.iter().map(|name| format!("git+https://h/{name}@v1")).collect();
        let mut world = Memory::new(&[("/top/bundle.yaml", &format!("includes: {includes:?}\n"))]);
        for (name, delay) in names.iter().zip(delays) {
            // The same name everywhere: which one wins must not depend on who answers first.
            let text = format!(
                "bundle: {{name: same}}\ntools: [{{module: tool-{name}, config: {{who: {name}}}}}]\n"
            );
            world.put(&format!("/{name}/bundle.yaml"), &text);
            let address = format!("git+https://h/{name}@v1");
            world = world.tree(&address, &format!("/{name}")).delay(&address, delay);
        }
        world
    };
    let first = build([9, 7, 5, 3, 1]);
    let second = build([1, 3, 5, 7, 9]);
    let (left, right) = (first.load("/top").await.unwrap(), second.load("/top").await.unwrap());
    assert_eq!(left.plan.to_json().to_string(), right.plan.to_json().to_string());
    assert_eq!(left.composed.namespaces, right.composed.namespaces);
    assert_eq!(left.notices(), right.notices());
    assert_eq!(first.most.load(std::sync::atomic::Ordering::SeqCst), 5, "all five at once");
}

#[tokio::test]
async fn an_override_of_the_user_wins_everywhere_even_inside_fetched_bundles() {
    let world = Memory::new(&[
        ("/c/bundle.yaml", "includes: ['git+https://h/lib@main', 'git+https://h/other@v1']\n"),
        ("/dev/lib/bundle.yaml", "bundle: {name: lib}\ntools: [{module: tool-dev}]\n"),
        ("/o/bundle.yaml", "tools: [{module: tool-other}]\n"),
    ])
    .tree("git+https://h/r@main", "/c")
    .tree("git+https://h/other@v1", "/o")
    .register("git+https://h/lib@main", "/dev/lib");
    let loaded = world.load("git+https://h/r@main").await.unwrap();
    assert_eq!(modules(&loaded.plan.to_json(), "tools"), ["tool-dev", "tool-other"]);
    assert_eq!(loaded.notices(), []);
}

#[tokio::test]
async fn two_includes_of_one_source_that_fails_both_say_why() {
    let include = "includes: ['git+https://h/gone@main']\n";
    let world = Memory::new(&[
        ("/b/bundle.yaml", "includes: [./one.yaml, ./two.yaml]\n"),
        ("/b/one.yaml", include),
        ("/b/two.yaml", include),
    ])
    .delay("git+https://h/gone@main", 5);
    let loaded = world.load("/b").await.unwrap();
    let told: Vec<_> = loaded.notices().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told[0].starts_with("/b/one.yaml:1:") && told[1].starts_with("/b/two.yaml:1:"), "{told:#?}");
    assert!(told.iter().all(|line| line.contains("no route to `git+https://h/gone@main`")), "{told:#?}");
}
