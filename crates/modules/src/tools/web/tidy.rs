//! HTML as it is written on the web, told to the writer of Markdown as if it were written well.
//!
//! What is told is properly nested and not too deep, in one pass over the text: there are pages whose repair, the way a
//! browser does it, takes all memory or all time. What a browser would not show is left out, and links are made whole.

use std::borrow::Cow;

use url::Url;

mod scan;
mod tags;

use super::entity::{Place, decode};
use super::markdown::{Markdown, Tag, Void};
use scan::{after, attributes, content, name, opens_tag, value};
use tags::{Fate, ends, fate, indents, shields};

/// How deep tags nest; what is deeper keeps its text and loses its tags.
const DEPTH: usize = 60;
/// How deep what indents nests.
const INDENT: usize = 8;
/// The longest address that is kept.
const ADDRESS: usize = 2_048;
/// How many bytes of addresses a page may have: so many, and so many times its own length. A short link on a page with a
/// long address becomes a long one.
const ADDRESSES: (usize, usize) = (65_536, 4);
/// The longest title, in characters.
const TITLE: usize = 300;

/// A page, as Markdown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tidied {
    pub(super) text: String,
    pub(super) title: Option<String>,
}

/// Makes Markdown of a page that came from this address.
pub(super) fn tidy(text: &str, base: &Url) -> Tidied {
    let addresses = ADDRESSES.1.saturating_mul(text.len()).saturating_add(ADDRESSES.0);
    let mut desk = Desk { out: Markdown::default(), open: Vec::new(), title: None, base, addresses };
    let mut rest = text;
    while !rest.is_empty() {
        let (before, tag) = rest.split_at(opens_tag(rest));
        desk.out.text(&decode(before, Place::Text));
        rest = desk.tag(tag);
    }
    desk.close_to(0);
    Tidied { text: desk.out.finish(), title: desk.title }
}

struct Desk<'a> {
    out: Markdown,
    open: Vec<Tag>,
    title: Option<String>,
    base: &'a Url,
    /// How many bytes of addresses may still be written.
    addresses: usize,
}

impl Desk<'_> {
    /// Takes one tag, which the text begins with, and gives what comes after it.
    fn tag<'t>(&mut self, text: &'t str) -> &'t str {
        let inner = text.get(1..).unwrap_or_default();
        if let Some(comment) = inner.strip_prefix("!--") {
            return after(comment, "-->");
        }
        if let Some(end) = inner.strip_prefix('/') {
            let (name, rest) = name(end);
            self.end(&name);
            return after(rest, ">");
        }
        let (name, rest) = name(inner);
        if name.is_empty() {
            return after(inner, ">");
        }
        let (attributes, rest) = attributes(rest);
        match fate(&name) {
            _ if name == "title" => {
                let (title, rest) = content(rest, &name);
                self.title = self.title.take().or_else(|| plain_title(title));
                rest
            }
            Fate::Gone => content(rest, &name).1,
            Fate::Dropped => rest,
            Fate::Void(void) => {
                self.void(void, &attributes);
                rest
            }
            Fate::Kept(tag) => {
                self.begin(tag, &attributes);
                rest
            }
        }
    }

    fn begin(&mut self, tag: Tag, attributes: &[(String, &str)]) {
        let above = self.open.iter().rposition(|open| shields(*open, tag)).map_or(0, |at| at + 1);
        let first = self.open.iter().enumerate().skip(above).find(|(_, open)| ends(tag, **open));
        if let Some((at, _)) = first {
            self.close_to(at);
        }
        if tag == Tag::Cell && self.open.last() == Some(&Tag::Table) {
            self.begin(Tag::Row, &[]);
        }
        let indented = self.open.iter().filter(|open| indents(**open)).count();
        if self.open.len() >= DEPTH || (indents(tag) && indented >= INDENT) {
            return;
        }
        let attribute = match tag {
            Tag::Link => self.address(value(attributes, "href")),
            Tag::Code | Tag::Pre => language(value(attributes, "class")),
            Tag::Numbers => Cow::Borrowed(value(attributes, "start").unwrap_or_default()),
            _ => Cow::default(),
        };
        self.out.begin(tag, &attribute);
        self.open.push(tag);
    }

    fn void(&mut self, void: Void, attributes: &[(String, &str)]) {
        match void {
            Void::Break => self.out.line_break(),
            Void::Rule => self.out.rule(),
            Void::Image => {
                let address = self.address(value(attributes, "src"));
                let alt = decode(value(attributes, "alt").unwrap_or_default(), Place::Attribute);
                let alt: String = alt.chars().take(ADDRESS).collect();
                self.out.image(&alt, &address);
            }
        }
    }

    fn end(&mut self, name: &str) {
        let tag = match fate(name) {
            Fate::Kept(tag) => tag,
            // An end without a beginning that browsers show all the same.
            Fate::Void(Void::Break) => return self.out.line_break(),
            _ => return,
        };
        let part_of_table = matches!(tag, Tag::Table | Tag::Row | Tag::Cell);
        for (at, open) in self.open.iter().enumerate().rev() {
            if *open == tag || matches!((*open, tag), (Tag::Heading(_), Tag::Heading(_))) {
                return self.close_to(at);
            }
            // A stray end does not end the table it strayed into.
            if !part_of_table && matches!(*open, Tag::Table | Tag::Cell) {
                return;
            }
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            self.open.pop();
            self.out.end();
        }
    }

    /// The whole address, the part after `#` alone for a place on the same page, nothing for one that leads nowhere.
    fn address(&mut self, value: Option<&str>) -> Cow<'static, str> {
        let Some(value) = value.map(|value| decode(value, Place::Attribute)) else { return Cow::default() };
        let Ok(url) = self.base.join(value.trim()) else { return Cow::default() };
        let whole = url.as_str();
        let here = self.base.as_str().split('#').next().unwrap_or_default();
        let written = whole.strip_prefix(here).filter(|rest| rest.starts_with('#')).unwrap_or(whole);
        let harmless = matches!(url.scheme(), "http" | "https" | "mailto");
        match self.addresses.checked_sub(written.len()) {
            Some(left) if harmless && written.len() <= ADDRESS && written != "#" => {
                self.addresses = left;
                Cow::Owned(written.to_owned())
            }
            _ => Cow::default(),
        }
    }
}

fn language<'t>(classes: Option<&'t str>) -> Cow<'t, str> {
    let named = |class: &'t str| class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-"));
    let known = |name: &&str| {
        name.len() < 30 && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-#._".contains(c))
    };
    let name = classes.and_then(|classes| classes.split_whitespace().find_map(named));
    Cow::Borrowed(name.and_then(|name| name.split(',').next()).filter(known).unwrap_or_default())
}

fn plain_title(title: &str) -> Option<String> {
    let title = decode(title, Place::Text);
    let words = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain: String = words.chars().take(TITLE).collect();
    (!plain.is_empty()).then_some(plain)
}

#[cfg(test)]
#[path = "tidy_tests.rs"]
mod tests;
