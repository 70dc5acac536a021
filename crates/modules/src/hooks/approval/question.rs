//! What the person reads: the whole call, with what could deceive the eye spelled out and without what would leak a secret.

use amplifier_core::redact::{redact, redact_text};
use amplifier_protocol::text::visible;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::rules::Call;

/// How many characters of an input are shown; a command, which is always shown whole, has no more.
const SHOWN: usize = 32_000;
/// How many of them are kept for what is shown beside a command.
const BESIDE: usize = 2_000;

/// What "Allow always" would cover, for the end of a question.
pub(super) fn scope(call: &Call<'_>) -> String {
    if call.effects.executes {
        return "\n\"Allow always\" covers exactly this.".to_owned();
    }
    format!("\n\"Allow always\" covers every call of `{}`.", visible(call.tool))
}

/// The question about a call. Two calls that differ have different questions: the kernel asks equal ones once.
pub(super) fn prompt(call: &Call<'_>) -> String {
    let tool = visible(call.tool);
    let whole = match call.command() {
        // The rest of the input may say where or how it runs.
        Some(_) => call.input.to_string(),
        None => format!("{}\u{0}{}", call.tool, call.input),
    };
    let (said, exact) = match call.command() {
        Some(command) => {
            let shown = redact_text(command);
            let (beside, rest_is_whole) = beside(call.input);
            // Before the command, whose lines could look like it, and never so long that it pushes the command out.
            let (beside, fits) = match beside.char_indices().nth(BESIDE - 200) {
                Some((at, _)) => (beside.get(..at).unwrap_or_default().to_owned() + "…", false),
                None => (beside, true),
            };
            let exact = rest_is_whole && fits && shown == command;
            (format!("Run with `{tool}`{beside}:\n{shown}"), exact)
        }
        None => {
            let input = redact(call.input);
            (format!("Run `{tool}` with {input}"), input == *call.input)
        }
    };
    let shown = visible(&said);
    let cut: String = shown.chars().take(SHOWN).collect();
    let hidden = shown.chars().count().saturating_sub(SHOWN);
    // What is not shown as it is must still tell two questions apart.
    let mark = if hidden > 0 || !exact || shown != said {
        format!("\n[not shown as it is; fingerprint {}]", fingerprint(&whole))
    } else {
        String::new()
    };
    let more = if hidden > 0 { format!("\n[{hidden} more characters]") } else { String::new() };
    format!("{cut}{more}{mark}\nAllow it?")
}

/// Whether a command is too long to be shown whole.
pub(super) fn is_too_long(call: &Call<'_>) -> bool {
    call.command().is_some_and(|command| visible(command).chars().nth(SHOWN - BESIDE).is_some())
}

/// What the model reads then.
pub(super) fn too_long(call: &Call<'_>) -> String {
    format!(
        "the command of `{}` is too long to be shown to the user for approval (more than {} characters); \
         write it to a file and run that",
        visible(call.tool),
        SHOWN - BESIDE
    )
}

/// What the model reads when a call is refused.
pub(super) fn refusal(call: &Call<'_>) -> String {
    format!(
        "`{}` is refused by a rule of the approval policy; do it another way or ask the person",
        visible(call.tool)
    )
}

/// What stands in an input beside the command, which may say where or how it runs; and whether it is shown as it is.
fn beside(input: &Value) -> (String, bool) {
    let rest: Map<String, Value> =
        input.as_object().into_iter().flatten().filter(|(key, _)| *key != "command").map(owned).collect();
    if rest.is_empty() {
        return (String::new(), true);
    }
    let rest = Value::Object(rest);
    let shown = redact(&rest);
    (format!(" and {shown}"), shown == rest)
}

fn owned((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

fn fingerprint(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use amplifier_protocol::tool::Effects;
    use serde_json::json;

    fn asked(input: &Value) -> String {
        prompt(&Call { tool: "bash", input, effects: Effects::UNKNOWN, base: None, paths: Vec::new() })
    }

    #[test]
    fn calls_that_differ_where_nobody_sees_it_have_different_questions() {
        let long = |end: &str| json!({"command": format!("echo {}{end}", "a".repeat(5_000))});
        assert_ne!(asked(&long("; rm x")), asked(&long("; rm y")));
        let secret = |key: &str| json!({"command": format!("curl -H 'Authorization: Bearer {key}'")});
        let (one, other) = (secret("abcdefabcdef1234567"), secret("abcdefabcdef7654321"));
        assert!(!asked(&one).contains("abcdef1234567"), "{}", asked(&one));
        assert_ne!(asked(&one), asked(&other));
        let elsewhere = json!({"command": "rm x", "cwd": "/"});
        assert_ne!(asked(&json!({"command": "rm x"})), asked(&elsewhere));
    }

    #[test]
    fn nothing_of_a_command_is_left_out() {
        let text = asked(&json!({"command": "printf hello\u{8}\u{8}\u{8}\u{8}\u{8}rm -rf x"}));
        assert!(text.starts_with("Run with `bash`:\nprintf hello^H^H^H^H^Hrm -rf x\n[not shown"), "{text}");
        let elsewhere = asked(&json!({"command": "rm x", "timeout": 5}));
        assert_eq!(elsewhere, "Run with `bash` and {\"timeout\":5}:\nrm x\nAllow it?");
    }

    #[test]
    fn nothing_in_a_command_can_move_the_cursor_or_reorder_the_text() {
        let text = asked(&json!({"command": "rm x\r\u{1b}[2Kls \u{202e}txt"}));
        assert!(text.contains("rm x^M^[[2Kls \\u{202e}txt\n"), "{text:?}");
        assert!(text.contains("\n[not shown as it is; fingerprint "), "{text:?}");
        assert_eq!(asked(&json!({"command": "ls"})), "Run with `bash`:\nls\nAllow it?");
    }
}
