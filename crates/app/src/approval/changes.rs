//! What a call that is asked about would change in files, so that a person can be shown exactly that. It reads, and decides
//! nothing.

use std::path::{Path, PathBuf};

use amplifier_core::redact::redact_text;
use amplifier_modules::Danger;
use amplifier_modules::preview::{Now, Preview, preview};
use amplifier_protocol::hook::AskedCall;
use serde_json::Value;

use crate::env;
use crate::library::Access;

/// The largest file that a change is compared with, in bytes.
const COMPARED: u64 = 1024 * 1024;

/// What the paths of calls are relative to.
#[derive(Debug, Clone)]
pub struct Places {
    /// The working directory of the session.
    pub folder: PathBuf,
    /// The user's own directory, for `~`.
    pub home: Option<PathBuf>,
}

impl Places {
    pub fn of(access: &Access) -> Self {
        Self { folder: access.base.clone(), home: access.environment.folder(env::HOME) }
    }

    /// Where a path of a call leads, as its tool reads it; nothing where only the tool knows.
    fn resolve(&self, path: &str, call: &AskedCall) -> Option<PathBuf> {
        let module = call.module.as_ref();
        let own = module.and_then(|module| module.config.get("working_dir"));
        let base = match own.and_then(Value::as_str) {
            // A reference means what the module was given for it.
            Some(own) if own.contains("${") => return None,
            Some(own) => self.folder.join(own),
            None => self.folder.clone(),
        };
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Some(self.home.as_ref()?.join(rest.trim_start_matches('/')))
            }
            _ if path.starts_with('@') => None,
            _ => Some(base.join(path)),
        }
    }
}

/// What a call would change, file by file; nothing for calls that do not tell.
pub fn changes(call: &AskedCall, places: &Places) -> Vec<Preview> {
    let now = |path: &str| places.resolve(path, call).map_or(Now::Hidden, |path| now(&path));
    preview(&call.tool_name, &call.tool_input, &now).unwrap_or_default()
}

/// What is dangerous in the command of a call, as the policy of shell commands sees it; nothing for calls without one.
pub fn dangers(call: &AskedCall, places: &Places) -> Vec<Danger> {
    let command = call.tool_input.get("command").and_then(Value::as_str).filter(|_| call.effects.executes);
    let look = |command| amplifier_modules::dangers(command, &places.folder, places.home.as_deref());
    let shown = |danger: Danger| Danger { command: redact_text(&danger.command).into_owned(), ..danger };
    command.map(look).unwrap_or_default().into_iter().map(shown).collect()
}

fn now(path: &Path) -> Now {
    match std::fs::metadata(path) {
        // A link that leads nowhere is there all the same.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            Now::Absent
        }
        Ok(about) if about.is_file() && about.len() <= COMPARED => {
            std::fs::read_to_string(path).map_or(Now::Hidden, Now::Text)
        }
        _ => Now::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::hook::AskedModule;
    use amplifier_protocol::tool::Effects;
    use serde_json::json;

    /// The note and the diff of a call of `write_file`, or of one that adds the file by a patch.
    fn noted(place: &Path, path: &str, working_dir: Option<&str>) -> [(String, bool); 2] {
        let config = working_dir.map(|own| ("working_dir".to_owned(), json!(own)));
        let module = AskedModule {
            id: "tool-filesystem".parse().unwrap(),
            source: None,
            config: config.into_iter().collect(),
        };
        let places = Places { folder: place.join("work"), home: Some(place.join("home")) };
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+new\n*** End Patch");
        let inputs = [
            ("write_file", json!({"file_path": path, "content": "new\n"})),
            ("apply_patch", json!({ "patch": patch })),
        ];
        inputs.map(|(tool, input)| {
            let call = AskedCall {
                tool_name: tool.to_owned(),
                tool_input: input,
                effects: Effects::WRITES,
                module: Some(Box::new(module.clone())),
            };
            let shown = changes(&call, &places).remove(0);
            (shown.note, shown.diff.contains("-old"))
        })
    }

    #[test]
    fn what_replaces_a_file_is_never_called_a_new_one() {
        let temp = tempfile::tempdir().unwrap();
        let place = temp.path();
        for file in ["home/a", "work/b", "work/sub/c"] {
            std::fs::create_dir_all(place.join(file).parent().unwrap()).unwrap();
            std::fs::write(place.join(file), "old\n").unwrap();
        }
        for (path, working_dir) in [("~/a", None), ("b", None), ("c", Some("sub"))] {
            for (note, shows_old) in noted(place, path, working_dir) {
                assert!(!note.contains("a new file") && shows_old, "{path}: {note}");
            }
        }
        for (path, working_dir) in [("@ns:a", None), ("c", Some("${SUB}"))] {
            let [(note, _), (added, _)] = noted(place, path, working_dir);
            assert!(!note.contains("a new file") && !added.contains("a new file"), "{path}: {note}");
        }
        for (path, working_dir) in [("~/new", None), ("new", None), ("b", Some("sub"))] {
            assert_eq!(noted(place, path, working_dir)[0].0, "a new file", "{path}");
        }
    }
}
