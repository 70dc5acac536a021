//! The clauses of the module source contract.

use std::sync::Arc;

use amplifier_core::contracts::{ModuleSourceResolver, Resolved, SourceError};
use amplifier_protocol::ids::ModuleId;
use serde_json::{Value, json};

use super::report::{Report, Seen, Suite, ensure, round_trip};
use crate::sync::parsed;

/// Runs a resolver and its sources through their contract. `known` is a module it has, with the hint to find it by.
pub async fn resolver(
    make: impl AsyncFn() -> Arc<dyn ModuleSourceResolver>,
    known: &ModuleId,
    hint: Option<&Value>,
) -> Report {
    let mut suite = Suite::new("resolver");
    suite
        .clause("a module it has is found and can be had", async {
            place(&*make().await, known, hint).await.map(drop)
        })
        .await;
    suite
        .clause("the same id and hint give the same answer", async {
            let resolver = make().await;
            let (one, other) = (place(&*resolver, known, hint).await?, place(&*resolver, known, hint).await?);
            ensure(one == other, || format!("first {one}, then {other}"))
        })
        .await;
    suite
        .clause("a source can be asked more than once", async {
            let source = make().await.resolve(known, hint).await.map_err(|error| error.to_string())?;
            for _ in 0..2 {
                source.resolve().await.map_err(|error| error.to_string())?;
            }
            Ok(())
        })
        .await;
    suite.clause("a module it does not have is not found", async { not_found(&*make().await).await }).await;
    suite
        .clause("a hint of any shape is answered or refused", async {
            let resolver = make().await;
            for hint in [json!(null), json!(""), json!(7), json!(["x"]), json!({"x": {}}), json!("../../etc")]
            {
                if let Err(error) = resolver.resolve(known, Some(&hint)).await {
                    round_trip(&error)?;
                }
            }
            Ok(())
        })
        .await;
    suite.finish()
}

async fn place(
    resolver: &dyn ModuleSourceResolver,
    id: &ModuleId,
    hint: Option<&Value>,
) -> Result<String, String> {
    let source = resolver.resolve(id, hint).await.map_err(|error| error.to_string())?;
    match source.resolve().await.map_err(|error| error.to_string())? {
        Resolved::Folder(folder) => Ok(folder.display().to_string()),
        Resolved::Native(module) => Ok(format!("native {}", module.id())),
    }
}

async fn not_found(resolver: &dyn ModuleSourceResolver) -> Seen {
    let unknown: ModuleId = parsed("tool-that-nobody-has-written");
    match resolver.resolve(&unknown, None).await {
        Err(SourceError::NotFound { id, tried }) => {
            ensure(id == unknown && !tried.is_empty(), || format!("`{id}`, tried {tried:?}"))
        }
        Err(other) => Err(format!("it said: {other}")),
        // Finding out may be left to the source.
        Ok(source) => match source.resolve().await {
            Err(_) => Ok(()),
            Ok(_) => Err("it was found".to_owned()),
        },
    }
}
