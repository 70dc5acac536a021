//! What says the most about a tool call, for whoever tells people of it in one line.

use amplifier_modules::preview::patched_files;
use serde_json::Value;

/// Keys of inputs that say the most, the first that is there counts.
const TELLING: [&str; 14] = [
    "command",
    "file_path",
    "path",
    "pattern",
    "query",
    "url",
    "agent",
    "agent_name",
    "skill_name",
    "name",
    "instruction",
    "prompt",
    "message",
    "text",
];

/// The files that a patch is about, else the one argument that says the most; nothing where no argument is known to.
pub fn argument(input: &Value) -> Option<String> {
    let files = patched_files(input);
    match files.is_empty() {
        true => TELLING.iter().find_map(|key| input.get(key)?.as_str().map(str::to_owned)),
        false => Some(files.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_of_a_patch_come_first_and_then_the_first_key_that_tells() {
        let patch = "*** Begin Patch\n*** Add File: a b\n+x\n*** Delete File: c\n*** End Patch";
        assert_eq!(argument(&json!({"patch": patch, "path": "x"})).as_deref(), Some("a b, c"));
        assert_eq!(argument(&json!({"text": "t", "path": 1, "query": "q"})).as_deref(), Some("q"));
        assert_eq!([argument(&json!({"x": "y"})), argument(&json!("text"))], [None, None]);
    }
}
