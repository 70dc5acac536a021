//! Names of files as tools tell them. A path is handed to tools as text, so one that is not UTF-8 cannot be named to them: it
//! is shown spelled out, and whoever shows one says so.

use std::ffi::OsStr;

use amplifier_protocol::text::spelled;

/// What is said beside names that are spelled out.
pub(crate) const NOT_TEXT: &str = "names with `\\xff` are not UTF-8: that is how their bytes are shown, and a path with it \
                                   opens nothing; rename them, or reach them from a shell by a pattern";

/// A name or a path as it is told.
pub(crate) fn told(name: impl AsRef<OsStr>) -> String {
    spelled(name.as_ref().as_encoded_bytes()).into_owned()
}

/// Whether a name can be handed to a tool.
pub(crate) fn is_text(name: impl AsRef<OsStr>) -> bool {
    name.as_ref().to_str().is_some()
}
