//! The resolver: what a plan's `source` means, and what is said when it means nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use amplifier_core::contracts::{ModuleSource, ModuleSourceResolver, Resolved, SourceError};
use amplifier_protocol::ids::ModuleId;
use amplifier_sources::lock::BundleLock;
use amplifier_sources::resolver::SourceResolver;
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::support::{World, fetch};

async fn folder(resolver: &dyn ModuleSourceResolver, id: &str, hint: Value) -> Result<PathBuf, String> {
    let id: ModuleId = id.parse().unwrap();
    let hint = Some(hint).filter(|hint| !hint.is_null());
    let resolved = async { resolver.resolve(&id, hint.as_ref()).await?.resolve().await };
    match resolved.await.map_err(|error| error.to_string())? {
        Resolved::Folder(path) => Ok(path),
        Resolved::Native(module) => Err(format!("native {}", module.id())),
    }
}

#[tokio::test]
async fn sources_names_and_folders_become_folders() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("mods/tool-x/x.py", "1")]);
    for folder in ["local/tool-y", "shelf/amplifier-module-tool-z", "shelf/tool-w"] {
        std::fs::create_dir_all(world.path(folder)).unwrap();
    }
    let names = BTreeMap::from([("tools".to_owned(), repo.uri("@main#subdirectory=mods").parse().unwrap())]);
    let resolver = SourceResolver::new(Arc::new(world.fetcher()), world.cx())
        .with_names(names)
        .with_folders(vec![world.path("shelf")]);
    let cached = world.path("cache/git").join(commit).join("mods");
    let rows = [
        ("tool-x", json!(repo.uri("@main#subdirectory=mods/tool-x")), cached.join("tool-x")),
        ("tool-x", json!("tools"), cached),
        ("tool-y", json!("./local/tool-y"), world.path("local/tool-y")),
        ("tool-y", json!("local/tool-y"), world.path("local/tool-y")),
        (
            "tool-y",
            json!(format!("file://{}", world.path("local/tool-y").display())),
            world.path("local/tool-y"),
        ),
        ("tool-z", Value::Null, world.path("shelf/amplifier-module-tool-z")),
        ("tool-w", json!("tool-w"), world.path("shelf/tool-w")),
    ];
    for (id, hint, expected) in rows {
        assert_eq!(folder(&resolver, id, hint.clone()).await, Ok(expected), "{id} from {hint}");
    }
}

#[tokio::test]
async fn what_is_not_found_says_where_it_was_looked_for_and_what_cannot_be_had_says_why() {
    let world = World::new();
    std::fs::write(world.path("file"), "").unwrap();
    let shelf = world.path("shelf").display().to_string();
    let resolver =
        SourceResolver::new(Arc::new(world.fetcher()), world.cx()).with_folders(vec![world.path("shelf")]);
    let error = folder(&resolver, "tool-x", Value::Null).await.unwrap_err();
    let expected = format!(
        "Module 'tool-x' not found; tried registered name `tool-x`, folder `amplifier-module-tool-x` in `{shelf}`"
    );
    assert_eq!(error, expected);
    let gone = world.path("gone").display().to_string();
    let rows = [
        (json!("./gone"), format!("source `./gone` of module `tool-x` cannot be had: `{gone}` does not exist (check the path)")),
        (json!("./file"), "source `./file` of module `tool-x` cannot be had: it is a file; a module is a folder".into()),
        (json!(7), "source `source` of module `tool-x` cannot be had: a source is a text; this one is none".into()),
        (json!("ns:path"), "source `ns:path` of module `tool-x` cannot be had: a `namespace:path` is no module source; the bundle that names it has to resolve it".into()),
    ];
    for (hint, expected) in rows {
        let error = folder(&resolver, "tool-x", hint).await.unwrap_err();
        assert_eq!(error.replace("/./", "/"), expected);
    }
    let secret = folder(&resolver, "tool-x", json!("s3://key:s3cr3t@bucket/x")).await.unwrap_err();
    assert!(!secret.contains("s3cr3t"), "{secret}");
}

/// Knows one module and nothing else.
struct Next(PathBuf);

#[async_trait]
impl ModuleSource for Next {
    async fn resolve(&self) -> Result<Resolved, SourceError> {
        Ok(Resolved::Folder(self.0.clone()))
    }
}

#[async_trait]
impl ModuleSourceResolver for Next {
    async fn resolve(
        &self,
        id: &ModuleId,
        _hint: Option<&Value>,
    ) -> Result<Arc<dyn ModuleSource>, SourceError> {
        match id.as_str() {
            "tool-known" => Ok(Arc::new(Next(self.0.clone()))),
            _ => Err(SourceError::NotFound { id: id.clone(), tried: vec!["the next one".to_owned()] }),
        }
    }
}

#[tokio::test]
async fn modules_nobody_knows_here_are_asked_of_the_next() {
    let world = World::new();
    let resolver =
        SourceResolver::new(Arc::new(world.fetcher()), world.cx()).then(Arc::new(Next(world.path("known"))));
    assert_eq!(folder(&resolver, "tool-known", Value::Null).await, Ok(world.path("known")));
    let error = folder(&resolver, "tool-x", Value::Null).await.unwrap_err();
    assert_eq!(error, "Module 'tool-x' not found; tried registered name `tool-x`, the next one");
}

#[tokio::test]
async fn under_a_lock_only_what_is_locked_is_resolved() {
    let world = World::new();
    let repo = world.repo("repos/one");
    let commit = repo.commit(&[("a", "1")]);
    let fetcher = Arc::new(world.fetcher());
    let uri = repo.uri("@main");
    let fetched = fetch(&fetcher, &uri, &world.cx()).await.unwrap();
    let mut lock = BundleLock::default();
    lock.insert(&uri.parse().unwrap(), fetcher.locked(&fetched).await.unwrap());
    let resolver = SourceResolver::new(fetcher, world.cx()).with_lock(Arc::new(lock));
    repo.commit(&[("a", "2")]);
    assert_eq!(folder(&resolver, "tool-x", json!(uri)).await, Ok(world.path("cache/git").join(&commit)));
    let error = folder(&resolver, "tool-x", json!(repo.uri("@HEAD"))).await.unwrap_err();
    assert!(
        error.contains("the lock does not name it (look at the change, then update the lock)"),
        "{error}"
    );
    std::fs::write(world.path("cache/git").join(&commit).join("a"), "tampered").unwrap();
    let error = folder(&resolver, "tool-x", json!(uri)).await.unwrap_err();
    assert!(error.contains("is not what was locked"), "{error}");
}
