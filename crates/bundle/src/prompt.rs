//! The words of a prompt: an instruction or a question, and the files that were gathered for it. Pure.

use crate::mention::{Block, Gathered};

/// The system prompt; `None` when there is neither an instruction nor a file.
pub fn system_prompt(instruction: Option<&str>, gathered: &Gathered) -> Option<String> {
    let blocks = render_blocks(&gathered.blocks);
    match (instruction.filter(|text| !text.is_empty()), blocks.is_empty()) {
        (None, true) => None,
        (Some(instruction), true) => Some(instruction.to_owned()),
        (None, false) => Some(blocks),
        (Some(instruction), false) => Some(format!("{instruction}\n\n---\n\n{blocks}")),
    }
}

/// A prompt with the files it mentions before it; the mentions stay in the text.
pub fn expand(text: &str, gathered: &Gathered) -> String {
    let blocks = render_blocks(&gathered.blocks);
    if blocks.is_empty() { text.to_owned() } else { format!("{blocks}\n\n{text}") }
}

fn render_blocks(blocks: &[Block]) -> String {
    blocks.iter().map(render_block).collect::<Vec<_>>().join("\n\n")
}

fn render_block(block: &Block) -> String {
    let paths = block.sources.iter().map(|(key, path)| format!("{key} → {}", path.display()));
    let paths = paths.collect::<Vec<_>>().join(", ").replace('"', "&quot;");
    // A file must not be able to close its own block and speak with the voice of the instruction.
    let text = block.text.replace("</context_file", "&lt;/context_file");
    format!("<context_file paths=\"{paths}\">\n{text}\n</context_file>")
}
