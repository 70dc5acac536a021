//! `require_approval`: every change is put to the person, with its diff, before the tool runs; and what was asked about is
//! what is written, or nothing. A person may allow a tool for longer; its changes are still compared with their question.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::contracts::{HookEvent, HookFailure, HookHandler, ToolFailure};
use amplifier_core::hooks::{EventPattern, HookSpec};
use amplifier_core::loader::MountCx;
use amplifier_protocol::event::ToolPre;
use amplifier_protocol::hook::{ApprovalOption, HookAction, HookResult, Question};
use amplifier_protocol::text::visible;
use async_trait::async_trait;
use serde_json::Value;

use super::apply_patch::ByPatch;
use super::changing::Changes;
use super::desk::{After, Before, Change, Desk, Plan};
use super::diff;
use super::edit_file::EditFile;
use super::multi_edit::MultiEdit;
use super::stamps::{Hash, hash};
use super::write_file::WriteFile;

/// How many questions are remembered; more than one answer of a model ever asks.
const QUESTIONS: usize = 256;
/// The longest question, in bytes.
const PROMPT_BYTES: usize = 32 * 1024;

/// The changes a person was asked about, by the call that wants them.
#[derive(Default)]
pub(super) struct Approvals(Mutex<VecDeque<(Hash, Hash)>>);

impl Approvals {
    fn note<I: Changes>(&self, input: &I, plan: &Plan) {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= QUESTIONS {
            asked.pop_front();
        }
        asked.push_back((key(input), plan.mark()));
    }

    /// Lets a change pass once, if it is what was asked about. A call that is denied never comes here.
    pub(super) fn claim<I: Changes>(&self, input: &I, plan: &Plan) -> Result<(), ToolFailure> {
        let (key, mark) = (key(input), plan.mark());
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_this_call = |(known, _): &(Hash, Hash)| *known == key;
        let found = asked.iter().position(of_this_call).and_then(|at| asked.remove(at));
        match found {
            Some((_, approved)) if approved == mark => Ok(()),
            Some(_) => Err(ToolFailure::new(
                "the file changed while approval was asked for, so nothing was written; read it again and repeat",
            )
            .of_kind("Stale")),
            None => Err(ToolFailure::new(
                "changes need approval here and nobody was asked about this one; nothing was written",
            )
            .of_kind("NotApproved")),
        }
    }
}

fn key<I: Changes>(input: &I) -> Hash {
    // An input was read from JSON; writing it again cannot fail, and if it did the calls would only share a key.
    let text = serde_json::to_string(input).unwrap_or_default();
    hash(format!("{}\n{text}", I::NAME).as_bytes())
}

/// Asks before each call of a tool that changes files.
pub(super) struct Gate {
    pub(super) desk: Arc<Desk>,
    /// The tools that work at this desk, by name; others of the same names are none of its business.
    pub(super) tools: &'static [&'static str],
}

#[async_trait]
impl HookHandler for Gate {
    async fn handle(&self, event: &HookEvent) -> Result<HookResult, HookFailure> {
        let call: ToolPre = event.read().map_err(|error| HookFailure::new(error.to_string()))?;
        let input = call.tool_input;
        let of_this_desk = self.tools.iter().find(|name| **name == call.tool_name);
        let question = match of_this_desk.copied().unwrap_or_default() {
            WriteFile::NAME => self.question::<WriteFile>(input).await,
            EditFile::NAME => self.question::<EditFile>(input).await,
            MultiEdit::NAME => self.question::<MultiEdit>(input).await,
            // Both forms of a patch are read by either.
            ByPatch::NAME => self.question::<ByPatch>(input).await,
            _ => None,
        };
        let Some(prompt) = question else { return Ok(HookResult::proceed()) };
        let options = ApprovalOption::usual();
        Ok(HookAction::AskUser(Question { prompt, options, ..Question::default() }).into())
    }
}

impl Gate {
    /// Begins to ask.
    pub(super) fn open(self, cx: &MountCx, name: &str) {
        // Last, so that the question shows what earlier hooks made of the input.
        let spec = HookSpec::new(EventPattern::event::<ToolPre>(), name).priority(i32::MAX).closed();
        cx.on(spec, Arc::new(self));
    }

    /// What to ask; nothing when the call cannot be carried out anyway. Should it become possible meanwhile, it is
    /// refused because nobody was asked.
    async fn question<I: Changes>(&self, input: Value) -> Option<String> {
        let approvals = self.desk.approvals.as_ref()?;
        let input: I = serde_json::from_value(input).ok()?;
        let plan = input.plan(&self.desk).await.ok()?;
        approvals.note(&input, &plan);
        Some(prompt(I::NAME, &plan))
    }
}

fn prompt(tool: &str, plan: &Plan) -> String {
    let mut prompt = format!("Allow {tool} to make this change?");
    for change in &plan.changes {
        prompt.push_str("\n\n");
        prompt.push_str(&sketch(change));
    }
    if prompt.len() > PROMPT_BYTES {
        prompt.truncate(prompt.floor_char_boundary(PROMPT_BYTES));
        prompt.push_str("\n... [more than fits here]");
    }
    // A file's bytes must not steer the terminal of whoever is asked, nor hide from them.
    visible(&prompt).into_owned()
}

fn sketch(Change { current, after }: &Change) -> String {
    let path = current.shown();
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let before = match &current.before {
        Before::File { bytes, .. } => text(bytes),
        Before::Absent => Some(String::new()),
        Before::Large { .. } | Before::Folder | Before::Special => None,
    };
    match (before, after) {
        (_, After::Gone) => format!("delete {path}"),
        (Some(before), After::Bytes(bytes)) => match text(bytes) {
            Some(after) => diff::unified(&path, &before, &after),
            None => format!("replace {path} by {} bytes", bytes.len()),
        },
        (None, After::Bytes(bytes)) => format!("replace {path} by {} bytes", bytes.len()),
    }
}
