//! Doubts about the name of a module. Only for warnings: in a plan the place decides the kind.

use amplifier_protocol::ids::ModuleId;
use amplifier_protocol::module_info::ModuleKind;

/// What is odd about the name of a module that stands in a place for `expected`, if anything.
///
/// The first segment decides when it tells a kind; otherwise any part may, so that `my-loop-tool` is fine as a tool.
pub(super) fn doubt(id: &ModuleId, expected: ModuleKind) -> Option<String> {
    let Some(kind) = ModuleKind::of_id(id) else {
        return Some(format!("Could not determine mount type for module: {id}"));
    };
    let first = id.as_str().split('-').next().unwrap_or_default();
    let is_told_by_first = first.parse().is_ok_and(|first| ModuleKind::of_id(&first).is_some());
    let mentions_expected = id.as_str().to_lowercase().contains(expected.as_str());
    if kind == expected || (!is_told_by_first && mentions_expected) {
        return None;
    }
    Some(format!("module `{id}` is named like kind `{kind}` but is used as `{expected}`"))
}
