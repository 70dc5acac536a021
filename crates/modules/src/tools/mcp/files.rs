//! The files that name servers, in the `mcpServers` form, and how they and the plan are joined. Starts nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use amplifier_core::loader::MountCx;
use serde_json::Value;

use super::config::{Config, Entry, ProjectFiles, Settings};
use crate::environment;
use crate::hooks::place::real_path;
use crate::workspace::Workspace;

/// The largest file that is read.
const MOST_BYTES: u64 = 1024 * 1024;
/// The most servers of one session.
const MOST_SERVERS: usize = 64;

/// Every server of a session, in the order of names; and those whose entries make no sense, with the reason.
pub(super) struct Gathered {
    pub(super) servers: Vec<Settings>,
    pub(super) refused: Vec<(String, String)>,
}

/// Whose word an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The plan's author's, or the user's own file's.
    User,
    /// A file's of the working folder.
    Project,
}

type Entries = BTreeMap<String, (Result<Entry, String>, Owner)>;

fn join(entries: &mut Entries, more: BTreeMap<String, Result<Entry, String>>, owner: Owner) {
    entries.extend(more.into_iter().map(|(name, entry)| (name, (entry, owner))));
}

/// Joins files and plan: what comes later in `~/.amplifier/mcp.json`, `.mcp.json`, `.amplifier/mcp.json`, `config_file`,
/// `servers` wins.
pub(super) async fn gather(config: &mut Config, cx: &MountCx) -> Gathered {
    let folder = cx.coordinator.capability_text("session.working_dir").map(PathBuf::from);
    let home = cx.coordinator.capability_text("user.home_dir").map(PathBuf::from);
    let mut entries = Entries::new();
    if let Some(home) = home.as_ref().filter(|_| config.user_file) {
        let path = home.join(".amplifier/mcp.json");
        join(&mut entries, read(&path, Wanted::IfThere, cx).await, Owner::User);
    }
    for name in [".mcp.json", ".amplifier/mcp.json"] {
        let Some(folder) = &folder else { continue };
        let found = read(&folder.join(name), Wanted::IfThere, cx).await;
        if config.project_files == ProjectFiles::Allow {
            join(&mut entries, found, Owner::Project);
        } else if !found.is_empty() {
            let names: Vec<_> = found.keys().map(|name| format!("`{name}`")).collect();
            cx.warn(format!(
                "`{name}` of the working folder names the servers {}, which are not started; set `project_files: allow` if you trust it",
                names.join(", ")
            ));
        }
    }
    if let Some(text) = config.config_file.as_deref().filter(|text| !text.trim().is_empty()) {
        let path = match (text.strip_prefix("~/"), &home, &folder) {
            (Some(rest), Some(home), _) => home.join(rest),
            (_, _, Some(folder)) => folder.join(text),
            _ => PathBuf::from(text),
        };
        let is_inside = folder.as_ref().is_some_and(|folder| {
            path.starts_with(folder) || real_path(&path).starts_with(real_path(folder))
        });
        let owner = if is_inside { Owner::Project } else { Owner::User };
        join(&mut entries, read(&path, Wanted::Surely, cx).await, owner);
    }
    let servers = std::mem::take(&mut config.servers);
    join(&mut entries, servers.into_iter().map(|(name, entry)| (name, Ok(entry))).collect(), Owner::User);
    let mut gathered = Gathered { servers: Vec::new(), refused: Vec::new() };
    for (name, (entry, owner)) in entries {
        let checked = match entry {
            Ok(entry) if entry.is_disabled() => continue,
            Ok(_) if gathered.servers.len() >= MOST_SERVERS => {
                Err(format!("a session has at most {MOST_SERVERS} servers"))
            }
            Ok(entry) => entry.check(&name, config, folder.as_deref()),
            Err(why) => Err(why),
        };
        match checked {
            Ok(mut settings) => {
                settings.believed = config.trust_annotations && owner == Owner::User;
                gathered.servers.push(settings);
            }
            Err(why) => gathered.refused.push((name, why)),
        }
    }
    gathered
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    IfThere,
    Surely,
}

