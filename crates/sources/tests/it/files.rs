//! Places on this machine.

use amplifier_sources::error::FetchError;
use amplifier_sources::fetch::{Base, FetchContext, Identity};

use crate::support::{World, fetch};

fn world() -> World {
    let world = World::new();
    for (name, text) in [
        ("bundles/bundle.md", "root"),
        ("bundles/behaviors/a.md", "a"),
        ("bundles/mods/tool-x/x.py", "x"),
        ("secret/key", "s"),
    ] {
        let path = world.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    world
}

#[tokio::test]
async fn every_form_of_a_path_leads_to_the_same_file() {
    let world = world();
    let fetcher = world.fetcher();
    let folder = world.path("bundles/behaviors");
    let base = Base { home: Some(world.path("bundles")), ..Base::at(&folder) };
    let cx = FetchContext::new(base);
    let file = world.path("bundles/behaviors/a.md");
    let forms = [
        format!("file://{}", file.display()),
        file.display().to_string(),
        "./a.md".to_owned(),
        "../behaviors/a.md".to_owned(),
        "file://./a.md".to_owned(),
        "~/behaviors/a.md".to_owned(),
        format!("file://{}#subdirectory=behaviors/a.md", world.path("bundles").display()),
    ];
    for form in forms {
        let fetched = fetch(&fetcher, &form, &cx).await.unwrap_or_else(|error| panic!("{form}: {error}"));
        assert_eq!(fetched.path, file, "{form}");
        assert_eq!(fetched.root, world.path("bundles"), "{form}: the folder with `bundle.md` is the root");
        assert_eq!(fetched.identity, Identity::Local);
    }
    assert!(!world.path("cache").exists(), "places of this machine are not copied");
}

#[tokio::test]
async fn what_is_missing_or_foreign_is_named() {
    let world = world();
    let (fetcher, cx) = (world.fetcher(), world.cx());
    let error = fetch(&fetcher, "./gone", &cx).await.unwrap_err();
    assert!(error.to_string().ends_with("/gone` does not exist"), "{error}");
    let error = fetch(&fetcher, "C:/x/y", &cx).await.unwrap_err();
    assert_eq!(error.to_string(), "`C:/x/y` is a path of another operating system");
    let error = fetch(&fetcher, "foundation:a", &cx).await.unwrap_err();
    assert_eq!(error.to_string(), "`foundation:a` is a name, not a place to fetch from");
    let uri = format!("file://{}#subdirectory=gone", world.path("bundles").display());
    let error = fetch(&fetcher, &uri, &cx).await.unwrap_err();
    assert!(matches!(error, FetchError::SubdirectoryMissing { .. }), "{error}");
}

#[tokio::test]
async fn w13_a_confined_path_does_not_leave_not_even_through_a_link() {
    let world = world();
    let fetcher = world.fetcher();
    std::os::unix::fs::symlink(world.path("secret"), world.path("bundles/link")).unwrap();
    let border = Base { confined_to: Some(world.path("bundles")), ..Base::at(world.path("bundles")) };
    let cx = FetchContext::new(border);
    let inside = fetch(&fetcher, "./behaviors/../mods/tool-x", &cx).await.unwrap();
    assert_eq!(inside.path, world.path("bundles/mods/tool-x"));
    for outside in ["../secret/key", "./link/key", "/etc/passwd", "file:///etc/passwd"] {
        let error = fetch(&fetcher, outside, &cx).await.unwrap_err();
        assert!(matches!(error, FetchError::Escapes { .. }), "{outside}: {error}");
    }
    let part = format!("file://{}#subdirectory=link/key", world.path("bundles").display());
    let error = fetch(&fetcher, &part, &world.cx()).await.unwrap_err();
    assert!(matches!(error, FetchError::Escapes { .. }), "{error}");
}
