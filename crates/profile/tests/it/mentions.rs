//! `@name:path` at run time (reference §6.6).

use amplifier_bundle::disk::Disk;
use amplifier_bundle::mention::{FileCache, Gathered, MentionFault, Speaker};
use amplifier_profile::mention::{gather, gather_profile, message, roots};

use crate::house::{House, profile};

async fn house() -> House {
    let house = House::new();
    for (name, text) in [
        ("collection/context/shared/base.md", "base @foundation:context/b.md\n"),
        ("collection/context/b.md", "b @foundation:shared/base.md\n"),
        ("collection/context/same.md", "same\n"),
        ("docs/same.md", "same\n"),
        ("work/notes/x.md", "notes\n"),
        ("secret.md", "secret\n"),
    ] {
        house.write(name, text);
    }
    let text = profile("p", &format!("context: {{docs: {}}}\n", house.path("docs").display()));
    house.write("collection/p/profile.md", &format!("{text}\n@foundation:context/shared/base.md\n"));
    house.register(&format!(
        "collections:\n  foundation:\n    source: {}\n",
        house.path("collection").display()
    ));
    house.extract().await;
    house.compile("foundation/p").await.unwrap();
    house
}

fn said(house: &House, text: &str) -> Gathered {
    let profile = house.profiles.load(&"foundation/p".parse().unwrap()).unwrap();
    let roots = roots(&profile, house.path("work")).unwrap();
    gather(&Disk::default(), text, &Speaker::Person, &roots, &mut FileCache::default())
}

fn texts(gathered: &Gathered) -> Vec<&str> {
    gathered.blocks.iter().map(|block| block.text.as_ref()).collect()
}

#[tokio::test]
async fn the_body_brings_files_of_the_collection_each_once() {
    let house = house().await;
    let profile = house.profiles.load(&"foundation/p".parse().unwrap()).unwrap();
    let roots = roots(&profile, house.path("work")).unwrap();
    let gathered = gather_profile(&Disk::default(), &profile, &roots, &mut FileCache::default());
    assert_eq!(texts(&gathered), ["base @foundation:context/b.md\n", "b @foundation:shared/base.md\n"]);
    let file = house.share("profiles/foundation/p/contexts/foundation/shared/base.md");
    let sources =
        format!("@foundation:context/shared/base.md → {0}, @foundation:shared/base.md → {0}", file.display());
    assert_eq!(
        message(&gathered.blocks[0]),
        format!("[Context from {sources}]\n\nbase @foundation:context/b.md\n")
    );
}

#[tokio::test]
async fn code_quotes_and_addresses_are_no_mentions() {
    let house = house().await;
    for text in [
        "`@docs:same.md`",
        "\"@docs:same.md\"",
        "'@docs:same.md'",
        "user@host.com",
        "```\n@docs:same.md\n```",
    ] {
        assert!(said(&house, text).blocks.is_empty(), "{text}");
    }
    assert_eq!(texts(&said(&house, "don't read @docs:same.md, it's dull")), ["same\n"]);
    assert_eq!(texts(&said(&house, "see @notes/x.md.")), ["notes\n"]);
}

#[tokio::test]
async fn equal_bytes_are_one_text_that_credits_both() {
    let house = house().await;
    let gathered = said(&house, "@docs:same.md and @foundation:same.md");
    assert_eq!(texts(&gathered), ["same\n"]);
    let credited: Vec<_> = gathered.blocks[0].sources.iter().map(|(mention, _)| mention.as_str()).collect();
    assert_eq!(credited, ["@docs:same.md", "@foundation:same.md"]);
}

#[tokio::test]
async fn what_is_missing_is_told_and_what_leads_out_is_refused() {
    let house = house().await;
    std::os::unix::fs::symlink(house.path("secret.md"), house.path("work/link.md")).unwrap();
    let gathered =
        said(&house, "@docs:nothing.md @docs:../../../../profile.md @../secret.md @link.md @unknown:x.md");
    assert!(gathered.blocks.is_empty());
    let reasons: Vec<_> = gathered.failed.iter().map(|failed| failed.reason.wire_name()).collect();
    let refused = "path_traversal_rejected";
    assert_eq!(reasons, ["not_found", refused, refused, refused, "bundle_not_registered"]);
    assert!(matches!(gathered.failed[0].reason, MentionFault::NotFound));
}
