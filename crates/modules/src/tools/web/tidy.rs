//! HTML before it is parsed: only tags that mean something in Markdown, properly nested, not too deep.
//!
//! A parser of HTML repairs what is written wrongly, and there are pages whose repair takes all memory or all time. What
//! leaves here needs no repair: it is made in one pass over the text and is never much longer than it. What a browser
//! would not show is left out, and links are made whole.

use url::Url;

/// How deep tags nest; what is deeper keeps its text and loses its tags.
const DEPTH: usize = 60;
/// How deep what indents nests.
const INDENT: usize = 8;
/// The longest address that is kept.
const ADDRESS: usize = 2_048;

/// A page, tidied.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tidied {
    pub(super) html: String,
    pub(super) title: Option<String>,
}

/// What becomes of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is written, under this name, with an end.
    Kept(&'static str),
    /// It is written and has no end.
    Void(&'static str),
    /// It goes with everything in it.
    Gone,
    /// It goes, and what is in it stays.
    Dropped,
}

fn fate(name: &str) -> Fate {
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
fn ends(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
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

/// Makes a page fit to be parsed.
pub(super) fn tidy(text: &str, base: &Url) -> Tidied {
    let mut desk = Desk { out: String::with_capacity(text.len()), open: Vec::new(), title: None, base };
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        desk.text(before);
        rest = desk.tag(tag);
    }
    desk.text(rest);
    desk.close_to(0);
    Tidied { html: desk.out, title: desk.title }
}

struct Desk<'a> {
    out: String,
    open: Vec<&'static str>,
    title: Option<String>,
    base: &'a Url,
}

impl Desk<'_> {
    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Takes one tag, which the text begins with, and gives what comes after it.
    fn tag<'t>(&mut self, text: &'t str) -> &'t str {
        let inner = text.get(1..).unwrap_or_default();
        if let Some(comment) = inner.strip_prefix("!--") {
            return after(comment, "-->");
        }
        if inner.starts_with(['!', '?']) {
            return after(inner, ">");
        }
        if let Some(end) = inner.strip_prefix('/') {
            let (name, rest) = name(end);
            if !name.is_empty() {
                self.end(&name);
                return after(rest, ">");
            }
            return after(inner, ">");
        }
        let (name, rest) = name(inner);
        if name.is_empty() {
            self.out.push_str("&lt;");
            return inner;
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
            Fate::Void(name) => {
                self.void(name, &attributes);
                rest
            }
            Fate::Kept(name) => {
                self.begin(name, &attributes);
                rest
            }
        }
    }

    fn begin(&mut self, name: &'static str, attributes: &[(String, &str)]) {
        let (ended, stops) = ends(name);
        let above = self.open.iter().rposition(|open| stops.contains(open)).map_or(0, |at| at + 1);
        let first = self.open.iter().enumerate().skip(above).find(|(_, open)| ended.contains(*open));
        if let Some((at, _)) = first {
            self.close_to(at);
        }
        let indents = |name: &str| matches!(name, "ul" | "ol" | "blockquote" | "table");
        let indented = self.open.iter().filter(|open| indents(open)).count();
        if self.open.len() >= DEPTH || (indents(name) && indented >= INDENT) {
            return;
        }
        // Two of the same side by side are one; the converter would join them with more effort.
        let end = format!("</{name}>");
        if matches!(name, "strong" | "em" | "code") && self.out.ends_with(&end) {
            self.out.truncate(self.out.len() - end.len());
            self.open.push(name);
            return;
        }
        self.out.push('<');
        self.out.push_str(name);
        match name {
            "a" => self.address("href", value(attributes, "href")),
            "code" | "pre" => self.language(value(attributes, "class")),
            _ => {}
        }
        self.out.push('>');
        self.open.push(name);
    }

    fn void(&mut self, name: &str, attributes: &[(String, &str)]) {
        self.out.push('<');
        self.out.push_str(name);
        if name == "img" {
            self.address("src", value(attributes, "src"));
            self.attribute("alt", value(attributes, "alt").unwrap_or_default());
        }
        self.out.push('>');
    }

    fn end(&mut self, name: &str) {
        let Fate::Kept(name) = fate(name) else { return };
        let part_of_table = matches!(name, "table" | "tr" | "td" | "th");
        for (at, open) in self.open.iter().enumerate().rev() {
            if *open == name {
                return self.close_to(at);
            }
            // A stray end does not end the table it strayed into.
            if !part_of_table && matches!(*open, "table" | "td" | "th") {
                return;
            }
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            if let Some(name) = self.open.pop() {
                self.out.push_str("</");
                self.out.push_str(name);
                self.out.push('>');
            }
        }
    }

    fn address(&mut self, key: &str, value: Option<&str>) {
        let Some(value) = value.map(|value| value.replace("&amp;", "&")) else { return };
        let Ok(url) = self.base.join(value.trim()) else { return };
        if matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= ADDRESS {
            self.attribute(key, &url.as_str().replace('&', "&amp;"));
        }
    }

    fn language(&mut self, class: Option<&str>) {
        let language = |class: &&str| class.starts_with("language-") && class.len() < 40;
        if let Some(class) = class.and_then(|classes| classes.split_whitespace().find(language)) {
            self.attribute("class", class);
        }
    }

    fn attribute(&mut self, key: &str, value: &str) {
        let value: String = value.chars().take(ADDRESS).collect();
        self.out.push_str(&format!(" {key}=\"{}\"", value.replace('"', "&quot;")));
    }
}

