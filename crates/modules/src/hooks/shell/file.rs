//! `hooks.json` files: `{"hooks": {"PreToolUse": [{"matcher": …, "hooks": [{"type": "command", "command": …}]}]}}`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::config::{Command, NAMES, OnFailure, USUAL};
use crate::workspace::Workspace;

const NAME: &str = "hooks.json";
/// More folders or a larger file are a mistake.
const MAX_FOLDERS: usize = 256;
const MAX_BYTES: u64 = 1024 * 1024;

/// What the files hold, in the order of their folders' names.
#[derive(Default)]
pub(super) struct Found {
    /// Commands, each with the folder of its file.
    pub(super) commands: Vec<(PathBuf, Command)>,
    pub(super) warnings: Vec<String>,
}

#[derive(Deserialize)]
struct HooksFile {
    #[serde(default)]
    hooks: BTreeMap<String, Vec<Group>>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    matcher: Option<String>,
    #[serde(default)]
    hooks: Vec<Value>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    on_failure: OnFailure,
}

/// Reads the folder's own file and those of its folders. What cannot be read is a warning that names it.
/// Those of a directory that is not trusted are left out.
pub(super) fn read_all(folder: &Path, workspace: &Workspace) -> Found {
    let mut found = Found::default();
    let mut folders = vec![folder.to_owned()];
    if let Ok(entries) = std::fs::read_dir(folder) {
        let mut inner: Vec<_> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        inner.sort();
        inner.truncate(MAX_FOLDERS);
        folders.extend(inner);
    }
    for folder in folders {
        let file = folder.join(NAME);
        if workspace.is_untrusted(&file) {
            if file.exists() {
                let file = file.display();
                found.warnings.push(format!("`{file}` is not used: its directory is not trusted"));
            }
            continue;
        }
        if let Err(error) = read(&folder, &mut found) {
            found.warnings.push(format!("`{}` cannot be read: {error}", folder.join(NAME).display()));
        }
    }
    found
}

fn read(folder: &Path, found: &mut Found) -> Result<(), String> {
    let path = folder.join(NAME);
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.to_string()),
        Ok(about) if !about.is_file() || about.len() > MAX_BYTES => {
            return Err(format!("it is no file of at most {MAX_BYTES} bytes"));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let file: HooksFile = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    for (event, groups) in file.hooks {
        if !event.contains(':') && event != "*" && !NAMES.iter().any(|(common, _)| *common == event) {
            found.warnings.push(format!("`{}`: nothing is known as `{event}`", path.display()));
            continue;
        }
        for group in groups {
            for item in group.hooks {
                match command(item, &event, group.matcher.clone()) {
                    Ok(command) => found.commands.push((folder.to_owned(), command)),
                    Err(error) => found.warnings.push(format!("`{}`: {event}: {error}", path.display())),
                }
            }
        }
    }
    Ok(())
}

fn command(item: Value, event: &str, matcher: Option<String>) -> Result<Command, String> {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("command").to_owned();
    let item: Item = serde_json::from_value(item).map_err(|error| error.to_string())?;
    let (command, prompt) = match kind.as_str() {
        "command" => (Some(item.command.ok_or("`command` is missing")?), None),
        "prompt" => (None, Some(item.prompt.ok_or("`prompt` is missing")?)),
        other => return Err(format!("hooks of type `{other}` are not run; only `command` and `prompt` are")),
    };
    let (timeout, event) = (item.timeout.unwrap_or(USUAL), event.to_owned());
    Ok(Command { event, matcher, command, prompt, timeout, on_failure: item.on_failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_order_and_what_cannot_be_read_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(temp.path().join(name)).unwrap();
            std::fs::write(temp.path().join(name).join(NAME), text).unwrap();
        };
        let hook = |event: &str, item: &str| {
            format!(r#"{{"hooks": {{"{event}": [{{"matcher": "Bash", "hooks": [{item}]}}]}}}}"#)
        };
        write("", &hook("PreToolUse", r#"{"type": "command", "command": "one", "timeout": 3}"#));
        write("b", &hook("Stop", r#"{"command": "three"}"#));
        write(
            "a",
            &hook("tool:*", r#"{"command": "two"}, {"type": "prompt", "prompt": "ok?"}, {"type": "http"}"#),
        );
        write("c", "{bad");
        write("d", &hook("NoSuchEvent", r#"{"command": "x"}"#));
        let found = read_all(temp.path(), &Workspace::default());
        let texts = found.commands.iter().map(|(_, one)| one.command.as_ref().or(one.prompt.as_ref()));
        let texts: Vec<_> = texts.map(|text| text.unwrap().as_str()).collect();
        assert_eq!(texts, ["one", "two", "ok?", "three"]);
        assert_eq!(found.warnings.len(), 3, "{:?}", found.warnings);
        assert!(found.warnings[0].contains("`http`") && found.warnings[2].contains("NoSuchEvent"));
        assert_eq!(read_all(&temp.path().join("nowhere"), &Workspace::default()).commands.len(), 0);
    }
}
