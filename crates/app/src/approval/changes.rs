//! What a call that is asked about would change in files, so that a person can be shown exactly that. It reads, and decides
//! nothing.

use std::path::Path;

use amplifier_modules::preview::{Now, Preview, preview};
use amplifier_protocol::hook::AskedCall;

/// The largest file that a change is compared with, in bytes.
const COMPARED: u64 = 1024 * 1024;

/// What a call would change, file by file; nothing for calls that do not tell. Relative paths are those of `folder`.
pub fn changes(call: &AskedCall, folder: &Path) -> Vec<Preview> {
    preview(&call.tool_name, &call.tool_input, &|path| now(&folder.join(path))).unwrap_or_default()
}

fn now(path: &Path) -> Now {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Now::Absent,
        Ok(about) if about.is_file() && about.len() <= COMPARED => {
            std::fs::read_to_string(path).map_or(Now::Hidden, Now::Text)
        }
        _ => Now::Hidden,
    }
}
