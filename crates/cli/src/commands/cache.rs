//! `amplifier cache …`: what was fetched and is kept.

use std::path::PathBuf;

use amplifier_app::spelling::told;
use amplifier_app::{Cache, CacheEntry, Limits, Selection};
use serde_json::{Value, json};

use super::load;
use crate::args::{CacheArgs, CacheCommand, CacheListArgs, Form};
use crate::exit::Exit;
use crate::render::{self, Remark};

/// `amplifier cache …`.
pub fn run(command: &CacheCommand, home: Option<PathBuf>) -> Exit {
    let cache = match load::access(home) {
        Ok(access) => Cache::new(access.home.cache()),
        Err(exit) => return exit,
    };
    let done = match command {
        CacheCommand::List(args) => list(&cache, args),
        CacheCommand::Clear(args) => clear(&cache, args),
        CacheCommand::Verify(args) => verify(&cache, args),
    };
    done.unwrap_or_else(|error| {
        render::error(&error, error.hint());
        Exit::Failure
    })
}

fn list(cache: &Cache, args: &CacheListArgs) -> Result<Exit, amplifier_app::FetchError> {
    let entries = cache.list()?;
    if args.output == Form::Json {
        let entries: Vec<_> = entries.iter().map(row).collect();
        render::json(&json!({ "dir": told(cache.root()), "entries": entries }));
        return Ok(Exit::Success);
    }
    if entries.is_empty() {
        render::out("nothing is kept");
    }
    entries.iter().for_each(|entry| render::out(&line(entry)));
    Ok(Exit::Success)
}

fn clear(cache: &Cache, args: &CacheArgs) -> Result<Exit, amplifier_app::FetchError> {
    let cleared = cache.clear(&selection(args))?;
    if let Some(key) = args.key.as_deref().filter(|_| cleared.removed.is_empty() && cleared.busy.is_empty()) {
        return Ok(refuse(key));
    }
    if args.output == Form::Json {
        let rows = |entries: &[CacheEntry]| entries.iter().map(row).collect::<Vec<_>>();
        render::json(&json!({ "removed": rows(&cleared.removed), "busy": rows(&cleared.busy) }));
    } else {
        render::out(&format!("{} removed", cleared.removed.len()));
        for entry in &cleared.busy {
            render::note(&format!("warning: `{}` is in use and stays", entry.key));
        }
    }
    Ok(if cleared.busy.is_empty() { Exit::Success } else { Exit::Failure })
}

fn verify(cache: &Cache, args: &CacheArgs) -> Result<Exit, amplifier_app::FetchError> {
    let verdicts = cache.verify(&selection(args), &Limits::default())?;
    if let Some(key) = args.key.as_deref().filter(|_| verdicts.is_empty()) {
        return Ok(refuse(key));
    }
    let is_well = verdicts.iter().all(|verdict| verdict.problems.is_empty());
    if args.output == Form::Json {
        let rows = verdicts.iter().map(|verdict| {
            let mut row = row(&verdict.entry);
            if let Value::Object(row) = &mut row {
                row.insert("problems".to_owned(), json!(verdict.problems));
            }
            row
        });
        render::json(&json!({ "passed": is_well, "entries": rows.collect::<Vec<_>>() }));
    } else {
        for verdict in &verdicts {
            let word = if verdict.problems.is_empty() { "ok" } else { "changed" };
            render::out(&format!("{word:7}  {}", line(&verdict.entry)));
            verdict.problems.iter().for_each(|problem| render::out(&format!("         {problem}")));
        }
        if !is_well {
            render::say_aside(
                "hint: `amplifier cache clear KEY` removes an entry; it is fetched again when it is wanted",
            );
        }
    }
    Ok(if is_well { Exit::Success } else { Exit::Failure })
}

/// A key that nothing is kept under is more likely misspelled than meant.
fn refuse(key: &str) -> Exit {
    Remark::error(format!("nothing is kept under `{key}`"))
        .hint("`amplifier cache list` shows the keys there are")
        .tell();
    Exit::Failure
}

fn selection(args: &CacheArgs) -> Selection {
    args.key.clone().map_or(Selection::All, Selection::Key)
}

fn row(entry: &CacheEntry) -> Value {
    let mut row = json!({"store": entry.store.as_str(), "key": entry.key, "path": told(&entry.path)});
    if let (Value::Object(row), Some(record)) = (&mut row, &entry.record) {
        row.insert("source".to_owned(), json!(record.source));
        row.insert("content_hash".to_owned(), json!(record.content_hash));
        row.insert("files".to_owned(), json!(record.files));
        row.insert("bytes".to_owned(), json!(record.bytes));
        row.insert("fetched_at".to_owned(), json!(record.fetched_at));
    }
    row
}

fn line(entry: &CacheEntry) -> String {
    let key: String = entry.key.chars().take(12).collect();
    let (size, source) = match &entry.record {
        Some(record) => (render::bytes(record.bytes), record.source.as_str()),
        None => ("?".to_owned(), "(no record)"),
    };
    format!("{:6}  {key}  {size:>10}  {source}", entry.store.as_str())
}
