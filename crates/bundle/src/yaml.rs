//! The one place where YAML is read: text becomes a [`Node`] tree with places, or an error that points at the character.
//!
//! The language is YAML 1.2 with the core types. `yes`, `no`, `on` and `off` are booleans as older files expect, and
//! `<<` merges mappings; both are told or harmless. Dates and `1:30` stay text. Two tags are ours: `!replace` and
//! `!delete`, which composition reads. It does not know what a bundle is.

mod build;
mod scalar;

use std::sync::Arc;

use granit_parser::{ErrorKind, Marker, Options, Parser, ScanError};

use crate::node::Node;
use crate::notice::Notice;
use crate::origin::{Place, SourceFile};

/// Bounds of one document; beyond them reading stops with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YamlLimits {
    /// Bytes of text.
    pub bytes: usize,
    /// Values, those that aliases repeat counted each time.
    pub nodes: usize,
    /// Mappings and lists inside each other.
    pub depth: usize,
}

impl Default for YamlLimits {
    fn default() -> Self {
        Self { bytes: 4 << 20, nodes: 200_000, depth: 64 }
    }
}

/// A document that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its value; `None` when the text holds nothing.
    pub node: Option<Node>,
    /// What is worth telling about the way it is written.
    pub notices: Vec<Notice>,
}

/// Why a text is not a document we read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct YamlError {
    /// Where reading stopped.
    pub place: Place,
    /// What is wrong there; part of the message, so not its cause.
    pub fault: YamlFault,
}

/// What is wrong at one place of a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlFault {
    /// It is not YAML.
    #[error("the YAML is broken: {0}")]
    Syntax(String),
    /// It is longer than we read.
    #[error("the YAML is {bytes} bytes long; at most {limit} are read")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// It holds more values than we read.
    #[error("the YAML holds more than {0} values once its aliases are expanded")]
    TooManyNodes(usize),
    /// It is nested deeper than we read.
    #[error("the YAML is nested deeper than {0} levels")]
    TooDeep(usize),
    /// A key is a list or a mapping.
    #[error("a key must be plain text")]
    KeyNotText,
    /// An alias stands inside what it repeats.
    #[error("the alias stands inside the value it refers to")]
    EndlessAlias,
    /// The text goes on after its document.
    #[error("a second document begins here; a file holds one")]
    SecondDocument,
    /// A tag that means nothing here.
    #[error("the tag `{0}` is not known; `!replace` and `!delete` are")]
    UnknownTag(String),
    /// A value that does not fit its tag.
    #[error("`{text}` does not fit the tag `{tag}`")]
    TagMismatch {
        /// The tag.
        tag: String,
        /// The value.
        text: String,
    },
    /// `<<` without a mapping behind it.
    #[error("`<<` takes a mapping or a list of mappings")]
    MergeKey,
}

/// Reads a whole file.
///
/// # Errors
/// [`YamlError`] at the first character that does not fit, or when a bound is passed.
pub fn read(file: &Arc<SourceFile>, limits: &YamlLimits) -> Result<Document, YamlError> {
    read_part(file, &file.text, 1, limits)
}

/// Reads a part of a file whose first line has the given number.
///
/// # Errors
/// As [`read`].
pub fn read_part(
    file: &Arc<SourceFile>,
    text: &str,
    first_line: u32,
    limits: &YamlLimits,
) -> Result<Document, YamlError> {
    let origin = Origin { file, first_line };
    if text.len() > limits.bytes {
        let fault = YamlFault::TooLong { bytes: text.len(), limit: limits.bytes };
        return Err(YamlError { place: origin.first(), fault });
    }
    let mut options = Options::default();
    // One level more than we allow, so that the message about depth is ours.
    options.flow_nesting_limit = limits.depth + 1;
    options.block_nesting_limit = limits.depth + 1;
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    build::Builder::new(origin, *limits).run(parser)
}

/// Turns the parser's marks into places.
#[derive(Clone, Copy)]
struct Origin<'f> {
    file: &'f Arc<SourceFile>,
    first_line: u32,
}

impl Origin<'_> {
    fn first(self) -> Place {
        Place { file: Arc::clone(self.file), line: self.first_line, column: 1 }
    }

    fn place(self, mark: &Marker) -> Place {
        let line = u32::try_from(mark.line().max(1) - 1).unwrap_or(u32::MAX);
        let column = u32::try_from(mark.col()).unwrap_or(u32::MAX).saturating_add(1);
        Place { file: Arc::clone(self.file), line: self.first_line.saturating_add(line), column }
    }

    /// Where to look for what the parser could not read. Of a tab that indents a line inside a text it marks where that text
    /// begins, which is a line before and right as it is; the tab is what has to go.
    fn fault_place(self, error: &ScanError) -> Place {
        let place = self.place(error.marker());
        if !matches!(error.kind(), ErrorKind::TabInPlainScalar | ErrorKind::TabAtBlockScalarStart) {
            return place;
        }
        let following = self.file.text.lines().zip(1_u32..).skip_while(|(_, line)| *line <= place.line);
        let tab = following.filter(|(text, _)| !text.trim().is_empty()).find_map(|(text, line)| {
            let indent = text.split(|c| c != ' ' && c != '\t').next()?;
            Some((line, indent.find('\t')?))
        });
        match tab {
            Some((line, before)) => {
                let column = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
                Place { line, column, ..place }
            }
            None => place,
        }
    }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
