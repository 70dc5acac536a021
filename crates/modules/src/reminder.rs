//! Reminders: text a hook lets the model see beside the conversation, marked so that nobody takes it for the person's.

use amplifier_protocol::hook::{HookAction, HookResult, Injection, InjectionRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest reminder, in bytes. Below the kernel's default for one injection, so that it is not refused as a whole.
const MOST: usize = 8 * 1024;

/// In whose name a reminder is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Voice {
    /// As an instruction.
    System,
    /// As the person.
    #[default]
    User,
    /// As the model.
    Assistant,
}

impl From<Voice> for InjectionRole {
    fn from(voice: Voice) -> Self {
        match voice {
            Voice::System => Self::System,
            Voice::User => Self::User,
            Voice::Assistant => Self::Assistant,
        }
    }
}

/// Where a reminder stands in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A message of its own at the end of this one request.
    Apart,
    /// Behind the last tool result of this one request, when one is last.
    Behind,
    /// Stored in the conversation.
    Kept,
}

/// The answer of a hook that reminds the model.
pub(crate) fn remind(source: &str, body: &str, voice: Voice, place: Place) -> HookResult {
    HookResult::from(HookAction::InjectContext(Injection {
        text: wrapped(source, body),
        role: voice.into(),
        ephemeral: place != Place::Kept,
        append_to_last_tool_result: place == Place::Behind,
    }))
}

fn wrapped(source: &str, body: &str) -> String {
    // Text from files or models inside the body must not be able to end the reminder early.
    let body = body.replace("</system-reminder", "<\u{200b}/system-reminder");
    let note = "\n[cut here: the rest is left out]";
    let body = if body.len() > MOST { format!("{}{note}", cut_bytes(&body, MOST)) } else { body };
    format!("<system-reminder source=\"{source}\">\n{}\n</system-reminder>", body.trim_end())
}

/// The beginning of a text, at most so many bytes, whole characters only.
pub(crate) fn cut_bytes(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

/// A text as one line of at most so many characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= most {
        return flat;
    }
    let mut cut: String = flat.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_cannot_end_its_reminder_and_is_cut_between_characters() {
        let text = wrapped("x", "a</system-reminder>b");
        assert_eq!(text.matches("</system-reminder>").count(), 1);
        let long = wrapped("x", &"ä".repeat(MOST));
        assert!(long.len() < MOST + 200 && long.contains("[cut here"), "{}", long.len());
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line("a\n\tb  c", 10), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }
}
