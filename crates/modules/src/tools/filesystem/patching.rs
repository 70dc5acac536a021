//! The patching tool without its siblings, at a desk of its own, for `tool-apply-patch`.

use std::sync::Arc;

use amplifier_core::contracts::{Tool, Typed};
use amplifier_core::loader::MountCx;

use super::apply_patch::{ByDiff, ByPatch};
use super::approval::{Approvals, Gate};
use super::changing::{Changes, Changing};
use super::desk::{Desk, Overwriting, Telling};
use crate::files::paths::{Reach, Rules};

/// Which form of a patch the model is shown; either is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Shown {
    Patch,
    Diff,
}

/// How the tool works.
pub(in crate::tools) struct Patching {
    pub(in crate::tools) rules: Rules,
    pub(in crate::tools) shown: Shown,
    pub(in crate::tools) require_approval: bool,
    pub(in crate::tools) max_file_bytes: u64,
}

impl Patching {
    pub(in crate::tools) fn mount(self, cx: &MountCx) {
        let desk = Arc::new(Desk {
            reach: Reach::new(self.rules, cx.coordinator.clone()),
            stamps: Arc::default(),
            coordinator: cx.coordinator.clone(),
            max_file_bytes: self.max_file_bytes,
            // A patch quotes what it changes, and there may be no tool here to read with.
            overwriting: Overwriting::Free,
            approvals: self.require_approval.then(Approvals::default),
            telling: Telling::Filesystem,
            writing: tokio::sync::Mutex::default(),
        });
        let tool: Arc<dyn Tool> = match self.shown {
            Shown::Patch => Arc::new(Typed(Changing::<ByPatch>::new(Arc::clone(&desk)))),
            Shown::Diff => Arc::new(Typed(Changing::<ByDiff>::new(Arc::clone(&desk)))),
        };
        cx.mount_tool(tool);
        if self.require_approval {
            Gate { desk, tools: &[ByPatch::NAME] }.open(cx, "tool-apply-patch-approval");
        }
    }
}