/// The servers of one file. A file that cannot be used is a warning.
async fn read(path: &Path, wanted: Wanted, cx: &MountCx) -> BTreeMap<String, Result<Entry, String>> {
    let is_there = tokio::fs::try_exists(path).await.unwrap_or(false);
    if is_there && Workspace::of(&cx.coordinator).is_untrusted(path) {
        cx.warn(format!("servers of `{}` are not started: its directory is not trusted", path.display()));
        return BTreeMap::new();
    }
    let size = tokio::fs::metadata(path).await.map(|metadata| metadata.len());
    let text = match size {
        Ok(size) if size > MOST_BYTES => Err(format!("it has more than {MOST_BYTES} bytes")),
        Ok(_) => tokio::fs::read_to_string(path).await.map_err(|error| error.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && wanted == Wanted::IfThere => {
            return BTreeMap::new();
        }
        Err(error) => Err(error.to_string()),
    };
    let parsed = text.and_then(|text| parse(&text, &|name| variable(name)));
    parsed.unwrap_or_else(|why| {
        cx.warn(format!("servers of `{}` are not known: {why}", path.display()));
        BTreeMap::new()
    })
}

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

fn parse(text: &str, variables: Variables<'_>) -> Result<BTreeMap<String, Result<Entry, String>>, String> {
    let mut file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let key = if file.get("mcpServers").is_some() { "mcpServers" } else { "servers" };
    let Some(Value::Object(servers)) = file.get_mut(key).map(Value::take) else {
        return Err("it has no object `mcpServers`".to_owned());
    };
    let entry = |mut value: Value| {
        expand(&mut value, variables)?;
        serde_json::from_value::<Entry>(value).map_err(|error| error.to_string())
    };
    Ok(servers.into_iter().map(|(name, value)| (name, entry(value))).collect())
}

/// Fills `${NAME}` and `${NAME:-default}` into every text. What the kernel does for a plan it cannot do for these files.
fn expand(value: &mut Value, variables: Variables<'_>) -> Result<(), String> {
    match value {
        Value::String(text) => *text = filled(text, variables)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| expand(item, variables))?,
        Value::Object(map) => map.values_mut().try_for_each(|item| expand(item, variables))?,
        _ => {}
    }
    Ok(())
}

fn filled(text: &str, variables: Variables<'_>) -> Result<String, String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((reference, after)) = after.split_once('}') else { break };
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        let value = variables(name).filter(|value| !value.is_empty() || default.is_none());
        let Some(value) = value.or_else(|| default.map(str::to_owned)) else {
            return Err(format!(
                "`${{{name}}}` is not set; set the variable or give a default with `${{{name}:-default}}`"
            ));
        };
        whole.push_str(before);
        whole.push_str(&value);
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

fn variable(name: &str) -> Option<String> {
    environment::own().get(OsStr::new(name)).and_then(|value| value.to_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(name: &str) -> Option<String> {
        (name == "KEY").then(|| "k".to_owned())
    }

    #[test]
    fn variables_are_filled_in_and_one_that_is_not_set_is_named() {
        for (text, expected) in [
            ("a ${KEY} b", Ok("a k b")),
            ("${KEY}${KEY}", Ok("kk")),
            ("${NONE:-x y}", Ok("x y")),
            ("${NONE:-}", Ok("")),
            ("no ${end", Ok("no ${end")),
            ("$KEY", Ok("$KEY")),
        ] {
            assert_eq!(filled(text, &variables).as_deref(), expected.as_ref().copied(), "{text}");
        }
        assert!(filled("${NONE}", &variables).unwrap_err().contains("`${NONE}` is not set"));
    }

    #[test]
    fn one_bad_entry_of_a_file_does_not_cost_the_others() {
        let text = r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${KEY}"}}, "b": {"command": 5}, "c": {"url": "${NONE}"}}}"#;
        let servers = parse(text, &variables).unwrap();
        let good: Vec<_> = servers.iter().filter(|(_, entry)| entry.is_ok()).map(|(name, _)| name).collect();
        assert_eq!(good, ["a"]);
        assert!(parse("{}", &variables).unwrap_err().contains("mcpServers"));
        assert!(parse("nonsense", &variables).is_err());
    }
}
