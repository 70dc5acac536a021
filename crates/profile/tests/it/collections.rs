//! The registry, and from a collection to `profile.md` in `share/` (reference §6.1).

use std::fs;

use amplifier_profile::collections::Collections;
use amplifier_profile::sync::{Compilation, SyncStatus};
use amplifier_profile::{ProfileError, ShareName};

use crate::house::{House, files, profile};

fn name(text: &str) -> ShareName {
    text.parse().unwrap()
}

#[tokio::test]
async fn no_registry_is_an_empty_one() {
    let house = House::new();
    assert!(house.profiles.collections().unwrap().is_empty());
    assert!(house.extract().await.is_empty());
    assert!(house.profiles.list().unwrap().is_empty());
}

#[tokio::test]
async fn a_broken_registry_is_told_with_its_line_and_never_written_over() {
    let house = House::new();
    let text = "collections:\n  a: {source: [\n";
    house.register(text);
    let error = house.profiles.sync(Compilation::Leave, &house.cx()).await.unwrap_err();
    let file = house.share("collections.yaml");
    assert!(error.to_string().starts_with(&format!("{}:", file.display())), "{error}");
    assert!(error.place().unwrap().excerpt().is_some());
    house.profiles.add_collection(&name("b"), "/x", &house.cx()).await.unwrap_err();
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[tokio::test]
async fn profiles_are_extracted_and_a_readme_is_not() {
    let house = House::new();
    house.write("c/README.md", "# Read me\n");
    house.write("c/base/profile.md", &profile("base", ""));
    house.write("c/advanced/profile.md", &profile("advanced", ""));
    house.register(&format!("collections:\n  foundation:\n    source: {}\n", house.path("c").display()));
    let reports = house.extract().await;
    assert!(matches!(reports[0].status, SyncStatus::Synced), "{reports:?}");
    assert!(reports[0].skipped.is_empty());
    assert_eq!(
        files(&house.share("profiles")),
        ["foundation/.collection.json", "foundation/advanced/profile.md", "foundation/base/profile.md"]
    );
    assert_eq!(
        fs::read_to_string(house.share("profiles/foundation/base/profile.md")).unwrap(),
        profile("base", "")
    );
}

#[tokio::test]
async fn a_missing_source_is_skipped_and_a_missing_folder_stops_nobody_else() {
    let house = House::new();
    house.write("good/p/profile.md", &profile("p", ""));
    let (good, gone) = (house.path("good"), house.path("gone"));
    house.register(&format!(
        "collections:\n  none: {{}}\n  gone:\n    source: {}\n  good:\n    source: {}\n",
        gone.display(),
        good.display()
    ));
    let reports = house.extract().await;
    let words: Vec<_> = reports.iter().map(|report| report.status.as_str()).collect();
    assert_eq!(words, ["skipped", "error", "synced"]);
    let SyncStatus::Error(error) = &reports[1].status else { panic!("{reports:?}") };
    assert_eq!(
        error.chain(),
        format!("the source of collection `gone` cannot be had: `{}` does not exist", gone.display())
    );
    assert_eq!(reports[2].profiles.len(), 1);
}

#[tokio::test]
async fn a_name_is_added_once_and_removing_takes_only_its_own() {
    let house = House::new();
    house.write("a/p/profile.md", &profile("p", ""));
    let source = house.path("a").display().to_string();
    for collection in ["one", "two"] {
        house.profiles.add_collection(&name(collection), &source, &house.cx()).await.unwrap();
    }
    let error = house.profiles.add_collection(&name("one"), &source, &house.cx()).await.unwrap_err();
    assert_eq!(error.to_string(), "Collection already exists: one");
    house.extract().await;
    house.profiles.remove_collection(&name("one"), &house.cx()).await.unwrap();
    let left = house.profiles.collections().unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].name.as_str(), left[0].installed_at.is_some()), ("two", true));
    assert_eq!(files(&house.share("profiles")), ["two/.collection.json", "two/p/profile.md"]);
    let error = house.profiles.remove_collection(&name("one"), &house.cx()).await.unwrap_err();
    assert!(matches!(error, ProfileError::NoCollection { .. }), "{error}");
    for reserved in [
        house.profiles.add_collection(&name("local"), "/x", &house.cx()).await,
        house.profiles.remove_collection(&name("local"), &house.cx()).await,
    ] {
        assert!(matches!(reserved, Err(ProfileError::LocalCollection)));
    }
}

#[tokio::test]
async fn a_profile_that_does_not_compile_is_a_warning_that_names_it() {
    let house = House::new();
    house.write("c/a/profile.md", &profile("a", ""));
    house.write("c/b/profile.md", &profile("b", "tools:\n- module: tool-x\n  source: ./nowhere\n"));
    house.write("c/d/profile.md", &profile("d", ""));
    house.register(&format!("collections:\n  c:\n    source: {}\n", house.path("c").display()));
    let reports = house.profiles.sync(Compilation::Compile, &house.cx()).await.unwrap();
    assert!(matches!(reports[0].status, SyncStatus::Synced));
    assert_eq!(reports[0].warning().unwrap(), "Some profiles failed to compile: b");
    let compiled: Vec<_> =
        house.profiles.list().unwrap().into_iter().map(|found| found.is_compiled).collect();
    assert_eq!(compiled, [true, false, true]);
}