fn value<'t>(attributes: &[(String, &'t str)], key: &str) -> Option<&'t str> {
    attributes.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
}

/// What comes after the first `end`; nothing when there is none.
fn after<'t>(text: &'t str, end: &str) -> &'t str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

/// The name a tag begins with, in small letters.
fn name(text: &str) -> (String, &str) {
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return (String::new(), text);
    }
    let end = text.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (name.to_ascii_lowercase(), rest)
}

/// The attributes of a tag, and what comes after its `>`.
fn attributes(mut text: &str) -> (Vec<(String, &str)>, &str) {
    let mut found = Vec::new();
    loop {
        text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '='));
        if let Some(rest) = text.strip_prefix('>') {
            return (found, rest);
        }
        if text.is_empty() {
            return (found, text);
        }
        let end = text.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/'));
        let (key, rest) = text.split_at(end.unwrap_or(text.len()));
        let (value, rest) = match rest.trim_start().strip_prefix('=') {
            Some(rest) => attribute_value(rest.trim_start()),
            None => ("", rest),
        };
        // No page needs more, and a tag of a million attributes needs no memory.
        if found.len() < 32 {
            found.push((key.to_ascii_lowercase(), value));
        }
        text = rest;
    }
}

fn attribute_value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    let end = text.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(text.len());
    text.split_at(end)
}

/// What is inside an element that holds only text for a browser, and what comes after its end.
fn content<'t>(text: &'t str, name: &str) -> (&'t str, &'t str) {
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find("</")) {
        let at = from + found;
        let inner = text.get(at + 2..).unwrap_or_default();
        if inner.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return (text.get(..at).unwrap_or_default(), after(inner, ">"));
        }
        from = at + 2;
    }
    (text, "")
}

fn plain_title(title: &str) -> Option<String> {
    let mut plain = title.split_whitespace().collect::<Vec<_>>().join(" ");
    for (written, meant) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")]
    {
        plain = plain.replace(written, meant);
    }
    let plain: String = plain.chars().take(300).collect();
    (!plain.is_empty()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tidied(text: &str) -> String {
        tidy(text, &Url::parse("http://example.com/a/b").unwrap()).html
    }

    #[test]
    fn tags_are_nested_and_ended() {
        assert_eq!(tidied("<ul><li>a<li>b</ul>"), "<ul><li>a</li><li>b</li></ul>");
        assert_eq!(tidied("<p>a<p>b<div>c"), "<p>a</p><p>b</p><div>c</div>");
        assert_eq!(tidied("<b>x<i>y</b>z"), "<strong>x<em>y</em></strong>z");
        assert_eq!(
            tidied("<table><tr><td>1<td>2<tr><td>3"),
            "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>"
        );
        assert_eq!(tidied("<table><td></p></div>x</table>"), "<table><td>x</td></table>");
        assert_eq!(tidied("<b>a</b><strong>b</strong>"), "<strong>ab</strong>");
    }

    #[test]
    fn what_a_browser_does_not_show_is_gone() {
        assert_eq!(tidied("a<script>if (1 < 2) { '<p>' }</SCRIPT >b<!-- <p> -->c<style>x"), "abc");
        assert_eq!(tidied("1 < 2 & <3"), "1 &lt; 2 & &lt;3");
    }

    #[test]
    fn links_are_whole_and_harmless() {
        assert_eq!(
            tidied("<a href='c?x=1&amp;y=2'>l</a>"),
            "<a href=\"http://example.com/a/c?x=1&amp;y=2\">l</a>"
        );
        assert_eq!(tidied("<a href=\"javascript:alert('>')\" onclick=x>l</a>"), "<a>l</a>");
        assert_eq!(tidied("<img src=data:image/png;base64,AAAA alt='a \" b'>"), "<img alt=\"a &quot; b\">");
    }

    #[test]
    fn the_title_is_found() {
        let page = tidy("<head><TITLE> A &amp; B\n</title></head>x", &Url::parse("http://e.com").unwrap());
        assert_eq!((page.title.as_deref(), page.html.as_str()), (Some("A & B"), "x"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_written_makes_it_much_longer_or_deeper(
            parts in proptest::collection::vec("(<(/)?(b|p|div|li|table|td|a|blockquote|script|x)( href=.)?>)|[<>/!a&\"'=-]|é", 0..200)
        ) {
            let text = parts.concat();
            let html = tidied(&text);
            let (mut depth, mut most) = (0_i64, 0);
            for piece in html.split('<').skip(1).filter(|piece| !piece.starts_with(['b', 'h', 'i']) || piece.starts_with("blockquote")) {
                depth += if piece.starts_with('/') { -1 } else { 1 };
                most = most.max(depth);
            }
            proptest::prop_assert_eq!(depth, 0);
            proptest::prop_assert!(most <= 60);
        }
    }
}
