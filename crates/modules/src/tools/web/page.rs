//! From bytes to text a model can read: the character set, the kind of document, and Markdown for HTML.

use amplifier_core::contracts::ToolFailure;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::get::Got;
use super::tidy::tidy;

/// How much of a page tells what it is.
const HEAD: usize = 1_024;

/// What HTML becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Markdown,
    AsItCame,
}

/// A page as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) url: String,
    pub(super) content_type: String,
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// Whether the text was made of HTML.
    pub(super) is_markdown: bool,
    /// Whether the server had more than we took.
    pub(super) cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    Unknown,
    Binary,
}

/// Refuses what is no text before it is read.
pub(super) fn wanted(content_type: &str, length: Option<u64>) -> Result<(), ToolFailure> {
    if kind(content_type) != Kind::Binary {
        return Ok(());
    }
    let size = length.map_or_else(|| "of unknown size".to_owned(), |length| format!("of {length} bytes"));
    Err(binary(essence(content_type), &size))
}

/// The page; heavy for large ones, so it belongs on a blocking thread.
pub(super) fn read(got: Got, form: Form) -> Result<Page, ToolFailure> {
    let kind = match kind(&got.content_type) {
        Kind::Unknown if looks_binary(&got.bytes) => {
            return Err(binary("unknown", &format!("of {} bytes", got.bytes.len())));
        }
        Kind::Unknown if looks_like_html(&got.bytes) => Kind::Html,
        kind => kind,
    };
    let text = decode(&got.bytes, &got.content_type, kind);
    let is_markdown = (kind, form) == (Kind::Html, Form::Markdown);
    let (title, text) = if is_markdown {
        let tidied = tidy(&text, &got.url);
        (tidied.title, tidied.text)
    } else {
        (None, text)
    };
    let content_type = essence(&got.content_type).to_owned();
    Ok(Page { url: got.url.into(), content_type, title, text, is_markdown, cut: got.cut })
}

fn binary(kind: &str, size: &str) -> ToolFailure {
    let message =
        format!("this is a {kind} document {size}, which is no text; fetch a page about it instead");
    ToolFailure::new(message).of_kind("NotText")
}

/// The media type without its parameters.
pub(super) fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

fn kind(content_type: &str) -> Kind {
    let essence = essence(content_type).to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "" => Kind::Unknown,
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/ecmascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-ndjson"
        | "application/sql"
        | "application/graphql"
        | "application/x-sh"
        | "application/rtf"
        | "application/x-www-form-urlencoded"
        | "image/svg+xml" => Kind::Text,
        other if other.starts_with("text/") => Kind::Text,
        other if other.ends_with("+json") || other.ends_with("+xml") || other.ends_with("+yaml") => {
            Kind::Text
        }
        _ => Kind::Binary,
    }
}

fn looks_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(HEAD).any(|byte| *byte == 0)
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let head = head(bytes).trim_start().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

fn head(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..HEAD.min(bytes.len())).unwrap_or_default()).into_owned()
}

/// By its byte order mark, else as the server says, else as the page says, else as UTF-8 if it is that.
fn decode(bytes: &[u8], content_type: &str, kind: Kind) -> String {
    let declared =
        label(content_type).or_else(|| (kind == Kind::Html).then(|| label(&head(bytes))).flatten());
    let named = declared.and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = named.unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_some() => WINDOWS_1252,
        // What is cut in the middle of a character is UTF-8 all the same.
        _ => UTF_8,
    });
    encoding.decode(bytes).0.into_owned()
}

/// What follows the first `charset=`.
fn label(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset=")?;
    let rest = rest.trim_start_matches(['"', '\'', ' ']);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.:".contains(c))).unwrap_or(rest.len());
    rest.get(..end).filter(|label| !label.is_empty()).map(str::to_owned)
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
