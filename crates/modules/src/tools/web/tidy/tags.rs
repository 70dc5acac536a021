//! What becomes of each tag: a table.

/// What becomes of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is written, under this name, with an end.
    Kept(&'static str),
    /// It is written and has no end.
    Void(&'static str),
    /// It goes with everything in it.
    Gone,
    /// It goes, and what is in it stays.
    Dropped,
}

pub(super) fn fate(name: &str) -> Fate {
    let kept = match name {
        "b" | "strong" => "strong",
        "i" | "em" => "em",
        "div" | "section" | "article" | "main" | "header" | "footer" | "nav" | "aside" | "figure"
        | "figcaption" | "address" | "details" | "summary" | "dl" | "dt" | "dd" | "form" | "fieldset" => {
            "div"
        }
        "p" => "p",
        "h1" => "h1",
        "h2" => "h2",
        "h3" => "h3",
        "h4" => "h4",
        "h5" => "h5",
        "h6" => "h6",
        "a" => "a",
        "ul" | "menu" => "ul",
        "ol" => "ol",
        "li" => "li",
        "table" => "table",
        "tr" => "tr",
        "td" => "td",
        "th" => "th",
        "pre" => "pre",
        "code" | "kbd" | "samp" => "code",
        "blockquote" => "blockquote",
        "br" => return Fate::Void("br"),
        "hr" => return Fate::Void("hr"),
        "img" => return Fate::Void("img"),
        "script" | "style" | "noscript" | "template" | "svg" | "math" | "iframe" | "object" | "select"
        | "textarea" | "canvas" | "audio" | "video" => return Fate::Gone,
        _ => return Fate::Dropped,
    };
    Fate::Kept(kept)
}

/// Tags that end when this one begins, as far up as the first of the second list.
pub(super) fn ends(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "li" => (&["li", "p"], &["ul", "ol", "table"]),
        "td" | "th" => (&["td", "th", "p"], &["tr", "table"]),
        "tr" => (&["tr", "td", "th", "p"], &["table"]),
        "a" => (&["a"], &["td", "th", "table"]),
        "p" | "div" | "ul" | "ol" | "table" | "pre" | "blockquote" | "h1" | "h2" | "h3" | "h4" | "h5"
        | "h6" => (&["p"], &["td", "th", "li", "table", "div"]),
        _ => (&[], &[]),
    }
}