#[tokio::test]
async fn an_edit_of_the_registry_is_seen_and_what_left_the_collection_goes() {
    let house = House::new();
    house.one("a", &profile("a", ""));
    house.extract().await;
    house.write("collection/b/profile.md", &profile("b", ""));
    fs::remove_dir_all(house.path("collection/a")).unwrap();
    house.write("other/x/profile.md", &profile("x", ""));
    let text = fs::read_to_string(house.share("collections.yaml")).unwrap();
    house.register(&format!("{text}  other:\n    source: {}\n", house.path("other").display()));
    let reports = house.extract().await;
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[0].removed[0].to_string(), "c/a");
    let ids: Vec<_> = house.profiles.list().unwrap().iter().map(|found| found.id.to_string()).collect();
    assert_eq!(ids, ["c/b", "other/x"]);
}

#[tokio::test]
async fn a_cached_collection_is_skipped_without_a_question_until_a_refresh_is_asked_for() {
    let house = House::new();
    let repo = house.world.repo("repo");
    repo.commit(&[("p/profile.md", &profile("p", ""))]);
    house.register(&format!("collections:\n  c:\n    source: {}\n", repo.uri("@main")));
    assert_eq!(house.extract().await[0].status.as_str(), "synced");
    fs::rename(house.path("repo"), house.path("away")).unwrap();
    assert_eq!(house.extract().await[0].status.as_str(), "skipped");
    fs::rename(house.path("away"), house.path("repo")).unwrap();
    repo.commit(&[("q/profile.md", &profile("q", ""))]);
    assert_eq!(house.extract().await[0].status.as_str(), "skipped");
    let reports = house.profiles.sync(Compilation::Leave, &house.fresh()).await.unwrap();
    assert_eq!((reports[0].status.as_str(), reports[0].profiles.len()), ("updated", 2));
    // A profile that somebody removed by hand comes back from the cache.
    fs::remove_dir_all(house.share("profiles/c/p")).unwrap();
    assert_eq!(house.extract().await[0].profiles.len(), 2);
    assert!(house.share("profiles/c/p/profile.md").is_file());
}

#[tokio::test]
async fn profiles_written_in_place_make_the_collection_local() {
    let house = House::new();
    assert!(house.profiles.collections().unwrap().is_empty());
    house.write("home/share/profiles/local/mine/profile.md", &profile("mine", ""));
    let found = house.profiles.collections().unwrap();
    assert_eq!((found[0].name.as_str(), found[0].source.as_str()), ("local", "local"));
    house.compile("local/mine").await.unwrap();
}

#[tokio::test]
async fn every_layout_is_found() {
    let house = House::new();
    house.write("c/deep/er/a/profile.md", &profile("a", ""));
    house.write("c/b.md", &profile("b", ""));
    house.write("c/profiles/c.md", &profile("c", ""));
    house.write("c/d/d.md", &profile("d", ""));
    house.write("c/docs/x.md", &profile("not-here", ""));
    house.register(&format!("collections:\n  c:\n    source: file://{}\n", house.path("c").display()));
    house.extract().await;
    assert_eq!(
        files(&house.share("profiles/c")),
        [".collection.json", "a/profile.md", "b/profile.md", "c/profile.md", "d/profile.md"]
    );
}

#[tokio::test]
async fn two_profiles_of_one_name_are_an_error_that_names_both() {
    let house = House::new();
    house.write("c/a/profile.md", &profile("same", ""));
    house.write("c/b/profile.md", &profile("same", ""));
    house.register(&format!("collections:\n  c:\n    source: {}\n", house.path("c").display()));
    let reports = house.extract().await;
    let SyncStatus::Error(error) = &reports[0].status else { panic!("{reports:?}") };
    let (a, b) = (house.path("c/a/profile.md"), house.path("c/b/profile.md"));
    assert_eq!(
        error.to_string(),
        format!("two profiles of collection `c` are called `same`: `{}` and `{}`", a.display(), b.display())
    );
}

#[tokio::test]
async fn twenty_at_once_add_to_the_registry_and_none_is_lost() {
    let house = House::new();
    let adding = (0..20).map(|index| {
        let (profiles, cx) = (house.profiles.clone(), house.cx());
        tokio::spawn(async move { profiles.add_collection(&name(&format!("c{index}")), "/x", &cx).await })
    });
    for added in adding.collect::<Vec<_>>() {
        added.await.unwrap().unwrap();
    }
    assert_eq!(Collections::read(house.profiles.share()).unwrap().entries.len(), 20);
}
