//! The system prompt of a bundle: its instruction, then the files it speaks of and the files it declares.

use crate::compose::Composed;
use crate::context::ContextPath;
use crate::fetch::Files;
use crate::mention::{Block, FileCache, Gathered, Gatherer, Roots, Speaker};

/// Gathers what the prompt of a bundle needs: the mentions of its instruction first, then its context files.
///
/// Called for every request: what changed on disk is read again, what did not is not.
pub fn gather(
    files: &impl Files,
    composed: &Composed,
    context: &[ContextPath],
    roots: &Roots,
    cache: &mut FileCache,
) -> Gathered {
    let mut gatherer = Gatherer::new(files, roots, cache);
    if let Some(instruction) = &composed.instruction {
        gatherer.text(&instruction.text.text, &Speaker::Instruction);
    }
    for file in context {
        gatherer.declared(file);
    }
    gatherer.finish()
}

/// The namespaces and named context files of a bundle as roots, with the working folder of the session.
pub fn roots(composed: &Composed, context: &[ContextPath], base: impl Into<std::path::PathBuf>) -> Roots {
    Roots {
        namespaces: composed.namespaces.iter().map(|known| (known.name.clone(), known.dir.clone())).collect(),
        base: base.into(),
        home: None,
        allowed: Vec::new(),
        named: context.iter().map(|file| (file.key.clone(), file.path.clone())).collect(),
    }
}

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
