//! What becomes of each tag: a table.

use super::super::markdown::{Tag, Void};

/// What becomes of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is told to the writer, and so is its end.
    Kept(Tag),
    /// It is told to the writer and has no end.
    Void(Void),
    /// It goes with everything in it.
    Gone,
    /// It goes, and what is in it stays.
    Dropped,
}

pub(super) fn fate(name: &str) -> Fate {
    let kept = match name {
        "b" | "strong" => Tag::Strong,
        "i" | "em" => Tag::Em,
        "div" | "section" | "article" | "main" | "header" | "footer" | "nav" | "aside" | "figure"
        | "figcaption" | "address" | "details" | "summary" | "form" | "fieldset" | "legend" | "caption"
        | "center" | "hgroup" | "dialog" | "search" => Tag::Block,
        "p" => Tag::Paragraph,
        "h1" => Tag::Heading(1),
        "h2" => Tag::Heading(2),
        "h3" => Tag::Heading(3),
        "h4" => Tag::Heading(4),
        "h5" => Tag::Heading(5),
        "h6" => Tag::Heading(6),
        "a" => Tag::Link,
        "ul" | "menu" | "dir" => Tag::Bullets,
        "ol" => Tag::Numbers,
        "li" => Tag::Item,
        "dl" => Tag::Terms,
        "dt" => Tag::Term,
        "dd" => Tag::Detail,
        "table" => Tag::Table,
        "tr" => Tag::Row,
        "td" | "th" => Tag::Cell,
        "pre" | "listing" => Tag::Pre,
        "code" | "kbd" | "samp" | "tt" => Tag::Code,
        "blockquote" => Tag::Quote,
        "br" => return Fate::Void(Void::Break),
        "hr" => return Fate::Void(Void::Rule),
        "img" => return Fate::Void(Void::Image),
        "script" | "style" | "noscript" | "template" | "svg" | "math" | "iframe" | "object" | "select"
        | "textarea" | "canvas" | "audio" | "video" => return Fate::Gone,
        _ => return Fate::Dropped,
    };
    Fate::Kept(kept)
}

/// Whether what is inside stands further right than what is around it.
pub(super) fn indents(tag: Tag) -> bool {
    matches!(tag, Tag::Bullets | Tag::Numbers | Tag::Quote | Tag::Table | Tag::Detail)
}

/// Whether this tag ends that open one when it begins.
pub(super) fn ends(tag: Tag, open: Tag) -> bool {
    match tag {
        Tag::Item => matches!(open, Tag::Item | Tag::Paragraph),
        Tag::Term | Tag::Detail => matches!(open, Tag::Term | Tag::Detail | Tag::Paragraph),
        Tag::Cell => matches!(open, Tag::Cell | Tag::Paragraph),
        Tag::Row => matches!(open, Tag::Row | Tag::Cell | Tag::Paragraph),
        Tag::Link => open == Tag::Link,
        Tag::Paragraph | Tag::Block => open == Tag::Paragraph,
        Tag::Heading(_) | Tag::Bullets | Tag::Numbers | Tag::Terms | Tag::Table | Tag::Pre | Tag::Quote => {
            matches!(open, Tag::Paragraph | Tag::Heading(_))
        }
        Tag::Strong | Tag::Em | Tag::Code => false,
    }
}

/// Whether nothing outside this open tag is ended when the other begins.
pub(super) fn shields(open: Tag, tag: Tag) -> bool {
    match tag {
        Tag::Item => matches!(open, Tag::Bullets | Tag::Numbers | Tag::Table),
        Tag::Term | Tag::Detail => matches!(open, Tag::Terms | Tag::Item | Tag::Quote | Tag::Table),
        Tag::Cell => matches!(open, Tag::Row | Tag::Table),
        Tag::Row => open == Tag::Table,
        Tag::Link => matches!(open, Tag::Cell | Tag::Table),
        _ => matches!(open, Tag::Cell | Tag::Item | Tag::Table | Tag::Block | Tag::Term | Tag::Detail),
    }
}
