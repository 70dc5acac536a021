//! What a model is told about a view that was shortened: only what is true of the view it stands in.

use amplifier_protocol::message::{Message, Role};
use serde_json::{Map, Value};

use super::config::{Verbosity, WindowConfig};
use super::conversation::{Form, Shown, Totals};
use super::draft::is_prompt;

/// The value of `source` in the notes of what contexts add to a view.
pub(super) const SOURCE: &str = "context-compaction";

/// The notice for the end of a view, if the model shall be told.
pub(super) fn notice(shown: &[Shown], totals: Totals, config: &WindowConfig) -> Option<Message> {
    if !config.compaction_notice_enabled || totals.level < config.compaction_notice_min_level.max(1) {
        return None;
    }
    let mut text =
        String::from("Earlier parts of this conversation are shown shortened to fit the model's window.");
    if config.compaction_notice_verbosity != Verbosity::Minimal {
        text.push_str(&lost(shown, totals));
    }
    if config.compaction_notice_verbosity == Verbosity::Verbose {
        text.push_str(&kept(shown));
    }
    Some(added(text))
}

/// A message that a context adds to a view, and only there.
pub(super) fn added(text: String) -> Message {
    let mut message = Message::text(
        Role::User,
        format!("<system-reminder source=\"{SOURCE}\">\n{text}\n</system-reminder>"),
    );
    message.metadata = Map::from_iter([
        ("source".to_owned(), Value::String(SOURCE.to_owned())),
        ("ephemeral".to_owned(), Value::Bool(true)),
    ]);
    message
}

fn lost(shown: &[Shown], totals: Totals) -> String {
    let mut text = String::new();
    if totals.removed > 0 {
        let summary = shown.iter().any(|shown| shown.form == Form::Summary);
        let instead = if summary { "; a summary stands in their place" } else { "" };
        text.push_str(&format!(" {} left out{instead}.", messages(totals.removed)));
    }
    // Counted in the view: what was cut first may have been left out since.
    let cut = shown.iter().filter(|shown| shown.form == Form::Cut).count();
    if cut > 0 {
        text.push_str(&format!(
            " {cut} of those shown are cut to their beginning and end and marked `[shortened`."
        ));
    }
    text.push_str(" Do not guess what is missing: call a tool again or ask.");
    text
}

fn kept(shown: &[Shown]) -> String {
    let results =
        shown.iter().rev().filter(|shown| shown.group.is_some() && shown.message.tool_call_id.is_some());
    let whole = results.take_while(|shown| shown.form == Form::Whole).count();
    let mut text = match whole {
        0 => String::new(),
        1 => " The last tool result is shown in full.".to_owned(),
        whole => format!(" The last {whole} tool results are shown in full."),
    };
    if shown.iter().find(|shown| is_prompt(shown)).is_some_and(|shown| shown.form == Form::Whole) {
        text.push_str(" The first prompt of the view is shown in full.");
    }
    text
}

fn messages(number: u64) -> String {
    if number == 1 { "1 message is".to_owned() } else { format!("{number} messages are") }
}
