//! `apply_patch`: files changed by what differs, all of them or none.
//!
//! Models know two forms: a whole patch between `*** Begin Patch` and `*** End Patch` (`parse.rs`), or one operation with
//! its diff (`diff_form.rs`). `request.rs` takes either, `hunks.rs` finds the place of each hunk; this file turns them into
//! a plan. `tool-filesystem` and `tool-apply-patch` both bring it.

use std::collections::BTreeSet;

use amplifier_core::contracts::ToolFailure;
use amplifier_protocol::event::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::desk::{After, Before, Change, Current, Desk, Knowledge, Patched, Plan};
use super::diff;

mod diff_form;
mod hunks;
mod parse;
mod request;

pub(super) use hunks::apply;
pub(super) use parse::Operation;
use parse::{Hunk, Line};
pub(super) use request::{ByDiff, ByPatch};

/// The most lines of a file that are shown beside a failure.
const SHOWN_LINES: usize = 200;
/// The longest part of such a line, in characters.
const SHOWN_CHARS: usize = 400;

/// A patch changed a file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(in crate::tools) struct Applied {
    /// The file.
    pub(super) path: String,
    /// `add`, `update`, `rename` or `delete` for a section of a patch; `create`, `update` or `delete` for an operation
    /// with a diff.
    pub(super) operation: String,
    /// What changed in it, as a unified diff; empty where it is not text.
    #[serde(default)]
    pub(super) diff: String,
    /// The call that wanted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
}

impl Event for Applied {
    const NAME: &'static str = "apply-patch:applied";
    const EMITTER: &'static str = "tool";
}

/// How the model wrote the change: words for it differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Patch,
    Diff,
}

impl Form {
    /// What an event calls a file that was made.
    fn made(self) -> &'static str {
        match self {
            Self::Patch => "add",
            Self::Diff => "create",
        }
    }

    /// How a file that exists is changed.
    fn updating(self, path: &str) -> String {
        match self {
            Self::Patch => format!("`*** Update File: {path}`"),
            Self::Diff => "`update_file`".to_owned(),
        }
    }
}

/// What these operations would do.
async fn plan(operations: Vec<Operation>, form: Form, desk: &Desk) -> Result<Plan, ToolFailure> {
    let mut draft = Draft { desk, form, plan: Plan::default(), told: Vec::new(), touched: BTreeSet::new() };
    for operation in operations {
        match operation {
            Operation::Add { path, content } => draft.add(&path, content).await?,
            Operation::Delete { path } => draft.delete(&path).await?,
            Operation::Update { path, target, hunks } => draft.update(&path, target, &hunks).await?,
        }
    }
    let Draft { mut plan, told, .. } = draft;
    plan.answer = Value::String(told.join("\n"));
    Ok(plan)
}

/// A plan in the making.
struct Draft<'a> {
    desk: &'a Desk,
    form: Form,
    plan: Plan,
    told: Vec<String>,
    touched: BTreeSet<std::path::PathBuf>,
}

impl Draft<'_> {
    async fn add(&mut self, path: &str, content: String) -> Result<(), ToolFailure> {
        let current = self.vacant(path).await?;
        self.told.push(format!("A {path}"));
        self.note(path, self.form.made(), diff::unified(path, "", &content));
        self.change(current, After::Bytes(content.into_bytes()));
        Ok(())
    }

    async fn delete(&mut self, path: &str) -> Result<(), ToolFailure> {
        let current = self.current(path).await?;
        // What is not text may go as well; it must only be a file.
        if !matches!(current.before, Before::File { .. } | Before::Large { .. }) {
            current.text()?;
        }
        self.desk.check_seen(&current, Knowledge::Quoted)?;
        self.told.push(format!("D {path}"));
        let gone = current.text().map(|old| diff::unified(path, old, "")).unwrap_or_default();
        self.note(path, "delete", gone);
        self.change(current, After::Gone);
        Ok(())
    }

    async fn update(
        &mut self,
        path: &str,
        target: Option<String>,
        hunks: &[Hunk],
    ) -> Result<(), ToolFailure> {
        let current = self.current(path).await?;
        let old = current.text()?;
        self.desk.check_seen(&current, Knowledge::Quoted)?;
        let new = hunks::apply(old, hunks).map_err(|misfit| {
            let message = format!("Context mismatch in {path}: {misfit}\n\n{}", numbered(path, old));
            ToolFailure::new(message).of_kind("ContextMismatch")
        })?;
        self.desk.check_size(new.len())?;
        let changed = diff::unified(path, old, &new);
        let after = After::Bytes(new.into_bytes());
        match target {
            None => {
                self.told.push(format!("M {path}"));
                self.note(path, "update", changed);
                self.change(current, after);
            }
            Some(target) => {
                let vacant = self.vacant(&target).await?;
                self.told.push(format!("R {path} -> {target}"));
                self.note(&target, "rename", changed);
                self.change(vacant, after);
                self.change(current, After::Gone);
            }
        }
        Ok(())
    }

    /// The file at a path no other section names: sections are judged by what is on the disk, not by each other.
    async fn current(&mut self, path: &str) -> Result<Current, ToolFailure> {
        let current = self.desk.current(path).await?;
        if !self.touched.insert(current.real.clone()) {
            let message = format!("{path} is named by two sections of the patch; put its changes into one");
            return Err(ToolFailure::new(message).of_kind("InvalidInput"));
        }
        Ok(current)
    }

    /// A path where nothing is yet.
    async fn vacant(&mut self, path: &str) -> Result<Current, ToolFailure> {
        let current = self.current(path).await?;
        if matches!(current.before, Before::Absent) {
            return Ok(current);
        }
        let content = current.text().map(|text| format!("\n\n{}", numbered(path, text))).unwrap_or_default();
        let message = format!("File already exists: {path}; use {}{content}", self.form.updating(path));
        Err(ToolFailure::new(message).of_kind("AlreadyExists"))
    }

    fn change(&mut self, current: Current, after: After) {
        self.plan.changes.push(Change { current, after });
    }

    fn note(&mut self, path: &str, operation: &'static str, diff: String) {
        self.plan.applied.push(Patched { path: path.to_owned(), operation, diff });
    }
}

/// Hunks as they were written, for a person.
pub(super) fn meant(hunks: &[Hunk]) -> String {
    let mut text = String::new();
    for hunk in hunks {
        text.push_str(format!("@@ {}", hunk.anchors.join(" ")).trim_end());
        text.push('\n');
        for line in &hunk.lines {
            let (mark, said) = match line {
                Line::Keep(said) => (' ', said),
                Line::Remove(said) => ('-', said),
                Line::Add(said) => ('+', said),
            };
            text.push(mark);
            text.push_str(said);
            text.push('\n');
        }
    }
    text
}

/// What a file holds, for a model that believed something else: its beginning and its end.
fn numbered(path: &str, text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let (head, tail) = if lines.len() <= SHOWN_LINES {
        (lines.len(), 0)
    } else {
        (SHOWN_LINES * 2 / 3, SHOWN_LINES - SHOWN_LINES * 2 / 3)
    };
    let mut shown = format!("Current content of {path}:");
    for (at, line) in lines.iter().enumerate() {
        if at == head && tail > 0 {
            shown.push_str(&format!("\n... {} lines left out ...", lines.len() - head - tail));
        }
        if at < head || at >= lines.len() - tail {
            let cut = line.char_indices().nth(SHOWN_CHARS).map_or(line.len(), |(at, _)| at);
            shown.push_str(&format!("\n{:>6}\t{}", at + 1, line.get(..cut).unwrap_or_default()));
        }
    }
    shown
}
